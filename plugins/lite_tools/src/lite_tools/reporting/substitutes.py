"""Graphs for reports: without the weights of the model, without code, and without private names."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core.ir import Graph, Origin
from lite_tools.reporting.scrubbing import Scrubber

__all__ = ["for_report"]

Array = np.ndarray[Any, Any]

#: Integers and booleans are sizes, axes and permutations as a rule: this number of elements at most stays as it is.
_MOST_STRUCTURE = 64
#: Elements of a substitute that are drawn; they repeat, so that files of many of them compress to little.
_PERIOD = 1021


def for_report(graph: Graph, scrubber: Scrubber, *, with_weights: bool, seed: int = 0) -> Graph:
    """Return a copy of a graph to hand to somebody else; ``graph`` stays as it is.

    Without weights, each constant of several floating-point numbers, and each large constant of integers, becomes
    random numbers of its mean and spread, or between its smallest and largest element. The kernels then run on numbers
    of a similar size.

    Args:
        graph: the graph.
        scrubber: removes private names from the graph's metadata and from the origins of nodes.
        with_weights: keep the constants.
        seed: the seed of the random numbers.
    """
    copied = graph.copy()
    copied.name = "model"
    copied.metadata = {scrubber.text(str(k)): scrubber.text(str(v)) for k, v in graph.metadata.items()}
    generator = np.random.default_rng(seed)
    for scope in copied.walk():
        for node in scope.nodes:
            if node.origin is not None:
                node.origin = Origin(node.origin.op, scrubber.text(node.origin.name))
            if not with_weights:
                node.attributes = {
                    name: _substitute(item, generator) if isinstance(item, np.ndarray) else item
                    for name, item in node.attributes.items()
                }
        if not with_weights:
            for value, array in scope.constants.items():
                scope.constants[value] = _substitute(array, generator)
    return copied


def _substitute(array: Array, generator: np.random.Generator) -> Array:
    is_number = array.dtype.kind in "iub"
    if array.size <= (_MOST_STRUCTURE if is_number else 1):
        return array
    drawn: Array
    if is_number:
        lowest, highest = int(array.min()), int(array.max())
        drawn = generator.integers(lowest, highest, _PERIOD, endpoint=True, dtype=np.int64 if lowest < 0 else np.uint64)
    else:
        numbers = array.astype(np.float64)
        finite = numbers[np.isfinite(numbers)]
        mean, spread = (float(finite.mean()), float(finite.std())) if finite.size else (0.0, 1.0)
        drawn = generator.normal(mean, spread, _PERIOD)
        # Variances of a normalization, and scales of a quantization, must stay positive.
        drawn = np.abs(drawn) if finite.size and finite.min() >= 0 else drawn
    return np.resize(drawn.astype(array.dtype), array.shape)
