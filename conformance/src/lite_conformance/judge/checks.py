"""Comparison of the outputs of a graph with the truth, within the tolerance in force."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lite_conformance.judge.compare import Array, Expected, Measured, allowed, compare, merge
from lite_conformance.judge.low_precision import relax
from lite_conformance.judge.oracle import expect
from lite_conformance.judge.outcome import Failure, Outcome, Replay
from lite_conformance.judge.precision import FLOAT32, Precision
from lite_conformance.judge.tolerances import GRAPH, NETWORK, Numerics, Tolerance, default_tolerance
from lite_core.ir import DType, Graph

__all__ = ["Allowance", "check_arrays", "check_expected", "check_outcome"]


@dataclass(frozen=True, slots=True)
class Allowance:
    """The errors that a case allows: the tolerance that the backend's package sets, and the precision level in force.

    Attributes:
        rtol: None where the package sets none.
        atol: the same.
        reason: the package's reason.
        source: the file in which the package sets the tolerance.
        precision: the precision level.
        derived: True if the magnitudes of expected outputs are the largest errors that the level allows.
    """

    rtol: float | None = None
    atol: float | None = None
    reason: str = ""
    source: str = "default"
    precision: Precision = FLOAT32
    derived: bool = False

    def tolerance(self, numerics: Numerics, dtype: DType) -> Tolerance:
        """Return the tolerance in force."""
        if self.derived:
            reason = f"atol is relative to the largest error of precision {self.precision.name}"
            return Tolerance(0.0, 1.0, self.precision.name, False, (0.0, 1.0), reason)
        default = default_tolerance(numerics, dtype)
        rtol = default[0] if self.rtol is None else self.rtol
        atol = default[1] if self.atol is None else self.atol
        loosened = rtol > default[0] or atol > default[1]
        return Tolerance(rtol, atol, self.source, loosened, default, self.reason)


def check_arrays(
    actual: Sequence[Array],
    expected: Sequence[Expected],
    numerics: Numerics,
    allowance: Allowance,
    dtype: DType | None = None,
) -> tuple[Tolerance | None, Measured]:
    """Compare outputs with their expected values.

    Args:
        actual: an array for each output.
        expected: the expected value of each output.
        numerics: the kind of operator.
        allowance: the tolerance that the backend's package sets.
        dtype: the element type whose tolerance applies to floating outputs; each output's own when omitted.

    Returns:
        The tolerance of the first floating output (None if there is none), and the worst measurements of all outputs.
    """
    parts = []
    reported: Tolerance | None = None
    for array, want in zip(actual, expected):
        if array.shape != want.array.shape:
            raise Failure(f"output {want.name!r} has shape {list(array.shape)}, expected {list(want.array.shape)}")
        tolerance = _tolerance(want, numerics, allowance, dtype)
        if want.dtype.is_floating and reported is None:
            reported = tolerance
        parts.append(compare(array, want, tolerance.rtol, tolerance.atol))
    return reported, merge(parts)


def check_outcome(
    graph: Graph,
    inputs: Sequence[Array],
    actual: Sequence[Array],
    numerics: Numerics,
    allowance: Allowance,
    dtype: DType | None = None,
) -> Outcome:
    """Compare the outputs of a graph with the truth.

    Raises:
        Failure: an element is out of tolerance, or a shape is wrong; contains the replay.
    """
    return check_expected(graph, inputs, actual, expect(graph, inputs, numerics), numerics, allowance, dtype)


def check_expected(
    graph: Graph,
    inputs: Sequence[Array],
    actual: Sequence[Array],
    expected: Sequence[Expected],
    numerics: Numerics,
    allowance: Allowance,
    dtype: DType | None = None,
) -> Outcome:
    """Compare outputs with a given truth, as :func:`check_outcome` does with the truth of the oracle."""
    note = problem = ""
    try:
        if allowance.precision.is_low and dtype in (None, DType.FLOAT32):
            limits = [allowed(e, *_tolerance_pair(e, numerics, allowance, dtype))[1] for e in expected]
            alone = numerics.name in (GRAPH.name, NETWORK.name)
            relaxed = relax(graph, inputs, actual, expected, limits, numerics, allowance.precision, alone=alone)
            if relaxed is not None:
                expected, note, problem = relaxed.expected, relaxed.note, relaxed.problem
                allowance = replace(allowance, derived=True)
        tolerance, measured = check_arrays(actual, expected, numerics, allowance, dtype)
        if measured.wrong:
            share = f"{measured.wrong} of {measured.elements} element(s) wrong"
            reason = "; ".join(filter(None, [share, measured.worst, note]))
            raise Failure(reason, tolerance=tolerance, measured=measured)
        if problem:
            raise Failure(f"too much noise: {problem}", tolerance=tolerance, measured=measured)
    except Failure as failure:
        failure.replay = _replay(graph, inputs, expected, numerics, allowance, dtype)
        raise
    return Outcome(tolerance, measured, note=note)


def _tolerance_pair(
    want: Expected, numerics: Numerics, allowance: Allowance, dtype: DType | None
) -> tuple[float, float]:
    tolerance = _tolerance(want, numerics, allowance, dtype)
    return tolerance.rtol, tolerance.atol


def _replay(
    graph: Graph,
    inputs: Sequence[Array],
    expected: Sequence[Expected],
    numerics: Numerics,
    allowance: Allowance,
    dtype: DType | None,
) -> Replay:
    pairs = []
    for want in expected:
        tolerance = _tolerance(want, numerics, allowance, dtype)
        pairs.append(allowed(want, tolerance.rtol, tolerance.atol))
    return Replay(graph, inputs, [truth for truth, _ in pairs], [limits for _, limits in pairs])


def _tolerance(want: Expected, numerics: Numerics, allowance: Allowance, dtype: DType | None) -> Tolerance:
    return allowance.tolerance(numerics, want.dtype if dtype is None or not want.dtype.is_floating else dtype)
