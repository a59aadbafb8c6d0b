"""Graphs whose nodes run on two devices: an operator that the backend under test supports, and nodes of another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from lite_conformance.cases.op_cases import OpCase
from lite_conformance.cases.operators import all_tables
from lite_conformance.cases.supported import SupportedCase
from lite_conformance.cases.tensors import Array, Tensor
from lite_conformance.drive.subject import Subject
from lite_conformance.judge.outcome import Refused
from lite_core.builder import GraphBuilder
from lite_core.ir import DType, Graph, Value
from lite_core.ops.evaluate import evaluate_graph

__all__ = ["ON_BACKEND", "ON_OTHER", "TwoDeviceGraph", "find_supported_case"]

#: Patterns of the names of nodes on the backend under test, and on the other device.
ON_BACKEND, ON_OTHER = "backend*", "other*"

# Cases tried per operator and element type; a backend that refuses these nearly always refuses the rest as well.
_MAX_TRIES = 3

_found: WeakKeyDictionary[Subject, dict[str, SupportedCase | None]] = WeakKeyDictionary()


class TwoDeviceGraph:
    """A graph with nodes on the backend under test (all of one operator) and on another device (any operator).

    Args:
        case: the case of the operator that runs on the backend.
        seed: seed of the inputs.
    """

    def __init__(self, case: SupportedCase, seed: int) -> None:
        self.case = case
        self.builder = GraphBuilder("two_devices")
        self._seed = seed
        # The set of operands, and the index among the case's inputs, of each input of the graph.
        self._sources: list[tuple[int, int]] = []
        self._template = case.build(seed)[0]
        self._constants = {v: self.builder.constant(a) for v, a in self._template.constants.items()}

    def operands(self) -> list[Value]:
        """Add a set of inputs to the graph, of the types of the case's inputs."""
        number = len(self._sources)
        values = []
        for index, value in enumerate(self._template.inputs):
            values.append(self.builder.input(f"input_{number}_{index}", value.dtype, value.shape))
            self._sources.append((number, index))
        return values

    def arrays(self, turn: int) -> list[Array]:
        """Return contents of the graph's inputs, different for each turn."""
        drawn = {n: self.case.build(self._seed + 1000 * turn + n)[1] for n in {n for n, _ in self._sources}}
        return [drawn[number][index] for number, index in self._sources]

    def on_backend(self, operands: Sequence[Value]) -> Value:
        """Add the case's node, on the backend under test, and return its first output."""
        (node,) = self._template.nodes
        known = {**self._constants, **dict(zip(self._template.inputs, operands))}
        inputs = [None if v is None else known[v] for v in node.inputs]
        outputs = self.builder.add_node(
            node.op, inputs, node.attributes, domain=node.domain, outputs=len(node.outputs), name="backend"
        )
        return outputs[0]

    def on_other(self, op: str, *inputs: Value, **attributes: Any) -> Value:
        """Add a node on the other device and return its output."""
        return self.builder.add(op, inputs, attributes, name="other")

    def copy_to_other(self, operands: Sequence[Value]) -> list[Value]:
        """Return copies of values, made by Identity nodes on the other device."""
        return [self.on_other("Identity", v) for v in operands]

    def consume(self, value: Value) -> Value:
        """Add the case's node so that it uses a value: as an operand if the types allow it, else to select operands."""
        if value.dtype.is_floating:
            for index, wanted in enumerate(self._template.inputs):
                if wanted.type == value.type:
                    operands = self.operands()
                    operands[index] = value
                    return self.on_backend(operands)
        return self.on_backend(self.select(value, True))

    def condition(self, by: Value, answer: bool) -> Value:
        """Return a boolean scalar: a comparison, on the other device, of a value's maximum with a threshold.

        Args:
            by: the value.
            answer: the result of the comparison in the first turn.
        """
        flat = self.on_other("Reshape", self.on_other("Cast", by, to=DType.FLOAT32), self.builder.ints(-1))
        largest = self.on_other("ReduceMax", flat, self.builder.ints(0), keepdims=0)
        maximum = float(self._evaluate(largest))
        distance = 0.5 * max(1.0, abs(maximum)) * (-1 if answer else 1)
        threshold = maximum + distance if np.isfinite(maximum) else 0.0
        return self.on_other("Greater", largest, self.builder.constant(np.float32(threshold)))

    def select(self, by: Value, answer: bool) -> list[Value]:
        """Return operands of the case, selected on the other device from two sets by :meth:`condition`."""
        condition = self.condition(by, answer)
        return [self.on_other("Where", condition, a, b) for a, b in zip(self.operands(), self.operands())]

    def output(self, *values: Value) -> None:
        """Make values outputs of the graph."""
        for value in values:
            self.builder.output(value)

    def _evaluate(self, value: Value) -> Array:
        graph = self.builder.graph
        part = Graph("part", inputs=graph.inputs, outputs=[value], nodes=graph.nodes, constants=graph.constants)
        return evaluate_graph(part, self.arrays(0))[0]


# **** supported cases with special tensors ****


def find_supported_case(subject: Subject, what: str) -> SupportedCase:
    """Return a case that the backend supports, whose inputs or first output have a property.

    Args:
        subject: the backend.
        what: ``"zero-size"`` or ``"scalar"`` inputs, or ``"bool-in"``, ``"bool-out"``, ``"int64-in"``, ``"int64-out"``.

    Raises:
        Refused: the backend supports none.
    """
    found = _found.setdefault(subject, {})
    if what not in found:
        found[what] = _search(subject, what)
    case = found[what]
    if case is not None:
        return case
    raise Refused(f"the backend supports no operator case with {what.replace('-', ' ')} tensors at run time")


def _search(subject: Subject, what: str) -> SupportedCase | None:
    for table in all_tables():
        tries: Counter[DType] = Counter()
        for name, dtype, case in table.cases():
            if tries[dtype] == _MAX_TRIES or not _may_qualify(case, dtype, what):
                continue
            tries[dtype] += 1
            graph = case.build(dtype, 0)[0]
            if _qualifies(graph, what) and not subject.refusals(graph.nodes):
                return SupportedCase(name, case, dtype)
    return None


def _may_qualify(case: OpCase, dtype: DType, what: str) -> bool:
    """Return False if a case cannot have the property, so that it need not be built."""
    run_time = [t for t in case.inputs if t is not None and not t.constant]
    if not run_time:
        return False
    if what in ("zero-size", "scalar"):
        return any(0 in t.shape if what == "zero-size" else t.shape == () for t in run_time)
    wanted, _, side = what.partition("-")
    if side == "in":
        return any(_dtype(t, dtype).value == wanted for t in run_time)
    return not any(0 in t.shape for t in run_time)


def _qualifies(graph: Graph, what: str) -> bool:
    if not all(v.type.is_static for v in graph.outputs):
        return False
    if what in ("zero-size", "scalar"):
        return True
    wanted, _, side = what.partition("-")
    values = graph.inputs if side == "in" else graph.outputs[:1]
    return any(v.dtype.value == wanted for v in values) and all(v.type.size != 0 for v in graph.outputs)


def _dtype(tensor: Tensor, dtype: DType) -> DType:
    return DType.of(tensor.dtype) if tensor.dtype else dtype
