"""Noise that a precision level causes in the outputs of a graph, found by simulation.

The graph is computed several times by the references. Each time, the numbers that the level lets a backend round are
rounded at random to one of their two neighbours on the grid (Connolly, Higham and Mary, Stochastic rounding and its
probabilistic backward error analysis, 2021; the method is Monte Carlo arithmetic, Parker 1997). The mean square of the
error of one rounding is twice that of rounding to nearest, so the simulation has about 3 dB more noise than a backend
that rounds everything that it may. Depth, width, residual branches and normalisations need no rule of their own:
the simulated graph has them.

Sums in float16 are simulated as if their terms were added one by one: each gets a random error with the standard
deviation of such a sum.

A small graph is also simulated with every number rounded to nearest, with and without the tensors between its nodes,
and with every second number rounded, because a backend may round less than a level allows.

A recurrent operator has its operands rounded, not its state, and the bodies of If, Loop and Scan are simulated too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np

from lite_conformance.judge.compare import Array
from lite_conformance.judge.precision import Precision, round_at_random, round_to_nearest
from lite_conformance.judge.product_error import deviation_of_sums, operand_positions, scale_axis
from lite_core.ir import DType, Graph, Node, Value
from lite_core.ops.evaluate import evaluate_node

__all__ = ["SAMPLES", "Noise", "Rounding", "is_affected", "simulate", "simulated_noise"]

#: Simulations of a network, and of a graph with at most as many nodes and elements.
SAMPLES, _SAMPLES_OF_SMALL_GRAPH = 4, 16
_FEW_NODES, _FEW_ELEMENTS = 24, 100_000
#: Positions of the operands that recurrent operators multiply: inputs, weights, recurrent weights, initial state.
_RECURRENT = {"LSTM": (0, 1, 2, 5), "GRU": (0, 1, 2, 5), "RNN": (0, 1, 2, 5)}


@dataclass(frozen=True, slots=True)
class Noise:
    """The simulated noise of one output.

    Attributes:
        scale: root mean square error of each element over the simulations; 0 for unsettled elements.
        power: sum of the squared errors of the noisiest simulation, without unsettled elements.
        unsettled: True for each element that is another integer or boolean in a simulation than in the truth, or
            finite, infinite or NaN in only one of them. All are, if a simulation has another shape.
        shapes: the shapes of the truth and of the simulations.
    """

    scale: Array
    power: float
    unsettled: Array
    shapes: frozenset[tuple[int, ...]]


def is_affected(graph: Graph, precision: Precision) -> bool:
    """Return True if a precision level lets a backend round a number inside a graph."""
    floats = [
        node
        for node in graph.nodes
        if any(v is not None and v.dtype is DType.FLOAT32 for v in (*node.used(), *node.outputs))
    ]
    if any(_rounded_positions(node) or any(is_affected(b, precision) for b in node.subgraphs) for node in floats):
        return True
    return bool(floats) and (precision.everywhere or (precision.stores and len(graph.nodes) > 1))


def simulated_noise(
    graph: Graph, inputs: Sequence[Array], truths: Sequence[Array], precision: Precision, seed: int = 0
) -> list[Noise]:
    """Return the noise of each output of a graph.

    Args:
        graph: the graph.
        inputs: an array for each input.
        truths: the exact outputs.
        precision: the precision level.
        seed: seed of the simulations.
    """
    elements = sum(a.size for a in (*inputs, *graph.constants.values()))
    few_nodes = len(graph.nodes) <= _FEW_NODES
    count = _SAMPLES_OF_SMALL_GRAPH if few_nodes and elements <= _FEW_ELEMENTS else SAMPLES
    roundings = [Rounding(precision, np.random.default_rng([seed, i])) for i in range(count)]
    if few_nodes:  # an element may depend on the direction of one rounding: here are the most likely ones
        roundings += [Rounding(precision), Rounding(precision, stores=False)]
        roundings.append(Rounding(precision, keeps=np.random.default_rng([seed, count])))
    samples = [simulate(graph, inputs, rounding) for rounding in roundings]
    return [_noise(truth, [outputs[i] for outputs in samples]) for i, truth in enumerate(truths)]


class Rounding:
    """The rounding of a simulation.

    Args:
        precision: the precision level.
        random: decides the direction of each rounding; None for rounding to nearest.
        stores: False to keep tensors between nodes in float32 although the level allows a smaller type.
        keeps: decides about each number whether it is rounded, every second one on average; None to round all.
    """

    def __init__(
        self,
        precision: Precision,
        random: np.random.Generator | None = None,
        *,
        stores: bool = True,
        keeps: np.random.Generator | None = None,
    ) -> None:
        self.precision = precision
        self._random = random
        self._keeps = keeps
        self._stores = stores and precision.stores

    def operands(self, node: Node, known: Mapping[Value, Array], constants: Set[Value]) -> list[Array | None]:
        """Return the inputs of a node, the operands that the level allows to round rounded."""
        positions = range(len(node.inputs)) if self.precision.everywhere else _rounded_positions(node)
        arrays: list[Array | None] = []
        for position, value in enumerate(node.inputs):
            array = None if value is None else known[value]
            if array is not None and position in positions:
                array = self._rounded(array, scale_axis(node, position, value in constants, self.precision))
            arrays.append(array)
        return arrays

    def summed(self, node: Node, arrays: Sequence[Array | None], results: Sequence[Array]) -> Sequence[Array]:
        """Return the results of a node with the errors of sums in float16, if the level allows them."""
        if self._random is None or self.precision.sums is not DType.FLOAT16 or not operand_positions(node):
            return results
        if results[0].dtype != np.float32:
            return results
        errors = self._random.standard_normal(results[0].shape) * deviation_of_sums(node, arrays)
        return [np.asarray(results[0] + np.nan_to_num(errors, posinf=0, neginf=0), np.float32)]

    def stored(self, array: Array) -> Array:
        """Return a tensor between nodes as it is stored."""
        return self._rounded(array, None) if self._stores else array

    def _rounded(self, array: Array, axis: int | None) -> Array:
        if array.dtype != np.float32:
            return array
        dtype = self.precision.operands
        if self._random is None:
            rounded = round_to_nearest(array, dtype, axis)
        else:
            rounded = round_at_random(array, dtype, self._random, axis)
        if self._keeps is not None:
            rounded = np.where(self._keeps.random(array.shape) < 0.5, rounded, array)
        return rounded.astype(np.float32)


def simulate(
    graph: Graph,
    inputs: Sequence[Array],
    rounding: Rounding,
    outer: Mapping[Value, Array] | None = None,
    constants: Set[Value] = frozenset(),
) -> list[Array]:
    """Return the outputs of a graph whose numbers are rounded.

    Args:
        graph: the graph.
        inputs: an array for each input.
        rounding: the rounding.
        outer: values of enclosing graphs.
        constants: constants of enclosing graphs.
    """
    known: dict[Value, Array] = {**(outer or {}), **dict(zip(graph.inputs, inputs)), **graph.constants}
    constants = constants | graph.constants.keys()
    last_use = {value: node for node in graph.nodes for value in node.used()}
    keep = {*graph.outputs, *known}

    def run_body(body: Graph, given: Sequence[Array]) -> list[Array]:
        return simulate(body, given, rounding, known, constants)

    for node in graph.nodes:
        with np.errstate(all="ignore"):
            arrays = rounding.operands(node, known, constants)
            results = rounding.summed(node, arrays, evaluate_node(node, arrays, known, run_body))
            known.update((v, rounding.stored(a)) for v, a in zip(node.outputs, results) if v is not None)
        for value in (*node.used(), *(v for v in node.outputs if v is not None)):
            if last_use.get(value, node) is node and value not in keep:
                known.pop(value, None)
    return [known[v] for v in graph.outputs]


def _rounded_positions(node: Node) -> tuple[int, ...]:
    return operand_positions(node) or (_RECURRENT.get(node.op, ()) if not node.domain else ())


def _noise(truth: Array, samples: Sequence[Array]) -> Noise:
    shapes = frozenset(array.shape for array in (truth, *samples))
    nothing = np.zeros(truth.shape)
    if len(shapes) > 1:
        return Noise(nothing, 0.0, np.ones(truth.shape, bool), shapes)
    unsettled = np.zeros(truth.shape, bool)
    if not DType.of(truth.dtype).is_floating:
        for sample in samples:
            unsettled |= sample != truth
        return Noise(nothing, 0.0, unsettled, shapes)
    for sample in samples:
        unsettled |= ~_same(*(np.where(np.isfinite(a), 0.0, a) for a in (sample, truth)))
    compared = np.isfinite(truth) & ~unsettled
    with np.errstate(all="ignore"):
        errors = [np.where(compared, np.abs(s.astype(np.float64) - truth), 0.0) for s in samples]
        scale = np.sqrt(np.mean([e * e for e in errors], axis=0))
    return Noise(scale, max(float(np.square(e).sum()) for e in errors), unsettled, shapes)


def _same(a: Array, b: Array) -> Array:
    return np.asarray((a == b) | (np.isnan(a) & np.isnan(b)))
