"""Details of ProgramDesc, on programs written here message by message."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from legacy_writer import BOOL, FLOAT32, INT64, Writer

from lite_core.errors import ModelFormatError
from lite_core.ops.evaluate import evaluate_graph
from lite_paddle.lowering import lower
from lite_paddle.source import SourceOp, SourceProgram


def ops_of(program: SourceProgram, op_type: str) -> list[SourceOp]:
    return [op for op in program.block.walk() if op.type == op_type]


def one_op(path: Path, op_type: str, attrs: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of an operator after reading."""
    writer = Writer()
    writer.feed("x", 0)
    writer.op(op_type, {"X": ["x"]}, {"Out": ["y"]}, attrs)
    writer.fetch("y", 0)
    return writer.read(path).block.ops[0].attrs


def test_feed_and_fetch_are_sorted_by_column(tmp_path: Path) -> None:
    writer = Writer()
    writer.feed("b", 1)
    writer.feed("a", 0)
    writer.op("relu", {"X": ["a"]}, {"Out": ["c"]})
    writer.fetch("b", 1)
    writer.fetch("c", 0)
    program = writer.read(tmp_path)
    assert [name for name, _ in program.inputs] == ["a", "b"]
    assert [name for name, _ in program.outputs] == ["c", "b"]


def test_a_program_without_feed_and_fetch(tmp_path: Path) -> None:
    writer = Writer(feed_fetch=False)
    for name in ("image", "size"):
        writer.variable(name, need_check_feed=True)
    writer.op("relu", {"X": ["image"]}, {"Out": ["a"]})
    writer.op("reshape2", {"X": ["a"], "Shape": ["size"]}, {"Out": ["b"], "XShape": ["c"]})
    program = writer.read(tmp_path)
    assert [name for name, _ in program.inputs] == ["image", "size"]
    assert [name for name, _ in program.outputs] == ["b"]


def test_a_variable_written_twice(tmp_path: Path) -> None:
    writer = Writer()
    writer.feed("x", 0)
    writer.op("relu", {"X": ["x"]}, {"Out": ["x"]})
    writer.op("increment", {"X": ["x"]}, {"Out": ["x"]})
    writer.fetch("x", 0)
    program = writer.read(tmp_path)
    relu, increment = program.block.ops
    assert relu.inputs["X"] == [program.inputs[0][1]]
    assert increment.inputs["X"] == relu.outputs["Out"]
    assert program.outputs == [("x", increment.outputs["Out"][0])]
    assert increment.attrs == {"step": 1.0}


def test_statistics_of_a_shared_batch_norm_do_not_change(tmp_path: Path) -> None:
    writer = Writer()
    writer.feed("x", 0)
    writer.feed("m", 1)
    for source, target in (("x", "y"), ("y", "z")):
        writer.op(
            "batch_norm",
            {"X": [source], "Scale": ["m"], "Bias": ["m"], "Mean": ["m"], "Variance": ["m"]},
            {"Y": [target], "MeanOut": ["m"], "VarianceOut": ["m"], "SavedMean": ["s"]},
        )
    writer.fetch("z", 0)
    program = writer.read(tmp_path)
    mean = program.inputs[1][1]
    assert [op.inputs["Mean"] for op in program.block.ops] == [[mean], [mean]]
    assert all(not {"MeanOut", "VarianceOut"} & op.outputs.keys() for op in program.block.ops)


def test_final_scale_is_removed_and_the_output_keeps_its_name(tmp_path: Path) -> None:
    writer = Writer()
    writer.feed("x", 0)
    writer.op("relu", {"X": ["x"]}, {"Out": ["y"]})
    writer.op("scale", {"X": ["y"]}, {"Out": ["save_infer_model/scale_0"]}, {"scale": 1.0, "bias": 0.0})
    writer.op("scale", {"X": ["y"]}, {"Out": ["doubled"]}, {"scale": 2.0})
    writer.fetch("save_infer_model/scale_0", 0)
    writer.fetch("doubled", 1)
    program = writer.read(tmp_path)
    assert [op.type for op in program.block.ops] == ["relu", "scale"]
    assert program.outputs[0] == ("save_infer_model/scale_0", program.block.ops[0].outputs["Out"][0])


def test_unused_slots_are_absent(tmp_path: Path) -> None:
    writer = Writer()
    writer.feed("x", 0)
    writer.op("reshape2", {"X": ["x"], "Shape": [], "ShapeTensor": ["@EMPTY@"]}, {"Out": ["y"], "XShape": []})
    writer.fetch("y", 0)
    op = writer.read(tmp_path).block.ops[0]
    assert op.inputs.keys() == {"X"}
    assert op.outputs.keys() == {"Out"}


@pytest.mark.parametrize(
    ("op_type", "written", "expected"),
    [
        ("reduce_sum", {}, {"dim": [0], "reduce_all": False, "keep_dim": False, "out_dtype": None}),
        ("reduce_sum", {"dim": []}, {"dim": [], "reduce_all": True}),
        ("reduce_sum", {"reduce_all": True}, {"dim": [], "reduce_all": True}),
        ("reduce_sum", {"dim": [1], "reduce_all": True}, {"dim": [], "reduce_all": True}),
        ("reduce_sum", {"dim": [1, 2], "out_dtype": INT64}, {"dim": [1, 2], "out_dtype": "int64"}),
        (
            "nearest_interp_v2",
            {"interp_method": "bilinear"},
            {"interp_method": "nearest", "align_corners": True},
        ),
        ("bilinear_interp", {}, {"interp_method": "bilinear", "align_mode": 1, "scale": 0.0}),
        ("leaky_relu", {}, {"alpha": 0.02}),
        ("cast", {"in_dtype": FLOAT32, "out_dtype": BOOL}, {"out_dtype": "bool"}),
        ("arg_max", {"axis": 1, "dtype": -1}, {"axis": 1, "dtype": "int64"}),
        ("fill_any_like", {"dtype": -1, "value": 2.0}, {"dtype": None, "value": 2.0}),
        ("fill_constant", {"str_value": "inf", "value": 0.0}, {"value": float("inf")}),
        ("fill_constant", {"str_value": "9007199254740993", "value": 0.0}, {"value": 9007199254740993}),
        (
            "assign_value",
            {"int32_values": [1, 2], "shape": [2], "dtype": 2},
            {"values": [1, 2], "dtype": "int32"},
        ),
        ("dropout", {"is_test": True}, {"dropout_implementation": "downgrade_in_infer", "dropout_prob": 0.5}),
        ("conv2d", {"use_cudnn": True, "op_role": 0}, {"padding_algorithm": "EXPLICIT", "groups": 1}),
        ("never_heard_of", {"answer": 42}, {"answer": 42}),
    ],
)
def test_attributes(tmp_path: Path, op_type: str, written: dict[str, Any], expected: dict[str, Any]) -> None:
    attrs = one_op(tmp_path, op_type, written)
    assert {name: attrs[name] for name in expected} == expected
    assert not {"use_cudnn", "is_test", "op_role", "str_value", "in_dtype", "int32_values"} & attrs.keys()


def test_packed_lists_are_accepted(tmp_path: Path) -> None:
    writer = Writer()
    writer.feed("x", 0)
    writer.op("reduce_sum", {"X": ["x"]}, {"Out": ["y"]}, {"dim": [1, 2]})
    writer.fetch("y", 0)
    attribute = writer.program.blocks[0].ops[1].attrs[0]
    del attribute.ints[:]
    attribute.MergeFromString(b"\x32\x02\x01\x02")  # field 6, length-delimited
    assert writer.read(tmp_path).block.ops[0].attrs["dim"] == [1, 2]


def conditional(writer: Writer, condition: str, target: str, op_type: str, declare: bool = True) -> None:
    """Write a conditional_block that sets ``target`` = op(x)."""
    body = writer.block()
    writer.op(op_type, {"X": ["x"]}, {"Out": [target]}, block=body)
    if declare:
        writer.variable(target)
    attrs = {"sub_block": body, "is_scalar_condition": True}
    writer.op("conditional_block", {"Cond": [condition], "Input": ["x"]}, {"Out": [target], "Scope": ["s"]}, attrs)


def test_both_branches_write_one_variable(tmp_path: Path) -> None:
    writer = Writer()
    writer.feed("x", 0)
    writer.feed("c", 1)
    conditional(writer, "c", "y", "relu")
    writer.op("logical_not", {"X": ["c"]}, {"Out": ["n"]})
    conditional(writer, "n", "y", "tanh", declare=False)
    writer.fetch("y", 0)
    program = writer.read(tmp_path)
    (merged,) = ops_of(program, "if")
    then, otherwise = merged.blocks
    assert merged.inputs["Cond"] == [program.inputs[1][1]]
    assert program.outputs[0][1] is merged.outputs["Out"][0]
    assert then.results == then.ops[0].outputs["Out"]
    assert otherwise.results == otherwise.ops[0].outputs["Out"]
    assert (then.ops[0].type, otherwise.ops[0].type) == ("relu", "tanh")


def test_branch_that_overwrites_an_outer_value(tmp_path: Path) -> None:
    writer = Writer()
    writer.feed("x", 0)
    writer.feed("c", 1)
    conditional(writer, "c", "x", "relu", declare=False)
    writer.fetch("x", 0)
    program = writer.read(tmp_path)
    (op,) = ops_of(program, "if")
    assert op.blocks[1].results == [program.inputs[0][1]]
    assert program.outputs[0][1] is op.outputs["Out"][0]
    assert op.attrs == {}


def test_a_value_that_one_branch_leaves_undefined(tmp_path: Path) -> None:
    writer = Writer()
    writer.feed("x", 0)
    writer.feed("c", 1)
    conditional(writer, "c", "y", "relu")
    writer.op("tanh", {"X": ["y"]}, {"Out": ["z"]})
    writer.fetch("z", 0)
    with pytest.raises(ModelFormatError, match=r"\['y'\] are written by a conditional_block in one case only"):
        writer.read(tmp_path)


def test_select_input_of_outer_values(tmp_path: Path) -> None:
    writer = Writer()
    writer.feed("x", 0)
    writer.feed("c", 1)
    writer.op("tanh", {"X": ["x"]}, {"Out": ["t"]})
    writer.op("cast", {"X": ["c"]}, {"Out": ["m"]}, {"out_dtype": 2})
    writer.op("select_input", {"X": ["x", "t"], "Mask": ["m"]}, {"Out": ["y"]})
    writer.fetch("y", 0)
    program = writer.read(tmp_path)
    (op,) = ops_of(program, "if")
    assert [block.results for block in op.blocks] == [
        ops_of(program, "tanh")[0].outputs["Out"],
        [program.inputs[0][1]],
    ]


def conditional_on_a_negation(late: bool) -> Writer:
    """Write ``if not c: y = -x else: y = tanh(x)`` like Paddle 2.6, without the branch that only names a value."""
    writer = Writer()
    writer.feed("x", 0)
    writer.feed("c", 1, dims=(1,))
    writer.program.blocks[0].vars[-1].type.dense_tensor.tensor.data_type = BOOL
    if not late:
        writer.op("tanh", {"X": ["x"]}, {"Out": ["t"]})
    writer.op("logical_not", {"X": ["c"]}, {"Out": ["n"]})
    body = writer.block()
    writer.op("scale", {"X": ["x"]}, {"Out": ["s"]}, {"scale": -1.0}, block=body)
    writer.op(
        "conditional_block",
        {"Cond": ["n"], "Input": ["x"]},
        {"Out": ["s"], "Scope": ["scope"]},
        {"sub_block": body, "is_scalar_condition": True},
    )
    if late:
        writer.op("tanh", {"X": ["x"]}, {"Out": ["t"]})
    writer.op("cast", {"X": ["c"]}, {"Out": ["m"]}, {"out_dtype": 2})
    writer.op("select_input", {"X": ["s", "t"], "Mask": ["m"]}, {"Out": ["y"]})
    writer.fetch("y", 0)
    return writer


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("condition", [False, True])
def test_select_input_joins_a_conditional_on_the_negation(tmp_path: Path, late: bool, condition: bool) -> None:
    program = conditional_on_a_negation(late).read(tmp_path)
    assert len(ops_of(program, "if")) == 1
    x = np.array([0.5, -1], np.float32)
    graph = lower(program)
    (y,) = evaluate_graph(graph, [{"x": x, "c": np.array([condition, False])[:1]}[v.name] for v in graph.inputs])
    np.testing.assert_allclose(y, np.tanh(x) if condition else -x, rtol=1e-6)


def test_a_loop_whose_condition_is_read_later(tmp_path: Path) -> None:
    writer = Writer()
    writer.feed("x", 0)
    writer.feed("c", 1)
    body = writer.block()
    writer.variable("local", block=body)
    writer.op("tanh", {"X": ["x"]}, {"Out": ["local"]}, block=body)
    writer.op("relu", {"X": ["local"]}, {"Out": ["x"]}, block=body)
    writer.op("less_than", {"X": ["x"], "Y": ["x"]}, {"Out": ["c"]}, block=body)
    writer.op(
        "while",
        {"X": ["x"], "Condition": ["c"]},
        {"Out": ["x", "c"], "StepScopes": ["s"]},
        {"sub_block": body},
    )
    writer.op("logical_not", {"X": ["c"]}, {"Out": ["d"]})
    writer.fetch("d", 0)
    program = writer.read(tmp_path)
    (loop,) = ops_of(program, "while")
    assert loop.inputs["X"] == [value for _, value in program.inputs]
    (inner,) = loop.blocks
    assert inner.results == [
        inner.ops[2].outputs["Out"][0],
        inner.ops[1].outputs["Out"][0],
        inner.ops[2].outputs["Out"][0],
    ]
    assert ops_of(program, "logical_not")[0].inputs["X"] == [loop.outputs["Out"][1]]


@pytest.mark.parametrize("sub_block", [0, 1, 7])
def test_impossible_sub_blocks(tmp_path: Path, sub_block: int) -> None:
    writer = Writer()
    writer.feed("c", 0)
    body = writer.block()
    writer.op("while", {"Condition": ["c"]}, {}, {"sub_block": sub_block}, block=body)
    writer.op("while", {"Condition": ["c"]}, {}, {"sub_block": body})
    writer.fetch("c", 0)
    with pytest.raises(ModelFormatError, match="block"):
        writer.read(tmp_path)


def test_reading_an_unwritten_variable(tmp_path: Path) -> None:
    writer = Writer()
    writer.feed("x", 0)
    writer.op("relu", {"X": ["ghost"]}, {"Out": ["y"]})
    writer.fetch("y", 0)
    with pytest.raises(ModelFormatError, match=r"block 0, operator 1 \(relu\): reads the variable 'ghost'"):
        writer.read(tmp_path)


@pytest.mark.parametrize(
    ("op_type", "role"),
    [("relu_grad", 0), ("conv2d_double_grad", 0), ("adam", 0), ("momentum", 0), ("scale", 1)],
)
def test_training_programs_are_refused(tmp_path: Path, op_type: str, role: int) -> None:
    writer = Writer()
    writer.feed("x", 0)
    writer.variable("w", persistable=True)
    writer.op(op_type, {"X": ["x"]}, {"Out": ["y"]}, {"op_role": role})
    writer.fetch("y", 0)
    with pytest.raises(ModelFormatError, match=rf"training program.*{op_type}.*save_inference_model"):
        writer.read(tmp_path)
