"""Tests of chains of element-wise nodes."""

from __future__ import annotations

from typing import Any

import pytest

from lite_compiler.chains import (
    Apply,
    can_chain,
    default_attributes,
    is_identity,
    lower_identity,
    read_chain,
    refuse_results,
)
from lite_compiler.fusion import Group
from lite_core.builder import GraphBuilder
from lite_core.ir import DType, Node, TensorType, Value

F32 = DType.FLOAT32


def test_values_are_numbered_start_then_operands_then_results() -> None:
    b = GraphBuilder("chain")
    x, y = b.input("x", "float32", [4]), b.input("y", "float32", [4])
    low, high = b.input("low", "float32", []), b.input("high", "float32", [])
    added = b.add("Add", [y, x])
    clipped = b.add("Clip", [added, low, high])
    b.output(b.add("LeakyRelu", [b.add("Mul", [clipped, y])], {"alpha": 0.5}), "z")
    reads, steps = read_chain(x, b.build().nodes)
    assert reads == [y, low, high]
    assert steps == (
        Apply("Add", (1, 0), F32),
        Apply("Clip", (4, 2, 3), F32),
        Apply("Mul", (5, 1), F32),
        Apply("LeakyRelu", (6,), F32, (("alpha", 0.5),)),
    )


def test_omitted_optional_inputs_are_none() -> None:
    b = GraphBuilder("chain")
    x, high = b.input("x", "float32", [4]), b.input("high", "float32", [])
    b.output(b.add("Clip", [x, None, high]), "y")
    reads, (step,) = read_chain(x, b.build().nodes)
    assert reads == [high]
    assert step.inputs == (0, None, 1)


def test_cast_like_does_not_read_its_second_input() -> None:
    b = GraphBuilder("chain")
    x, like = b.input("x", "float32", [4]), b.input("like", "int32", [7])
    b.output(b.add("CastLike", [x, like]), "y")
    assert read_chain(x, b.build().nodes) == ([], (Apply("CastLike", (0,), DType.INT32),))


def test_default_attributes() -> None:
    assert default_attributes("LeakyRelu") == {"alpha": pytest.approx(0.01)}
    assert default_attributes("lite.Swish") == {"beta": 1.0}
    assert "to" not in default_attributes("Cast")
    with pytest.raises(KeyError, match="no operator 'Nonsense'"):
        default_attributes("Nonsense")


def node(op: str, outputs: int = 1) -> Node:
    values = [Value(f"y{i}", TensorType(F32, (2,))) for i in range(outputs)]
    return Node(op, [], values)


def test_node_with_a_single_result_of_a_supported_operator_can_chain() -> None:
    def accept(node: Node) -> None:
        return None

    assert can_chain(node("Relu"), {"Relu"}, accept)
    assert not can_chain(node("Neg"), {"Relu"}, accept)
    assert not can_chain(node("Dropout", 2), {"Dropout"}, accept)
    assert not can_chain(Node("Relu", [], [None]), {"Relu"}, accept)
    assert not can_chain(node("Relu"), {"Relu"}, lambda node: "no such type")


def test_several_results_are_refused_except_for_dropout() -> None:
    assert refuse_results(node("Relu")) is None
    assert refuse_results(node("Dropout", 2)) is None
    assert refuse_results(node("Relu", 2)) == "more than one output"
    assert refuse_results(Node("Relu", [], [None])) == "more than one output"


class Values:
    """A value table that records tensors and known elements by value name."""

    def __init__(self) -> None:
        self.recorded: dict[str, Any] = {}

    def tensor(self, value: Value) -> str:
        return f"tensor of {value.name}"

    def bind(self, value: Value, tensor: str) -> None:
        self.recorded[value.name] = tensor

    def set_known(self, value: Value, array: Any) -> None:
        self.recorded[value.name] = array.tolist()


def test_identity_group_binds_its_output_to_the_input() -> None:
    b = GraphBuilder("same")
    y, mask = b.add_node("Dropout", [b.input("x", "float32", [2])], outputs=2)
    b.output(b.add("Identity", [y]), "z")
    b.output(mask, "mask")
    dropout, identity = b.build().nodes
    group = Group(dropout, 1, [identity])
    assert is_identity(group)
    assert not is_identity(Group(dropout, 1, [node("Relu")]))
    values = Values()
    lower_identity(values, group)
    assert values.recorded == {"z": "tensor of x", "mask": [True, True]}
