"""Rewriting of Fourier transforms to products, before a graph is lowered."""

from __future__ import annotations

from lite_compiler.fourier import expand_fourier, refuse_fourier
from lite_core.ir import Graph
from lite_opencl.lowering.registry import register_rewritten

__all__ = ["without_fourier"]

register_rewritten(__name__, "DFT", refuse=refuse_fourier)


def without_fourier(graph: Graph) -> Graph:
    """Return a graph whose shapes are known without DFT, as a copy if it has any."""
    if not any(node.op == "DFT" and not node.domain for node in graph.nodes):
        return graph
    graph = graph.copy()
    expand_fourier(graph)
    return graph
