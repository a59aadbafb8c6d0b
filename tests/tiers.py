"""Parameters of tests of which only some belong to the contributors' tier."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest

__all__ = ["in_part"]


def in_part(part: str, values: Iterable[Any], quick: Collection[Any] = ()) -> list[Any]:
    """Return values for ``parametrize``; those that are not ``quick`` run in a part of the full tier.

    Args:
        part: one of ``scripts/full_tests.py``.
        values: every value of the parameter.
        quick: the values that ``make test`` runs.
    """
    return [value if value in quick else pytest.param(value, marks=pytest.mark.full(part)) for value in values]
