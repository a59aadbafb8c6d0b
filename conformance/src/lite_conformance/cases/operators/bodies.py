"""Bodies for If, Loop and Scan, written by an author who gets everything at hand and gives the outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lite_conformance.cases.op_cases import Body
from lite_conformance.cases.tensors import Tensor
from lite_core.builder import GraphBuilder
from lite_core.ir import DType, Value

__all__ = ["Author", "Scope", "branch", "loop_body", "scan_body"]


@dataclass(frozen=True, slots=True)
class Scope:
    """What the author of a body has at hand.

    Attributes:
        body: its builder.
        dtype: the case's element type.
        captured: values of the enclosing graph.
        counters: of a Loop: the iteration and the condition.
        carried: values that one iteration hands to the next.
        slices: of a Scan: this iteration's slices.
    """

    body: GraphBuilder
    dtype: DType
    captured: Sequence[Value]
    counters: Sequence[Value] = ()
    carried: Sequence[Value] = ()
    slices: Sequence[Value] = ()

    def op(self, name: str, *inputs: Value, **attributes: int) -> Value:
        return self.body.add(name, inputs, attributes)

    def combine(self, one: Value, other: Value) -> Value:
        """A sum, or what comes nearest to it for booleans."""
        return self.op("Xor" if self.dtype is DType.BOOL else "Add", one, other)

    def copy(self, value: Value) -> Value:
        return self.op("Identity", value)


#: Gives a body's outputs.
Author = Callable[[Scope], Sequence[Value]]


def branch(author: Author) -> Body:
    """A branch of If."""

    def make(body: GraphBuilder, dtype: DType, captured: Sequence[Value]) -> None:
        for value in author(Scope(body, dtype, captured)):
            body.output(value)

    return Body(make)


def loop_body(author: Author, *carried: Tensor, counter_shape: tuple[int, ...] = ()) -> Body:
    """A body of Loop that carries values with the types of these tensors."""

    def make(body: GraphBuilder, dtype: DType, captured: Sequence[Value]) -> None:
        counters = [
            body.input("iteration", DType.INT64, counter_shape),
            body.input("condition", DType.BOOL, counter_shape),
        ]
        states = [body.input(f"carried_{i}", tensor.dtype or dtype, tensor.shape) for i, tensor in enumerate(carried)]
        for value in author(Scope(body, dtype, captured, counters, states)):
            body.output(value)

    return Body(make)


def scan_body(author: Author, carried: Sequence[tuple[int, ...]], slices: Sequence[tuple[int, ...]]) -> Body:
    """A body of Scan that carries values and takes slices of these shapes."""

    def make(body: GraphBuilder, dtype: DType, captured: Sequence[Value]) -> None:
        states = [body.input(f"carried_{i}", dtype, sizes) for i, sizes in enumerate(carried)]
        elements = [body.input(f"slice_{i}", dtype, sizes) for i, sizes in enumerate(slices)]
        for value in author(Scope(body, dtype, captured, (), states, elements)):
            body.output(value)

    return Body(make)
