"""Bodies of If, Loop and Scan, each built by a function from a :class:`Scope` to its outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lite_conformance.cases.op_cases import Body
from lite_conformance.cases.tensors import Tensor
from lite_core.builder import GraphBuilder
from lite_core.ir import DType, Value

__all__ = ["BodyFunction", "Scope", "branch", "loop_body", "scan_body"]


@dataclass(frozen=True, slots=True)
class Scope:
    """The values that a body may use, and its builder.

    Attributes:
        body: the builder of the body.
        dtype: the case's element type.
        captured: values of the enclosing graph.
        counters: for Loop: the iteration number and the condition.
        carried: the loop-carried values.
        slices: for Scan: the slices of this iteration.
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
        """Return the sum, or for booleans the exclusive or."""
        return self.op("Xor" if self.dtype is DType.BOOL else "Add", one, other)

    def copy(self, value: Value) -> Value:
        return self.op("Identity", value)


#: Builds a body in its scope and returns its outputs.
BodyFunction = Callable[[Scope], Sequence[Value]]


def branch(function: BodyFunction) -> Body:
    """Return a branch of If."""

    def make(body: GraphBuilder, dtype: DType, captured: Sequence[Value]) -> None:
        for value in function(Scope(body, dtype, captured)):
            body.output(value)

    return Body(make)


def loop_body(function: BodyFunction, *carried: Tensor, counter_shape: tuple[int, ...] = ()) -> Body:
    """Return a body of Loop that carries values with the types of these tensors."""

    def make(body: GraphBuilder, dtype: DType, captured: Sequence[Value]) -> None:
        counters = [
            body.input("iteration", DType.INT64, counter_shape),
            body.input("condition", DType.BOOL, counter_shape),
        ]
        states = [body.input(f"carried_{i}", tensor.dtype or dtype, tensor.shape) for i, tensor in enumerate(carried)]
        for value in function(Scope(body, dtype, captured, counters, states)):
            body.output(value)

    return Body(make)


def scan_body(function: BodyFunction, carried: Sequence[tuple[int, ...]], slices: Sequence[tuple[int, ...]]) -> Body:
    """Return a body of Scan that carries values and takes slices of these shapes."""

    def make(body: GraphBuilder, dtype: DType, captured: Sequence[Value]) -> None:
        states = [body.input(f"carried_{i}", dtype, sizes) for i, sizes in enumerate(carried)]
        elements = [body.input(f"slice_{i}", dtype, sizes) for i, sizes in enumerate(slices)]
        for value in function(Scope(body, dtype, captured, (), states, elements)):
            body.output(value)

    return Body(make)
