"""Accuracy of a graph's outputs relative to those of another graph, for example after a change of weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lite_core.errors import InputError
from lite_core.ir import Graph
from lite_core.ops.evaluate import evaluate_graph
from lite_tools.checking.comparison import largest_difference
from lite_tools.checking.random_inputs import random_inputs

__all__ = ["OutputAccuracy", "Run", "accuracy_of", "compare_outputs"]

Array = np.ndarray[Any, Any]
#: A function from inputs by name to outputs by name, such as :meth:`lite_core.Session.run`.
Run = Callable[[Mapping[str, Array]], Mapping[str, Array]]


@dataclass(frozen=True, slots=True)
class OutputAccuracy:
    """The accuracy of one output over all samples.

    Attributes:
        name: the output's name.
        max_difference: the largest difference of an element, as a share of the output's range in its sample; infinite
            if shapes differ or only one of two elements is finite.
        snr_db: ``10 log10(sum a^2 / sum (a - b)^2)``, in decibels: infinite for equal outputs, minus infinity if
            ``max_difference`` is infinite.
        top1_agreement: the share of rows, 0 to 1, whose largest elements have the same index; None for outputs that
            are not scores of classes, see :func:`compare_outputs`.
    """

    name: str
    max_difference: float
    snr_db: float
    top1_agreement: float | None


def compare_outputs(
    before: Graph,
    after: Graph,
    data: Sequence[Mapping[str, Array]] = (),
    *,
    make_run: Callable[[Graph], Run] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    samples: int = 1,
    seed: int = 0,
) -> tuple[OutputAccuracy, ...]:
    """Run two graphs on the same inputs and compare their outputs.

    Args:
        before: the graph that is correct.
        after: the graph to compare with it, with the same inputs and outputs.
        data: inputs by name, one mapping for each sample; random inputs if empty.
        make_run: returns a function that runs a graph, such as ``lambda graph: lite.load(graph).run``; by default the
            references run it.
        shapes: shapes of random inputs, see :func:`lite_tools.checking.random_inputs.random_inputs`.
        samples: the number of random inputs.
        seed: the seed of the first random input.

    Returns:
        One entry for each output. Floating-point outputs [rows, classes] and [batch, rows, classes] with at least two
        classes are treated as scores.

    Raises:
        InputError: the graphs have different outputs, or no random inputs fit.
    """
    names = [v.name for v in before.outputs]
    if names != [v.name for v in after.outputs]:
        listed = [", ".join(v.name for v in graph.outputs) for graph in (before, after)]
        raise InputError(f"only graphs with the same outputs can be compared; these have {listed[0]} and {listed[1]}")
    inputs = data or [random_inputs(before, seed + i, shapes=shapes) for i in range(samples)]
    runs = [(make_run or _by_reference)(graph) for graph in (before, after)]
    pairs = [[run(sample) for run in runs] for sample in inputs]
    return tuple(accuracy_of(name, [(a[name], b[name]) for a, b in pairs]) for name in names)


def _by_reference(graph: Graph) -> Run:
    def run(inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        outputs = evaluate_graph(graph, [np.asarray(inputs[v.name]) for v in graph.inputs])
        return dict(zip((v.name for v in graph.outputs), outputs))

    return run


def accuracy_of(name: str, pairs: Sequence[tuple[Array, Array]]) -> OutputAccuracy:
    """Return the accuracy of an output from its correct and its other array for each sample."""
    infinite = float("inf")
    if any(a.shape != b.shape for a, b in pairs):
        return OutputAccuracy(name, infinite, -infinite, None)
    largest = max((largest_difference(a, b) for a, b in pairs if a.size), default=0.0)
    agreements = [_same_top1(a, b) for a, b in pairs if _is_scores(a)]
    agreement = float(np.concatenate(agreements).mean()) if agreements else None
    return OutputAccuracy(name, largest, -infinite if largest == infinite else _snr_db(pairs), agreement)


def _is_scores(output: Array) -> bool:
    return output.dtype.kind in "fV" and output.ndim in (2, 3) and output.shape[-1] > 1 and output.size > 0


def _same_top1(a: Array, b: Array) -> Array:
    same: Array = a.astype(np.float64).argmax(-1) == b.astype(np.float64).argmax(-1)
    return same.reshape(-1)


def _snr_db(pairs: Sequence[tuple[Array, Array]]) -> float:
    signal = noise = 0.0
    for a, b in pairs:
        wide, other = a.astype(np.float64), b.astype(np.float64)
        finite = np.isfinite(wide)
        signal += float(np.square(wide[finite]).sum())
        noise += float(np.square(wide[finite] - other[finite]).sum())
    if not noise:
        return float("inf")
    return float(10 * np.log10(signal / noise)) if signal else float("-inf")
