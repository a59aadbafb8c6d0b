"""Attention, normalisation and recurrent layers."""

from __future__ import annotations

import numpy as np

from lite_conformance.cases.graphs.draft import FLOATS, NARROW, Draft, GraphTable
from lite_conformance.cases.tensors import Array, distinct, integers
from lite_core.ir import DType, Value

__all__ = ["graphs"]

graphs = GraphTable()


@graphs.case("attention-masked", FLOATS, op="Softmax")
def _(g: Draft) -> None:
    """One head; masked positions get a large negative number, as exporters write it."""
    query, key, value = g.input(2, 5, 8), g.input(2, 7, 8), g.input(2, 7, 6)
    mask = g.input_of([[1, 1, 1, 1, 1, 1, 0], [1, 1, 1, 0, 0, 0, 0]], [[1, 0, 1, 0, 1, 0, 1], [0, 0, 0, 0, 0, 0, 1]])
    scores = g("Mul", g("MatMul", query, g("Transpose", key, perm=(0, 2, 1))), 8**-0.5)
    hidden = g("Mul", g("Sub", g("Unsqueeze", mask, (1,)), 1.0), 10000.0)
    g.output(g("MatMul", g("Softmax", g("Add", scores, hidden), axis=-1), value))


@graphs.case("attention-where-infinity", op="Softmax")
def _(g: Draft) -> None:
    """Masked with minus infinity; exp(-inf) must be 0, not NaN."""
    mask = g.input(1, 4, 4, dtype="bool", init=_lower)
    scores = g("Where", mask, g.input(2, 4, 4), float("-inf"))
    g.output(g("MatMul", g("Softmax", scores, axis=-1), g.input(2, 4, 5)))


def _lower(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return a causal mask: each position sees itself and those before it."""
    return np.tri(shape[-1], dtype=bool)[None]


def _attention(g: Draft, x: Value, heads: int, width: int) -> Value:
    parts = g.several("Split", 3, g.linear(x, 3 * width), axis=-1, num_outputs=3)
    query, key, value = (g("Reshape", p, (0, 0, heads, width // heads)) for p in parts)
    query, value = (g("Transpose", p, perm=(0, 2, 1, 3)) for p in (query, value))
    scores = g("MatMul", query, g("Transpose", key, perm=(0, 2, 3, 1)))
    weights = g("Softmax", g("Div", scores, (width / heads) ** 0.5), axis=-1)
    mixed = g("Transpose", g("MatMul", weights, value), perm=(0, 2, 1, 3))
    return g.linear(g("Reshape", mixed, (0, 0, width)), width)


@graphs.case("attention-heads", FLOATS, op="MatMul")
def _(g: Draft) -> None:
    g.output(_attention(g, g.input(2, 5, 12), 3, 12))


def _layer_norm(g: Draft, x: Value, width: int) -> Value:
    centred = g("Sub", x, g("ReduceMean", x, (-1,)))
    variance = g("ReduceMean", g("Pow", centred, 2.0), (-1,))
    scaled = g("Div", centred, g("Sqrt", g("Add", variance, 1e-3)))
    return g("Add", g("Mul", scaled, g.weight(width)), g.weight(width))


@graphs.case("layer-norm-primitive", FLOATS, op="ReduceMean")
def _(g: Draft) -> None:
    g.output(_layer_norm(g, g.input(2, 5, 12), 12))


@graphs.case("layer-norm-almost", op="ReduceMean")
def _(g: Draft) -> None:
    """Like a layer normalisation, but with the mean square about 0 for the variance: no pass may treat it as one."""
    x = g.input(2, 5, 12)
    centred = g("Sub", x, g("ReduceMean", x, (-1,)))
    variance = g("ReduceMean", g("Pow", x, 2.0), (-1,))
    g.output(g("Div", centred, g("Sqrt", g("Add", variance, 1e-3))))


@graphs.case("rms-norm-primitive", FLOATS, op="ReduceMean")
def _(g: Draft) -> None:
    x = g.input(2, 5, 12)
    mean = g("Add", g("ReduceMean", g("Mul", x, x), (-1,)), 1e-3)
    g.output(g("Mul", g("Mul", x, g("Reciprocal", g("Sqrt", mean))), g.weight(12)))


@graphs.case("transformer-layer", NARROW, op="MatMul")
def _(g: Draft) -> None:
    x = g.input(1, 5, 12)
    x = g("Add", x, _attention(g, g("LayerNormalization", x, g.weight(12), g.weight(12), axis=-1), 2, 12))
    g.output(g("Add", x, g.linear(g.gelu(g.linear(_layer_norm(g, x, 12), 24)), 12)))


@graphs.case("embedding", FLOATS, op="Gather")
def _(g: Draft) -> None:
    tokens = g.input(2, 7, dtype="int64", init=integers(0, 11))
    positions = g("Gather", g.weight(9, 6), (0, 1, 2, 3, 4, 5, 6))
    g.output(g.linear(g("Add", g("Gather", g.weight(11, 6), tokens), positions), 5))


def _recurrent(g: Draft, op: str, gates: int, x: Value, inputs: int, hidden: int, direction: str) -> list[Value]:
    ways = 2 if direction == "bidirectional" else 1
    kinds = [g.weight(ways, gates * hidden, size) for size in (inputs, hidden)]
    bias = g.weight(ways, 2 * gates * hidden)
    count = 3 if op == "LSTM" else 2
    extra = {"linear_before_reset": 1} if op == "GRU" else {}
    return g.several(op, count, x, *kinds, bias, hidden_size=hidden, direction=direction, **extra)


@graphs.case("lstm", ("float32", "float16", "float64"), op="LSTM")
def _(g: Draft) -> None:
    outputs = _recurrent(g, "LSTM", 4, g.linear(g.input(6, 2, 5), 5), 5, 7, "forward")
    g.output(g("Squeeze", outputs[0], (1,)), *outputs[1:])


@graphs.case("gru", ("float32", "float16", "float64"), op="GRU")
def _(g: Draft) -> None:
    outputs = _recurrent(g, "GRU", 3, g.linear(g.input(6, 2, 5), 5), 5, 7, "reverse")
    g.output(g("Squeeze", outputs[0], (1,)), outputs[1])


@graphs.case("lstm-bidirectional-stacked", op="LSTM")
def _(g: Draft) -> None:
    x: Value = g.input(5, 2, 6)
    for inputs in (6, 8):
        whole = _recurrent(g, "LSTM", 4, x, inputs, 4, "bidirectional")[0]
        x = g("Reshape", g("Transpose", whole, perm=(0, 2, 1, 3)), (0, 0, 8))
    g.output(g.linear(x, 3))


@graphs.case("rnn-last-state", op="RNN")
def _(g: Draft) -> None:
    """Only the final state is used, not the sequence of states."""
    weights = g.weight(1, 5, 4), g.weight(1, 5, 5), g.weight(1, 10)
    nodes = g.builder.add_node("RNN", [g.input(6, 3, 4), *weights], {"hidden_size": 5}, outputs=2)
    g.output(g("Squeeze", nodes[1], (0,)))


@graphs.case("lstm-primitive", op="Sigmoid")
def _(g: Draft) -> None:
    """Three steps of an LSTM cell in primitive operators."""
    hidden: Value = g.input(2, 5)
    cell: Value = g.input(2, 5)
    weight, recurrent = g.weight(4, 20), g.weight(5, 20)
    for _ in range(3):
        gates = g("Add", g("MatMul", g.input(2, 4), weight), g("MatMul", hidden, recurrent))
        i, o, f, c = g.several("Split", 4, gates, axis=1, num_outputs=4)
        kept = g("Mul", g("Sigmoid", f), cell)
        cell = g("Add", kept, g("Mul", g("Sigmoid", i), g("Tanh", c)))
        hidden = g("Mul", g("Sigmoid", o), g("Tanh", cell))
    g.output(hidden, cell)


@graphs.case("ctc-head", op="ArgMax")
def _(g: Draft) -> None:
    """Class numbers and their probabilities; the scores differ by whole steps, so that the best class is clear."""
    scores = g("Mul", g.input(6, 2, 9, init=distinct), 4.0)
    probabilities = g("Softmax", scores, axis=-1)
    best = g("ArgMax", probabilities, axis=-1, keepdims=0)
    g.output(
        best,
        g("ReduceMax", g("LogSoftmax", scores, axis=-1), (-1,)),
        g("Not", g("Equal", best, g.constant(0, "int64"))),
    )


@graphs.case("top-k-gather", ("float32", "float64", "int64"), op="TopK")
def _(g: Draft) -> None:
    x = g.input(3, 9, init=distinct)
    best, indices = g.several("TopK", 2, x, (4,), axis=-1)
    g.output(best, g("GatherElements", g("Add", x, x), indices, axis=-1), indices)


@graphs.case("cumulative-positions", op="CumSum")
def _(g: Draft) -> None:
    """Positions computed from a mask by a cumulative sum, and their embeddings."""
    mask = g.input(2, 6, dtype="int64", init=integers(0, 2))
    positions = g("Mul", g("CumSum", mask, g.constant(1, "int64")), mask)
    g.output(g("Mul", g("Gather", g.weight(7, 5), positions), g("Unsqueeze", g("Cast", mask, to=g.dtype), (2,))))


@graphs.case("einsum-attention", op="Einsum")
def _(g: Draft) -> None:
    query, key = g.input(2, 3, 4, 5), g.input(2, 3, 6, 5)
    weights = g("Softmax", g("Einsum", query, key, equation="bhid,bhjd->bhij"), axis=-1)
    g.output(g("Einsum", weights, g.input(2, 3, 6, 4), equation="bhij,bhjd->bihd"))
