"""Rewriting of the operators of decoders to operators that have kernels, before a graph is lowered."""

from __future__ import annotations

from lite_compiler.decoders import EXPANDED, expand
from lite_core.ir import Graph
from lite_opencl.lowering.registry import register_rewritten

__all__ = ["without_decoder_operators"]

register_rewritten(__name__, *EXPANDED)


def without_decoder_operators(graph: Graph) -> Graph:
    """Return a graph whose shapes are known without these operators, as a copy if it has any."""
    if not any(node.op in EXPANDED and not node.domain for node in graph.nodes):
        return graph
    graph = graph.copy()
    expand(graph, lambda node: True)
    return graph
