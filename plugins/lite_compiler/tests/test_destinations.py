"""Tests of reserved destinations, which make Concat and views of values free of copies."""

from __future__ import annotations

from lite_compiler.destinations import concat_part, concat_parts, destination_through, reserve_destinations
from lite_compiler.tensors import StridedTensor, dense_strides
from lite_core.builder import GraphBuilder
from lite_core.ir import DType, Graph, Node, Value

Tensor = StridedTensor[str]


def dense(storage: str, *shape: int) -> Tensor:
    return StridedTensor(storage, DType.FLOAT32, shape, dense_strides(shape))


def reserved(graph: Graph, refused: frozenset[str] = frozenset()) -> dict[str, Tensor]:
    """Return the destinations of a graph's values by name; a Concat result without one gets separate memory."""
    destinations: dict[Value, Tensor] = {}

    def reserve(value: Value, destination: Tensor) -> bool:
        if value in destinations or value.name in refused:
            return False
        destinations[value] = destination
        return True

    def result_of(node: Node) -> Tensor | None:
        value = node.outputs[0]
        assert value is not None
        return None if node.name in refused else destinations.get(value) or dense(value.name, *value.shape)

    outputs = {v: dense(f"output {v.name}", *v.shape) for v in graph.outputs}
    reserve_destinations(graph, outputs, result_of=result_of, reserve=reserve)
    return {v.name: destination for v, destination in destinations.items()}


def test_concat_inputs_are_written_into_their_parts() -> None:
    b = GraphBuilder("joined")
    x = b.input("x", "float32", [2, 3])
    one, other = b.add("Relu", [x]), b.add("Neg", [x])
    joined = b.add("Concat", [one, other, one], {"axis": 1})
    b.output(b.add("Exp", [joined]), "y")
    whole = dense(joined.name, 2, 9)
    destinations = reserved(b.build())
    # The input that is concatenated twice gets the first of its two parts.
    assert destinations == {one.name: whole.slice(1, 0, 3), other.name: whole.slice(1, 3, 3)}


def test_nested_concat_writes_into_the_outer_one_through_views() -> None:
    b = GraphBuilder("nested")
    x = b.input("x", "float32", [2, 3])
    relu, neg = b.add("Relu", [x]), b.add("Neg", [x])
    inner = b.add("Concat", [relu, neg], {"axis": 0})  # [4, 3]
    transposed = b.add("Transpose", [inner])  # [3, 4]
    exp = b.add("Exp", [b.add("Transpose", [x])])
    outer = b.add("Concat", [exp, transposed], {"axis": -1})  # [3, 6]
    b.output(b.add("Abs", [outer]), "y")
    destinations = reserved(b.build())
    part = dense(outer.name, 3, 6).slice(1, 2, 4)
    assert destinations[transposed.name] == part
    assert destinations[inner.name] == part.permute((1, 0))
    assert destinations[relu.name] == part.permute((1, 0)).slice(0, 0, 2)
    assert destinations[neg.name] == part.permute((1, 0)).slice(0, 2, 2)


def test_source_of_an_output_view_is_written_into_the_output() -> None:
    b = GraphBuilder("left")
    x = b.input("x", "float32", [2, 3])
    relu = b.add("Relu", [x])
    b.output(b.add("Reshape", [relu, b.ints(3, 2)]), "y")
    assert reserved(b.build()) == {relu.name: dense("output y", 3, 2).view((2, 3), (3, 1))}


def test_nothing_is_reserved_where_strides_cannot_express_the_view() -> None:
    b = GraphBuilder("gaps")
    x = b.input("x", "float32", [2, 3])
    relu = b.add("Relu", [x])
    flat = b.add("Reshape", [relu, b.ints(6, 1)])
    b.output(b.add("Abs", [b.add("Concat", [flat, b.input("z", "float32", [6, 2])], {"axis": 1})]), "y")
    assert relu.name in reserved(b.build())  # one column is evenly spaced
    c = GraphBuilder("gaps")
    relu = c.add("Relu", [c.input("x", "float32", [2, 2, 3])])
    flat = c.add("Transpose", [c.add("Reshape", [relu, c.ints(4, 3)])])
    c.output(c.add("Abs", [c.add("Concat", [flat, flat], {"axis": 0})]), "y")
    assert relu.name in reserved(c.build())
    d = GraphBuilder("gaps")
    relu = d.add("Relu", [d.input("x", "float32", [12])])
    square = d.add("Reshape", [relu, d.ints(4, 3)])
    d.output(d.add("Abs", [d.add("Concat", [square, square], {"axis": 1})]), "y")
    assert relu.name not in reserved(d.build())


def test_refused_value_stops_the_reservation() -> None:
    b = GraphBuilder("refused")
    relu = b.add("Relu", [b.input("x", "float32", [2, 3])])
    view = b.add("Unsqueeze", [relu, b.ints(0)])
    b.output(b.add("Abs", [b.add("Concat", [view, view], {"axis": 0}, name="concat")]), "y")
    graph = b.build()
    assert set(reserved(graph)) == {relu.name, view.name}
    assert reserved(graph, refused=frozenset({view.name})) == {}
    assert reserved(graph, refused=frozenset({"concat"})) == {}


def test_concat_parts() -> None:
    b = GraphBuilder("parts")
    x, y = b.input("x", "float32", [2, 1]), b.input("y", "float32", [2, 4])
    b.output(b.add("Concat", [x, y], {"axis": 1}), "z")
    (node,) = b.build().nodes
    whole = dense("z", 2, 5)
    assert concat_parts(node, whole) == [(x, whole.slice(1, 0, 1)), (y, whole.slice(1, 1, 4))]


def test_concat_part_of_shuffled_channels() -> None:
    """Channels of two inputs alternate in the result: the Concat is [2 inputs, 3 channels], then transposed."""
    shuffled = dense("z", 1, 3, 2, 5).permute((0, 2, 1, 3))  # [1, inputs, channels, 5]
    second = concat_part(shuffled, (1, 3, 5), axis=1, start=3)
    assert (second.shape, second.strides, second.offset) == ((1, 3, 5), (30, 10, 1), 5)


def test_operators_that_compute_pass_no_destination_to_their_input() -> None:
    b = GraphBuilder("relu")
    x = b.input("x", "float32", [2])
    b.output(b.add("Relu", [x]), "y")
    assert destination_through(b.build().nodes[0], x, dense("y", 2)) is None
