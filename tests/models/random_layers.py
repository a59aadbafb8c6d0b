"""Layers with random weights, for graphs shaped like well-known networks.

The weights are scaled so that values keep their size from layer to layer: rounding errors then grow as in a real
network, and every output depends on every layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lite_core import GraphBuilder
from lite_core.ir import Attribute, Graph, Value

Array = np.ndarray[Any, Any]


class RandomLayers:
    """Builder of a graph with random weights; the same name gives the same weights.

    Args:
        name: name of the graph, and seed of the weights.
    """

    def __init__(self, name: str) -> None:
        self.builder = GraphBuilder(name)
        self._random = np.random.default_rng(list(name.encode()))

    def __call__(self, op: str, *inputs: Value | None, **attributes: Attribute) -> Value:
        """Add a node; return its first output."""
        return self.builder.add(op, inputs, attributes)

    def weight(self, *shape: int, scale: float = 1.0) -> Value:
        """Add a constant of normally distributed elements."""
        return self.builder.constant((self._random.standard_normal(shape) * scale).astype(np.float32))

    def number(self, value: float, dtype: str = "float32") -> Value:
        """Add a constant of rank 0."""
        return self.builder.constant(np.array(value, dtype))

    def conv(
        self, x: Value, channels: int, kernel: int, *, stride: int = 1, pad: int | None = None, gain: float = 1.0
    ) -> Value:
        """Add a convolution of square windows with a bias; the size is divided by ``stride`` unless ``pad`` is given.

        Args:
            x: float32 [batch, depth, height, width].
            channels: channels of the result.
            kernel: side of the window.
            stride: stride in both directions.
            pad: rows and columns of zeros on every side.
            gain: factor that makes up for the activation that follows, which reduces the size of values.
        """
        depth = x.shape[1]
        assert isinstance(depth, int)
        weight = self.weight(channels, depth, kernel, kernel, scale=gain / (depth * kernel * kernel) ** 0.5)
        bias = self.weight(channels, scale=0.1)
        pads = (kernel // 2 if pad is None else pad,) * 4
        return self("Conv", x, weight, bias, kernel_shape=(kernel,) * 2, strides=(stride,) * 2, pads=pads)

    def linear(self, x: Value, width: int, *, gain: float = 1.0) -> Value:
        """Add ``x W + b`` over the last axis, as MatMul and Add."""
        depth = x.shape[-1]
        assert isinstance(depth, int)
        product = self("MatMul", x, self.weight(depth, width, scale=gain / depth**0.5))
        return self("Add", product, self.weight(width, scale=0.1))

    def split(self, x: Value, parts: Sequence[int], axis: int) -> list[Value]:
        """Split into parts of these sizes along an axis."""
        return self.builder.add_node("Split", [x, self.builder.ints(*parts)], {"axis": axis}, outputs=len(parts))

    def reshape(self, x: Value, *shape: int) -> Value:
        """Reshape; 0 keeps a dimension, -1 takes the remaining elements."""
        return self("Reshape", x, self.builder.ints(*shape))

    def output(self, value: Value, name: str) -> None:
        """Make a value an output of the graph."""
        self.builder.output(value, name)

    def build(self) -> Graph:
        """Return the finished graph."""
        return self.builder.build()
