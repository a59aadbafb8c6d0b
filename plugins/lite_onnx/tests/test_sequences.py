"""Sequences and optionals of known length, also in branches, loops and bodies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from small_models import X, graph, load, make, node, run, value

import lite_core as lite
from lite_core.errors import UnsupportedOperatorError

_NODES = Path(onnx.__file__).parent / "backend/test/data/node"
_SEQUENCE = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, None))
_OPTIONAL = helper.make_optional_type_proto(_SEQUENCE)


def _info(name: str, type_: onnx.TypeProto) -> onnx.ValueInfoProto:
    return onnx.ValueInfoProto(name=name, type=type_)


def _integers(**numbers: Any) -> dict[str, Any]:
    return {name: np.array(number, np.int64) for name, number in numbers.items()}


PAIR = node("SequenceConstruct", ["x", "x2"], ["s"])
TWICE = node("Add", ["x", "x"], ["x2"])


# **** lists ****


@pytest.mark.parametrize(
    ("nodes", "constants", "expected"),
    [
        ([node("SequenceAt", ["s", "i"], ["y"])], _integers(i=-1), [2, -4]),
        (
            [node("SequenceInsert", ["s", "x", "i"], ["t"]), node("SequenceAt", ["t", "j"], ["y"])],
            _integers(i=2, j=2),
            X,
        ),
        ([node("SequenceInsert", ["s", "x"], ["t"]), node("SequenceAt", ["t", "j"], ["y"])], _integers(j=-1), X),
        ([node("SequenceErase", ["s", "i"], ["t"]), node("SequenceAt", ["t", "i"], ["y"])], _integers(i=0), [2, -4]),
        ([node("SequenceErase", ["s"], ["t"]), node("SequenceLength", ["t"], ["y"])], {}, 1),
        ([node("ConcatFromSequence", ["s"], ["y"], axis=0)], {}, [1, -2, 2, -4]),
        ([node("ConcatFromSequence", ["s"], ["y"], axis=1, new_axis=1)], {}, [[1, 2], [-2, -4]]),
        ([node("SequenceEmpty", [], ["t"]), node("SequenceLength", ["t"], ["y"])], {}, 0),
        ([node("Identity", ["s"], ["t"]), node("SequenceLength", ["t"], ["y"])], {}, 2),
    ],
)
def test_lists(nodes: list[onnx.NodeProto], constants: dict[str, Any], expected: Any, tmp_path: Path) -> None:
    np.testing.assert_array_equal(run(make([TWICE, PAIR, *nodes], constants=constants), tmp_path)["y"], expected)


@pytest.mark.parametrize(
    ("split", "keepdims", "lengths"), [(None, 1, [1] * 5), (None, 0, [0] * 5), (2, 1, [2, 2, 1]), ([4, 1], 1, [4, 1])]
)
def test_splitting(split: Any, keepdims: int, lengths: list[int], tmp_path: Path) -> None:
    constants = {} if split is None else _integers(split=split)
    nodes = [node("SplitToSequence", ["x", *constants], ["y"], keepdims=keepdims)]
    x = np.arange(5, dtype=np.float32)
    results = run(make(nodes, [value("x", (5,))], constants=constants), tmp_path, x=x)
    assert list(results) == [f"y[{i}]" for i in range(len(lengths))]
    assert [a.shape for a in results.values()] == [(n,) if n else () for n in lengths]
    np.testing.assert_array_equal(np.concatenate([a.reshape(-1) for a in results.values()]), x)


def test_position_that_depends_on_data(tmp_path: Path) -> None:
    model = make([TWICE, PAIR, node("SequenceAt", ["s", "i"], ["y"])], ["x", value("i", (), TensorProto.INT64)])
    for position, expected in ((0, X), (1, X * 2), (-1, X * 2)):
        np.testing.assert_array_equal(run(model, tmp_path, i=np.array(position))["y"], expected)
    shorter = node("SequenceConstruct", ["x", "one"], ["s"])
    model.graph.node[1].CopyFrom(shorter)
    model.graph.initializer.append(onnx.numpy_helper.from_array(X[:1], "one"))
    assert run(model, tmp_path, i=np.array(-1))["y"].tolist() == [1]


def test_sequence_map(tmp_path: Path) -> None:
    body = graph([node("Mul", ["a", "b"], ["p"]), node("Shape", ["a"], ["n"])], ["p", "n"], [value("a"), value("b")])
    nodes = [TWICE, PAIR, node("SequenceMap", ["s", "x"], ["y", "z"], body=body)]
    results = run(make(nodes, outputs=["y", "z"]), tmp_path)
    assert [results[f"y[{i}]"].tolist() for i in range(2)] == [[1, 4], [2, 8]]
    assert [results[f"z[{i}]"].tolist() for i in range(2)] == [[2], [2]]
    nodes = [TWICE, PAIR, node("SequenceErase", ["s"], ["t"]), node("SequenceMap", ["s", "t"], ["y"], body=body)]
    with pytest.raises(UnsupportedOperatorError, match="its input 1 has 1 tensors, the first one 2"):
        load(make(nodes), tmp_path)


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        ([node("SequenceAt", ["s", "i"], ["y"])], "the position 5 is not in a sequence of 2 tensors"),
        ([node("SequenceErase", ["s", "i"], ["y"])], "the position 5 is not in a sequence"),
        (
            [node("SequenceInsert", ["s", "x", "i"], ["y"])],
            "the position 5 is not in or at the end of a sequence of 2 tensors",
        ),
        ([node("SequenceLength", ["x"], ["y"])], "its input 0 is not a sequence"),
        ([node("Relu", ["s"], ["y"])], "its input 0 is a sequence, not a tensor"),
        ([node("SequenceEmpty", [], ["t"]), node("ConcatFromSequence", ["t"], ["y"], axis=0)], "an empty sequence"),
        ([node("SequenceEmpty", [], ["t"]), node("SequenceErase", ["t"], ["y"])], "from an empty sequence"),
    ],
)
def test_invalid_operations_are_errors(nodes: list[onnx.NodeProto], reason: str, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedOperatorError, match=reason):
        load(make([TWICE, PAIR, *nodes], constants=_integers(i=5)), tmp_path)


def test_sequence_of_too_many_tensors(tmp_path: Path) -> None:
    model = make([node("SplitToSequence", ["x"], ["y"])], [value("x", (1 << 40,))])
    with pytest.raises(UnsupportedOperatorError, match="a sequence of 1099511627776 tensors"):
        load(model, tmp_path)


# **** inputs ****


def test_length_of_an_input_must_be_given(tmp_path: Path) -> None:
    model = make([node("ConcatFromSequence", ["s"], ["y"], axis=0)], [_info("s", _SEQUENCE)])
    with pytest.raises(UnsupportedOperatorError, match=r"reader_options=\{'lengths': \{'s': 3\}\}"):
        load(model, tmp_path)
    session = load(model, tmp_path, lengths={"s": 2})
    assert session.run({"s[0]": X, "s[1]": X[:1]})["y"].tolist() == [1, -2, 1]


def test_optionals(tmp_path: Path) -> None:
    nodes = [
        node("OptionalHasElement", ["o"], ["h"]),
        node("OptionalGetElement", ["o"], ["e"]),
        node("SequenceLength", ["e"], ["n"]),
    ]
    model = make(nodes, [_info("o", _OPTIONAL)], ["h"])
    assert load(model, tmp_path, lengths={"o": None}).run({})["h"].tolist() is False
    model = make(nodes, [_info("o", _OPTIONAL)], ["h", "n"])
    results = load(model, tmp_path, lengths={"o": 1}).run({"o[0]": X})
    assert (bool(results["h"]), int(results["n"])) == (True, 1)
    with pytest.raises(UnsupportedOperatorError, match="the element of an empty optional"):
        load(model, tmp_path, lengths={"o": None})
    nodes = [node("Optional", ["x"], ["o"]), node("OptionalGetElement", ["o"], ["y"])]
    np.testing.assert_array_equal(run(make(nodes), tmp_path)["y"], X)


# **** branches and loops ****


def _branches() -> onnx.NodeProto:
    bodies = {}
    for name, inputs in (("then_branch", ["x", "x"]), ("else_branch", ["x"])):
        bodies[name] = graph([node("SequenceConstruct", inputs, ["list"])], [])
        bodies[name].output.append(_info("list", _SEQUENCE))
    return node("If", ["c"], ["s"], **bodies)


@pytest.mark.parametrize(("condition", "length"), [(True, 2), (False, 1)])
def test_branch_that_returns_a_list(condition: bool, length: int, tmp_path: Path) -> None:
    nodes = [_branches(), node("SequenceLength", ["s"], ["y"])]
    assert run(make(nodes, constants={"c": np.array(condition)}), tmp_path)["y"] == length
    session = load(make(nodes, ["x", value("c", (), TensorProto.BOOL)]), tmp_path)
    assert session.run({"x": X, "c": np.array(condition)})["y"] == length


def test_branch_that_is_not_taken_is_not_lowered(tmp_path: Path) -> None:
    taken, other = graph([node("Relu", ["x"], ["a"])], ["a"]), graph([node("Unknown", ["x"], ["a"])], ["a"])
    nodes = [node("If", ["c"], ["y"], then_branch=taken, else_branch=other)]
    assert run(make(nodes, constants={"c": np.array(True)}), tmp_path)["y"].tolist() == [1, 0]
    with pytest.raises(UnsupportedOperatorError, match="Unknown"):
        load(make(nodes, constants={"c": np.array(False)}), tmp_path)


def _loop(count: int | None) -> onnx.ModelProto:
    """Build a loop that appends x times the iteration number to a list, and collects the iteration numbers."""
    nodes = [
        node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
        node("Mul", ["x", "f"], ["p"]),
        node("SequenceInsert", ["t", "p"], ["u"]),
        node("Identity", ["go"], ["on"]),
    ]
    inputs = [value("i", (), TensorProto.INT64), value("go", (), TensorProto.BOOL), _info("t", _SEQUENCE)]
    body = graph(nodes, ["on", "u", "f"], inputs)
    loop = node("Loop", ["m", "", "empty"], ["s", "z"], body=body)
    nodes = [node("SequenceEmpty", [], ["empty"]), loop, node("ConcatFromSequence", ["s"], ["y"], axis=0)]
    inputs = ["x"] if count is not None else ["x", value("m", (), TensorProto.INT64)]
    return make(nodes, inputs, ["y", "z"], _integers(m=count) if count is not None else None)


def test_loop_that_appends_to_a_list(tmp_path: Path) -> None:
    results = run(_loop(3), tmp_path)
    assert results["y"].tolist() == [0, 0, 1, -2, 2, -4]
    assert results["z"].tolist() == [0, 1, 2]
    session = load(_loop(None), tmp_path, constants={"m": 2})
    assert session.run(x=X)["y"].tolist() == [0, 0, 1, -2]


@pytest.mark.parametrize("count", [None, 2000], ids=["depends on data", "too many to unroll"])
def test_loop_that_is_not_unrolled(count: int | None, tmp_path: Path) -> None:
    session = load(_loop(count), tmp_path)
    results = session.run({"x": X, "m": np.array(2000)} if count is None else {"x": X})
    np.testing.assert_array_equal(results["y"].reshape(-1, 2), np.arange(2000)[:, np.newaxis] * X)
    assert "Loop" in [node.op for node in session.graph.nodes]


@pytest.mark.skipif(not (_NODES / "test_loop16_seq_none").exists(), reason="without the data of onnx")
def test_case_that_the_runner_of_onnx_cannot_compare() -> None:
    model = _NODES / "test_loop16_seq_none/model.onnx"
    constants = {"trip_count": 5, "cond": True}
    options = {"lengths": {"opt_seq": None}, "constants": constants}
    session = lite.load(model, backend="host", reader_options=options)
    pieces = [0.0, *([float(n) for n in range(1, count + 1)] for count in range(1, 6))]
    assert [a.tolist() for a in session.run({}).values()] == pieces
    session = lite.load(model, backend="host", reader_options={**options, "lengths": {"opt_seq": 1}})
    assert [a.tolist() for a in session.run({"opt_seq[0]": np.array(7, np.float32)}).values()] == [7.0, *pieces[1:]]
