"""The cases of every operator, one file per family; beside them, in files that have no table, what families share."""

from __future__ import annotations

import pkgutil
from collections.abc import Sequence
from importlib import import_module

from lite_conformance.cases.op_cases import OpTable, tables

__all__ = ["all_tables"]


def all_tables() -> Sequence[OpTable]:
    """The table of every operator, in the order of the opset. Imports every file of this package, which fills them."""
    for family in pkgutil.iter_modules(__path__):
        import_module(f"{__name__}.{family.name}")
    return tables()
