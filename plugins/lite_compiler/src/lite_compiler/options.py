"""Checking the options of a backend: an unknown name or value is an error that lists the valid ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lite_core.errors import InputError

__all__ = ["check_known"]


def check_known(backend: str, options: Mapping[str, Any], known: Mapping[str, type | Sequence[Any]]) -> None:
    """Raise InputError for invalid options of a backend; to be called by its ``check_options``.

    Args:
        backend: its name.
        options: the user's options.
        known: for each option, the type of its values or the list of valid values.

    Raises:
        InputError: an option is unknown, or its value is invalid.
    """
    for name, value in options.items():
        if name not in known:
            listed = ", ".join(sorted(known)) or "none"
            raise InputError(f"backend {backend!r} has no option {name!r}{_suggestion(name, known)}; it has: {listed}")
        allowed = known[name]
        if isinstance(allowed, type):
            # NOTE: True is also an instance of int.
            if not isinstance(value, allowed) or (isinstance(value, bool) and allowed is not bool):
                raise _wrong_value(backend, name, value, f"a value of type {allowed.__name__}")
        elif not any(type(value) is type(one) and value == one for one in allowed):
            raise _wrong_value(backend, name, value, "one of " + ", ".join(map(repr, allowed)))


def _suggestion(name: str, known: Mapping[str, Any]) -> str:
    import difflib  # not at the top: only a mistake needs it

    near = difflib.get_close_matches(str(name).lower(), known, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def _wrong_value(backend: str, name: str, value: object, expected: str) -> InputError:
    return InputError(f"option {name!r} of backend {backend!r} must be {expected}; it is {value!r}")
