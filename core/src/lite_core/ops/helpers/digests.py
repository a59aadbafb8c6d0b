"""A digest of a graph, by which a backend recognises the partition that a saved program belongs to."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from lite_core.ir import Graph, Node, Value
from lite_core.ops import attributes_of
from lite_core.ops.helpers.numbers import number_inputs

__all__ = ["graph_digest"]


def graph_digest(graph: Graph) -> str:
    """Return a text that differs between graphs that need different programs: SHA-256 as 64 hexadecimal digits.

    It covers the operators, their attributes with defaults, which values each node reads and writes, the types of
    inputs, constants and outputs, and the elements of constants that are :func:`number_inputs`. It leaves out

    - names, which decide nothing;
    - the types of values between nodes, whose sizes may still be symbols when a program is restored;
    - the elements of all other constants, which a program gets with its partition. A program that has weights inside
      must compare them itself, or save them as ``SavedWeights``.
    """
    return hashlib.sha256(repr(list(_parts(graph, {}))).encode()).hexdigest()


def _parts(graph: Graph, outer: Mapping[Value, int]) -> Iterator[Any]:
    """Yield what a digest depends on; values are numbered, first those of the graphs around this one."""
    numbers = dict(outer)
    for value in graph.defined():
        numbers[value] = len(numbers)
    for values in (graph.inputs, graph.constants, graph.outputs):
        yield [(numbers[value], str(value.type)) for value in values]
    for node in graph.nodes:
        attributes = sorted((name, _plain(value, numbers)) for name, value in attributes_of(node).items())
        read, written = ([v and numbers[v] for v in values] for values in (node.inputs, node.outputs))
        yield node.qualified_op, attributes, read, written, _known_numbers(node, graph)


def _known_numbers(node: Node, graph: Graph) -> list[Any]:
    arrays = [graph.constants.get(value) for i in number_inputs(node) if (value := node.inputs[i])]
    return [None if array is None else array.tolist() for array in arrays]


def _plain(attribute: Any, numbers: Mapping[Value, int]) -> str:
    if isinstance(attribute, Graph):
        return repr(list(_parts(attribute, numbers)))
    if isinstance(attribute, np.ndarray):
        return f"{attribute.dtype} {attribute.shape} {attribute.tolist()}"
    return repr(attribute)
