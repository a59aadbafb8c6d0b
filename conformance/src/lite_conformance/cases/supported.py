"""Small graphs that a backend can run, whatever it is: what contract and stress cases work with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from lite_conformance.cases.op_cases import OpCase
from lite_conformance.cases.operators import all_tables
from lite_conformance.cases.tensors import Array
from lite_conformance.drive.subject import Subject
from lite_conformance.judge.outcome import Refused
from lite_core.builder import GraphBuilder
from lite_core.ir import DType, Graph

__all__ = ["SupportedCase", "bulk", "supported_case", "supported_cases"]

# Looked for first: most backends have some of them.
_COMMON = ("Relu", "Add", "Mul", "MatMul", "Conv", "Softmax", "Identity", "Sigmoid")
_MOST = 4

_found: WeakKeyDictionary[Subject, list[SupportedCase]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class SupportedCase:
    """An operator case that the backend under test takes."""

    name: str
    case: OpCase
    dtype: DType

    def build(self, seed: int) -> tuple[Graph, list[Array]]:
        """Its graph, and inputs that differ with the seed."""
        return self.case.build(self.dtype, seed)


def supported_cases(subject: Subject) -> list[SupportedCase]:
    """A few cases of different operators, with run-time inputs and non-empty outputs.

    Raises:
        Refused: the backend takes none.
    """
    if subject not in _found:
        # Building the thousands of cases of operators that a backend lacks takes long: all of them only when needed.
        _found[subject] = list(_search(subject, thorough=False)) or list(_search(subject, thorough=True))
    if not _found[subject]:
        raise Refused("the backend answered No to every operator of the opset")
    return _found[subject]


def supported_case(subject: Subject) -> SupportedCase:
    """The first of :func:`supported_cases`."""
    return supported_cases(subject)[0]


def bulk(subject: Subject, seed: int, layers: int = 1) -> tuple[Graph, list[Array]]:
    """A graph on tensors large enough for a leak of one to show, with weights of its own for each seed and layer.

    The first of a few operators that take any shape and the backend takes in float32; a supported_case otherwise.
    """
    random = np.random.default_rng(seed)
    array, *weights = (random.standard_normal((256, 256)).astype(np.float32) for _ in range(1 + layers))
    for op in ("MatMul", "Add", "Mul", "Relu", "Identity", "Sigmoid", "Softmax", "Neg"):
        builder = GraphBuilder("bulk")
        x = builder.input("x", "float32", array.shape)
        for constant in weights:
            x = builder.add(op, [x, builder.constant(constant)] if op in ("MatMul", "Add", "Mul") else [x])
        builder.output(x, "y")
        graph = builder.build()
        if not subject.refusals(graph.nodes):
            return graph, [array]
    return supported_case(subject).build(seed)


def _search(subject: Subject, thorough: bool) -> Iterator[SupportedCase]:
    """Operators that the backend takes; unless thorough, it is asked about one case of each in each element type."""
    tables = {table.definition.qualified_name: table for table in all_tables()}
    order = [*(name for name in _COMMON if name in tables), *(name for name in tables if name not in _COMMON)]
    count = 0
    for name in order:
        # float32 first: it is what a new backend begins with.
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
        if count == _MOST:
            return
