"""Judgement of results that may have been computed in fewer bits, by the precision level in force.

- A product alone (Conv, MatMul, ...) keeps within a derived bound, element by element
  (:mod:`lite_conformance.judge.product_error`).
- Every other graph in which the level allows rounding keeps within the noise of its simulation
  (:mod:`lite_conformance.judge.rounding_noise`): its signal-to-noise ratio may be lower by at most a margin, and no
  element may be further away than a multiple of the noise.
- Where such a graph compares numbers or makes them integers, what rounding may decide is not compared
  (:mod:`lite_conformance.judge.decisions`).
- Everything else keeps its tolerance of float32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lite_conformance.judge.compare import Array, Expected, allowed, compare
from lite_conformance.judge.decisions import (
    has_decisions,
    of_another_size,
    without_close_calls,
    without_unsettled,
)
from lite_conformance.judge.oracle import expect
from lite_conformance.judge.precision import Precision, half_steps, round_to_nearest
from lite_conformance.judge.product_error import operand_positions, product_error
from lite_conformance.judge.rounding_noise import Noise, is_affected, simulated_noise
from lite_conformance.judge.tolerances import Numerics, default_tolerance
from lite_core.errors import LiteError
from lite_core.ir import DType, Graph

__all__ = ["MARGIN_DB", "Relaxed", "relax", "snr_db", "top1_agreement"]

#: A result may have this many decibels less than the noisiest simulation, plus the second number divided by the square
#: root of the number of elements, because the noise of few elements varies. docs/conformance.md has the measurements.
MARGIN_DB = 6.0
_MARGIN_OF_ONE_DB = 24.0
#: An element may be off by this many times the root mean square of the simulated noise.
_SPREAD = 16.0


@dataclass(frozen=True, slots=True)
class Relaxed:
    """The errors that a precision level allows for the outputs of a graph.

    Attributes:
        expected: the expected outputs; their magnitudes are the largest errors allowed, in the outputs' units.
        note: for the record: how the results were judged, and their signal-to-noise ratio.
        problem: a sentence if the signal-to-noise ratio is too low, otherwise empty.
    """

    expected: list[Expected]
    note: str = ""
    problem: str = ""


def relax(
    graph: Graph,
    inputs: Sequence[Array],
    actual: Sequence[Array],
    expected: Sequence[Expected],
    limits: Sequence[Array],
    numerics: Numerics,
    precision: Precision,
    *,
    alone: bool = False,
) -> Relaxed | None:
    """Return what a precision level allows for the outputs of a graph, or None if only float32 is right.

    Args:
        graph: the graph that ran.
        inputs: an array for each of its inputs.
        actual: the outputs that the backend computed.
        expected: the expected outputs.
        limits: the largest error of each element of each output in float32.
        numerics: the kind of operator.
        precision: the precision level.
        alone: True for a node cut out of a network, whose data need not be random.

    Returns:
        What the level allows. An expected output has another shape than the actual one if rounding does not explain
        the difference.
    """
    if not precision.is_low or not is_affected(graph, precision):
        return None
    if all(c.shape == e.array.shape and _within(c, e, at) for c, e, at in zip(actual, expected, limits)):
        return Relaxed(_limited(expected, limits), f"{precision.name}: as exact as float32")
    if precision.everywhere and len(graph.nodes) == 1:
        rounded = _rounded_truth(graph, inputs, actual, expected, numerics, precision)
        if rounded is not None:
            return rounded
    if len(graph.nodes) == 1 and graph.outputs[0].dtype is DType.FLOAT32 and operand_positions(graph.nodes[0]):
        if actual[0].shape != expected[0].array.shape:
            return None
        return _relax_product(graph, inputs, actual[0], expected[0], limits[0], precision, alone)
    return _relax_graph(graph, inputs, actual, expected, limits, precision)


# **** products ****


def _relax_product(
    graph: Graph,
    inputs: Sequence[Array],
    actual: Array,
    expected: Expected,
    limit: Array,
    precision: Precision,
    alone: bool,
) -> Relaxed:
    error = product_error(graph, inputs, precision, worst_case=alone)
    centres = [expected, *(replace(expected, array=c) for c in error.candidates)]
    allowed = [limit + error.limits, *(limit for _ in error.candidates)]
    note = f"{precision.name}: within the error bound of rounded operands"
    if actual.size > 0 and precision.stores and _on_grid(actual, precision):
        allowed = [_with_rounded_result(a, c.array, precision) for c, a in zip(centres, allowed)]
        note += f" and results in {precision.operands}"
    for centre, at in zip(centres[1:], allowed[1:]):
        if _within(actual, centre, at):
            return Relaxed(_limited([centre], [at]), f"{note}; exactly those of rounding to nearest")
    return Relaxed(_limited([expected], [allowed[0]]), note)


def _with_rounded_result(limit: Array, truth: Array, precision: Precision) -> Array:
    largest = np.abs(truth) + np.where(np.isfinite(limit), limit, 0)
    return limit + half_steps(largest, precision.operands)


def _on_grid(array: Array, precision: Precision) -> bool:
    return bool(np.array_equal(array, round_to_nearest(array, precision.operands), equal_nan=True))


# **** graphs ****


def _relax_graph(
    graph: Graph,
    inputs: Sequence[Array],
    actual: Sequence[Array],
    expected: Sequence[Expected],
    limits: Sequence[Array],
    precision: Precision,
) -> Relaxed:
    noises = simulated_noise(graph, inputs, [e.array for e in expected], precision)
    relaxed, notes, problems = [], [], []
    decides = has_decisions(graph)
    for value, found, want, limit, noise in zip(graph.outputs, actual, expected, limits, noises):
        if found.shape != want.array.shape:
            resized = None if value.type.is_static else of_another_size(found, want, noise)
            relaxed.append(resized[0] if resized else want)
            notes += [resized[1]] if resized else []
            continue
        limit = np.fmax(limit, 0.0)  # NaN and negative limits are for exact results
        spread = _SPREAD * np.maximum(noise.scale, _root_mean_square(noise.scale))
        (one,) = _limited([replace(want, or_zero=False)], [limit + spread])
        one, unsettled = without_unsettled(one, noise)
        close = ""
        if decides:
            one, close = without_close_calls(found, one, noise)
        relaxed.append(one)
        notes += filter(None, [unsettled, close])
        if want.dtype is DType.FLOAT32 and want.array.size and noise.power:
            note, problem = _judge_snr(found, one, limit, noise)
            notes.append(note)
            problems += [problem] if problem else []
    said = "; ".join(notes) or "within the noise of its simulation"
    return Relaxed(relaxed, f"{precision.name}: {said}", "; ".join(problems))


def _judge_snr(found: Array, want: Expected, limit: Array, noise: Noise) -> tuple[str, str]:
    """Return the note of an output, and a sentence if its signal-to-noise ratio is too low."""
    usable = np.isfinite(want.array) & (True if want.unspecified is None else ~want.unspecified)
    truth = np.where(usable, want.array, 0.0)
    error = np.where(usable, found.astype(np.float64) - truth, 0.0)
    floor = np.square(np.where(usable & np.isfinite(limit), limit / _SPREAD, 0.0)).sum()
    margin = MARGIN_DB + _MARGIN_OF_ONE_DB / math.sqrt(truth.size)
    signal = float(np.square(truth).sum())
    have, simulated = snr_db(signal, float(np.square(error).sum())), snr_db(signal, noise.power)
    need = snr_db(signal, 10 ** (margin / 10) * noise.power + floor)
    top1 = top1_agreement(found, want.array)
    agreement = "" if top1 is None else f", top-1 agreement {top1:.1%}"
    note = f"{want.name}: SNR {have:.1f} dB (simulated {simulated:.1f}, required {need:.1f}){agreement}"
    return note, "" if have >= need else note


def snr_db(signal: float, noise: float) -> float:
    """Return the signal-to-noise ratio in decibels: ``10 log10(sum truth^2 / sum error^2)``."""
    if not noise:
        return math.inf
    return 10 * math.log10(signal / noise) if signal and math.isfinite(noise) else -math.inf


def top1_agreement(found: Array, truth: Array) -> float | None:
    """Return the share of rows whose largest elements have the same index; None for tensors that have no classes."""
    if truth.ndim not in (2, 3) or truth.shape[-1] < 2 or not truth.size:
        return None
    return float((found.argmax(-1) == truth.argmax(-1)).mean())


# **** operators in a low type ****


def _rounded_truth(
    graph: Graph,
    inputs: Sequence[Array],
    actual: Sequence[Array],
    expected: Sequence[Expected],
    numerics: Numerics,
    precision: Precision,
) -> Relaxed | None:
    """Return the truth for rounded operands with the tolerances of the low type, if the outputs keep within it."""
    rounded = graph.copy()
    for value, array in list(rounded.constants.items()):
        rounded.constants[value] = _rounded(array, precision)
    try:
        wanted = expect(rounded, [_rounded(a, precision) for a in inputs], numerics)
    except LiteError:
        return None
    rtol, atol = default_tolerance(numerics, precision.operands)
    note = f"{precision.name}: exact for operands rounded to {precision.operands}"
    relaxed = []
    for found, want, original in zip(actual, wanted, expected):
        if found.shape != want.array.shape:
            return None
        unspecified = original.unspecified if original.array.shape == want.array.shape else None
        want = replace(want, unspecified=unspecified, every_bit=False, or_zero=False)
        if want.dtype is DType.FLOAT32:
            want = _limited_one(want, allowed(want, rtol, atol)[1] + half_steps(want.array, precision.operands))
        if compare(found, want, 0.0, 1.0).wrong:
            return None
        relaxed.append(want)
    return Relaxed(relaxed, note)


def _rounded(array: Array, precision: Precision) -> Array:
    return round_to_nearest(array, precision.operands) if array.dtype == np.float32 else array


# **** shared ****


def _limited(expected: Sequence[Expected], limits: Sequence[Array]) -> list[Expected]:
    """Return expected outputs whose magnitude is the largest error allowed, for tolerances of 0 and 1."""
    return [_limited_one(want, limit) if want.dtype.is_floating else want for want, limit in zip(expected, limits)]


def _limited_one(want: Expected, limit: Array) -> Expected:
    anything = np.isposinf(limit)
    if want.unspecified is not None:
        anything = anything | want.unspecified
    known = np.nan_to_num(limit, nan=0.0, posinf=0.0)
    return replace(want, magnitude=known, unspecified=anything if anything.any() else None)


def _within(actual: Array, expected: Expected, limit: Array) -> bool:
    (limited,) = _limited([expected], [limit])
    return not compare(actual, limited, 0.0, 1.0).wrong


def _root_mean_square(array: Array) -> float:
    return math.sqrt(float(np.mean(array * array))) if array.size else 0.0
