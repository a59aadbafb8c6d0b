"""A graph that computes each of its layers in float32 or with 8-bit numbers, as switches say.

One compilation serves every question about which layers to quantize.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from lite_core.ir import DType, Graph, Node, TensorType
from lite_core.session import Session
from lite_tools.quantization.editor import Editor
from lite_tools.quantization.layers import Layer
from lite_tools.quantization.noise import Noise
from lite_tools.quantization.ranges import Parameters

__all__ = ["SwitchedModel"]

Array = np.ndarray[Any, Any]


class SwitchedModel:
    """A model whose layers can be quantized in any combination, and the noise of its outputs.

    Args:
        graph: the graph.
        layers: its layers.
        parameters: the parameters of their activations, by name.
        samples: inputs by name, one mapping for each sample.
        load: makes a session that runs a graph.
    """

    def __init__(
        self,
        graph: Graph,
        layers: Sequence[Layer],
        parameters: Mapping[str, Parameters],
        samples: Sequence[Mapping[str, Array]],
        load: Callable[[Graph], Session],
    ) -> None:
        self._samples = samples
        editor = Editor(graph.copy())
        chosen = {layer.name: layer for layer in layers}
        self._switches: dict[str, str] = {}
        for node in editor.graph.nodes:
            name = node.outputs[0].name if node.outputs and node.outputs[0] is not None else ""
            if name in chosen:
                self._add_both(editor, node, chosen[name], parameters[chosen[name].activation.name])
            else:
                editor.nodes.append(node)
        self._session = load(editor.finish())
        self._expected = [self._outputs((), sample) for sample in samples]

    def _add_both(self, editor: Editor, node: Node, layer: Layer, parameters: Parameters) -> None:
        result = editor.values[layer.name]
        switch = editor.value(f"quantize:{layer.name}", TensorType(DType.BOOL, ()))
        self._switches[layer.name] = switch.name
        editor.graph.inputs.append(switch)
        source = editor.values[layer.activation.name]
        activation = editor.dequantized(editor.quantized(source, parameters), source, parameters)
        rounded, exact = (editor.value(f"{layer.name}.{kind}", result.type) for kind in ("quantized", "float32"))
        inputs = editor.layer_inputs(layer, activation, parameters)
        editor.nodes.append(Node(node.op, inputs, [rounded], node.attributes, name=rounded.name))
        editor.nodes.append(node.copy_with(node.inputs, [exact], node.attributes))
        editor.nodes.append(Node("Where", [switch, rounded, exact], [result], {}, name=switch.name))

    def snr_db(self, quantized: Collection[str], most: int | None = None) -> float:
        """Return the signal-to-noise ratio of the noisiest output if these layers are quantized, in decibels.

        Args:
            quantized: the names of the layers' results.
            most: the most samples to run, from the first on; None for all.
        """
        noise = Noise()
        for sample, expected in list(zip(self._samples, self._expected))[:most]:
            for name, array in self._outputs(quantized, sample).items():
                noise.add(name, expected[name], array)
        return noise.worst_db

    def _outputs(self, quantized: Collection[str], sample: Mapping[str, Array]) -> dict[str, Array]:
        switches = {switch: np.array(name in quantized) for name, switch in self._switches.items()}
        return {name: np.array(array) for name, array in self._session.run({**sample, **switches}).items()}
