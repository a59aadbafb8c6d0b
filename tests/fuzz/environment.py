"""Environment variables for the time of one execution: the process of the tests runs other things afterwards."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["environment"]


@contextmanager
def environment(**variables: str | None) -> Iterator[None]:
    """Set environment variables, or remove those that are None, and restore them afterwards."""
    before = {name: os.environ.get(name) for name in variables}
    _set(variables)
    try:
        yield
    finally:
        _set(before)


def _set(variables: dict[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
