"""Faults of attributes: ignored, exchanged, in the wrong order, or off by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

from lite_conformance.mutate.behaviour.fault import Fault
from lite_conformance.mutate.mutant import Array, Compute, NodeCall
from lite_core.ops import OpDef

__all__ = ["attribute_faults"]

_SWAPPED_KINDS = ("int", "float", "ints", "floats")


def attribute_faults(definition: OpDef) -> Iterator[Fault]:
    """Yield the faults of an operator's attributes."""
    for name, spec in definition.attributes.items():
        if not spec.required and spec.kind not in ("graph", "dtype"):
            yield Fault("attribute ignored", name, _with(name, lambda a, call, spec=spec: spec.default))  # type: ignore[misc]
        for choice in spec.choices[1:]:
            yield Fault("choice ignored", f"{name}={choice}", _with(name, _first_instead(choice, spec.choices[0])))
        if spec.kind == "ints":
            yield Fault("attribute reversed", name, _with(name, lambda a, call: a[::-1]))
            yield Fault("first for all", name, _with(name, lambda a, call: a[:1] * len(a)))
            yield Fault("last for all", name, _with(name, lambda a, call: a[-1:] * len(a)))
        if "pads" in name:
            yield Fault("begin and end swapped", name, _with(name, _halves_swapped))
        if name == "axis":
            yield Fault("axis off by one", name, _with(name, lambda a, call: _moved(a, _rank(call), 1)))
            yield Fault("axis of a negative number", name, _with(name, _before_negative))
            yield Fault("last axis", name, _with(name, lambda a, call: -1))
            yield Fault("first axis", name, _with(name, lambda a, call: 0))
    for first, second in combinations(definition.attributes, 2):
        kinds = {definition.attributes[first].kind, definition.attributes[second].kind}
        if len(kinds) == 1 and kinds <= set(_SWAPPED_KINDS):
            yield Fault("attributes swapped", f"{first}, {second}", _exchanged(first, second))


def _with(name: str, change: Callable[[Any, NodeCall], Any]) -> Compute:
    """Return the computation with one attribute changed; an attribute that is left out stays so."""

    def compute(call: NodeCall) -> list[Array]:
        given = call.attributes[name]
        changed = None if given is None else change(given, call)
        return call.run(attributes={**call.attributes, name: changed})

    return compute


def _first_instead(choice: str, first: str) -> Callable[[Any, NodeCall], Any]:
    return lambda given, call: first if given == choice else given


def _exchanged(first: str, second: str) -> Compute:
    def compute(call: NodeCall) -> list[Array]:
        one, other = call.attributes[first], call.attributes[second]
        if one is None or other is None:
            return call.run()
        return call.run(attributes={**call.attributes, first: other, second: one})

    return compute


def _halves_swapped(given: tuple[int, ...], call: NodeCall) -> tuple[int, ...]:
    half = len(given) // 2
    return given[half:] + given[:half]


def _rank(call: NodeCall) -> int:
    return next((a.ndim for a in call.inputs if a is not None), 0)


def _moved(axis: int, rank: int, by: int) -> int:
    return (axis % rank + by) % rank if rank else axis


def _before_negative(axis: int, call: NodeCall) -> int:
    return _moved(axis, _rank(call), -1) if axis < 0 else axis
