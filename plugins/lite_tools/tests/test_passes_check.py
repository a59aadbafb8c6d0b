"""Checks of passes, random inputs, and all passes on random graphs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lite_core.builder import GraphBuilder
from lite_core.errors import InputError, PassError
from lite_core.ir import DType, Graph, Value
from lite_core.ops.evaluate import evaluate_graph
from lite_core.passes import PassResult, default_passes, optimize, run_passes
from lite_core.passes.dead_node_elimination import DeadNodeElimination
from lite_tools.checking import (
    candidate_inputs,
    compare_graphs,
    largest_difference,
    optimize_checked,
    random_inputs,
    run_passes_checked,
)


def relu_of_sum() -> Graph:
    b = GraphBuilder("small")
    x = b.input("x", "float32", ["n", 3])
    b.output(b.add("Relu", [b.add("Add", [x, b.constant(np.float32(0.5))])]), "y")
    return b.build()


# **** checks of passes ****


class _WrongOperator:
    name = "wrong_on_purpose"

    def __call__(self, graph: Graph) -> PassResult:
        changed = False
        for node in graph.nodes:
            if node.op == "Relu":
                node.op, changed = "Abs", True
        return PassResult(graph, changed)


class _DropsNode:
    name = "drops_a_node"

    def __call__(self, graph: Graph) -> PassResult:
        del graph.nodes[0]
        return PassResult(graph, True)


class _RenamesOutput:
    name = "renames_the_output"

    def __call__(self, graph: Graph) -> PassResult:
        graph.outputs[0].name = "z"
        return PassResult(graph, True)


class _ChangesShape:
    name = "changes_the_shape"

    def __call__(self, graph: Graph) -> PassResult:
        constant = next(iter(graph.constants))
        graph.constants[constant] = np.full((1, 1, 1), 0.5, np.float32)
        constant.type = constant.type.with_shape((1, 1, 1))
        return PassResult(graph, True)


@pytest.mark.parametrize(
    ("pass_", "message"),
    [
        (_WrongOperator(), r"pass 'wrong_on_purpose' .*graph 'small'.*0\.0001"),
        (_DropsNode(), r"pass 'drops_a_node' "),
        (_RenamesOutput(), r"pass 'renames_the_output' .*\[y: float32\].*\[z"),
        (_ChangesShape(), r"pass 'changes_the_shape' .*'y' .*float32\[2, 3\].*float32\[1, 2"),
    ],
)
def test_wrong_pass_is_named(pass_: object, message: str) -> None:
    graph = relu_of_sum()
    with pytest.raises(PassError, match=message):
        run_passes_checked(graph, [DeadNodeElimination(), pass_])  # type: ignore[list-item]
    assert graph.op_counts() == {"Add": 1, "Relu": 1}  # the caller's graph is untouched


def test_unchecked_passes_are_not_compared() -> None:
    graph, records = run_passes(relu_of_sum(), [_WrongOperator()])
    assert graph.op_counts() == {"Add": 1, "Abs": 1}
    assert [r.error for r in records] == [None, None]


def test_pass_that_makes_the_graph_fail_is_named() -> None:
    class Breaks:
        name = "breaks"

        def __call__(self, graph: Graph) -> PassResult:
            constant = next(iter(graph.constants))
            graph.constants[constant] = np.zeros(7, np.float32)
            constant.type = constant.type.with_shape((7,))
            return PassResult(graph, True)

    with pytest.raises(PassError, match="pass 'breaks' .*Add"):
        run_passes_checked(relu_of_sum(), [Breaks()])


def test_records_of_passes() -> None:
    b = GraphBuilder()
    x = b.input("x", "float32", [2])
    b.output(b.add("Relu", [b.add("Identity", [x])]), "y")
    _, records = optimize_checked(b.build())
    changed = [(r.name, r.round, r.nodes_before, r.nodes_after, r.error) for r in records if r.changed]
    assert changed == [("identity_elimination", 1, 2, 1, 0.0)]
    assert {r.round for r in records} == {1, 2}


def test_extra_passes_run_after_the_default_ones() -> None:
    _, records = optimize(relu_of_sum(), extra=[_WrongOperator()])
    assert records[len(default_passes())].name == "wrong_on_purpose"


@pytest.mark.parametrize(
    ("expected", "found", "difference"),
    [
        ([0.0, 10.0], [0.0, 9.0], 0.1),
        ([np.nan, np.inf, 1.0], [np.nan, np.inf, 1.0], 0.0),
        ([np.nan, 1.0], [0.0, 1.0], np.inf),
        ([np.inf, 1.0], [-np.inf, 1.0], np.inf),
        ([5.0, 5.0], [5.0, 6.0], 0.2),
        ([0.0], [0.25], 0.25),
        ([], [], 0.0),
    ],
)
def test_largest_difference(expected: list[float], found: list[float], difference: float) -> None:
    assert largest_difference(np.array(expected), np.array(found)) == pytest.approx(difference)


def test_outputs_of_only_nan_are_retried_with_positive_input() -> None:
    def graph(op: str) -> Graph:
        b = GraphBuilder()
        b.output(b.add(op, [b.add("Log", [b.input("x", "float32", [1])])]), "y")
        return b.build()

    seed = next(s for s in range(20) if random_inputs(graph("Abs"), s)["x"][0] < 0)
    assert compare_graphs(graph("Abs"), graph("Exp"), seed) > 0


# **** random inputs ****


def test_random_inputs_follow_the_types() -> None:
    b = GraphBuilder()
    b.input("image", "float16", ["n", 3, "h", "w"])
    b.input("length", "int64", ["n"])
    b.input("flag", "bool", [5])
    b.input("flat", "float32", [b.graph.inputs[0].shape[2] * 2, None])
    inputs = random_inputs(b.graph, seed=3)
    assert {k: (v.dtype.name, v.shape) for k, v in inputs.items()} == {
        "image": ("float16", (2, 3, 32, 32)),
        "length": ("int64", (2,)),
        "flag": ("bool", (5,)),
        "flat": ("float32", (64, 32)),
    }
    assert (inputs["length"] >= 0).all()
    again = random_inputs(b.graph, seed=3)
    assert all(np.array_equal(inputs[k], again[k]) for k in inputs)
    assert not np.array_equal(inputs["image"], random_inputs(b.graph, seed=4)["image"])


def test_sizes_are_tried_until_inference_accepts_them() -> None:
    b = GraphBuilder()
    x = b.input("x", "float32", ["n", 1, "h", "w"])
    weights = b.constant(np.zeros((224 * 224, 2), np.float32))
    b.output(b.add("MatMul", [b.add("Flatten", [x]), weights]), "y")
    assert random_inputs(b.build())["x"].shape == (2, 1, 224, 224)


def test_given_shapes_bind_the_symbols_of_others() -> None:
    b = GraphBuilder()
    x, y = b.input("x", "float32", ["n", "t"]), b.input("y", "float32", ["t"])
    b.output(b.add("Add", [x, y]), "z")
    assert random_inputs(b.build(), shapes={"x": (3, 7)})["y"].shape == (7,)


def test_errors_name_the_input() -> None:
    b = GraphBuilder("picky")
    x = b.input("x", "float32", ["n", "w"])
    b.output(b.add("MatMul", [x, b.constant(np.zeros((97, 2), np.float32))]), "y")
    with pytest.raises(InputError, match=r"'picky'.*x: float32\[n, w\]"):
        random_inputs(b.build())
    with pytest.raises(InputError, match="'z'.* x"):
        random_inputs(b.graph, shapes={"z": (1,)})
    with pytest.raises(InputError, match=r"'x' .*float32\[n, w\].*\[1\]"):
        random_inputs(b.graph, shapes={"x": (1,)})
    unknown = GraphBuilder()
    unknown.output(unknown.add("Relu", [unknown.input("x", "float32", None)]), "y")
    with pytest.raises(InputError, match=r"rank of input 'x'"):
        random_inputs(unknown.build())


def test_graph_that_runs_on_no_random_input_is_an_error() -> None:
    b = GraphBuilder("lookup")
    x = b.input("x", "float32", [1])
    index = b.add("Cast", [b.add("Add", [b.add("Abs", [x]), b.constant(np.float32(7))])], {"to": DType.INT64})
    b.output(b.add("Gather", [b.constant(np.zeros(5, np.float32)), index]), "y")
    with pytest.raises(InputError, match="'lookup' .*index [78]"):
        compare_graphs(b.graph, b.graph)


def test_integer_ranges_are_tried() -> None:
    b = GraphBuilder()
    index = b.input("index", "int64", [50])
    table = b.constant(np.ones((2, 1000), np.float32))  # too large for constant folding in inference
    b.output(b.add("Gather", [table, index]), "y")
    graph = b.build()
    highest = [int(c["index"].max()) for c in candidate_inputs(graph)]
    assert highest[0] == 3
    assert 1 in highest
    assert compare_graphs(graph, graph) == 0.0


# **** all passes on random graphs ****

_UNARY = ("Relu", "Sigmoid", "Tanh", "Erf", "Neg", "Abs", "Identity")
_BINARY = ("Add", "Sub", "Mul", "Max")


@st.composite
def random_graphs(draw: st.DrawFn) -> Graph:
    """Draw small graphs of element-wise nodes, layout changes, products and branches, with any values as outputs."""
    b = GraphBuilder("random")
    dtype = draw(st.sampled_from(["float32", "float64"]))
    values: list[Value] = [b.input("x", dtype, ["n", 3, 4]), b.input("z", dtype, ["n", 3, 4])]

    def constant() -> Value:
        shape = draw(st.sampled_from([(), (1,), (4,), (3, 1), (1, 3, 4)]))
        number = draw(st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0, 6.0, -1.0]))
        return b.constant(np.full(shape, number), dtype=dtype)

    def step() -> Value:
        x = draw(st.sampled_from(values))
        kind = draw(st.sampled_from(["unary", "binary", "constant", "layout", "clip", "product", "branch", "norm"]))
        if kind == "unary":
            return b.add(draw(st.sampled_from(_UNARY)), [x])
        if kind == "binary":
            return b.add(draw(st.sampled_from(_BINARY)), [x, draw(st.sampled_from(values))])
        if kind == "constant":
            operands = draw(st.permutations([x, constant()]))
            return b.add(draw(st.sampled_from(_BINARY)), operands)
        if kind == "layout":
            transposed = b.add("Transpose", [x], {"perm": (0, 2, 1)})
            transposed = b.add(draw(st.sampled_from(_UNARY)), [transposed])
            if draw(st.booleans()):
                return b.add("Transpose", [transposed], {"perm": (0, 2, 1)})
            flat = b.add("Reshape", [transposed, b.ints(0, -1)])
            return b.add("Reshape", [flat, b.ints(-1, 3, 4)])
        if kind == "clip":
            return b.add("Clip", [x, b.constant(0, dtype=dtype), b.constant(6, dtype=dtype)])
        if kind == "product":
            return b.add("MatMul", [x, b.constant(np.eye(4) * 0.5 + 0.1, dtype=dtype)])
        if kind == "norm":
            ones = [b.constant(np.array([0.5, 1, 2]), dtype=dtype) for _ in range(4)]
            return b.add("BatchNormalization", [x, *ones])
        condition = b.add("Equal", [b.add("Size", [x]), b.constant(np.int64(24))])
        branches = {}
        for name in ("then_branch", "else_branch"):
            inner = GraphBuilder(name, outer=b)
            y = inner.add(draw(st.sampled_from(_UNARY)), [draw(st.sampled_from(values))])
            inner.output(inner.add("Mul", [y, inner.constant(1.0, dtype=dtype)]))
            branches[name] = inner.build()
        return b.add("If", [condition], branches)

    for _ in range(draw(st.integers(1, 12))):
        values.append(step())
    chosen = draw(st.lists(st.sampled_from(values[2:]), min_size=1, max_size=3, unique=True))
    for value in {*chosen, values[-1]}:
        b.graph.outputs.append(value)
    return b.build()


@settings(max_examples=60, deadline=None)
@given(random_graphs())
def test_passes_keep_the_results_of_random_graphs(graph: Graph) -> None:
    names, text = [v.name for v in graph.outputs], str(graph)
    optimized, records = optimize_checked(graph)  # raises if a pass changes a result
    assert [v.name for v in optimized.outputs] == names
    assert not any(r.changed for r in records if r.round == records[-1].round)
    assert compare_graphs(graph, optimized, seed=1) < 1e-4
    assert str(graph) == text


def test_rounding_error_of_a_constant_is_not_its_range() -> None:
    x = np.full(8, -1, np.float32)
    y = x.copy()
    y[3] = np.nextafter(np.float32(-1), np.float32(0))
    assert largest_difference(y, x) < 1e-6
    assert largest_difference(x, x + 0.5) == 0.5


# **** a deep graph ****


def test_deep_graph_is_simplified() -> None:
    b = GraphBuilder()
    x = b.input("x", "float32", ["n", 8, "h", "w"])
    weights = np.random.default_rng(0).standard_normal((8, 8, 3, 3)).astype(np.float32) * 0.1
    for layer in range(60):
        y = b.add("Conv", [x, b.constant(weights + layer)], {"pads": (1, 1, 1, 1)})
        y = b.add("BatchNormalization", [y, *(b.constant(np.full(8, layer + i + 1.0, np.float32)) for i in range(4))])
        gate = b.add(
            "Clip", [b.add("Add", [y, b.constant(np.float32(3))]), *(b.constant(np.float32(i)) for i in (0, 6))]
        )
        y = b.add("Div", [b.add("Mul", [y, gate]), b.constant(np.float32(6))])
        x = b.add("Add", [x, b.add("Identity", [y])])
    b.output(x, "y")
    graph = b.build()
    optimized, _ = optimize(graph)
    assert optimized.op_counts() == {"Add": 60, "Conv": 60, "HardSwish": 60}


def test_optimized_graph_runs_on_concrete_input() -> None:
    graph, _ = optimize(relu_of_sum())
    (y,) = evaluate_graph(graph, [np.array([[-1.0, 0.0, 1.0]], np.float32)])
    assert y.tolist() == [[0.0, 0.5, 1.5]]
