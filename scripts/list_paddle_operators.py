"""The list of operators that lite-paddle lowers: a block of docs/paddle.md, which ``make docs`` writes."""

from __future__ import annotations

from lite_paddle.lowering.operators import supported_ops
from lite_paddle.lowering.registry import registered_lowerings
from markdown_tables import code, table

__all__ = ["BLOCKS"]


def by_module() -> str:
    """Return a table of the operators by the module that lowers them."""
    modules: dict[str, list[str]] = {}
    for name in supported_ops():
        modules.setdefault(registered_lowerings[name].__module__.rpartition(".")[2], []).append(name)
    return table(("module", "operators"), ((name, code(modules[name])) for name in sorted(modules)))


BLOCKS = {"operators that lite-paddle lowers": by_module}
