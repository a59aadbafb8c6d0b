"""layer_norm_fusion: layer normalization written out in arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from lite_core.builder import GraphBuilder
from lite_core.ir import Graph, Origin, Value
from lite_core.passes.dead_node_elimination import DeadNodeElimination
from lite_core.passes.layer_norm_fusion import LayerNormFusion
from lite_tools.checking import run_passes_checked


def fuse(graph: Graph) -> Graph:
    return run_passes_checked(graph, [LayerNormFusion(), DeadNodeElimination()])[0]


@dataclass
class Spelling:
    """One way to write layer normalization; the defaults are those of PyTorch's exporter."""

    axes: tuple[int, ...] = (-1,)
    variance_axes: tuple[int, ...] | None = None
    square: str = "Pow"
    divide: str = "Div"
    root: str = "Sqrt"
    power: float = 2.0
    keepdims: int = 1
    scale: tuple[int, ...] | None = (8,)
    bias: tuple[int, ...] | None = (8,)
    dtype: str = "float32"
    epsilon_shape: tuple[int, ...] = ()
    expose: str = ""

    def add(self, b: GraphBuilder, x: Value) -> Value:
        def number(n: float) -> Value:
            return b.constant(n, dtype=self.dtype)

        def parameter(shape: tuple[int, ...]) -> Value:
            return b.constant(np.random.default_rng(3).standard_normal(shape), dtype=self.dtype)

        mean = b.add("ReduceMean", [x, b.ints(*self.axes)], {"keepdims": self.keepdims})
        d = b.add("Sub", [x, mean])
        square = b.add("Pow", [d, number(self.power)]) if self.square == "Pow" else b.add("Mul", [d, d])
        variance = b.add("ReduceMean", [square, b.ints(*(self.variance_axes or self.axes))])
        epsilon = b.constant(np.full(self.epsilon_shape, 1e-5), dtype=self.dtype)
        shifted = b.add("Add", [variance, epsilon])
        s = b.add("Sqrt", [shifted]) if self.root == "Sqrt" else b.add("Pow", [shifted, number(0.5)])
        y = b.add("Div", [d, s]) if self.divide == "Div" else b.add("Mul", [b.add("Reciprocal", [s]), d])
        exposed = {"mean": mean, "variance": variance, "d": d}.get(self.expose)
        if exposed is not None:
            b.output(exposed, "exposed")
        if self.scale is not None:
            y = b.add("Mul", [parameter(self.scale), y])
        if self.bias is not None:
            y = b.add("Add", [y, parameter(self.bias)])
        return y

    def graph(self, shape: tuple[Any, ...] = ("n", "t", 8)) -> Graph:
        b = GraphBuilder()
        x = b.input("x", self.dtype, shape)
        b.origin = Origin("layer_norm", "ln")
        b.output(self.add(b, x), "y")
        return b.build()


@pytest.mark.parametrize(
    "spelling",
    [
        Spelling(),
        Spelling(square="Mul"),
        Spelling(root="Pow"),
        Spelling(divide="Reciprocal"),
        Spelling(axes=(2,)),
        Spelling(scale=None),
        Spelling(bias=None),
        Spelling(scale=None, bias=None),
        Spelling(scale=(1, 1, 8), bias=(1,)),
        Spelling(dtype="float64"),
        Spelling(dtype="float16"),
        Spelling(dtype="bfloat16"),
    ],
    ids=str,
)
def test_patterns_are_fused(spelling: Spelling) -> None:
    (node,) = fuse(spelling.graph()).nodes
    assert node.op == "LayerNormalization"
    assert node.origin == Origin("layer_norm", "ln")
    assert node.attributes["epsilon"] == pytest.approx(1e-5, rel=1e-2)


def test_pattern_over_several_axes_is_fused() -> None:
    (node,) = fuse(Spelling(axes=(1, 2), scale=(4, 8), bias=(8,)).graph(("n", 4, 8))).nodes
    assert node.attributes["axis"] == -2
    assert all(v is not None and v.shape == (4, 8) for v in node.inputs[1:])


@pytest.mark.parametrize(
    "spelling",
    [
        Spelling(axes=(1,), scale=None, bias=None),
        Spelling(axes=(0, 2), scale=None, bias=None),
        Spelling(axes=(-1,), variance_axes=(-2,)),
        Spelling(power=3.0),
        Spelling(epsilon_shape=(1, 1, 1, 1)),
        Spelling(expose="mean"),
        Spelling(expose="variance"),
        Spelling(expose="d"),
    ],
    ids=str,
)
def test_similar_patterns_are_not_fused(spelling: Spelling) -> None:
    graph = spelling.graph(("n", 8, 8))
    assert fuse(graph).op_counts() == graph.op_counts()


def test_pattern_without_keepdims_is_not_fused() -> None:
    graph = Spelling(keepdims=0, scale=None, bias=None).graph((8, 8))
    assert "LayerNormalization" not in fuse(graph).op_counts()


def test_scale_per_row_is_not_fused() -> None:
    graph = fuse(Spelling(scale=(4, 1), bias=(8,)).graph(("n", 4, 8)))
    assert graph.op_counts() == {"Add": 1, "LayerNormalization": 1, "Mul": 1}


def test_pattern_over_an_unknown_size_is_not_fused() -> None:
    graph = Spelling(scale=None, bias=None).graph(("n", 4, "c"))
    assert fuse(graph).op_counts() == graph.op_counts()


def test_patterns_inside_branches_are_fused() -> None:
    b = GraphBuilder()
    condition, x = b.input("c", "bool", []), b.input("x", "float32", ["n", 8])
    branches = {}
    for name in ("then_branch", "else_branch"):
        inner = GraphBuilder(name, outer=b)
        inner.output(Spelling(square="Mul" if name == "then_branch" else "Pow").add(inner, x))
        branches[name] = inner.build()
    b.output(b.add("If", [condition], branches), "y")
    assert fuse(b.build()).op_counts() == {"LayerNormalization": 2, "If": 1}
