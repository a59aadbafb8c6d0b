"""JSON from somebody else: no name twice, only finite numbers, no deep nesting."""

from __future__ import annotations

import json
import math
from typing import Any

__all__ = ["parse_object"]

#: Reports and manifests have at most 5 levels.
_MOST_LEVELS = 16


def parse_object(content: bytes) -> dict[str, Any]:
    """Return the object in a JSON text.

    Raises:
        ValueError: the text is no JSON in UTF-8, has a name twice in one object, or numbers that JSON lacks; is nested
            too deeply; or is something else than an object.
    """
    try:
        value = json.loads(
            content.decode("utf-8"),
            object_pairs_hook=_without_repetition,
            parse_constant=_refuse,
            parse_float=_finite,
        )
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    _check_levels(value)
    if not isinstance(value, dict):
        raise ValueError(f"it must be an object, is {type(value).__name__}")
    return value


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the name {next(n for n in names if names.count(n) > 1)!r} is in it twice")
    return found


def _check_levels(value: Any) -> None:
    level = [value]
    for _ in range(_MOST_LEVELS):
        children = [list(v.values()) if isinstance(v, dict) else v for v in level if isinstance(v, (dict, list))]
        level = [child for group in children for child in group]
    if level:
        raise ValueError("it is nested too deeply")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is too large for a number")
    return value


def _refuse(text: str) -> Any:
    raise ValueError(f"{text} is not a number of JSON")
