"""The comparison of two runs, result by result: with true inputs for each step, and on its own."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lite_core.observing import Observed
from lite_tools.comparing.errors import Errors, difference_picture, error_histogram, measure
from lite_tools.comparing.regions import Network, Region
from lite_tools.comparing.sides import Side
from lite_tools.comparing.spool import Spool
from lite_tools.comparing.values import Key, Seen, Source, ValueObserver, survey

__all__ = ["Comparison", "Row", "compare_values", "screening"]

Array = np.ndarray[Any, Any]
#: Opens the true values, for one pass over those that are named.
OpenSource = Callable[[Sequence[Key]], AbstractContextManager[Source]]

#: Local errors below this share of the largest element are rounding, whatever the operator: a few dozen units in the
#: last place. Above it the float64 reference decides.
_ROUNDING = {"float32": 3e-6, "float16": 3e-2, "bfloat16": 2e-1}


@dataclass
class Row:
    """A result that both sides have.

    Attributes:
        key: the result.
        region: the nodes that compute it from results that both sides have, in b's graph.
        kernel_a, kernel_b: the kernel and the device of each side; None for a side that was read from a file.
        local: the error of b with a's true inputs.
        accumulated: the error of b on its own.
        status: ``"equal"``, ``"rounding"``, ``"suspect"``, ``"diverges"``, ``"not compared"``.
        reason: a sentence about the status.
        noise: greatest absolute errors against float64: ``floor``, ``a`` and ``b``.
        histogram, picture: of the local error, for suspects.
        differing: names of the region's nodes that are not what they are in a's graph, if the sides compute different
            things here.
    """

    key: Key
    region: Region | None
    kernel_a: Seen | None
    kernel_b: Seen
    local: Errors | None = None
    accumulated: Errors | None = None
    status: str = "not compared"
    reason: str = ""
    noise: dict[str, float] | None = None
    histogram: dict[str, Any] | None = None
    picture: dict[str, Any] | None = None
    differing: tuple[str, ...] = ()


@dataclass
class Comparison:
    """All results of a comparison, in the order in which b computes them.

    Attributes:
        rows: the results that both sides have.
        only_in_b: the results that a does not show, with the kernel that computes them.
        outputs: errors of the model's outputs, by name.
        changing: results of b that differed between runs on equal inputs, first ones first.
        runs: the number of b's runs on equal inputs.
    """

    rows: list[Row] = field(default_factory=list)
    only_in_b: dict[Key, Seen] = field(default_factory=dict)
    outputs: dict[str, Errors] = field(default_factory=dict)
    changing: list[Key] = field(default_factory=list)
    runs: int = 0


def screening(precision: str) -> float:
    """Return the relative error up to which a result is rounding in a precision."""
    return _ROUNDING.get(precision, _ROUNDING["float32"])


def compare_values(
    b: Side,
    inputs: Mapping[str, Array],
    other_inputs: Mapping[str, Array] | None,
    seen_a: Mapping[Key, Seen | None],
    open_source: OpenSource,
    outputs_a: Mapping[str, Array],
    kept: Spool,
    runs: int = 2,
    progress: Callable[[str], None] = lambda text: None,
) -> Comparison:
    """Compare a side with true values.

    b runs ``runs`` times on its own; between these runs it runs on other inputs, so that what it keeps from a run to
    the next shows. Then it runs once with every result replaced by the true one as soon as it is measured: each step
    reads true inputs, and its error is its own.

    Args:
        b: the side in doubt.
        inputs: the inputs by name.
        other_inputs: other inputs of the same shapes; None if b shall not run on any.
        seen_a: the results that there are true values of.
        open_source: opens these.
        outputs_a: the true outputs of the model, by name.
        kept: receives what b computed from true inputs, for suspects.
        runs: the number of runs of b on its own, at least 1.
        progress: called with a line about what is being done.

    Raises:
        LiteError: a run failed.
    """
    arrays = b.run_inputs(inputs)
    hashes: dict[Key, int] = {}
    changing: dict[Key, None] = {}

    def remember(key: Key, array: Array) -> None:
        if runs > 1 and array.dtype.kind != "O":
            digest = zlib.adler32(array.ravel(order="K").view(np.uint8).data)
            if hashes.setdefault(key, digest) != digest:
                changing[key] = None

    progress(f"{b.label}: run 1 of {runs} on equal inputs")
    seen_b, first_outputs = survey(b.plan, arrays, remember if runs > 1 else None)
    found = Comparison(only_in_b={key: seen for key, seen in seen_b.items() if key not in seen_a})
    shared = [key for key in seen_b if key in seen_a]
    network, known = Network(b.plan.graph), {key.value for key in shared}
    rows = {key: Row(key, network.region(key.value, known), seen_a[key], seen_b[key]) for key in shared}
    found.rows = list(rows.values())

    def accumulate(source: Source) -> None:
        def receive(key: Key, results: Observed) -> None:
            array = results.read(key.value)
            remember(key, array)
            if key in rows:
                rows[key].accumulated, _ = _measured(source.get(key), array)

        b.plan.run(arrays, observer=ValueObserver(receive))

    def check_locally(source: Source) -> None:
        limit = screening(b.precision)

        def receive(key: Key, results: Observed) -> None:
            row = rows.get(key)
            if row is None:
                return
            array, true = results.read(key.value), source.get(key)
            row.local, problem = _measured(true, array)
            if row.local is None or true is None:
                row.status, row.reason = ("not compared", problem) if true is None else ("diverges", problem)
                return
            _judge_first(row, limit)
            if row.status != "equal":
                results.write(key.value, np.ascontiguousarray(true, dtype=array.dtype))
            if row.status == "suspect":
                kept.put(key, array)
                row.histogram, row.picture = error_histogram(true, array), difference_picture(true, array)

        b.plan.run(arrays, observer=ValueObserver(receive))

    def disturb() -> None:
        if other_inputs is not None:
            b.plan.run(b.run_inputs(other_inputs))

    for number in range(2, runs):
        disturb()
        progress(f"{b.label}: run {number} of {runs} on equal inputs")
        b.plan.run(arrays, observer=ValueObserver(lambda key, results: remember(key, results.read(key.value))))
    if runs > 1:
        disturb()
    progress(f"{b.label}: run {runs} of {runs}, the error that accumulates")
    with open_source(shared) as source:
        accumulate(source)
    disturb()
    progress(f"{b.label}: the error of each step on true inputs")
    with open_source(shared) as source:
        check_locally(source)
    found.changing = [key for key in seen_b if key in changing]
    found.runs = runs
    for value, array in zip(b.plan.graph.outputs, first_outputs):
        if value.name in outputs_a and outputs_a[value.name].shape == array.shape:
            found.outputs[value.name] = measure(outputs_a[value.name], array)
    return found


def _measured(true: Array | None, array: Array) -> tuple[Errors | None, str]:
    """Return the errors of an array, or None with the reason why there are none."""
    if true is None:
        return None, "the other side did not compute it in this run"
    if true.shape != array.shape:
        return None, f"its shape is {list(array.shape)}, the other side's {list(true.shape)}"
    return measure(true, array), ""


def _judge_first(row: Row, limit: float) -> None:
    """Set the status that the errors alone allow."""
    errors = row.local
    assert errors is not None
    if errors.is_equal:
        row.status = "equal"
    elif errors.misplaced or errors.max_ulp is None or errors.relative is None or errors.relative > limit:
        row.status = "suspect"
    else:
        row.status = "rounding"
