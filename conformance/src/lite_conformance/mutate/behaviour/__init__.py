"""Mutants that compute by the true reference, with a mistake in what it is given or in what it returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lite_conformance.mutate.behaviour.attributes import attribute_faults
from lite_conformance.mutate.behaviour.fault import Fault
from lite_conformance.mutate.behaviour.numbers import number_faults
from lite_conformance.mutate.behaviour.operands import operand_faults
from lite_conformance.mutate.behaviour.outputs import output_faults
from lite_conformance.mutate.behaviour.shapes import shape_faults
from lite_conformance.mutate.mutant import Compute, Mutant
from lite_core.ops import OpDef

__all__ = ["behaviour_mutants"]

_SOURCES: tuple[Callable[[OpDef], Iterator[Fault]], ...] = (
    attribute_faults,
    operand_faults,
    number_faults,
    shape_faults,
    output_faults,
)


def behaviour_mutants(definition: OpDef) -> Iterator[Mutant]:
    """Yield the mutants of an operator that its signature suggests."""
    name = definition.qualified_name
    for source in _SOURCES:
        for kind, detail, compute in source(definition):
            identity = f"{name}: {kind}: {detail}" if detail else f"{name}: {kind}"
            yield Mutant(identity, name, "behaviour", kind, 2, _constantly(compute))


def _constantly(compute: Compute) -> Callable[[], Compute]:
    return lambda: compute
