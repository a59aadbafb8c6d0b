"""Telling a bug from rounding: suspects are compared with float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lite_core.ir import Node
from lite_tools.comparing.engine import Row
from lite_tools.comparing.float64 import Exact, exact_result
from lite_tools.comparing.regions import Network, Region
from lite_tools.comparing.values import Key

__all__ = ["Judge", "NeededValues", "needed_values"]

Array = np.ndarray[Any, Any]

#: Errors up to this many noise floors are rounding. A sum of thousands of products in the order of a kernel is off by
#: about ten floors, one in float16 by more than a thousand.
_FLOORS = 60.0
#: A side whose error is within this factor of the other's is not called worse.
_ALIKE = 4.0
#: Without a float64 reference, relative errors above these are wrong, whatever the operator.
_WRONG = {"float32": 1e-2, "float16": 0.2, "bfloat16": 0.5}


class NeededValues(NamedTuple):
    """The true values that a row's float64 reference needs: its inputs by name, and its own."""

    inputs: Mapping[str, Key]
    own: Key


def needed_values(row: Row, graph_inputs: Sequence[str], available: Callable[[Key], bool]) -> NeededValues | None:
    """Return the true values that a row needs, or None if some are not available.

    Args:
        row: a suspect.
        graph_inputs: names of the model's inputs, which need no key.
        available: returns True for results that there are true values of.
    """
    if row.region is None:
        return None
    keys: dict[str, Key] = {}
    for value in row.region.inputs:
        if value.name in graph_inputs:
            continue
        # In a body, a value has the same occurrence as its reader; one of an enclosing graph was computed once.
        choices = (Key(value.name, row.key.occurrence), Key(value.name))
        key = next((key for key in choices if available(key)), None)
        if key is None:
            return None
        keys[value.name] = key
    return NeededValues(keys, row.key)


class Judge:
    """Decides on suspects.

    Args:
        inputs: the model's inputs by name.
        names: names of the two sides, for reasons.
        precision: the element type whose rounding counts: the narrower one of both sides.
        network: the graph of the trusted side, to find out if the sides compute different things; None if unknown.
    """

    def __init__(
        self,
        inputs: Mapping[str, Array],
        names: tuple[str, str],
        precision: str = "float32",
        network: Network | None = None,
    ) -> None:
        self._inputs = inputs
        self._network = network
        self._names = names
        self._precision = precision

    def decide(self, row: Row, true: Callable[[Key], Array | None], found: Array, needed: NeededValues | None) -> None:
        """Set a suspect's status, reason and noise.

        Args:
            row: the suspect.
            true: returns true values.
            found: what b computed from true inputs.
            needed: the true values that it needs; None without a float64 reference.
        """
        own = true(row.key)
        exact = self._exact(row.region, true, needed)
        if exact is None or own is None or exact.array.shape != found.shape:
            self._decide_without_reference(row)
        elif exact.stable is not None:
            self._decide_exactly(row, exact, own, found)
        else:
            self._decide_by_noise(row, exact, own, found)
            if row.status == "diverges":
                self._compare_graphs(row, true, exact, own)

    def _exact(
        self, region: Region | None, true: Callable[[Key], Array | None], needed: NeededValues | None
    ) -> Exact | None:
        if needed is None or region is None:
            return None
        arrays = {value.name: self._inputs.get(value.name) for value in region.inputs}
        arrays.update((name, true(key)) for name, key in needed.inputs.items())
        known = {name: array for name, array in arrays.items() if array is not None}
        return exact_result(region, known, self._precision) if len(known) == len(arrays) else None

    def _compare_graphs(self, row: Row, true: Callable[[Key], Array | None], exact: Exact, own: Array) -> None:
        """Say so if a step diverges because the sides have different graphs there: a pass, or another model."""
        assert row.region is not None
        shown = {value.name for value in row.region.inputs}
        other = None if self._network is None else self._network.region(row.key.value, shown)
        if other is None or {value.name for value in other.inputs} != shown:
            return
        keys = NeededValues({name: Key(name, row.key.occurrence) for name in shown - {*self._inputs}}, row.key)
        if any(true(key) is None for key in keys.inputs.values()):
            return
        exact_a = self._exact(other, true, keys)
        if exact_a is None or exact_a.array.shape != own.shape or exact_a.stable is not None:
            return
        if _distance(own, exact_a.array) <= _FLOORS * exact_a.floor < _distance(own, exact.array):
            before = {node.name: _content(node, other) for node in other.nodes}
            row.differing = tuple(n.name for n in row.region.nodes if before.get(n.name) != _content(n, row.region))
            named = ", ".join(row.differing) or "other nodes"
            row.reason = f"the graphs of the two sides differ in {named}; `lite bisect --by pass` finds a wrong pass"

    def _decide_without_reference(self, row: Row) -> None:
        errors = row.local
        assert errors is not None
        limit = _WRONG.get(self._precision, _WRONG["float32"])
        is_wrong = errors.misplaced or errors.max_ulp is None or errors.relative is None or errors.relative > limit
        if is_wrong:
            row.status = "diverges"
            row.reason = f"{_amount(errors)}; there is no float64 reference for it"
        else:
            row.reason = "more than rounding usually does, but there is no float64 reference to decide"

    def _decide_exactly(self, row: Row, exact: Exact, a: Array, b: Array) -> None:
        """Decide on integers, booleans and strings: rounding may change those that are close to a limit only."""
        wrong_a, wrong_b = [int(np.count_nonzero(exact.stable & (side != exact.array))) for side in (a, b)]
        row.noise = {"floor": 0.0, "a": float(wrong_a), "b": float(wrong_b)}
        if wrong_b > wrong_a:
            row.status, row.reason = "diverges", f"{wrong_b} element(s) are not those of the reference"
        elif wrong_a > wrong_b:
            row.status = "diverges"
            row.reason = f"{self._names[0]} is the one that is wrong: {wrong_a} element(s), {self._names[1]} {wrong_b}"
        else:
            row.status = "rounding"
            row.reason = "rounding of the inputs decides the elements that differ" if not wrong_a else "both are alike"

    def _decide_by_noise(self, row: Row, exact: Exact, a: Array, b: Array) -> None:
        error_a, error_b = _distance(a, exact.array), _distance(b, exact.array)
        row.noise = {"floor": exact.floor, "a": error_a, "b": error_b}
        limit = _FLOORS * exact.floor
        name_a, name_b = self._names
        if max(error_a, error_b) <= limit:
            row.status, row.reason = "rounding", ""
        elif error_b > limit and error_b > _ALIKE * error_a:
            row.status = "diverges"
            row.reason = f"{name_b} is {_times(error_b, exact.floor)} as far from the exact result as rounding explains"
        elif error_a > limit and error_a > _ALIKE * error_b:
            row.status = "diverges"
            row.reason = (
                f"{name_a} is the one that is wrong: {_times(error_a, exact.floor)} as far from the exact result as "
                f"rounding explains, {name_b} {_times(error_b, exact.floor)}"
            )
        else:
            row.status, row.reason = "rounding", "both are equally far from the exact result"


def _distance(array: Array, exact: Array) -> float:
    """Return the greatest distance from exact elements; infinite if elements are NaN or infinite only here or there."""
    own, wide = array.astype(np.float64), exact.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        rounded = wide.astype(array.dtype).astype(np.float64)  # what is too large for the type is infinite
        gaps = np.abs(own - wide)
    finite = np.isfinite(own) & np.isfinite(rounded)
    alike = finite | (own == rounded) | (np.isnan(own) & np.isnan(rounded))
    if not alike.all():
        return float("inf")
    return float(gaps[finite].max()) if finite.any() else 0.0


def _content(node: Node, region: Region) -> tuple[object, ...]:
    """Return the operator, attributes and constants of a node, to compare two graphs."""
    constants = [
        region.constants[v.name].tobytes() for v in node.inputs if v is not None and v.name in region.constants
    ]
    return node.qualified_op, str(sorted(node.attributes.items(), key=lambda item: item[0])), constants


def _times(error: float, floor: float) -> str:
    return f"{error / floor:,.0f} times" if floor and np.isfinite(error) else "infinitely"


def _amount(errors: Any) -> str:
    if errors.misplaced:
        return f"{errors.misplaced} element(s) are NaN or infinite on one side only"
    if errors.max_ulp is None or errors.relative is None:
        return f"{errors.different} of {errors.elements} elements differ"
    return f"the greatest difference is {errors.relative:.2g} of the largest element"
