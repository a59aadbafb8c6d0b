"""Comparing a graph with what a pass made of it, on random input, by the references."""

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

_MOST_ATTEMPTS = 12
# A few roundings of float32: x - (x + 1) is -1 up to this.
_ROUNDING = 1e-5


def compare_graphs(
    before: Graph,
    after: Graph,
    seed: int = 0,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
) -> float:
    """The largest difference between the outputs of two graphs with the same inputs and outputs.

    Args:
        before: what is right.
        after: what is compared with it.
        seed: of the random input, see :func:`lite_tools.checking.random_inputs.random_inputs`.
        shapes: shapes of inputs by name, where random sizes do not do.

    Returns:
        The largest absolute difference of an element as a share of its output's range (largest minus
        smallest finite element). NaN equals NaN and an infinity itself; otherwise the difference is
        infinite.

    Raises:
        PassError: inputs or outputs differ in number, name, type or shape, or ``after`` fails.
        InputError: no random input was found that ``before`` runs on.
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
    for what, old, new in (("inputs", before.inputs, after.inputs), ("outputs", before.outputs, after.outputs)):
        listed = [[f"{v.name}: {v.dtype}" for v in values] for values in (old, new)]
        if listed[0] != listed[1]:
            raise PassError(f"the {what} were [{', '.join(listed[0])}] and are [{', '.join(listed[1])}]")


def _run_on_random(
    graph: Graph, seed: int, shapes: Mapping[str, Sequence[int]] | None
) -> tuple[dict[str, Array], list[Array]]:
    """Random inputs that the graph runs on, and its outputs."""
    reason: LiteError | None = None
    weak: tuple[dict[str, Array], list[Array]] | None = None
    for attempt, drawn in enumerate(candidate_inputs(graph, seed, shapes=shapes)):
        if attempt == _MOST_ATTEMPTS:
            break
        for inputs in (drawn, _positive(drawn)):
            try:
                outputs = evaluate_graph(graph, list(inputs.values()))
            except LiteError as error:
                reason = error
                logger.debug("the graph does not run on a random input: %s", error)
                break
            if not any(_says_nothing(a) for a in outputs):
                return inputs, outputs
            weak = weak or (inputs, outputs)
        if weak is not None:
            return weak
    raise InputError(
        f"graph {graph.name!r} runs on none of the random inputs tried; the last failed with: {reason}; "
        "give the shapes of the inputs"
    )


def _says_nothing(output: Array) -> bool:
    """Whether an output is NaN everywhere: a logarithm of negative numbers equals any other."""
    return bool(output.size) and output.dtype.kind in "fV" and bool(np.isnan(output.astype(np.float64)).all())


def _positive(inputs: Mapping[str, Array]) -> dict[str, Array]:
    return {k: np.abs(a) if a.dtype.kind in "fV" else a for k, a in inputs.items()}


def largest_difference(expected: Array, found: Array) -> float:
    """The largest difference of two arrays of one shape as a share of the range of the first."""
    a, b = expected.astype(np.float64), found.astype(np.float64)
    equal = (a == b) | (np.isnan(a) & np.isnan(b))
    if equal.all():
        return 0.0
    finite = np.isfinite(a)
    if not (finite & np.isfinite(b) | equal).all():
        return float("inf")
    values = a[finite]
    span = float(values.max() - values.min())
    # A constant output has no range, and one constant but for rounding none that says anything: its size,
    # or 1, stands in for it.
    size = float(np.abs(values).max())
    span = (span if span > _ROUNDING * size else size) or 1.0
    return float(np.abs(a - b)[~equal].max()) / span
