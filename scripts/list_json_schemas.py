"""The list of JSON Schemas: a block of docs/json.md, which ``make docs`` writes."""

from __future__ import annotations

from json_schemas import EXAMPLES, SCHEMAS
from markdown_tables import table

__all__ = ["BLOCKS"]


def schemas() -> str:
    """Return a table of the schemas: the file, what it describes, a command, and a field of its result."""
    rows = []
    for name, schema in sorted(SCHEMAS.items()):
        command, field, value = EXAMPLES[name]
        about = f"`{schema['title'].replace(': ', '`: ', 1)}" if ": " in schema["title"] else schema["title"]
        rows.append((f"[{name}](schemas/{name}.json)", about, f"`{command}`", f"`{field}`", f"`{value}`"))
    return table(("schema", "of", "for example", "field", "such as"), rows)


BLOCKS = {"list of JSON schemas": schemas}
