"""A transformer encoder that sorts: "7 2 9 2" becomes "2 2 7 9" (Vaswani et al., 2017, with pre-normalisation)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from lite_conformance.cases.networks.layers import Layers
from lite_conformance.cases.networks.network import Network
from lite_core.ir import Graph, Value

__all__ = ["HEADS", "LAYERS", "LONGEST", "NUMBERS", "PADDING", "SEQUENCE_TRANSFORMER", "WIDTH", "make_sequences"]

Array = np.ndarray[Any, Any]

NAME = "sequence_transformer"
#: Tokens are the numbers 1 to 20; 0 pads the ends of sequences.
NUMBERS, PADDING = 20, 0
LONGEST = 24
WIDTH, HEADS, LAYERS = 64, 4, 2

_SHORTEST = 4
_RIGHT_POSITIONS = 0.94


def make_sequences(count: int, length: int, generator: np.random.Generator) -> tuple[Array, Array]:
    """Return random sequences of 4 to ``length`` numbers, padded, and the same sorted: [count, length] each."""
    tokens = generator.integers(1, NUMBERS + 1, (count, length))
    lengths = generator.integers(_SHORTEST, length + 1, (count, 1))
    outside = np.arange(length) >= lengths
    ordered = np.sort(np.where(outside, NUMBERS + 1, tokens), axis=1)
    return np.where(outside, PADDING, tokens), np.where(outside, PADDING, ordered)


def build() -> Graph:
    """Build the graph: int64 tokens [batch, length] -> logits of the sorted tokens [batch, length, 21].

    The network is trained for lengths up to 24.
    """
    layers = Layers(NAME)
    builder = layers.builder
    tokens = builder.input("tokens", "int64", ["batch", "length"])
    x = builder.add("Gather", [layers.constant("tokens.weight"), tokens])
    x = builder.add("Add", [x, _positions(layers, tokens)])
    padded = builder.add("Equal", [tokens, builder.constant(PADDING, dtype="int64")])
    penalty = builder.constant(-1e4, dtype="float32"), builder.constant(0.0, dtype="float32")
    mask = builder.add("Unsqueeze", [builder.add("Where", [padded, *penalty]), builder.ints(1, 2)])
    for number in range(LAYERS):
        name = f"layers.{number}"
        x = builder.add("Add", [x, _attention(layers, _norm(layers, x, f"{name}.attention_norm"), mask, name)])
        y = layers.linear(_norm(layers, x, f"{name}.mlp_norm"), f"{name}.widen")
        x = builder.add("Add", [x, layers.linear(_gelu(layers, y), f"{name}.narrow")])
    builder.output(layers.linear(_norm(layers, x, "norm"), "classify"), "logits")
    return layers.build()


def _positions(layers: Layers, tokens: Value) -> Value:
    """Add the learned embedding of each position; longer sequences repeat the last embedding: [length, width]."""
    builder = layers.builder
    length = builder.add("Squeeze", [builder.add("Shape", [tokens], {"start": 1, "end": 2}), builder.ints(0)])
    zero, one, last = (builder.constant(i, dtype="int64") for i in (0, 1, LONGEST - 1))
    index = builder.add("Min", [builder.add("Range", [zero, length, one]), last])
    return builder.add("Gather", [layers.constant("positions.weight"), index])


def _norm(layers: Layers, x: Value, name: str) -> Value:
    scale, bias = layers.constant(f"{name}.weight"), layers.constant(f"{name}.bias")
    return layers.builder.add("LayerNormalization", [x, scale, bias], {"axis": -1, "epsilon": 1e-5}, name=name)


def _attention(layers: Layers, x: Value, mask: Value, name: str) -> Value:
    builder = layers.builder
    joined = layers.linear(x, f"{name}.project")
    parts = builder.add_node("Split", [joined], {"axis": -1, "num_outputs": 3}, outputs=3)
    heads = [builder.add("Reshape", [part, builder.ints(0, 0, HEADS, WIDTH // HEADS)]) for part in parts]
    query, value = (layers.apply(part, "Transpose", perm=(0, 2, 1, 3)) for part in (heads[0], heads[2]))
    key = layers.apply(heads[1], "Transpose", perm=(0, 2, 3, 1))
    scores = builder.add("MatMul", [query, key])
    scores = builder.add("Div", [scores, builder.constant(math.sqrt(WIDTH // HEADS), dtype="float32")])
    weights = layers.apply(builder.add("Add", [scores, mask]), "Softmax", axis=-1)
    mixed = layers.apply(builder.add("MatMul", [weights, value]), "Transpose", perm=(0, 2, 1, 3))
    return layers.linear(builder.add("Reshape", [mixed, builder.ints(0, 0, -1)]), f"{name}.merge")


def _gelu(layers: Layers, x: Value) -> Value:
    """Add ``x (1 + erf(x / sqrt(2))) / 2``, in the nodes that exporters write."""
    builder = layers.builder
    root, one, half = (builder.constant(c, dtype="float32") for c in (math.sqrt(2), 1.0, 0.5))
    raised = builder.add("Add", [builder.add("Erf", [builder.add("Div", [x, root])]), one])
    return builder.add("Mul", [builder.add("Mul", [x, raised]), half])


def _drawn(seed: int) -> tuple[Array, Array]:
    return make_sequences(2 + seed % 3, 12 + 2 * (seed % 5), np.random.default_rng([5, seed]))


def _examples(seed: int) -> dict[str, Array]:
    return {"tokens": _drawn(seed)[0]}


def _task_error(seed: int, outputs: Mapping[str, Array]) -> str | None:
    tokens, ordered = _drawn(seed)
    inside = tokens != PADDING
    right = (outputs["logits"].argmax(axis=-1) == ordered)[inside].mean()
    if right >= _RIGHT_POSITIONS:
        return None
    return f"{right:.0%} of {int(inside.sum())} sorted numbers are right, at least {_RIGHT_POSITIONS:.0%} must be"


SEQUENCE_TRANSFORMER = Network(
    NAME,
    "transformer encoder (embeddings, masked attention of 4 heads, GELU) that sorts padded sequences of numbers",
    build,
    _examples,
    _task_error,
)
