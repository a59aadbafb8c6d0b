"""Where values are made so that joining and seeing them differently costs nothing."""

from __future__ import annotations

from lite_compiler.destinations import destination_through, part_of, parts_of, reserve_destinations
from lite_compiler.tensors import StridedTensor, dense_strides
from lite_core.builder import GraphBuilder
from lite_core.ir import DType, Graph, Node, Value

Tensor = StridedTensor[str]


def dense(storage: str, *shape: int) -> Tensor:
    return StridedTensor(storage, DType.FLOAT32, shape, dense_strides(shape))


def reserved(graph: Graph, refused: frozenset[str] = frozenset()) -> dict[str, Tensor]:
    """The places of a graph's values, by name; results of a Concat without one get memory of their own."""
    places: dict[Value, Tensor] = {}

    def reserve(value: Value, place: Tensor) -> bool:
        if value in places or value.name in refused:
            return False
        places[value] = place
        return True

    def result_of(node: Node) -> Tensor | None:
        value = node.outputs[0]
        assert value is not None
        return None if node.name in refused else places.get(value) or dense(value.name, *value.shape)

    outputs = {v: dense(f"output {v.name}", *v.shape) for v in graph.outputs}
    reserve_destinations(graph, outputs, result_of=result_of, reserve=reserve)
    return {v.name: place for v, place in places.items()}


def test_what_is_joined_is_made_in_its_part() -> None:
    b = GraphBuilder("joined")
    x = b.input("x", "float32", [2, 3])
    one, other = b.add("Relu", [x]), b.add("Neg", [x])
    joined = b.add("Concat", [one, other, one], {"axis": 1})
    b.output(b.add("Exp", [joined]), "y")
    whole = dense(joined.name, 2, 9)
    places = reserved(b.build())
    assert places == {one.name: whole.slice(1, 0, 3), other.name: whole.slice(1, 3, 3)}  # the first part of two


def test_the_outer_of_two_decides_and_views_are_looked_through() -> None:
    b = GraphBuilder("nested")
    x = b.input("x", "float32", [2, 3])
    relu, neg = b.add("Relu", [x]), b.add("Neg", [x])
    inner = b.add("Concat", [relu, neg], {"axis": 0})  # [4, 3]
    turned = b.add("Transpose", [inner])  # [3, 4]
    exp = b.add("Exp", [b.add("Transpose", [x])])
    outer = b.add("Concat", [exp, turned], {"axis": -1})  # [3, 6]
    b.output(b.add("Abs", [outer]), "y")
    places = reserved(b.build())
    part = dense(outer.name, 3, 6).slice(1, 2, 4)
    assert places[turned.name] == part
    assert places[inner.name] == part.permute((1, 0))
    assert places[relu.name] == part.permute((1, 0)).slice(0, 0, 2)
    assert places[neg.name] == part.permute((1, 0)).slice(0, 2, 2)


def test_an_output_that_is_a_view_is_made_where_it_leaves() -> None:
    b = GraphBuilder("left")
    x = b.input("x", "float32", [2, 3])
    relu = b.add("Relu", [x])
    b.output(b.add("Reshape", [relu, b.ints(3, 2)]), "y")
    assert reserved(b.build()) == {relu.name: dense("output y", 3, 2).view((2, 3), (3, 1))}


def test_where_no_strides_say_it_nothing_is_reserved() -> None:
    b = GraphBuilder("gaps")
    x = b.input("x", "float32", [2, 3])
    relu = b.add("Relu", [x])
    flat = b.add("Reshape", [relu, b.ints(6, 1)])
    b.output(b.add("Abs", [b.add("Concat", [flat, b.input("z", "float32", [6, 2])], {"axis": 1})]), "y")
    assert relu.name in reserved(b.build())  # one column: evenly spaced
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


def test_what_must_not_be_made_there_ends_the_way() -> None:
    b = GraphBuilder("refused")
    relu = b.add("Relu", [b.input("x", "float32", [2, 3])])
    seen = b.add("Unsqueeze", [relu, b.ints(0)])
    b.output(b.add("Abs", [b.add("Concat", [seen, seen], {"axis": 0}, name="joining")]), "y")
    graph = b.build()
    assert set(reserved(graph)) == {relu.name, seen.name}
    assert reserved(graph, refused=frozenset({seen.name})) == {}
    assert reserved(graph, refused=frozenset({"joining"})) == {}


def test_parts() -> None:
    b = GraphBuilder("parts")
    x, y = b.input("x", "float32", [2, 1]), b.input("y", "float32", [2, 4])
    b.output(b.add("Concat", [x, y], {"axis": 1}), "z")
    (node,) = b.build().nodes
    whole = dense("z", 2, 5)
    assert parts_of(node, whole) == [(x, whole.slice(1, 0, 1)), (y, whole.slice(1, 1, 4))]


def test_parts_of_shuffled_channels() -> None:
    """Channels of two inputs alternate in the result: [2, 3] joined as [2 inputs, 3 channels], then transposed."""
    shuffled = dense("z", 1, 3, 2, 5).permute((0, 2, 1, 3))  # [1, inputs, channels, 5]
    second = part_of(shuffled, (1, 3, 5), axis=1, start=3)
    assert (second.shape, second.strides, second.offset) == ((1, 3, 5), (30, 10, 1), 5)


def test_other_operators_have_no_place_behind_them() -> None:
    b = GraphBuilder("relu")
    x = b.input("x", "float32", [2])
    b.output(b.add("Relu", [x]), "y")
    assert destination_through(b.build().nodes[0], x, dense("y", 2)) is None
