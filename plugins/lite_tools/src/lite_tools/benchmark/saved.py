"""Files of measurements that `lite bench --save` writes and `--against` reads."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from lite_core.errors import InputError
from lite_tools.benchmark.document import SCHEMA_VERSION

__all__ = ["read_saved"]

_MOST_BYTES = 1 << 28


def read_saved(path: str) -> dict[str, Any]:
    """Return the document in a file of `lite bench --save`.

    Raises:
        InputError: the file cannot be read, or it is not such a file.
    """
    again = "write it with `lite bench MODEL --save FILE`"
    try:
        file = Path(path)
        if file.stat().st_size > _MOST_BYTES:
            raise InputError(f"{path}: a measurement has at most {_MOST_BYTES >> 20} MiB, this file has more; {again}")
        document = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}; {again}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not a saved measurement, because it is not JSON: {error}; {again}") from None
    problem = _problem(document)
    if problem:
        raise InputError(f"{path} is not a saved measurement: {problem}; {again}")
    found: dict[str, Any] = document
    return found


def _problem(document: Any) -> str:
    """Return what a document lacks; empty if it can be compared."""
    if not isinstance(document, dict):
        return f"it contains {type(document).__name__}, expected an object"
    if document.get("schema_version") != SCHEMA_VERSION:
        return f"its schema_version is {document.get('schema_version')!r}, this version reads {SCHEMA_VERSION}"
    for key, kind in (("model", str), ("model_sha256", str), ("environment", dict), ("results", list)):
        if not isinstance(document.get(key), kind):
            return f"{key!r} must be of type {kind.__name__}"
    load = document.get("other_load")
    if load is not None and not (isinstance(load, dict) and {*load} == {"busy", "processors"} and _are_numbers(load)):
        return "'other_load' must have the numbers 'busy' and 'processors'"
    for number, result in enumerate(document["results"]):
        if not isinstance(result, dict) or not isinstance(result.get("name"), str):
            return f"result {number} has no name"
        for key in ("latencies_ms", "latencies_under_load_ms"):
            if not _is_turns(result.get(key)):
                return f"{key!r} of result {result['name']!r} must be lists of times in lists"
        if not isinstance(result.get("options"), list) or not all(_is_option(o) for o in result["options"]):
            return f"'options' of result {result['name']!r} must be a list of options with name and value"
    return ""


def _is_turns(turns: Any) -> bool:
    return isinstance(turns, list) and all(isinstance(t, list) and all(map(_is_time, t)) for t in turns)


def _is_time(number: Any) -> bool:
    return type(number) in (int, float) and 0 < number < 1e12 and math.isfinite(number)


def _are_numbers(values: dict[str, Any]) -> bool:
    return all(type(value) in (int, float) and math.isfinite(value) for value in values.values())


def _is_option(option: Any) -> bool:
    return isinstance(option, dict) and all(isinstance(option.get(key), str) for key in ("name", "value", "origin"))
