"""Attention: fused into one step, and correct for all layouts, masks and sizes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from agreement import MACHINES
from graph_agreement import SeededGraph, agree_graph

from lite_core.backend import Options
from lite_core.ir import Graph, Value
from lite_cpu.lowering.compile import lower_graph
from lite_cpu.lowering.weights import WeightCache
from lite_cpu.machine import X86_64_V3, Machine
from lite_cpu.machine_code.library import KernelLibrary

Build = Callable[[SeededGraph], tuple[Value, ...]]


def attention(
    batch: int,
    heads: int,
    rows: int,
    tokens: int,
    depth: int,
    columns: int,
    mask: tuple[int, ...] | None = None,
    *,
    side_by_side: bool = True,
    relu: bool = False,
) -> Build:
    """Return a builder of attention as in transformers, with adjacent heads in the inputs and in the output."""

    def build(g: SeededGraph) -> tuple[Value, ...]:
        q = g.add("Transpose", g.input(batch, rows, heads, depth), perm=(0, 2, 1, 3))
        k = g.add("Transpose", g.input(batch, tokens, heads, depth), perm=(0, 2, 3, 1))
        v = g.add("Transpose", g.input(batch, tokens, heads, columns), perm=(0, 2, 1, 3))
        scores = g.add("Mul", g.add("MatMul", q, k), g.number(0.3))
        if mask is not None:
            scores = g.add("Add", scores, g.input(*mask))
        y = g.add("MatMul", g.add("Softmax", scores), v)
        y = g.add("Relu", y) if relu else y
        if side_by_side:
            shape = g.b.constant(np.array([batch, rows, heads * columns]))
            y = g.add("Reshape", g.add("Transpose", y, perm=(0, 2, 1, 3)), shape)
        return (y,)

    return build


def kernels(graph: Graph) -> list[str]:
    """Return the kernels of a graph's steps, in order."""
    lowering = lower_graph(graph, Options(), KernelLibrary(X86_64_V3), WeightCache())
    return [step.kernel.symbol for step in lowering.steps]


def kernels_of(build: Build) -> list[str]:
    g = SeededGraph("float32")
    return kernels(g.built(*build(g)))


@MACHINES
@pytest.mark.parametrize(
    "build",
    [
        attention(1, 1, 1, 1, 1, 1),
        attention(1, 3, 7, 9, 15, 15),
        attention(2, 8, 40, 40, 15, 15),
        attention(2, 3, 50, 33, 16, 20, (2, 1, 1, 33)),
        attention(2, 3, 50, 33, 16, 20, (2, 3, 50, 33), side_by_side=False, relu=True),
        attention(2, 3, 50, 33, 16, 20, (50, 1)),
        attention(1, 1, 200, 600, 40, 33),
        attention(1, 2, 8, 0, 4, 4),
    ],
)
def test_agrees(machine: Machine, build: Build) -> None:
    agree_graph(machine, build, threads=2)


@MACHINES
def test_queries_keys_and_values_from_one_tensor(machine: Machine) -> None:
    def build(g: SeededGraph) -> tuple[Value, ...]:
        packed = g.add("Reshape", g.input(2, 20, 3 * 4 * 15), g.b.constant(np.array([2, 20, 3, 4, 15])))
        packed = g.add("Transpose", packed, perm=(2, 0, 3, 1, 4))
        q, k, v = (g.add("Gather", packed, g.b.constant(np.array(i)), axis=0) for i in range(3))
        scores = g.add("MatMul", q, g.add("Transpose", k, perm=(0, 1, 3, 2)))
        return (g.add("MatMul", g.add("Softmax", scores), v),)

    agree_graph(machine, build)


@MACHINES
def test_masked_tokens_have_no_weight(machine: Machine) -> None:
    """A row whose tokens are all masked becomes NaN, like the softmax of such a row."""

    def build(g: SeededGraph) -> tuple[Value, ...]:
        scores = g.add("MatMul", g.input(9, 8), g.input(8, 21))
        mask = np.zeros((9, 21))
        mask[:, 17:] = -np.inf
        mask[3] = -np.inf
        scores = g.add("Add", scores, g.b.constant(mask.astype(scores.dtype.numpy)))
        return (g.add("MatMul", g.add("Softmax", scores), g.input(21, 5)),)

    agree_graph(machine, build)


def test_attention_is_one_step() -> None:
    assert kernels_of(attention(1, 3, 7, 9, 15, 15, (9,))) == ["attention"]


def test_scores_with_other_readers_are_stored() -> None:
    def build(g: SeededGraph) -> tuple[Value, ...]:
        shares = g.add("Softmax", g.add("MatMul", g.input(7, 8), g.input(8, 9)))
        return g.add("MatMul", shares, g.input(9, 5)), shares

    assert kernels_of(build) == ["pack", "gemm", "softmax", "pack", "gemm"]


def test_a_softmax_over_queries_is_not_attention() -> None:
    def build(g: SeededGraph) -> tuple[Value, ...]:
        shares = g.add("Softmax", g.add("MatMul", g.input(7, 8), g.input(8, 9)), axis=0)
        return (g.add("MatMul", shares, g.input(9, 5)),)

    assert "attention" not in kernels_of(build)
