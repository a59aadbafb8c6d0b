"""Graphs whose nodes lie on two devices, made of an operator that the backend under test is known to have."""

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

__all__ = ["HERE", "THERE", "TwoDeviceGraph", "find_supported_case"]

#: Patterns of node names: on the backend under test, and on the other device.
HERE, THERE = "here*", "there*"

# Of one operator in one element type; a backend that refuses these refuses the others as well, nearly always.
_MOST_TRIES = 3

_found: WeakKeyDictionary[Subject, dict[str, SupportedCase | None]] = WeakKeyDictionary()


class TwoDeviceGraph:
    """A graph of nodes here (one operator, again and again) and there (whatever is needed in between).

    Args:
        supported_case: the operator that runs here.
        seed: of the inputs.
    """

    def __init__(self, supported_case: SupportedCase, seed: int) -> None:
        self.supported_case = supported_case
        self.builder = GraphBuilder("patchwork")
        self._seed = seed
        # Of the supported_case's inputs, in the order in which the graph has them.
        self._sources: list[tuple[int, int]] = []
        self._template = supported_case.build(seed)[0]
        self._constants = {v: self.builder.constant(a) for v, a in self._template.constants.items()}

    def operands(self) -> list[Value]:
        """New inputs of the graph, as the supported_case takes them."""
        number = len(self._sources)
        values = []
        for index, value in enumerate(self._template.inputs):
            values.append(self.builder.input(f"input_{number}_{index}", value.dtype, value.shape))
            self._sources.append((number, index))
        return values

    def arrays(self, turn: int) -> list[Array]:
        """Contents of the graph's inputs, others for each turn."""
        drawn = {n: self.supported_case.build(self._seed + 1000 * turn + n)[1] for n in {n for n, _ in self._sources}}
        return [drawn[number][index] for number, index in self._sources]

    def here(self, operands: Sequence[Value]) -> Value:
        """The supported_case on some operands, on the backend under test; gives its first output."""
        (node,) = self._template.nodes
        known = {**self._constants, **dict(zip(self._template.inputs, operands))}
        inputs = [None if v is None else known[v] for v in node.inputs]
        outputs = self.builder.add_node(
            node.op, inputs, node.attributes, domain=node.domain, outputs=len(node.outputs), name="here"
        )
        return outputs[0]

    def there(self, op: str, *inputs: Value, **attributes: Any) -> Value:
        """A node on the other device."""
        return self.builder.add(op, inputs, attributes, name="there")

    def copied(self, operands: Sequence[Value]) -> list[Value]:
        """The same values, made on the other device."""
        return [self.there("Identity", v) for v in operands]

    def follow(self, value: Value) -> Value:
        """The supported_case on a value that a supported_case made, without a way round where its type allows that."""
        if value.dtype.is_floating:
            for index, wanted in enumerate(self._template.inputs):
                if wanted.type == value.type:
                    operands = self.operands()
                    operands[index] = value
                    return self.here(operands)
        return self.here(self.choose(value, True))

    def truth(self, by: Value, answer: bool) -> Value:
        """A scalar boolean, made there by comparing the largest element of a value with a threshold.

        Args:
            by: the value.
            answer: what the comparison gives in the first turn.
        """
        flat = self.there("Reshape", self.there("Cast", by, to=DType.FLOAT32), self.builder.ints(-1))
        largest = self.there("ReduceMax", flat, self.builder.ints(0), keepdims=0)
        found = float(self._evaluate(largest))
        distance = 0.5 * max(1.0, abs(found)) * (-1 if answer else 1)
        threshold = found + distance if np.isfinite(found) else 0.0
        return self.there("Greater", largest, self.builder.constant(np.float32(threshold)))

    def choose(self, by: Value, answer: bool) -> list[Value]:
        """Operands for the supported_case, chosen there among two sets by a value."""
        truth = self.truth(by, answer)
        return [self.there("Where", truth, a, b) for a, b in zip(self.operands(), self.operands())]

    def output(self, *values: Value) -> None:
        """Make values outputs."""
        for value in values:
            self.builder.output(value)

    def _evaluate(self, value: Value) -> Array:
        graph = self.builder.graph
        part = Graph("part", inputs=graph.inputs, outputs=[value], nodes=graph.nodes, constants=graph.constants)
        return evaluate_graph(part, self.arrays(0))[0]


# **** supported_cases with something special about them ****


def find_supported_case(subject: Subject, what: str) -> SupportedCase:
    """An operator case that the backend takes, whose inputs or first output are special.

    Args:
        subject: the backend.
        what: ``"zero-size"`` or ``"scalar"`` inputs, or ``"bool-in"``, ``"bool-out"``, ``"int64-in"``, ``"int64-out"``.

    Raises:
        Refused: the backend takes none.
    """
    found = _found.setdefault(subject, {})
    if what not in found:
        found[what] = _search(subject, what)
    supported_case = found[what]
    if supported_case is not None:
        return supported_case
    raise Refused(f"the backend takes no operator case with {what.replace('-', ' ')} tensors at run time")


def _search(subject: Subject, what: str) -> SupportedCase | None:
    for table in all_tables():
        tries: Counter[DType] = Counter()
        for name, dtype, case in table.cases():
            if tries[dtype] == _MOST_TRIES or not _may_be(case, dtype, what):
                continue
            tries[dtype] += 1
            graph = case.build(dtype, 0)[0]
            if _is(graph, what) and not subject.refusals(graph.nodes):
                return SupportedCase(name, case, dtype)
    return None


def _may_be(case: OpCase, dtype: DType, what: str) -> bool:
    """Whether a case is worth building."""
    given = [t for t in case.inputs if t is not None and not t.constant]
    if not given:
        return False
    if what in ("zero-size", "scalar"):
        return any(0 in t.shape if what == "zero-size" else t.shape == () for t in given)
    wanted, _, side = what.partition("-")
    if side == "in":
        return any(_dtype(t, dtype).value == wanted for t in given)
    return not any(0 in t.shape for t in given)


def _is(graph: Graph, what: str) -> bool:
    if not all(v.type.is_static for v in graph.outputs):
        return False
    if what in ("zero-size", "scalar"):
        return True
    wanted, _, side = what.partition("-")
    values = graph.inputs if side == "in" else graph.outputs[:1]
    return any(v.dtype.value == wanted for v in values) and all(v.type.size != 0 for v in graph.outputs)


def _dtype(tensor: Tensor, dtype: DType) -> DType:
    return DType.of(tensor.dtype) if tensor.dtype else dtype
