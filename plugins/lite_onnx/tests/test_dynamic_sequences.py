"""Sequences whose length depends on data, compared with ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from runtime_models import run_by_onnxruntime
from small_models import load, make, node, value

import lite_core as lite
from lite_core.errors import LiteError, UnsupportedOperatorError

Array = np.ndarray[Any, Any]

INT64, BOOL = TensorProto.INT64, TensorProto.BOOL
ROWS = np.arange(15, dtype=np.float32).reshape(5, 3)


def _list(name: str, kind: int = TensorProto.FLOAT, shape: Sequence[Any] | None = None) -> onnx.ValueInfoProto:
    return helper.make_tensor_sequence_value_info(name, kind, shape)


def _compare(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Array],
    folder: Path,
    outputs: Sequence[str] = ("y",),
    **constants: Any,
) -> lite.Session:
    """Compare a model whose first input has an unknown number of rows."""
    declared = [
        value(name, ("rows", *array.shape[1:]) if array.ndim else (), helper.np_dtype_to_tensor_dtype(array.dtype))
        for name, array in inputs.items()
    ]
    arrays = {name: np.asarray(number) for name, number in constants.items()}
    model = make(nodes, declared, outputs, arrays)
    session = load(model, folder)
    found = session.run(dict(inputs))
    for name, expected in run_by_onnxruntime(model, inputs).items():
        assert (found[name].dtype, found[name].shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(found[name], expected)
    return session


ROWS_AS_LIST = node("SplitToSequence", ["x"], ["s"], axis=0)
COUNT = [node("Shape", ["x"], ["shape"], start=0, end=1), node("Squeeze", ["shape"], ["count"])]


@pytest.mark.parametrize(
    "nodes",
    [
        [ROWS_AS_LIST, node("SequenceAt", ["s", "n"], ["y"])],
        [node("SplitToSequence", ["x"], ["s"], keepdims=0), node("SequenceAt", ["s", "n"], ["y"])],
        [node("SplitToSequence", ["x", "two"], ["s"]), node("SequenceAt", ["s", "n"], ["y"])],
        [node("SplitToSequence", ["x", "parts"], ["s"]), node("ConcatFromSequence", ["s"], ["y"], axis=0)],
        [ROWS_AS_LIST, node("SequenceLength", ["s"], ["y"])],
        [ROWS_AS_LIST, node("SequenceErase", ["s", "n"], ["t"]), node("ConcatFromSequence", ["t"], ["y"], axis=0)],
        [ROWS_AS_LIST, node("SequenceErase", ["s"], ["t"]), node("ConcatFromSequence", ["t"], ["y"], axis=1)],
        [
            ROWS_AS_LIST,
            node("SequenceInsert", ["s", "x", "n"], ["t"]),
            node("ConcatFromSequence", ["t"], ["y"], axis=0),
        ],
        [ROWS_AS_LIST, node("SequenceInsert", ["s", "x"], ["t"]), node("ConcatFromSequence", ["t"], ["y"], axis=0)],
        [ROWS_AS_LIST, node("ConcatFromSequence", ["s"], ["y"], axis=1, new_axis=1)],
        [node("SequenceConstruct", ["x", "row"], ["s"]), node("SequenceAt", ["s", "n"], ["y"])],
        [
            node("SequenceConstruct", ["x", "row"], ["s"]),
            node("SequenceInsert", ["s", "row", "n"], ["t"]),
            node("SequenceErase", ["t", "n"], ["u"]),
            node("ConcatFromSequence", ["u"], ["y"], axis=0),
        ],
    ],
    ids=lambda nodes: "+".join(n.op_type for n in nodes),
)
@pytest.mark.parametrize("position", [1, -1])
def test_operators(nodes: list[onnx.NodeProto], position: int, tmp_path: Path) -> None:
    constants = {"two": np.int64(2), "parts": [4, 1], "row": ROWS[:1] * 10}
    used = {name: constants[name] for name in constants if any(name in n.input for n in nodes)}
    inputs = {"x": ROWS, "n": np.array(position)}
    _compare(nodes, inputs, tmp_path, **used)


@pytest.mark.parametrize("declared", [None, (1, 3)], ids=["unknown rank", "known rank"])
@pytest.mark.parametrize("rows", [1, 5])
def test_loop_that_appends(declared: Sequence[int] | None, rows: int, tmp_path: Path) -> None:
    """The body also reads the list; the sizes of its tensors differ."""
    body = helper.make_graph(
        [
            node("Identity", ["on"], ["go"]),
            node("Gather", ["x", "i"], ["row"]),
            node("Unsqueeze", ["row", "axis"], ["one"]),
            node("SequenceInsert", ["s", "one"], ["t"]),
            node("SequenceAt", ["t", "first"], ["begin"]),
            node("ReduceSum", ["begin"], ["total"], keepdims=0),
        ],
        "body",
        [value("i", (), INT64), value("on", (), BOOL), _list("s", shape=declared)],
        [value("go", (), BOOL), _list("t", shape=declared), value("total", ())],
    )
    nodes = [
        *COUNT,
        node("SequenceEmpty", [], ["none"]),
        node("Loop", ["count", "", "none"], ["list", "totals"], body=body),
        node("ConcatFromSequence", ["list"], ["y"], axis=0),
    ]
    _compare(nodes, {"x": ROWS[:rows]}, tmp_path, ["y", "totals"], axis=np.int64([0]), first=np.int64(0))


def test_loop_until_a_condition(tmp_path: Path) -> None:
    body = helper.make_graph(
        [
            node("Add", ["v", "v"], ["w"]),
            node("ReduceMax", ["w"], ["m"], keepdims=0),
            node("Less", ["m", "limit"], ["go"]),
            node("Concat", ["w", "w"], ["longer"], axis=0),
            node("SequenceInsert", ["s", "longer"], ["t"]),
        ],
        "body",
        [value("i", (), INT64), value("on", (), BOOL), value("v", None), _list("s")],
        [value("go", (), BOOL), value("longer", None), _list("t")],
    )
    nodes = [
        node("SequenceEmpty", [], ["none"]),
        node("Loop", ["", "yes", "x", "none"], ["last", "list"], body=body),
        node("ConcatFromSequence", ["list"], ["y"], axis=0),
    ]
    inputs = {"x": np.array([1, 2], np.float32), "limit": np.array(30, np.float32)}
    _compare(nodes, inputs, tmp_path, ["y", "last"], yes=True)


@pytest.mark.parametrize("condition", [True, False])
def test_branches(condition: bool, tmp_path: Path) -> None:
    branches = {
        "then_branch": helper.make_graph([node("SequenceErase", ["s"], ["a"])], "then", [], [_list("a")]),
        "else_branch": helper.make_graph([node("SequenceInsert", ["s", "x"], ["b"])], "else", [], [_list("b")]),
    }
    nodes = [
        node("SequenceConstruct", ["x", "x"], ["s"]),
        node("If", ["c"], ["t"], **branches),
        node("ConcatFromSequence", ["t"], ["y"], axis=0),
    ]
    _compare(nodes, {"x": ROWS, "c": np.array(condition)}, tmp_path)


@pytest.mark.parametrize("kind", [np.float32, np.int64])
def test_sequence_map(kind: Any, tmp_path: Path) -> None:
    onnx_kind = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    body = helper.make_graph(
        [node("Mul", ["a", "b"], ["p"]), node("Shape", ["p"], ["n"])],
        "body",
        [value("a", None, onnx_kind), value("b", None, onnx_kind)],
        [value("p", None, onnx_kind), value("n", None, INT64)],
    )
    nodes = [
        node("SplitToSequence", ["x", "two"], ["s"]),
        node("SequenceMap", ["s", "factor"], ["t", "u"], body=body),
        node("ConcatFromSequence", ["t"], ["y"], axis=0),
        node("ConcatFromSequence", ["u"], ["z"], axis=0),
    ]
    _compare(nodes, {"x": ROWS.astype(kind)}, tmp_path, ["y", "z"], two=np.int64(2), factor=ROWS[0].astype(kind))


def test_model_that_returns_a_sequence(tmp_path: Path) -> None:
    nodes = [node("SplitToSequence", ["x", "n"], ["y"])]
    model = make(nodes, [value("x", ("rows", 3)), value("n", (), INT64)])
    results = load(model, tmp_path).run({"x": ROWS, "n": np.array(2)})
    assert {name: array.shape for name, array in results.items()} == {"y[elements]": (15,), "y[shapes]": (3, 2)}
    ends = np.cumsum(results["y[shapes]"].prod(axis=1))[:-1]
    pieces = np.split(results["y[elements]"], ends)
    tensors = [piece.reshape(shape) for piece, shape in zip(pieces, results["y[shapes]"])]
    assert [tensor.tolist() for tensor in tensors] == [ROWS[:2].tolist(), ROWS[2:4].tolist(), ROWS[4:].tolist()]


def test_errors_at_run_time(tmp_path: Path) -> None:
    nodes = [ROWS_AS_LIST, node("SequenceAt", ["s", "n"], ["y"])]
    session = load(make(nodes, [value("x", ("rows", 3)), value("n", (), INT64)]), tmp_path)
    with pytest.raises(LiteError, match="there is no position 5 in a list of 5 tensors"):
        session.run({"x": ROWS, "n": np.array(5)})
    with pytest.raises(LiteError, match="there is no position -6 in a list of 5 tensors"):
        session.run({"x": ROWS, "n": np.array(-6)})


def test_branches_of_a_sequence_and_a_tensor(tmp_path: Path) -> None:
    branches = {
        "then_branch": helper.make_graph([node("SequenceConstruct", ["x"], ["a"])], "then", [], [_list("a")]),
        "else_branch": helper.make_graph([node("Identity", ["x"], ["b"])], "else", [], [value("b", None)]),
    }
    model = make([node("If", ["c"], ["y"], **branches)], ["x", value("c", (), BOOL)])
    with pytest.raises(UnsupportedOperatorError, match="returns a sequence where the other one returns a tensor"):
        load(model, tmp_path)
