"""Faults of outputs: one of several wrong, exchanged, or not all of it written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations

import numpy as np

from lite_conformance.drive.guards import POISON
from lite_conformance.mutate.behaviour.fault import Fault, spoiled
from lite_conformance.mutate.mutant import Array, Compute, NodeCall
from lite_core.ops import OpDef

__all__ = ["output_faults"]


def output_faults(definition: OpDef) -> Iterator[Fault]:
    """Yield the faults of an operator's outputs."""
    for index, parameter in enumerate(definition.outputs):
        yield Fault("output wrong", parameter.name, _wrong(index, spoiled))
        yield Fault("last element not written", parameter.name, _wrong(index, _last_unwritten))
    if definition.outputs[-1].variadic:
        last = len(definition.outputs)
        yield Fault("output wrong", f"{definition.outputs[-1].name} {last}", _wrong(last, spoiled))
    for (i, first), (j, second) in combinations(enumerate(definition.outputs), 2):
        yield Fault("outputs swapped", f"{first.name}, {second.name}", _exchanged(i, j))


def _wrong(index: int, change: Callable[[Array], Array]) -> Compute:
    def compute(call: NodeCall) -> list[Array]:
        results = call.run()
        if index < len(results):
            results[index] = change(results[index])
        return results

    return compute


def _last_unwritten(array: Array) -> Array:
    """Return the array with the suite's filling in the last element, as if it had not been written."""
    wrong = np.array(array, copy=True)
    if wrong.size:
        wrong.reshape(-1)[-1:].view(np.uint8)[...] = POISON
    return wrong


def _exchanged(first: int, second: int) -> Compute:
    def compute(call: NodeCall) -> list[Array]:
        results = call.run()
        if second < len(results) and results[first].shape == results[second].shape:
            one, other = results[first], results[second]
            results[first], results[second] = other.astype(one.dtype), one.astype(other.dtype)
        return results

    return compute
