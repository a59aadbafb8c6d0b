"""A graph shaped like MiniLM-L6 (Wang et al., 2020) as exported by sentence-transformers, with random weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from random_layers import RandomLayers

from lite_core.ir import DType, Graph, Value

Array = np.ndarray[Any, Any]

LAYERS, WIDTH, HEADS, WIDE = 6, 384, 12, 1536
VOCABULARY, LONGEST = 2000, 64

#: The lowest float32, which exporters add to the scores of padding.
_LEAST = float(np.finfo(np.float32).min)


def sentence_encoder(batch: int | str = "batch", length: int | str = "length", longest: int = LONGEST) -> Graph:
    """Build a graph from tokens, mask and kinds, int64 [batch, length], to unit embeddings [batch, 384] and states.

    ``longest`` is the number of positions that have an embedding.
    """
    g = RandomLayers("sentence_encoder")
    tokens, mask, kinds = (g.builder.input(n, "int64", [batch, length]) for n in ("tokens", "mask", "kinds"))
    x = _norm(g, _embeddings(g, tokens, kinds, longest))
    present = g("Cast", mask, to=DType.FLOAT32)
    absent = g("Sub", g.number(1.0), g("Unsqueeze", present, g.builder.ints(1, 2)))
    penalty = g("Mul", absent, g.number(_LEAST))
    for _ in range(LAYERS):
        x = _norm(g, g("Add", _attention(g, x, penalty), x))
        x = _norm(g, g("Add", g.linear(_gelu(g, g.linear(x, WIDE)), WIDTH, gain=1.5), x))
    g.output(_mean(g, x, present), "embedding")
    g.output(x, "states")
    return g.build()


def sentences(batch: int = 2, length: int = 23, seed: int = 0) -> dict[str, Array]:
    """Return inputs of :func:`sentence_encoder`: random tokens; all sentences but the first are shorter and padded."""
    random = np.random.default_rng([batch, length, *([seed] if seed else [])])
    lengths = np.maximum(1, length - 5 * np.arange(batch))
    mask = (np.arange(length) < lengths[:, None]).astype(np.int64)
    tokens = random.integers(1, VOCABULARY, (batch, length)) * mask
    return {"tokens": tokens, "mask": mask, "kinds": np.zeros_like(tokens)}


def _embeddings(g: RandomLayers, tokens: Value, kinds: Value, longest: int) -> Value:
    words = g("Gather", g.weight(VOCABULARY, WIDTH), tokens)
    length = g("Squeeze", g("Shape", tokens, start=1, end=2), g.builder.ints(0))
    positions = g("Range", g.number(0, "int64"), length, g.number(1, "int64"))
    both = g("Add", words, g("Gather", g.weight(2, WIDTH), kinds))
    return g("Add", both, g("Gather", g.weight(longest, WIDTH), positions))


def _norm(g: RandomLayers, x: Value) -> Value:
    scale = g("Add", g.weight(WIDTH, scale=0.1), g.number(1.0))
    return g("LayerNormalization", x, scale, g.weight(WIDTH, scale=0.1), axis=-1, epsilon=1e-12)


def _attention(g: RandomLayers, x: Value, penalty: Value) -> Value:
    def heads(order: tuple[int, ...]) -> Value:
        return g("Transpose", g.reshape(g.linear(x, WIDTH), 0, 0, HEADS, WIDTH // HEADS), perm=order)

    query, key, value = heads((0, 2, 1, 3)), heads((0, 2, 3, 1)), heads((0, 2, 1, 3))
    scores = g("Div", g("MatMul", query, key), g.number((WIDTH // HEADS) ** 0.5))
    weights = g("Softmax", g("Add", scores, penalty), axis=-1)
    mixed = g("Transpose", g("MatMul", weights, value), perm=(0, 2, 1, 3))
    return g.linear(g.reshape(mixed, 0, 0, WIDTH), WIDTH)


def _gelu(g: RandomLayers, x: Value) -> Value:
    """Compute ``x (1 + erf(x / sqrt(2))) / 2``, as the nodes that exporters write."""
    raised = g("Add", g("Erf", g("Div", x, g.number(2**0.5))), g.number(1.0))
    return g("Mul", g("Mul", x, raised), g.number(0.5))


def _mean(g: RandomLayers, states: Value, present: Value) -> Value:
    """Average over the tokens that are not padding, and divide by the length of the mean."""
    weights = g("Unsqueeze", present, g.builder.ints(-1))
    total = g("ReduceSum", g("Mul", states, weights), g.builder.ints(1), keepdims=0)
    count = g("Clip", g("ReduceSum", weights, g.builder.ints(1), keepdims=0), g.number(1e-9))
    mean = g("Div", total, count)
    length = g("ReduceL2", mean, g.builder.ints(1), keepdims=1)
    return g("Div", mean, g("Clip", length, g.number(1e-12)))
