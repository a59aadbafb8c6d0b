"""Faults that show only in tensors of certain shapes: empty, of rank 0, of many axes, large, with odd rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from lite_conformance.mutate.behaviour.fault import Fault, is_data, spoiled
from lite_conformance.mutate.mutant import Array, Compute, NodeCall
from lite_core.errors import ExecutionError
from lite_core.ops import OpDef

__all__ = ["shape_faults"]

_LARGE = 1 << 16
_MANY_AXES = 5


def shape_faults(definition: OpDef) -> Iterator[Fault]:
    """Yield the faults that show only in tensors of certain shapes."""
    yield Fault("empty operand", "", _failing_for(definition, lambda a: a.size == 0))
    yield Fault("rank 0", "", _failing_for(definition, lambda a: a.ndim == 0))
    yield Fault("five axes", "", _failing_for(definition, lambda a: a.ndim >= _MANY_AXES))
    yield Fault("large operand", "", _large_operand(definition))
    yield Fault("large result", "", _on_results(lambda a: a.size > _LARGE, _after(_LARGE)))
    yield Fault("odd row", "", _on_results(lambda a: a.ndim > 0 and a.shape[-1] % 2 == 1, _last_of_rows(1)))
    yield Fault("tail of a row", "", _on_results(lambda a: a.ndim > 0 and a.shape[-1] % 8 != 0, _tail_of_rows))
    yield Fault("second batch", "", _on_results(lambda a: a.ndim > 0 and a.shape[0] > 1, _first_batch_repeated))
    yield Fault("transposed", "", _on_results(lambda a: a.ndim > 1, lambda a: a.T.reshape(a.shape)))


def _failing_for(definition: OpDef, condition: Callable[[Array], bool]) -> Compute:
    """Return the computation that fails if an operand of the working type, or a result, fulfils the condition."""

    def compute(call: NodeCall) -> list[Array]:
        results = call.run()
        if any(condition(a) for a in (*_data_operands(definition, call), *results)):
            raise ExecutionError("the mutant has no kernel for this shape")
        return results

    return compute


def _data_operands(definition: OpDef, call: NodeCall) -> Iterator[Array]:
    for index, array in enumerate(call.inputs):
        parameter = definition.parameter(index)
        if array is not None and parameter is not None and is_data(definition, parameter):
            yield array
            if not parameter.variadic:
                return  # the others are parameters such as weights


def _large_operand(definition: OpDef) -> Compute:
    """Return the computation that reads elements after the first 65536 wrongly."""

    def compute(call: NodeCall) -> list[Array]:
        large = {id(a) for a in _data_operands(definition, call) if a.size > _LARGE}
        return call.run(inputs=[_after(_LARGE)(a) if id(a) in large and a is not None else a for a in call.inputs])

    return compute


def _on_results(condition: Callable[[Array], bool], change: Callable[[Array], Array]) -> Compute:
    def compute(call: NodeCall) -> list[Array]:
        return [change(a) if condition(a) else a for a in call.run()]

    return compute


def _after(count: int) -> Callable[[Array], Array]:
    def change(array: Array) -> Array:
        flat = array.reshape(-1).copy()
        flat[count:] = spoiled(flat[count:])
        return np.asarray(flat.reshape(array.shape))

    return change


def _last_of_rows(count: int) -> Callable[[Array], Array]:
    def change(array: Array) -> Array:
        wrong: Array = array.copy()
        wrong[..., -count:] = spoiled(wrong[..., -count:])
        return wrong

    return change


def _tail_of_rows(array: Array) -> Array:
    return _last_of_rows(array.shape[-1] % 8)(array)


def _first_batch_repeated(array: Array) -> Array:
    return np.repeat(array[:1], array.shape[0], axis=0)
