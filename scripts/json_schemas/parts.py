"""Parts of JSON Schemas as Python calls, so that a field is one line: its type, and what it is, with its unit."""

from __future__ import annotations

from typing import Any

__all__ = [
    "SIZES",
    "Schema",
    "choice",
    "document",
    "flag",
    "integer",
    "items",
    "mapping",
    "maybe",
    "named",
    "number",
    "one_of",
    "open_record",
    "or_null",
    "record",
    "text",
    "texts",
]

Schema = dict[str, Any]
_OPTIONAL = "x-optional"  # taken out when a record is made


def text(about: str) -> Schema:
    """Return the schema of a text."""
    return {"type": "string", "description": about}


def texts(about: str) -> Schema:
    """Return the schema of a list of texts."""
    return items(about, {"type": "string"})


def choice(about: str, *values: str) -> Schema:
    """Return the schema of one of several texts."""
    return {"description": about, "enum": list(values)}


def flag(about: str) -> Schema:
    """Return the schema of a truth value."""
    return {"type": "boolean", "description": about}


def integer(about: str, least: int | None = 0) -> Schema:
    """Return the schema of an integer, by default at least 0."""
    return {"type": "integer", **({} if least is None else {"minimum": least}), "description": about}


def number(about: str, least: float | None = 0, *, finite: bool = True) -> Schema:
    """Return the schema of a number, by default at least 0; ``finite=False`` permits ``"inf"`` and ``"nan"``."""
    plain = {"type": "number", **({} if least is None else {"minimum": least})}
    if finite:
        return {**plain, "description": about}
    return {"description": about, "anyOf": [plain, {"enum": ["inf", "-inf", "nan"]}]}


def items(about: str, each: Schema) -> Schema:
    """Return the schema of a list whose items have one schema."""
    return {"type": "array", "description": about, "items": each}


def mapping(about: str, each: Schema) -> Schema:
    """Return the schema of an object with any names, whose values have one schema."""
    return {"type": "object", "description": about, "additionalProperties": each}


def or_null(schema: Schema) -> Schema:
    """Return a schema that also permits null."""
    if isinstance(schema.get("type"), str):
        return {**schema, "type": [schema["type"], "null"]}
    told = {"description": schema["description"]} if "description" in schema else {}
    rest = {key: value for key, value in schema.items() if key != "description"}
    return {**told, "anyOf": [rest, {"type": "null"}]}


def maybe(schema: Schema) -> Schema:
    """Return the schema of a field that may be absent."""
    return {**schema, _OPTIONAL: True}


def record(about: str = "", /, **fields: Schema) -> Schema:
    """Return the schema of an object with these fields and no others; all are present but those of :func:`maybe`."""
    kept = {name: {k: v for k, v in field.items() if k != _OPTIONAL} for name, field in fields.items()}
    required = [name for name, field in fields.items() if _OPTIONAL not in field]
    told = {"description": about} if about else {}
    return {"type": "object", **told, "required": required, "additionalProperties": False, "properties": kept}


def open_record(about: str = "", /, **fields: Schema) -> Schema:
    """Return the schema of an object that has these fields and may have others."""
    return {**record(about, **fields), "additionalProperties": True}


def named(name: str) -> Schema:
    """Return a reference to a definition of the same document."""
    return {"$ref": f"#/$defs/{name}"}


def one_of(*choices: Schema) -> Schema:
    """Return the schema of what fits exactly one of several schemas."""
    return {"oneOf": list(choices)}


def document(title: str, *bodies: Schema, **definitions: Schema) -> Schema:
    """Return a whole document: one object with ``schema_version`` and the fields of a body, or one of several bodies.

    Args:
        title: what prints the document, and what it tells.
        bodies: records, the alternatives; each with a ``title`` or description if there are several.
        definitions: what :func:`named` refers to.
    """
    version = {"const": 1, "description": "The version of this format: see docs/json.md."}
    whole = []
    for body in bodies:
        fields = {"schema_version": version, **body["properties"]}
        whole.append({**body, "required": ["schema_version", *body["required"]], "properties": fields})
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title}
    tail = {"$defs": definitions} if definitions else {}
    return {**head, **(whole[0] if len(whole) == 1 else one_of(*whole)), **tail}


#: The shape of a tensor: fixed sizes.
SIZES = items("The sizes of its dimensions.", {"type": "integer", "minimum": 0})
