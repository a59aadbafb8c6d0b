"""The cases of every operator, one file per operator family; files without a table have helpers of several families."""

from __future__ import annotations

import pkgutil
from collections.abc import Sequence
from functools import cache
from importlib import import_module

from lite_conformance.cases.op_cases import OpTable, tables

__all__ = ["all_tables"]


def all_tables() -> Sequence[OpTable]:
    """Return the table of every operator of Lite, in the order of the opset; imports the files of this package first.

    :func:`lite_conformance.cases.plugins.brought.every_table` returns those of plugins, too.
    """
    _import_all()
    return [table for table in tables() if not table.is_of_plugin]


@cache
def _import_all() -> None:
    """Import the files of this package."""
    for family in pkgutil.iter_modules(__path__):
        import_module(f"{__name__}.{family.name}")
    operand_kinds = import_module(f"{__name__}.operand_kinds")
    for table in tables():
        if not table.is_of_plugin:
            table.complete_with(operand_kinds.complete)
