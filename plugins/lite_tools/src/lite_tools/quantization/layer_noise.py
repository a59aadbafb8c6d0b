"""The noise of each layer of a quantized model, in one graph with the float32 model beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lite_core.ir import DType, Graph, TensorType, Value
from lite_core.session import Session
from lite_tools.quantization.accuracy import OutputAccuracy, accuracy_of
from lite_tools.quantization.editor import Editor
from lite_tools.quantization.noise import Noise

__all__ = ["MeasuredNoise", "measure_noise"]

Array = np.ndarray[Any, Any]

_SCALAR = TensorType(DType.FLOAT32, ())


class MeasuredNoise(NamedTuple):
    """The signal-to-noise ratio of each layer's result, in decibels, and the accuracy of each output."""

    layers: Mapping[str, float]
    outputs: tuple[OutputAccuracy, ...]


def measure_noise(
    graph: Graph,
    quantized: Graph,
    names: Sequence[str],
    samples: Sequence[Mapping[str, Array]],
    load: Callable[[Graph], Session],
    progress: Callable[[str], None],
) -> MeasuredNoise:
    """Run a model and its quantized form on samples, and compare the results of layers, and the outputs.

    Only sums of squares leave the graph, besides the outputs: no result of a layer is kept.

    Args:
        graph: the float32 model.
        quantized: the quantized model, in which the values have the same names.
        names: the names of the layers' results.
        samples: inputs by name, one mapping for each sample.
        load: makes a session that runs a graph.
        progress: called with a line before each sample.
    """
    both, exact = _beside(quantized, graph)
    editor = Editor(both)
    editor.nodes = list(both.nodes)
    powers = []
    for name in names:
        signal, found = exact[name], editor.values[name]
        error = editor.add("Sub", [found, signal], found.type, f"{name}.error")
        squares = [
            editor.add("ReduceSumSquare", [each], _SCALAR, f"{name}.{kind}", keepdims=0)
            for each, kind in ((signal, "signal"), (error, "noise"))
        ]
        powers.append((name, *[value.name for value in squares]))
        both.outputs += squares
    outputs = [(value.name, exact[value.name].name) for value in graph.outputs]
    present = {value.name for value in both.outputs}
    both.outputs += [exact[name] for name, other in outputs if other not in present]
    session = load(editor.finish())
    noise, pairs = Noise(), {name: list[tuple[Array, Array]]() for name, _ in outputs}
    for number, sample in enumerate(samples):
        progress(f"measuring the noise: sample {number + 1} of {len(samples)}")
        results = session.run(sample)
        for name, of_signal, of_noise in powers:
            noise.add_powers(name, float(results[of_signal]), float(results[of_noise]))
        for name, other in outputs:
            pairs[name].append((results[other], results[name]))
    return MeasuredNoise(noise.by_name, tuple(accuracy_of(name, found) for name, found in pairs.items()))


def _beside(quantized: Graph, graph: Graph) -> tuple[Graph, dict[str, Value]]:
    """Return a graph that computes both from the same inputs, and the values of the second graph by name."""
    both, other = quantized.copy(), graph.copy()
    taken = {value.name for scope in both.walk() for value in scope.defined()}
    exact = {value.name: value for value in other.defined()}
    shared = dict(zip(other.inputs, both.inputs))
    for scope in other.walk():
        for value in scope.defined():
            name = f"float32:{value.name}"
            while name in taken:
                name += "'"
            taken.add(name)
            value.name = name
    other.replace_uses(shared)
    for node in other.nodes:
        node.name = f"float32:{node.name}"
    both.nodes += other.nodes
    both.constants.update(other.constants)
    return both, {name: shared.get(value, value) for name, value in exact.items()}
