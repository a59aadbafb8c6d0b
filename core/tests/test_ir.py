"""Types, graphs, the builder, the verifier and the printer."""

from __future__ import annotations

import numpy as np
import pytest

from lite_core import ops
from lite_core.builder import GraphBuilder
from lite_core.errors import GraphError
from lite_core.ir import (
    DType,
    Graph,
    Node,
    Origin,
    SymbolicDim,
    TensorType,
    Value,
    format_graph,
)
from lite_core.ops.evaluate import evaluate_graph
from lite_core.ops.infer import infer_graph


def chain() -> Graph:
    b = GraphBuilder("chain")
    x = b.input("x", "float32", ["batch", 4])
    y = b.add("Reshape", [x, b.ints(0, 2, 2)], name="split", origin=Origin("reshape2", "r0"))
    b.output(b.add("Transpose", [y], {"perm": [0, 2, 1]}, name="swap"), "y")
    return b.build()


def branch() -> Graph:
    """An If whose branches capture a value of the outer graph."""
    b = GraphBuilder("branch")
    condition, x = b.input("condition", "bool", []), b.input("x", "float32", ["n"])
    outer = b.add("Identity", [x], output="outer")
    bodies = []
    for op in ("Identity", "Unsqueeze"):
        inner = GraphBuilder(op.lower(), outer=b)
        inputs = [outer] if op == "Identity" else [outer, inner.ints(0)]
        inner.output(inner.add(op, inputs))
        bodies.append(inner.build())
    b.output(b.add("If", [condition], {"then_branch": bodies[0], "else_branch": bodies[1]}), "y")
    return b.build()


# **** types ****


@pytest.mark.parametrize("dtype", [d for d in DType if d is not DType.STRING])
def test_dtype_numpy_round_trip(dtype: DType) -> None:
    assert DType.of(dtype.numpy) is dtype
    assert dtype.numpy.itemsize == dtype.itemsize
    assert dtype == dtype.value


def test_unsupported_numpy_dtype_is_refused() -> None:
    with pytest.raises(ValueError, match="'complex64'"):
        DType.of(np.dtype("complex64"))


def test_tensor_type() -> None:
    type_ = TensorType(DType.FLOAT32, (SymbolicDim.named("n"), 3))
    assert str(type_) == "float32[n, 3]"
    assert type_.accepts((5, 3))
    assert not type_.accepts((5, 4))
    assert not type_.accepts((5,))
    assert not type_.is_static
    assert type_.symbols == {"n"}
    assert type_.substitute({"n": 2}) == TensorType(DType.FLOAT32, (2, 3))
    assert str(TensorType(DType.INT8)) == "int8[?]"


# **** building ****


def test_builder_infers_types() -> None:
    graph = chain()
    assert [str(v.type) for v in graph.outputs] == ["float32[batch, 2, 2]"]
    assert graph.outputs[0].name == "y"


def test_builder_names_are_unique() -> None:
    b = GraphBuilder()
    x = b.input("x", "float32", [1])
    names = {b.add("Identity", [x], name="same").name for _ in range(3)}
    assert len(names) == 3
    with pytest.raises(GraphError, match="'x' is already taken"):
        b.input("x", "float32", [1])


def test_builder_shares_small_constants() -> None:
    b = GraphBuilder()
    assert b.ints(1, 2) is b.ints(1, 2)
    assert b.ints(1, 2) is not b.constant(np.array([1, 2], dtype=np.int32))


@pytest.mark.parametrize(
    ("op", "attributes", "message"),
    [
        ("Transpose", {"perm": (0, 0)}, "perm .*permutation"),
        ("Transpose", {"order": (1, 0)}, "'order'.*: perm"),
        ("Cast", {}, "attribute 'to'"),
        ("Cast", {"to": 1}, "attribute 'to'.*dtype"),
        ("Reshape", {}, "2 inputs.* 1"),
        ("Nonsense", {}, "operator 'Nonsense'"),
    ],
)
def test_error_of_an_invalid_node_names_the_node(op: str, attributes: dict[str, object], message: str) -> None:
    b = GraphBuilder()
    x = b.input("x", "float32", [2, 3])
    with pytest.raises(GraphError, match=message) as caught:
        b.add(op, [x], attributes, origin=Origin("paddle_op", "p"))  # type: ignore[arg-type]
    assert "from paddle_op 'p'" in str(caught.value)
    assert "float32[2, 3]" in str(caught.value)


def test_input_that_is_an_output_gets_the_name_of_the_output() -> None:
    b = GraphBuilder()
    x = b.input("x", "float32", [2])
    b.output(x, "y")
    graph = b.build()
    assert [v.name for v in graph.outputs] == ["y"]
    assert evaluate_graph(graph, [np.ones(2, np.float32)])[0].tolist() == [1, 1]


def test_given_names_are_kept_or_refused() -> None:
    b = GraphBuilder()
    x = b.input("x", "float32", [3])
    y = b.add("Relu", [x], output="y")
    for clash in (
        lambda: b.output(y, "x"),
        lambda: b.output(b.add("Neg", [x]), "y"),
        lambda: b.add("Neg", [x], output="y"),
        lambda: b.constant(np.ones(3), "x"),
        lambda: b.input("y", "float32", [1]),
        lambda: b.add_node("Split", [x], {"num_outputs": 2}, outputs=["z", "z"]),
    ):
        with pytest.raises(GraphError, match="the name"):
            clash()
    b.output(y, "first")
    b.output(y, "second")
    assert [v.name for v in b.build().outputs] == ["first", "second"]


def test_generated_names_give_way_to_given_names() -> None:
    b = GraphBuilder()
    x = b.input("x", "float32", [3])
    first, constant = b.add("Relu", [x]), b.constant(1.0)
    assert (first.name, constant.name) == ("relu", "const")
    b.output(b.add("Neg", [first]), "relu")
    b.output(b.add("Abs", [x]), "const")
    assert [v.name for v in b.build().outputs] == ["relu", "const"]
    assert first.name != "relu"
    assert b.is_taken("relu")
    assert not b.is_taken(first.name)
    assert b.input(b.unique_name("x"), "float32", [3]).name == "x_1"


def test_failed_node_reserves_no_name() -> None:
    b = GraphBuilder()
    x, i = b.input("x", "float32", [2]), b.input("i", "int64", [3])
    with pytest.raises(GraphError):
        b.add("Add", [x, i], output="sum", name="plus")
    assert b.add("Relu", [x], output="sum", name="plus").name == "sum"
    assert b.graph.nodes[-1].name == "plus"


def test_builder_copies_arrays_that_the_caller_can_write() -> None:
    b = GraphBuilder()
    array = np.ones(3, np.float32)
    first = b.constant(array)
    array[:] = 2
    assert b.graph.constants[first].tolist() == [1, 1, 1]
    assert b.constant(array) is not first
    assert not any(a.flags.writeable for a in b.graph.constants.values())
    array.setflags(write=False)
    assert b.graph.constants[b.constant(array, "shared")] is array


@pytest.mark.parametrize(
    ("given", "dtype"),
    [([1.7], "int64"), ([-1], "uint8"), ([300], "int8"), ([1e300], "float32"), ([2], "bool"), ("text", None)],
)
def test_constants_that_do_not_fit_the_type_are_refused(given: object, dtype: str | None) -> None:
    with pytest.raises(GraphError, match="constant"):
        GraphBuilder().constant(given, dtype=dtype)


def test_constants_are_rounded_to_floating_types() -> None:
    b = GraphBuilder()
    assert b.graph.constants[b.constant([0.1, float("inf")], dtype="float16")].dtype == np.float16
    assert b.graph.constants[b.constant([1.0, 0.0], dtype="bool")].tolist() == [True, False]


@pytest.mark.parametrize("dim", [-1, 2.5, "", "a?1", True])
def test_invalid_dimensions_are_refused(dim: object) -> None:
    with pytest.raises(GraphError, match="input 'x'"):
        GraphBuilder().input("x", "float32", [dim])  # type: ignore[list-item]


def test_numpy_integers_become_python_integers() -> None:
    b = GraphBuilder()
    x = b.input("x", "float32", [np.int64(1), 1, 4, 4])  # type: ignore[list-item]
    assert x.type.is_static
    pooled = b.add("MaxPool", [x], {"kernel_shape": list(np.array([2, 2]))})  # type: ignore[dict-item]
    assert str(pooled.type) == "float32[1, 1, 3, 3]"
    assert [type(a) for a in b.graph.nodes[-1].attributes["kernel_shape"]] == [int, int]  # type: ignore[union-attr]


def test_arguments_must_be_values() -> None:
    b = GraphBuilder()
    x = b.input("x", "float32", [2])
    with pytest.raises(GraphError, match=r"input 1 of Add.*Value.*ndarray"):
        b.add("Add", [x, np.ones(2)])  # type: ignore[list-item]
    with pytest.raises(GraphError, match="list of values"):
        b.add("Relu", x)  # type: ignore[arg-type]
    with pytest.raises(GraphError, match=r"Value.* str"):
        b.output("x")  # type: ignore[arg-type]


# **** copying, walking, editing ****


def test_copy_is_independent_and_shares_constants() -> None:
    graph = branch()
    twin = graph.copy()
    assert str(twin) == str(graph)
    twin.nodes.clear()
    assert graph.nodes
    ops.verify(graph)
    own = {v for scope in graph.walk() for v in scope.defined()}
    other = {v for scope in graph.copy().walk() for v in scope.defined()}
    assert not own & other
    big = chain()
    assert [a is b for a, b in zip(big.constants.values(), big.copy().constants.values())] == [True]


def test_captured_values_count_as_uses() -> None:
    graph = branch()
    outer = next(v for node in graph.nodes for v in node.outputs if v is not None and v.name == "outer")
    assert [node.op for node in graph.consumers()[outer]] == ["If"]
    assert set(graph.nodes[-1].captured()) == {outer}


def test_replace_uses_reaches_sub_graphs() -> None:
    graph = branch()
    outer = graph.nodes[0].outputs[0]
    assert outer is not None
    graph.replace_uses({outer: graph.inputs[1]})
    assert outer not in graph.consumers()
    assert evaluate_graph(graph, [np.array(True), np.ones(3, np.float32)])[0].shape == (3,)
    assert evaluate_graph(graph, [np.array(False), np.ones(3, np.float32)])[0].shape == (1, 3)


def test_op_counts_include_sub_graphs() -> None:
    assert branch().op_counts() == {"Identity": 2, "If": 1, "Unsqueeze": 1}


# **** verifier ****


def test_verifier_lists_every_problem() -> None:
    f32 = TensorType(DType.FLOAT32, (1,))
    x, y, z = (Value(name, f32) for name in ("x", "y", "x"))
    ghost = Value("ghost", f32)
    graph = Graph(
        "broken",
        inputs=[x],
        nodes=[Node("Identity", [ghost], [y], name="a"), Node("Nonsense", [x], [z], name="b")],
        outputs=[Value("nowhere", f32)],
        constants={Value("c", f32): np.zeros(2, np.float32)},
    )
    with pytest.raises(GraphError) as caught:
        ops.verify(graph)
    message = str(caught.value)
    for part in (
        "5 problem(s)",
        "'ghost'",
        "'Nonsense'",
        "the name 'x'",
        "constant 'c'",
        "float32[1]",
        "float32[2]",
        "output 'nowhere'",
    ):
        assert part in message


def test_verifier_refuses_a_second_definition() -> None:
    x = Value("x", TensorType(DType.FLOAT32, (1,)))
    graph = Graph(inputs=[x], nodes=[Node("Identity", [x], [x], name="loop")], outputs=[x])
    with pytest.raises(GraphError, match="'x' is defined"):
        ops.verify(graph)


def test_verifier_refuses_a_node_that_writes_nothing() -> None:
    x = Value("x", TensorType(DType.FLOAT32, (1,)))
    graph = Graph(inputs=[x], nodes=[Node("Relu", [x], [], name="idle")], outputs=[x])
    with pytest.raises(GraphError, match="'idle' .* writes nothing"):
        ops.verify(graph)
    with pytest.raises(GraphError, match="'idle' .* writes nothing"):
        infer_graph(graph)


# **** printer ****


def test_printed_graph() -> None:
    assert format_graph(chain(), origins=True) == (
        "graph chain(%x: float32[batch, 4]) {\n"
        "  const %const: int64[3] = [0, 2, 2]\n"
        "  %split: float32[batch, 2, 2] = Reshape(%x, %const)  # split, from reshape2 'r0'\n"
        "  %y: float32[batch, 2, 2] = Transpose(%split) {perm=[0, 2, 1]}  # swap\n"
        "  return %y: float32[batch, 2, 2]\n"
        "}"
    )


def test_printed_sub_graphs_are_indented() -> None:
    text = format_graph(branch())
    assert "    then_branch =\n      graph identity() {" in text


def test_nodes_of_one_operator_get_numbered_names() -> None:
    b = GraphBuilder()
    x = b.input("relu_2", "float32", [1])
    for _ in range(4):
        x = b.add("Relu", [x])
    b.output(x)
    assert [node.name for node in b.build().nodes] == ["relu", "relu_1", "relu_2", "relu_3"]
    assert len({value.name for value in b.graph.defined()}) == 5
