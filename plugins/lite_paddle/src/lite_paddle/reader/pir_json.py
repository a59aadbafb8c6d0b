"""The JSON of a PIR program: envelope, types, attribute values, and checked access to its members."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from lite_core.errors import ModelFormatError

from ..source import SourceType
from .element_types import KNOWN, PIR_ELEMENT_TYPES

Json = dict[str, Any]
# A vector of tensors has a list of types.
PirType = SourceType | list["PirType"] | None

_DIALECTS = {"0": "builtin", "1": "pd_op", "2": "cf", "3": "custom_op", "4": "dist"}
# Paddle writes "INF" and "NaN", and its own reader also knows "NAN".
_NON_FINITE = {"INF": math.inf, "-INF": -math.inf, "NAN": math.nan}


def parse_envelope(path: Path, data: bytes) -> tuple[Json, int]:
    """Parse the file and check the envelope of the program.

    Returns:
        (main block, file version)

    Raises:
        ModelFormatError: It is not JSON, not a PIR program, or its structure is damaged.
    """
    try:
        document = json.loads(data.removeprefix(b"\xef\xbb\xbf"))
    except RecursionError as error:
        raise ModelFormatError(f"{path}: the JSON is nested too deeply to be a program") from error
    except ValueError as error:
        raise ModelFormatError(f"{path}: not valid JSON, truncated or damaged: {error}") from error
    base = member(document, "base_code", dict, "the file")
    if base.get("magic") != "pir":
        raise ModelFormatError(f"{path}: base_code.magic is {base.get('magic')!r}, expected 'pir'")
    version = member(base, "version", int, "base_code")
    regions = member(member(document, "program", dict, "the file"), "regions", list, "program")
    if len(regions) != 1:
        raise ModelFormatError(f"{path}: the program has {len(regions)} top regions, expected 1")
    blocks = member(regions[0], "blocks", list, "the top region")
    if len(blocks) != 1:
        raise ModelFormatError(f"{path}: the top region has {len(blocks)} blocks, expected 1")
    return blocks[0], version


def program_version(file_version: int) -> int:
    """Return the Paddle version of a file version: 1 is 3.0, 4 is 3.3.1; 0 is a development build."""
    return 3_000_000 + 1_000 * min(max(file_version - 1, 0), 998)


def member(container: Any, key: str, kind: type, where: str) -> Any:
    """Return a member of a JSON object, which must exist and have the given type.

    Raises:
        ModelFormatError: It does not exist, or has another type.
    """
    if not isinstance(container, dict):
        raise ModelFormatError(f"{where} is {_kind(container)}, expected a JSON object")
    value = container.get(key)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ModelFormatError(f"{where}: {key!r} is {_kind(value)}, expected {kind.__name__}")
    return value


def members(container: Any, key: str, where: str) -> list[Any]:
    """Return a list in a JSON object; an absent list is empty.

    Raises:
        ModelFormatError: It is not a list.
    """
    if isinstance(container, dict) and container.get(key) is None:
        return []
    value: list[Any] = member(container, key, list, where)
    return value


def qualified_name(identifier: str) -> str:
    """Expand an identifier: ``"1.conv2d"`` -> ``"pd_op.conv2d"``; full names stay, ``p`` is a parameter."""
    if identifier == "p":
        return "builtin.parameter"
    dialect, dot, name = identifier.partition(".")
    return f"{_DIALECTS.get(dialect, dialect)}.{name}" if dot else identifier


def value_id(reference: Any, where: str) -> int:
    """Return the number of an operand, result or argument; 0 means that it is absent.

    Raises:
        ModelFormatError: It has no number.
    """
    if isinstance(reference, dict):
        # Development snapshots before the release, and block arguments, use "#".
        number = reference.get("%", reference.get("#"))
        if isinstance(number, int) and not isinstance(number, bool):
            return number
    raise ModelFormatError(f"{where}: {str(reference)[:80]} is no reference to a value")


def read_type(data: Any, where: str) -> PirType:
    """Parse a TYPE of the file.

    Raises:
        ModelFormatError: Its structure is damaged.
    """
    identifier = member(data, "#", str, where)
    name = identifier.rpartition(".")[2]
    if name in PIR_ELEMENT_TYPES:
        return SourceType(PIR_ELEMENT_TYPES[name], None)
    if name == "t_vec":
        return [read_type(item, where) for item in member(data, "D", list, where)]
    if name in (
        "t_dtensor",
        "t_dense_tensor_array",
        "t_selected_rows",
        "t_sparse_coo_tensor",
        "t_sparse_csr_tensor",
    ):
        fields = member(data, "D", list, where)
        if len(fields) < 2:
            raise ModelFormatError(f"{where}: the type {identifier} has {len(fields)} fields, expected at least 2")
        element = PIR_ELEMENT_TYPES.get(member(fields[0], "#", str, where).rpartition(".")[2], "undefined")
        return SourceType(element, _dims(fields[1], where), is_array=name == "t_dense_tensor_array")
    if identifier.startswith(("4.", "dist.")):
        fields = member(data, "D", list, where)
        return read_type(fields[0], where) if fields else None
    return None


def read_attributes(entries: list[Any], where: str) -> dict[str, Any]:
    """Parse a list of ATTR into a dictionary; attributes that are explicitly empty are left out.

    Raises:
        ModelFormatError: The structure is damaged.
    """
    attrs = {}
    for entry in entries:
        name = member(entry, "N", str, where)
        value = member(entry, "AT", dict, f"{where}, attribute {name!r}")
        if value.get("#") != "NULL":
            attrs[name] = read_attribute(value, f"{where}, attribute {name!r}")
    return attrs


def read_attribute(value: Any, where: str) -> Any:
    """Parse one AVAL to bool, int, float, str, None (an element type that is not set) or a list of them.

    NOTE: the width in the identifier (a_i32 or a_i64, a_f32 or a_f64) changed between file versions, so it
    is ignored.

    Raises:
        ModelFormatError: The structure is damaged.
    """
    kind = member(value, "#", str, where).rpartition(".")[2]
    if "VD" in value:
        name = str(value["VD"]).upper()
        if name not in _NON_FINITE:
            raise ModelFormatError(f"{where}: {value['VD']!r} is no number")
        return _NON_FINITE[name]
    data = value.get("D")
    if kind == "a_array":
        return [read_attribute(item, where) for item in member(value, "D", list, where)]
    if kind == "a_dtype":
        return data if data in KNOWN else None
    if kind == "a_scalar" and isinstance(data, list) and len(data) == 2:
        return data[1]
    if kind in ("a_c64", "a_c128") and isinstance(data, list) and len(data) == 2:
        return complex(data[0], data[1])
    if kind == "a_type":
        found = read_type(data, where)
        return found.dtype if isinstance(found, SourceType) and found.dtype in KNOWN else None
    return data


def _dims(data: Any, where: str) -> tuple[int, ...]:
    if not isinstance(data, list) or not all(isinstance(dim, int) and not isinstance(dim, bool) for dim in data):
        raise ModelFormatError(f"{where}: {str(data)[:80]} is no list of dimensions")
    return tuple(data)


def _kind(value: Any) -> str:
    return "missing" if value is None else f"{type(value).__name__} {str(value)[:40]!r}"
