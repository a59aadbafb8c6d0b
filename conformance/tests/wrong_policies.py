"""Backends with one mistake in infinite states, subnormal results, shift counts or empty choices, and allowed ones."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan

import numpy as np
from wrong_ties import Array, OneMistake, operands

from lite_conformance.judge.tolerances import epsilon, smallest_normal
from lite_core.builder import GraphBuilder
from lite_core.errors import ExecutionError, LiteError
from lite_core.ir import DType, Graph
from lite_core.ops.evaluate import evaluate_graph

# **** infinities in recurrent layers ****


def multiplies_missing_peepholes(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Return the results with zeros for peepholes that are left out: 0 times an infinite cell is NaN."""
    known = operands(graph, inputs)
    known += [None] * (8 - len(known))
    if known[7] is None:
        assert known[2] is not None
        directions, _, hidden = known[2].shape
        known[7] = np.zeros((directions, 3 * hidden), known[2].dtype)
    builder, node = GraphBuilder("with_peepholes"), graph.nodes[0]
    values = [None if a is None else builder.constant(a) for a in known]
    for value in builder.add_node(node.op, values, dict(node.attributes), outputs=len(node.outputs)):
        builder.output(value)
    return evaluate_graph(builder.build(), [])


def interpolates_the_state(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Return NaN for an infinity, as does n + z (h - n) for (1 - z) n + z h."""
    return [np.where(np.isinf(y), y.dtype.type(nan), y) for y in evaluate_graph(graph, inputs)]


def clamps_infinities(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Return the results for the largest finite numbers instead of infinities."""
    return evaluate_graph(graph, [np.clip(x, -1e30, 1e30) if x.dtype == np.float32 else x for x in inputs])


def loses_nan_below_the_threshold(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Return 0 for NaN, like ThresholdedRelu with the comparison x > alpha."""
    return [np.nan_to_num(y, posinf=inf, neginf=-inf) for y in evaluate_graph(graph, inputs)]


def spoils_other_sequences(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Return only NaN if an input is infinite."""
    results = evaluate_graph(graph, inputs)
    return [np.full_like(y, nan) for y in results] if np.isinf(inputs[0]).any() else results


def loses_infinite_sequences(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Return 0 for sequences that infinite inputs make infinite or NaN, as is allowed."""
    results = evaluate_graph(graph, inputs)
    wild = np.isinf(inputs[0]).any(axis=(0, 2))[:, np.newaxis]
    return [np.where(wild, y.dtype.type(0), y) for y in results]


# **** subnormal results ****


def _with_subnormals(graph: Graph, inputs: list[Array], rounded: Callable[[Array], Array]) -> list[Array]:
    """Return the results of Cast or Mul; those below the smallest normal number are rounded by a function."""
    (right,) = evaluate_graph(graph, inputs)
    dtype = DType.of(right.dtype)
    if not dtype.is_floating or dtype is DType.FLOAT64:
        return [right]
    factors = [a.astype(np.float64) for a in operands(graph, inputs) if a is not None]
    exact: Array = factors[0] * (factors[1] if len(factors) > 1 else 1.0)
    least = smallest_normal(dtype)
    step = least * epsilon(dtype)
    small = np.abs(exact) < least
    found = np.copysign(rounded(np.abs(np.where(small, exact, 0)) / step) * step, exact)
    return [np.where(small, found.astype(right.dtype), right)]


def truncates_subnormals(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Return subnormal results rounded towards zero, like a conversion that shifts the digits out."""
    return _with_subnormals(graph, inputs, np.floor)


def rounds_subnormals_half_up(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Return subnormal results with halves rounded away from zero, like a conversion that adds half and shifts."""
    return _with_subnormals(graph, inputs, lambda steps: np.floor(steps + 0.5))


def flushes_results(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Return zero for subnormal results, as is allowed."""
    return _with_subnormals(graph, inputs, np.zeros_like)


# **** shift counts ****


def _shifted(graph: Graph, inputs: list[Array]) -> tuple[Array, Array, Array]:
    """Return the numbers, the counts and the right results."""
    x, counts = operands(graph, inputs)
    assert x is not None
    assert counts is not None
    return x, counts, evaluate_graph(graph, inputs)[0]


def refuses_large_counts(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Raise an error for a count that is not less than the width."""
    x, counts, right = _shifted(graph, inputs)
    if (counts >= 8 * x.itemsize).any():
        raise ExecutionError("a shift count is too large")
    return [right]


def spoils_neighbours_of_large_counts(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Return only zeros if a count is not less than the width."""
    x, counts, right = _shifted(graph, inputs)
    return [np.zeros_like(right) if (counts >= 8 * x.itemsize).any() else right]


def takes_counts_modulo_the_width(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Return what processors return: the lower bits of the count decide, as is allowed."""
    x, counts, _ = _shifted(graph, inputs)
    counts = counts % counts.dtype.type(8 * x.itemsize)
    to_left = graph.nodes[0].attributes["direction"] == "LEFT"
    return [np.asarray(np.left_shift(x, counts) if to_left else np.right_shift(x, counts))]


# **** nothing to choose from ****


def chooses_from_nothing(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Return the index 0 if there are no elements."""
    try:
        return evaluate_graph(graph, inputs)
    except LiteError:
        (value,) = graph.outputs
        return [np.zeros(value.type.static_shape, np.int64)]


def hides_the_chooser(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Raise an error that does not say where there are no elements."""
    try:
        return evaluate_graph(graph, inputs)
    except LiteError:
        raise ExecutionError("there are no elements") from None


_RECURRENT, _ROUNDING, _CHOICE = ("LSTM", "GRU"), ("Cast", "Mul"), ("ArgMax", "ArgMin", "Slice")

#: All backends by name.
BACKENDS: dict[str, OneMistake] = {
    compute.__name__: OneMistake(ops, compute)
    for ops, compute in (
        (("LSTM",), multiplies_missing_peepholes),
        (("GRU",), interpolates_the_state),
        (("RNN",), clamps_infinities),
        (("RNN",), loses_nan_below_the_threshold),
        (_RECURRENT, spoils_other_sequences),
        (_RECURRENT, loses_infinite_sequences),
        (_ROUNDING, truncates_subnormals),
        (_ROUNDING, rounds_subnormals_half_up),
        (_ROUNDING, flushes_results),
        (("BitShift",), refuses_large_counts),
        (("BitShift",), spoils_neighbours_of_large_counts),
        (("BitShift",), takes_counts_modulo_the_width),
        (_CHOICE, chooses_from_nothing),
        (_CHOICE, hides_the_chooser),
    )
}
