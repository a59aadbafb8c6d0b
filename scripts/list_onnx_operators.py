"""The lists of operators that lite-onnx lowers: blocks of docs/onnx.md and docs/onnx-domains.md, for ``make docs``."""

from __future__ import annotations

from functools import partial

from lite_onnx.lowering.operators import lowered_operators
from lite_onnx.lowering.registry import registered_lowerings
from markdown_tables import code, table

__all__ = ["BLOCKS"]


def by_domain() -> str:
    """Return a table of the operators by domain."""
    domains: dict[str, list[str]] = {}
    for domain, name in lowered_operators():
        domains.setdefault(domain or "ai.onnx", []).append(name)
    return table(("domain", "operators"), ((f"`{domain}`", code(names)) for domain, names in domains.items()))


def by_module(domain: str) -> str:
    """Return a table of the operators of one domain, by the module that lowers them."""
    modules: dict[str, list[str]] = {}
    for other, name in lowered_operators():
        if other == domain:
            module = registered_lowerings[other, name].__module__.rpartition(".")[2]
            modules.setdefault(module, []).append(name)
    return table(("module", "operators"), ((name, code(modules[name])) for name in sorted(modules)))


BLOCKS = {
    "operators that lite-onnx lowers": by_domain,
    "operators of com.microsoft": partial(by_module, "com.microsoft"),
    "operators of ai.onnx.ml": partial(by_module, "ai.onnx.ml"),
}
