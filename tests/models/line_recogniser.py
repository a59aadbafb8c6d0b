"""A graph shaped like CRNN (Shi et al., 2015), which reads lines of text of any width, with random weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from random_layers import RandomLayers

from lite_core.ir import Graph, Value

Array = np.ndarray[Any, Any]

HEIGHT, HIDDEN, CHARACTERS = 32, 96, 63

#: The root mean square of ``relu(x)`` for normal ``x`` is the root of one half.
_GAIN = 2**0.5


def line_recogniser() -> Graph:
    """Build a graph from lines [batch, 1, 32, width] to log-probabilities of characters [width / 4 - 1, batch, 63]."""
    g = RandomLayers("line_recogniser")
    x = g.builder.input("line", "float32", ["batch", 1, HEIGHT, "width"])
    x = _pool(g, _conv(g, x, 32), (2, 2))
    x = _pool(g, _conv(g, x, 64), (2, 2))
    x = _pool(g, _conv(g, _conv(g, x, 128, normalize=True), 128), (2, 1))
    x = _pool(g, _conv(g, _conv(g, x, 192, normalize=True), 192), (2, 1))
    x = g("Relu", g.conv(x, 192, 2, pad=0, gain=_GAIN))
    x = g("Transpose", g("Squeeze", x, g.builder.ints(2)), perm=(2, 0, 1))
    x = g.linear(_bidirectional(g, x), HIDDEN, gain=2.0)
    x = g.linear(_bidirectional(g, x), CHARACTERS, gain=4.0)
    g.output(g("LogSoftmax", x, axis=-1), "characters")
    return g.build()


def lines(batch: int = 1, width: int = 100) -> dict[str, Array]:
    """Return inputs of :func:`line_recogniser`: dark strokes on a light background."""
    random = np.random.default_rng([batch, width])
    strokes = random.uniform(0, 1, (batch, 1, HEIGHT // 4, width)).repeat(4, axis=2) > 0.7
    noise = random.normal(0, 0.1, (batch, 1, HEIGHT, width))
    return {"line": (np.where(strokes, -1.0, 1.0) + noise).astype(np.float32)}


def _conv(g: RandomLayers, x: Value, channels: int, *, normalize: bool = False) -> Value:
    y = g.conv(x, channels, 3, gain=_GAIN)
    if normalize:
        scale, variance = (g.builder.constant(np.linspace(0.8, 1.2, channels, dtype=np.float32)) for _ in range(2))
        y = g("BatchNormalization", y, scale, g.weight(channels, scale=0.1), g.weight(channels, scale=0.1), variance)
    return g("Relu", y)


def _pool(g: RandomLayers, x: Value, window: tuple[int, int]) -> Value:
    return g("MaxPool", x, kernel_shape=window, strides=window)


def _bidirectional(g: RandomLayers, x: Value) -> Value:
    """Add a bidirectional LSTM over [steps, batch, depth]; both directions are joined to [steps, batch, 2 hidden]."""
    depth = x.shape[-1]
    assert isinstance(depth, int)
    inputs = g.weight(2, 4 * HIDDEN, depth, scale=depth**-0.5)
    states = g.weight(2, 4 * HIDDEN, HIDDEN, scale=HIDDEN**-0.5)
    bias = g.weight(2, 8 * HIDDEN, scale=0.1)
    y = g("LSTM", x, inputs, states, bias, direction="bidirectional", hidden_size=HIDDEN)
    return g.reshape(g("Transpose", y, perm=(0, 2, 1, 3)), 0, 0, 2 * HIDDEN)
