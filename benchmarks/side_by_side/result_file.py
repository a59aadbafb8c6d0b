"""The files in docs/results: the processor, and one line of JSON for each measured entry."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

__all__ = ["PROCESSOR", "content_of", "name_of", "text_of", "write"]

#: The facts about its processor that a file has: names of ``machine.describe``.
PROCESSOR = ("processor", "microarchitecture", "family", "model", "stepping", "extensions", "cores", "system")


def name_of(machine: Mapping[str, Any]) -> str:
    """Return the name of a processor for headings and tables."""
    cores = f"{machine['cores']} core{'' if machine['cores'] == 1 else 's'}"
    return f"{machine['processor']} ({machine['microarchitecture']}), {cores}"


def text_of(
    schema: tuple[str, int], machine: Mapping[str, Any], entries_name: str, entries: Iterable[Mapping[str, Any]]
) -> str:
    """Return the content of a file: JSON with one line for each entry.

    Args:
        schema: name and version of the file's schema.
        machine: the processor.
        entries_name: name of the list of entries.
        entries: the entries, as JSON objects.

    Raises:
        ValueError: an entry contains NaN or infinity.
    """
    head = {"schema": schema[0], "schema_version": schema[1], "machine": dict(machine)}
    lines = ",\n".join(f"  {json.dumps(entry, allow_nan=False)}" for entry in entries)
    return f'{json.dumps(head, indent=1)[:-2]},\n "{entries_name}": [\n{lines}\n ]\n}}\n'


def content_of(file: Path, schema: tuple[str, int]) -> dict[str, Any]:
    """Read a file and return its content.

    Raises:
        ValueError: it is no file of this schema, or of another version.
    """
    content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    found = (content.get("schema"), content.get("schema_version"))
    if found != schema:
        raise ValueError(
            f"{file}: expected schema {schema[0]!r}, version {schema[1]}, found {found[0]!r}, {found[1]!r}; "
            "remove the file and measure again"
        )
    return content


def write(file: Path, text: str) -> None:
    """Write a file, and make its folder if it is missing."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
