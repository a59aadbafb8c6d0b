"""Faults of operands: exchanged, ignored, read wrongly if constant, at run time, of one element type, or broadcast."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations

import numpy as np

from lite_conformance.mutate.behaviour.fault import Fault, is_data, replaced, spoiled
from lite_conformance.mutate.mutant import Array, Compute, NodeCall
from lite_core.ir import DType
from lite_core.ops import OpDef, Parameter
from lite_core.ops.dtypes import ALL

__all__ = ["operand_faults"]

_COMMUTATIVE = frozenset(
    ("Add", "Mul", "Max", "Min", "Sum", "Mean", "And", "Or", "Xor", "Equal", "BitwiseAnd", "BitwiseOr", "BitwiseXor")
)
_BROADCAST = frozenset(("infer_broadcast", "_infer_variadic"))


def operand_faults(definition: OpDef) -> Iterator[Fault]:
    """Yield the faults of an operator's operands."""
    inputs = list(enumerate(definition.inputs))
    for index, parameter in inputs:
        if parameter.variadic:
            yield from _variadic_faults(definition, index, parameter)
            continue
        if parameter.optional:
            yield Fault("optional input ignored", parameter.name, _with(index, lambda a: None))
        yield Fault("constant operand", parameter.name, _if_constant(index, True))
        yield Fault("run-time operand", parameter.name, _if_constant(index, False))
        for dtype in definition.types.get(parameter.type, ()) if not is_data(definition, parameter) else ():
            if dtype in ALL:
                yield Fault("operand type", f"{parameter.name}: {dtype}", _of_type(index, dtype))
        if parameter.type in ("int64", "int32") or parameter.type.startswith(("Tind", "Tidx")):
            yield Fault("negative numbers ignored", parameter.name, _with(index, lambda a: np.maximum(a, 0)))
            yield Fault("first for all", parameter.name, _with(index, _first_for_all))
            yield Fault("operand reversed", parameter.name, _with(index, lambda a: a[..., ::-1] if a.ndim else a))
    for (i, first), (j, second) in combinations([p for p in inputs if not p[1].variadic], 2):
        if first.type == second.type and definition.name not in _COMMUTATIVE:
            yield Fault("inputs swapped", f"{first.name}, {second.name}", _exchanged(i, j))
    if definition.infer.__name__ in _BROADCAST or definition.name == "PRelu":
        for index in (0, 1):
            yield Fault("broadcast", f"operand {index} repeated as a flat vector", _flat_broadcast(index))


def _variadic_faults(definition: OpDef, index: int, parameter: Parameter) -> Iterator[Fault]:
    def without_last(call: NodeCall) -> list[Array]:
        return call.run(inputs=call.inputs[:-1] if len(call.inputs) > index + 1 else call.inputs)

    def first_three(call: NodeCall) -> list[Array]:
        return call.run(inputs=call.inputs[: index + 3])

    def reversed_order(call: NodeCall) -> list[Array]:
        return call.run(inputs=[*call.inputs[:index], *call.inputs[index:][::-1]])

    yield Fault("last operand ignored", parameter.name, without_last)
    if not parameter.heterogeneous and definition.name != "Einsum":
        yield Fault("more than three operands", parameter.name, first_three)
    if definition.name not in _COMMUTATIVE:
        yield Fault("operands reversed", parameter.name, reversed_order)
    for number in (index, index + 1):
        yield Fault("constant operand", f"{parameter.name} {number}", _if_constant(number, True))
        yield Fault("run-time operand", f"{parameter.name} {number}", _if_constant(number, False))


def _with(index: int, change: Callable[[Array], Array | None]) -> Compute:
    """Return the computation with one operand changed, if it is given."""

    def compute(call: NodeCall) -> list[Array]:
        array = call.inputs[index] if index < len(call.inputs) else None
        return call.run() if array is None else call.run(inputs=replaced(call, index, change(array)))

    return compute


def _if_constant(index: int, constant: bool) -> Compute:
    spoil = _with(index, spoiled)

    def compute(call: NodeCall) -> list[Array]:
        return spoil(call) if index < len(call.constant) and call.constant[index] == constant else call.run()

    return compute


def _of_type(index: int, dtype: DType) -> Compute:
    return _with(index, lambda a: spoiled(a) if a.dtype == dtype.numpy else a)


def _first_for_all(array: Array) -> Array:
    return np.full_like(array, array.reshape(-1)[0]) if array.size else array


def _exchanged(first: int, second: int) -> Compute:
    def compute(call: NodeCall) -> list[Array]:
        inputs = list(call.inputs)
        if second < len(inputs) and inputs[first] is not None and inputs[second] is not None:
            inputs[first], inputs[second] = inputs[second], inputs[first]
        return call.run(inputs=inputs)

    return compute


def _flat_broadcast(index: int) -> Compute:
    """Return the computation that repeats the elements of a smaller operand in order: wrong unless it is a suffix."""

    def compute(call: NodeCall) -> list[Array]:
        array = call.inputs[index] if index < len(call.inputs) else None
        shape = np.broadcast_shapes(*(a.shape for a in call.inputs if a is not None))
        if array is None or array.shape == shape or not array.size:
            return call.run()
        return call.run(inputs=replaced(call, index, np.resize(array, shape)))

    return compute
