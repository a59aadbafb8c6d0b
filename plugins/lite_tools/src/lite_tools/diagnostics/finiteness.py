"""Search for the source of NaN and infinity: the first node of a run whose results are not finite."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lite_core.ir import Graph, Node, Value
from lite_core.session import Session

__all__ = ["FinitenessReport", "NotFinite", "ValueRange", "check_finite"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class ValueRange:
    """A value that a node read, with its smallest and largest finite elements; nan if it has none."""

    name: str
    least: float
    largest: float


@dataclass(frozen=True, slots=True)
class NotFinite:
    """A result that is not finite.

    Attributes:
        node: the node's name.
        op: its operator.
        origin: its origin in the file that was read.
        device: the device that ran it.
        output: the name of the result.
        nan: the number of elements that are NaN.
        infinite: the number of elements that are infinite.
        elements: the number of all elements.
        inputs: the floating-point values that the node read, including constants.
    """

    node: str
    op: str
    origin: str
    device: str
    output: str
    nan: int
    infinite: int
    elements: int
    inputs: tuple[ValueRange, ...]

    def __str__(self) -> str:
        read = "".join(f"\n  it read {r.name!r}, from {r.least:.4g} to {r.largest:.4g}" for r in self.inputs)
        return (
            f"node {self.node!r} ({self.op}{f', from {self.origin}' if self.origin else ''}) on {self.device}: "
            f"{self.nan} NaN and {self.infinite} infinite of {self.elements} elements of {self.output!r}{read}"
        )


@dataclass(frozen=True, slots=True)
class FinitenessReport:
    """The numbers of checked and of non-finite results, and the first non-finite result in graph order."""

    values: int
    not_finite: int
    first: NotFinite | None

    @property
    def ok(self) -> bool:
        """True if all results are finite."""
        return self.first is None


def check_finite(
    graph: Graph, make_session: Callable[[Graph], Session], inputs: Mapping[str, Array]
) -> FinitenessReport:
    """Run a graph with all floating-point results as outputs, and check them in the order of the nodes.

    This reduces fusion, and results that otherwise stay inside a kernel are rounded to their element type. For If, Loop
    and Scan, only the results are checked, not values in their bodies. Infinity in inputs or constants is reported for
    the first node whose result is not finite.

    Args:
        graph: the graph of a session, after the passes; it is not changed.
        make_session: creates a session of a graph without running passes.
        inputs: arrays by name.
    """
    probe = graph.copy()
    results = [v for node in probe.nodes for v in node.outputs if v is not None and v.dtype.is_floating]
    probe.outputs = list(dict.fromkeys([*probe.outputs, *results]))
    session = make_session(probe)
    found = session.run(inputs)
    wrong = [value for value in results if not np.isfinite(found[value.name]).all()]
    if not wrong:
        return FinitenessReport(len(results), 0, None)
    first, producer = wrong[0], probe.producers()[wrong[0]]
    known = {**{v.name: array for v, array in probe.constants.items()}, **inputs, **found}
    devices = {assignment.node: assignment.device for assignment in session.assignment()}
    return FinitenessReport(len(results), len(wrong), _describe(producer, first, known, devices))


def _describe(node: Node, value: Value, known: Mapping[str, Array], devices: Mapping[str, str]) -> NotFinite:
    array = known[value.name]
    nan = int(np.isnan(array).sum())
    read = [v for v in dict.fromkeys(node.inputs) if v is not None and v.dtype.is_floating and v.name in known]
    return NotFinite(
        node=node.name or node.op,
        op=node.qualified_op,
        origin=str(node.origin or ""),
        device=devices.get(node.name, "unknown"),
        output=value.name,
        nan=nan,
        infinite=int(array.size - np.isfinite(array).sum()) - nan,
        elements=array.size,
        inputs=tuple(_range(v.name, np.asarray(known[v.name])) for v in read),
    )


def _range(name: str, array: Array) -> ValueRange:
    finite = array[np.isfinite(array)]
    return (
        ValueRange(name, float(finite.min()), float(finite.max())) if finite.size else ValueRange(name, np.nan, np.nan)
    )
