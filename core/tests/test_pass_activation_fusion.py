"""gelu_fusion, hard_swish_fusion and swish_fusion: activations written out in arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from lite_core.builder import GraphBuilder
from lite_core.ir import Graph, Origin, Value
from lite_core.passes.dead_node_elimination import DeadNodeElimination
from lite_core.passes.gelu_fusion import GeluFusion
from lite_core.passes.hard_swish_fusion import HardSwishFusion
from lite_core.passes.swish_fusion import SwishFusion
from lite_tools.checking import run_passes_checked


class Expression:
    """Arithmetic on a value with Python's operators."""

    def __init__(self, b: GraphBuilder, value: Value) -> None:
        self.b, self.value = b, value

    def apply(self, op: str, *others: object, reverse: bool = False, **attributes: float) -> Expression:
        inputs = [o.value if isinstance(o, Expression) else self.b.constant(o, dtype=self.value.dtype) for o in others]
        ordered = [*inputs, self.value] if reverse else [self.value, *inputs]
        return Expression(self.b, self.b.add(op, ordered, attributes))

    def __add__(self, other: object) -> Expression:
        return self.apply("Add", other)

    def __radd__(self, other: object) -> Expression:
        return self.apply("Add", other, reverse=True)

    def __sub__(self, other: object) -> Expression:
        return self.apply("Sub", other)

    def __mul__(self, other: object) -> Expression:
        return self.apply("Mul", other)

    def __rmul__(self, other: object) -> Expression:
        return self.apply("Mul", other, reverse=True)

    def __truediv__(self, other: object) -> Expression:
        return self.apply("Div", other)

    def __pow__(self, other: object) -> Expression:
        return self.apply("Pow", other)

    def clip(self, low: float, high: float) -> Expression:
        return self.apply("Clip", low, high)


Function = Callable[[Expression], Expression]


def erf(x: Expression) -> Expression:
    return x.apply("Erf")


def tanh(x: Expression) -> Expression:
    return x.apply("Tanh")


def sigmoid(x: Expression) -> Expression:
    return x.apply("Sigmoid")


def graph_of(function: Function, dtype: str = "float32") -> Graph:
    b = GraphBuilder()
    x = b.input("x", dtype, ["n", 50])
    b.origin = Origin("activation", "act0")
    b.output(function(Expression(b, x)).value, "y")
    return b.build()


def fuse(graph: Graph) -> Graph:
    passes = [GeluFusion(), HardSwishFusion(), SwishFusion(), DeadNodeElimination()]
    return run_passes_checked(graph, passes)[0]


R2 = math.sqrt(2)
S = math.sqrt(2 / math.pi)

GELUS: dict[str, Function] = {
    "x/2 (1+e)": lambda x: (x / 2) * (erf(x / R2) + 1),
    "(x 0.5) (1+e)": lambda x: (x * 0.5) * (1 + erf(x * (1 / R2))),
    "x (1+e) 0.5": lambda x: x * (erf(x / R2) + 1.0) * 0.5,
    "0.5 (x (1+e))": lambda x: 0.5 * (x * (1 + erf(x / 1.4142135))),
    "x (0.5 (1+e))": lambda x: (0.5 * (1 + erf(x / R2))) * x,
    "x (0.5 + 0.5 e)": lambda x: x * (0.5 + 0.5 * erf(x / R2)),
    "0.5 x + 0.5 x e": lambda x: 0.5 * x + (0.5 * x) * erf(x / R2),
}
TANH_GELUS: dict[str, Function] = {
    "pow": lambda x: 0.5 * x * (1 + tanh(S * (x + 0.044715 * x**3))),
    "products": lambda x: x * (0.5 * (tanh((x + 0.044715 * (x * (x * x))) * S) + 1)),
    "x (1 + a x^2)": lambda x: (x * 0.5) * (1 + tanh(x * 0.7978845608 * (1 + 0.044715 * x * x))),
    "a s x^3": lambda x: (x * (1 + tanh(S * x + (S * 0.044715) * x**3))) / 2,
}
HARD_SWISHES: dict[str, Function] = {
    "x clip(x+3,0,6)/6": lambda x: x * (x + 3).clip(0, 6) / 6,
    "x (clip(x+3)/6)": lambda x: x * ((3 + x).clip(0, 6) / 6),
    "x clip * 1/6": lambda x: (1 / 6) * (x * (x + 3).clip(0, 6)),
    "x/6 clip": lambda x: (x / 6) * (x + 3).clip(0, 6),
    "x clip(x/6+0.5,0,1)": lambda x: x * (x / 6 + 0.5).clip(0, 1),
    "relu6 by relu": lambda x: x * (x + 3).apply("Relu").apply("Min", 6) / 6,
    "relu6 by max": lambda x: x * (x + 3).apply("Max", 0).apply("Min", 6) / 6,
    "relu6 by min": lambda x: x * (x + 3).apply("Min", 6).apply("Max", 0, reverse=True) / 6,
    "x HardSigmoid": lambda x: x * x.apply("HardSigmoid", alpha=1 / 6, beta=0.5),
    "HardSigmoid x": lambda x: x.apply("HardSigmoid", alpha=0.1666667, beta=0.5) * x,
}
HARD_SIGMOIDS: dict[str, Function] = {
    "relu6": lambda x: (x + 3).clip(0, 6) / 6,
    "other slope": lambda x: (x * 0.2 + 0.5).clip(0, 1),
}
SWISHES: dict[str, Function] = {
    "x s": lambda x: x * sigmoid(x),
    "s x": lambda x: sigmoid(x) * x,
    "beta": lambda x: x * sigmoid(1.702 * x),
    "division": lambda x: x * sigmoid(x / 0.5),
}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize(
    ("op", "function"),
    [
        *(pytest.param("Gelu", f, id=f"gelu {k}") for k, f in GELUS.items()),
        *(pytest.param("Gelu", f, id=f"tanh gelu {k}") for k, f in TANH_GELUS.items()),
        *(pytest.param("HardSwish", f, id=f"hard swish {k}") for k, f in HARD_SWISHES.items()),
        *(pytest.param("HardSigmoid", f, id=f"hard sigmoid {k}") for k, f in HARD_SIGMOIDS.items()),
        *(pytest.param("lite.Swish", f, id=f"swish {k}") for k, f in SWISHES.items()),
    ],
)
def test_patterns_are_fused(op: str, function: Function, dtype: str) -> None:
    (node,) = fuse(graph_of(function, dtype)).nodes
    assert node.qualified_op == op
    assert node.origin == Origin("activation", "act0")


def test_attributes_are_those_of_the_pattern() -> None:
    def attributes(function: Function) -> dict[str, object]:
        return fuse(graph_of(function)).nodes[0].attributes

    assert attributes(GELUS["x/2 (1+e)"]) == {}
    assert attributes(TANH_GELUS["pow"]) == {"approximate": "tanh"}
    assert attributes(SWISHES["x s"]) == {}
    assert attributes(SWISHES["beta"]) == {"beta": pytest.approx(1.702)}
    assert attributes(HARD_SIGMOIDS["other slope"]) == {
        "alpha": pytest.approx(0.2),
        "beta": pytest.approx(0.5),
    }


NEAR_MISSES: dict[str, Function] = {
    "gelu without half": lambda x: x * (1 + erf(x / R2)),
    "gelu wrong root": lambda x: 0.5 * x * (1 + erf(x / 1.5)),
    "gelu 1 - e": lambda x: 0.5 * x * (1 + erf(x / R2) * -1.0),
    "gelu of something else": lambda x: 0.5 * x * (1 + erf(x.apply("Abs") / R2)),
    "gelu shifted": lambda x: 0.5 * x * (1 + erf((x + 0.1) / R2)),
    "tanh gelu wrong cubic": lambda x: 0.5 * x * (1 + tanh(S * (x + 0.05 * x**3))),
    "tanh gelu square": lambda x: 0.5 * x * (1 + tanh(S * (x + 0.044715 * x**2))),
    "hard swish clip 5": lambda x: x * (x + 3).clip(0, 5) / 6,
    "hard swish plus 2": lambda x: x * (x + 2).apply("Min", 6).apply("Max", -1) / 6,
    "hard swish slope 0.2": lambda x: x * x.apply("HardSigmoid", alpha=0.2, beta=0.5),
    "hard swish of another": lambda x: x.apply("Abs") * x.apply("HardSigmoid", alpha=1 / 6, beta=0.5),
    "plain clip": lambda x: x.clip(0, 1),
    "swish of another": lambda x: x.apply("Abs") * sigmoid(x),
    "swish plus one": lambda x: x * sigmoid(x + 1),
    "swish squared": lambda x: x * x * sigmoid(x),
    "swish broadcast": lambda x: x * sigmoid(x * [[[1.0]]]),
}


@pytest.mark.parametrize("case", NEAR_MISSES)
def test_similar_patterns_are_not_fused(case: str) -> None:
    graph = graph_of(NEAR_MISSES[case])
    assert fuse(graph).op_counts() == graph.op_counts()


@pytest.mark.parametrize(
    ("function", "op"),
    [(GELUS["x/2 (1+e)"], "Erf"), (HARD_SWISHES["x clip(x+3,0,6)/6"], "Clip"), (SWISHES["beta"], "Sigmoid")],
)
@pytest.mark.parametrize("how", ["output", "second user", "captured"])
def test_an_intermediate_that_is_needed_prevents_fusion(function: Function, op: str, how: str) -> None:
    b = GraphBuilder()
    x, condition = b.input("x", "float32", ["n", 5]), b.input("c", "bool", [])
    b.output(function(Expression(b, x)).value, "y")
    (middle,) = (n.outputs[0] for n in b.graph.nodes if n.op == op)
    assert middle is not None
    if how == "output":
        b.output(middle, "middle")
    elif how == "second user":
        b.output(b.add("Sin", [middle]), "sin")
    else:
        branches = {}
        for name, inner_op in (("then_branch", "Sin"), ("else_branch", "Cos")):
            inner = GraphBuilder(name, outer=b)
            inner.output(inner.add(inner_op, [middle]))
            branches[name] = inner.build()
        b.output(b.add("If", [condition], branches), "z")
    graph = b.build()
    assert fuse(graph).op_counts() == graph.op_counts()


def test_scaled_input_and_following_product_are_not_fused() -> None:
    b = GraphBuilder()
    x, gate = b.input("x", "float32", ["n", 5]), b.input("gate", "float32", ["n", 5])
    scaled = Expression(b, x) * 3.0
    b.output((GELUS["x (1+e) 0.5"](scaled) * Expression(b, gate)).value, "y")
    assert fuse(b.build()).op_counts() == {"Mul": 2, "Gelu": 1}


def test_patterns_inside_a_loop_body_are_fused() -> None:
    b = GraphBuilder()
    x = b.input("x", "float32", [2, 3])
    body = GraphBuilder("body", outer=b)
    body.input("i", "int64", [])
    go_on, state = body.input("go_on", "bool", []), body.input("state", "float32", [2, 3])
    body.output(body.add("Identity", [go_on]))
    body.output(SWISHES["x s"](Expression(body, state)).value)
    b.output(b.add("Loop", [b.constant(np.int64(3)), None, x], {"body": body.build()}), "y")
    assert fuse(b.build()).op_counts() == {"Identity": 1, "Loop": 1, "lite.Swish": 1}
