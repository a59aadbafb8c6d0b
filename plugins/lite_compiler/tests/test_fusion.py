"""Tests of the grouping of nodes into steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lite_compiler.fusion import Group, absorb_producers, count_uses, group_nodes
from lite_core.builder import GraphBuilder
from lite_core.ir import Graph, Value

_ELEMENTWISE = frozenset({"Add", "Relu", "Neg", "Mul", "Clip"})


def grouped(graph: Graph, *, takes_tail: Iterable[str] = ("MatMul",)) -> list[Group]:
    elementwise = {node for node in graph.nodes if node.op in _ELEMENTWISE}
    return group_nodes(graph, count_uses(graph), elementwise, lambda node: node.op in takes_tail)


def operators(groups: Iterable[Group]) -> list[list[str]]:
    return [[node.op for node in group.nodes] for group in groups]


def built(make: Callable[[GraphBuilder, Value], Value]) -> Graph:
    b = GraphBuilder("fused")
    b.output(make(b, b.input("x", "float32", [4, 4])), "y")
    return b.build()


def test_element_wise_nodes_after_a_product_join_its_group() -> None:
    graph = built(lambda b, x: b.add("Relu", [b.add("Add", [b.add("MatMul", [x, x]), x])]))
    (group,) = grouped(graph)
    assert operators([group]) == [["MatMul", "Add", "Relu"]]
    assert group.output is graph.outputs[0]
    assert group.position == 2


def test_element_wise_nodes_form_a_separate_group_after_a_node_without_a_tail() -> None:
    graph = built(lambda b, x: b.add("Relu", [b.add("Neg", [b.add("Softmax", [x])])]))
    assert operators(grouped(graph)) == [["Softmax"], ["Neg", "Relu"]]


def test_value_with_two_readers_ends_a_group() -> None:
    def make(b: GraphBuilder, x: Value) -> Value:
        y = b.add("Neg", [b.add("MatMul", [x, x])])
        return b.add("MatMul", [b.add("Relu", [y]), y])

    assert operators(grouped(built(make))) == [["MatMul", "Neg"], ["Relu"], ["MatMul"]]


def test_graph_output_ends_a_group() -> None:
    b = GraphBuilder("seen")
    y = b.add("MatMul", [b.input("x", "float32", [4, 4]), b.input("w", "float32", [4, 4])])
    b.output(b.add("Relu", [y]), "z")
    b.output(y, "y")
    assert operators(grouped(b.build())) == [["MatMul"], ["Relu"]]


def test_sum_joins_the_group_that_runs_last() -> None:
    def make(b: GraphBuilder, x: Value) -> Value:
        first, second = b.add("MatMul", [x, x]), b.add("MatMul", [x, x])
        return b.add("Add", [b.add("Neg", [second]), b.add("Relu", [first])])

    assert operators(grouped(built(make))) == [["MatMul", "Neg"], ["MatMul", "Relu", "Add"]]


def test_change_of_shape_begins_a_group() -> None:
    b = GraphBuilder("wider")
    x = b.input("x", "float32", [4])
    b.output(b.add("Add", [b.add("Relu", [x]), b.input("wide", "float32", [3, 4])]), "y")
    assert operators(grouped(b.build())) == [["Relu"], ["Add"]]


def test_long_runs_of_element_wise_nodes_are_split() -> None:
    def make(b: GraphBuilder, x: Value) -> Value:
        for _ in range(20):
            x = b.add("Neg", [x])
        return x

    lengths = [len(group.nodes) for group in grouped(built(make))]
    assert sum(lengths) == 20
    assert max(lengths) < 20


def test_producer_is_absorbed_by_its_only_reader_if_it_fits() -> None:
    graph = built(lambda b, x: b.add("Softmax", [b.add("Relu", [b.add("MatMul", [x, x])])]))
    groups = grouped(graph)

    def fits(producer: Group, group: Group) -> bool:
        return (producer.head.op, group.head.op) == ("MatMul", "Softmax")

    (left,) = absorb_producers(groups, count_uses(graph), fits)
    assert left.head.op == "Softmax"
    assert left.producer is groups[0]
    unchanged = grouped(graph)
    assert absorb_producers(unchanged, count_uses(graph), lambda producer, group: False) == unchanged


def test_inputs_and_attributes_of_the_head() -> None:
    b = GraphBuilder("gemm")
    x = b.input("x", "float32", [4, 4])
    b.output(b.add("Gemm", [x, x], {"transA": 1}), "y")
    group = Group(b.build().nodes[0], 0)
    assert group.input(1) is x
    assert group.optional(2) is None
    assert (group.attributes["transA"], group.attributes["alpha"]) == (1, 1.0)


def test_graph_outputs_count_as_uses() -> None:
    graph = built(lambda b, x: b.add("Add", [x, x]))
    assert count_uses(graph) == {graph.inputs[0]: 2, graph.outputs[0]: 1}
