"""Comparison of a graph before and after a pass, on random input, by the references."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lite_core.errors import InputError, LiteError, PassError
from lite_core.ir import Graph
from lite_core.ops.evaluate import evaluate_graph
from lite_tools.checking.random_inputs import candidate_inputs

__all__ = ["compare_graphs", "largest_difference"]

Array = np.ndarray[Any, Any]

logger = logging.getLogger("lite.passes")

_MAX_ATTEMPTS = 12
# A few rounding errors of float32: x - (x + 1) equals -1 up to this.
_ROUNDING = 1e-5


def compare_graphs(
    before: Graph,
    after: Graph,
    seed: int = 0,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
) -> float:
    """Return the largest difference between the outputs of two graphs with the same inputs and outputs.

    Args:
        before: the graph that is correct.
        after: the graph to compare with it.
        seed: the seed of the random input, see :func:`lite_tools.checking.random_inputs.random_inputs`.
        shapes: shapes of inputs by name, if random sizes do not fit.

    Returns:
        The largest absolute difference of an element, as a share of its output's range (largest minus smallest
        finite element). NaN equals NaN, and an infinity equals itself; other differences of non-finite elements are
        infinite.

    Raises:
        PassError: inputs or outputs differ in number, name, type or shape, or ``after`` fails.
        InputError: ``before`` runs on none of the random inputs.
    """
    _check_interface(before, after)
    inputs, expected = _run_on_random(before, seed, shapes)
    try:
        found = evaluate_graph(after, list(inputs.values()))
    except LiteError as error:
        raise PassError(f"the graph ran before and fails now: {error}") from error
    differences = [0.0]
    for value, a, b in zip(before.outputs, expected, found):
        if a.shape != b.shape or a.dtype != b.dtype:
            raise PassError(
                f"output {value.name!r} was {a.dtype.name}{list(a.shape)} and is {b.dtype.name}{list(b.shape)}"
            )
        differences.append(largest_difference(a, b))
    return max(differences)


def _check_interface(before: Graph, after: Graph) -> None:
    for kind, old, new in (("inputs", before.inputs, after.inputs), ("outputs", before.outputs, after.outputs)):
        listed = [[f"{v.name}: {v.dtype}" for v in values] for values in (old, new)]
        if listed[0] != listed[1]:
            raise PassError(f"the {kind} were [{', '.join(listed[0])}] and are [{', '.join(listed[1])}]")


def _run_on_random(
    graph: Graph, seed: int, shapes: Mapping[str, Sequence[int]] | None
) -> tuple[dict[str, Array], list[Array]]:
    """Find random inputs that the graph runs on; return them and its outputs."""
    reason: LiteError | None = None
    fallback: tuple[dict[str, Array], list[Array]] | None = None
    for attempt, drawn in enumerate(candidate_inputs(graph, seed, shapes=shapes)):
        if attempt == _MAX_ATTEMPTS:
            break
        for inputs in (drawn, _positive(drawn)):
            try:
                outputs = evaluate_graph(graph, list(inputs.values()))
            except LiteError as error:
                reason = error
                logger.debug("the graph does not run on a random input: %s", error)
                break
            if not any(_is_all_nan(a) for a in outputs):
                return inputs, outputs
            fallback = fallback or (inputs, outputs)
        if fallback is not None:
            return fallback
    raise InputError(
        f"graph {graph.name!r} runs on none of the random inputs tried; the last failed with: {reason}; "
        "give the shapes of the inputs"
    )


def _is_all_nan(output: Array) -> bool:
    """Return True if all elements are NaN, such as logarithms of negative numbers: comparing them proves nothing."""
    return bool(output.size) and output.dtype.kind in "fV" and bool(np.isnan(output.astype(np.float64)).all())


def _positive(inputs: Mapping[str, Array]) -> dict[str, Array]:
    return {k: np.abs(a) if a.dtype.kind in "fV" else a for k, a in inputs.items()}


def largest_difference(expected: Array, found: Array) -> float:
    """Return the largest difference of two arrays of one shape, as a share of the range of the first.

    For strings it is 0 or infinite.
    """
    if expected.dtype.hasobject:
        return 0.0 if np.array_equal(expected, found) else float("inf")
    a, b = expected.astype(np.float64), found.astype(np.float64)
    equal = (a == b) | (np.isnan(a) & np.isnan(b))
    if equal.all():
        return 0.0
    finite = np.isfinite(a)
    if not (finite & np.isfinite(b) | equal).all():
        return float("inf")
    values = a[finite]
    span = float(values.max() - values.min())
    # The range of a constant output is zero or a rounding error: its magnitude, or 1, is used instead.
    magnitude = float(np.abs(values).max())
    span = (span if span > _ROUNDING * magnitude else magnitude) or 1.0
    return float(np.abs(a - b)[~equal].max()) / span
