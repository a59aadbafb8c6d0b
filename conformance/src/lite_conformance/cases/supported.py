"""Small graphs that the backend under test supports, for contract and stress cases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from lite_conformance.cases.op_cases import OpCase
from lite_conformance.cases.plugins.brought import every_table
from lite_conformance.cases.tensors import Array
from lite_conformance.drive.subject import Subject
from lite_conformance.judge.outcome import Refused
from lite_core.builder import GraphBuilder
from lite_core.ir import DType, Graph

__all__ = ["SupportedCase", "large_tensor_graph", "supported_case", "supported_cases"]

# Searched first: most backends support some of them.
_COMMON = ("Relu", "Add", "Mul", "MatMul", "Conv", "Softmax", "Identity", "Sigmoid")
_MAX_CASES = 4

_found: WeakKeyDictionary[Subject, list[SupportedCase]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class SupportedCase:
    """An operator case that the backend under test accepts."""

    name: str
    case: OpCase
    dtype: DType

    def build(self, seed: int) -> tuple[Graph, list[Array]]:
        """Return the graph, and inputs that depend on the seed."""
        return self.case.build(self.dtype, seed)


def supported_cases(subject: Subject) -> list[SupportedCase]:
    """Return a few supported cases of different operators, with run-time inputs and non-empty outputs.

    Raises:
        Refused: the backend supports none.
    """
    if subject not in _found:
        # Building thousands of cases of unsupported operators is slow: the thorough search runs only if needed.
        _found[subject] = list(_search(subject, thorough=False)) or list(_search(subject, thorough=True))
    if not _found[subject]:
        raise Refused("the backend answered No to every operator of the opset")
    return _found[subject]


def supported_case(subject: Subject) -> SupportedCase:
    """Return the first of :func:`supported_cases`."""
    return supported_cases(subject)[0]


def large_tensor_graph(subject: Subject, seed: int, layers: int = 1) -> tuple[Graph, list[Array]]:
    """Return a graph and inputs whose tensors are large enough to detect a leak of one.

    Each seed and layer has different weights. The operator is the first of a few shape-independent ones that the
    backend supports in float32; if it supports none, the graph is that of :func:`supported_case`.
    """
    random = np.random.default_rng(seed)
    array, *weights = (random.standard_normal((256, 256)).astype(np.float32) for _ in range(1 + layers))
    for op in ("MatMul", "Add", "Mul", "Relu", "Identity", "Sigmoid", "Softmax", "Neg"):
        builder = GraphBuilder("large_tensor_graph")
        x = builder.input("x", "float32", array.shape)
        for constant in weights:
            x = builder.add(op, [x, builder.constant(constant)] if op in ("MatMul", "Add", "Mul") else [x])
        builder.output(x, "y")
        graph = builder.build()
        if not subject.refusals(graph.nodes):
            return graph, [array]
    return supported_case(subject).build(seed)


def _search(subject: Subject, thorough: bool) -> Iterator[SupportedCase]:
    """Yield cases of different operators that the backend supports.

    Args:
        subject: the backend.
        thorough: try every case of an operator, not only one in each element type.
    """
    # A backend may support only operators of plugins.
    tables = {table.definition.qualified_name: table for table in every_table()}
    order = [*(name for name in _COMMON if name in tables), *(name for name in tables if name not in _COMMON)]
    count = 0
    for name in order:
        # float32 first, which new backends support first.
        asked: set[DType] = set()
        for case_name, dtype, case in sorted(tables[name].cases(), key=lambda c: c[1] is not DType.FLOAT32):
            if dtype in asked and not thorough:
                continue
            graph, inputs = case.build(dtype, 0)
            sizes = [v.type.size for v in (*graph.inputs, *graph.outputs)]
            fits = inputs and all(isinstance(size, int) and size > 1 for size in sizes)
            if fits:
                asked.add(dtype)
            if fits and not subject.refusals(graph.nodes):
                yield SupportedCase(case_name, case, dtype)
                count += 1
                break
        if count == _MAX_CASES:
            return
