"""The operators that lite-paddle lowers: blocks of docs/paddle.md and docs/paddle-operators.md."""

from __future__ import annotations

from lite_cpu.lowering.registry import refusal as refused_by_cpu
from lite_opencl.lowering.registry import refusal as refused_by_opencl
from lite_paddle.lowering.operators import supported_ops
from lite_paddle.lowering.registry import registered_lowerings
from lite_paddle.operator_table import NO, rows
from markdown_tables import code, table

__all__ = ["BLOCKS"]


def by_module() -> str:
    """Return a table of the operators by the module that lowers them."""
    modules: dict[str, list[str]] = {}
    for name in supported_ops():
        modules.setdefault(registered_lowerings[name].__module__.rpartition(".")[2], []).append(name)
    return table(("module", "operators"), ((name, code(modules[name])) for name in sorted(modules)))


def by_backend() -> str:
    """Return a table of the operators, and where the nodes run that they become."""
    backends = {"x86": refused_by_cpu, "arm": refused_by_cpu, "opencl": refused_by_opencl}
    lines = [
        (f"`{row.name}`", "host", *row.backends.values(), code(row.operators) or row.reason)
        for row in rows(backends)
        if NO not in row.backends.values()
    ]
    return table(("operator", "host", *backends, "becomes"), lines)


BLOCKS = {"operators that lite-paddle lowers": by_module, "operators of Paddle by backend": by_backend}
