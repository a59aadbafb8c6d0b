"""The cases of every operator, one file per operator family; files without a table have helpers of several families."""

from __future__ import annotations

import pkgutil
from collections.abc import Sequence
from importlib import import_module

from lite_conformance.cases.op_cases import OpTable, tables

__all__ = ["all_tables"]


def all_tables() -> Sequence[OpTable]:
    """Return the table of every operator, in the order of the opset; imports the files of this package first."""
    for family in pkgutil.iter_modules(__path__):
        import_module(f"{__name__}.{family.name}")
    return tables()
