"""Files of measurements that `lite bench --save` writes and `--against` reads."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

from lite_core.errors import InputError
from lite_tools.benchmark.document import SCHEMA_VERSION

__all__ = ["read_saved"]

_MOST_BYTES = 1 << 28
_LARGEST = 1e12
_TIMES = ("load_ms", "compile_ms", "first_run_ms")


def read_saved(path: str) -> dict[str, Any]:
    """Return the document in a file of `lite bench --save`.

    Raises:
        InputError: the file cannot be read, or it is not such a file.
    """
    again = "write it with `lite bench MODEL --save FILE`"
    try:
        state = os.stat(path)
        content = Path(path).read_bytes() if stat.S_ISREG(state.st_mode) and state.st_size <= _MOST_BYTES else None
    except (OSError, ValueError) as error:  # ValueError: a name with a null character
        raise InputError(f"{path!r} cannot be read: {getattr(error, 'strerror', None) or error}; {again}") from None
    if content is None:
        raise InputError(f"{path!r} is not a file of at most {_MOST_BYTES >> 20} MiB; {again}")
    try:
        document = json.loads(content)
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
    if load is not None and not (isinstance(load, dict) and {*load} == {"busy", "processors"} and _all_numbers(load)):
        return "'other_load' must have the numbers 'busy' and 'processors'"
    if not _are_options(document.get("options")):
        return "'options' must be a list of name, value and origin"
    for number, result in enumerate(document["results"]):
        if not isinstance(result, dict) or not isinstance(result.get("name"), str):
            return f"result {number} has no name"
        for key in ("latencies_ms", "latencies_under_load_ms"):
            if not _is_turns(result.get(key)):
                return f"{key!r} of result {result['name']!r} must be lists of times in lists"
        if not _all_numbers({key: result.get(key) for key in _TIMES}):
            return f"{', '.join(_TIMES)} of result {result['name']!r} must be times"
        if not _are_options(result.get("options")):
            return f"'options' of result {result['name']!r} must be a list of name, value and origin"
    return ""


def _is_turns(turns: Any) -> bool:
    return isinstance(turns, list) and all(
        isinstance(t, list) and all(_is_number(n) and n > 0 for n in t) for t in turns
    )


def _all_numbers(values: dict[str, Any]) -> bool:
    return all(map(_is_number, values.values()))


def _is_number(value: Any) -> bool:
    """Return True for a number of a size that occurs; a JSON file may also contain NaN and integers of any length."""
    return type(value) in (int, float) and 0 <= value < _LARGEST


def _are_options(options: Any) -> bool:
    return isinstance(options, list) and all(
        isinstance(option, dict) and all(isinstance(option.get(key), str) for key in ("name", "value", "origin"))
        for option in options
    )
