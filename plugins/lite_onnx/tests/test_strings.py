"""Tensors of strings, which run on host, compared with ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from runtime_models import run_by_onnxruntime
from small_models import make, node, value

import lite_core as lite
from lite_core.errors import InputError, ModelFormatError, UnsupportedOperatorError
from lite_tools.conversion import convert

Array = np.ndarray[Any, Any]

WORDS = np.array(["cat", "dog", "", "größe", "cat"], object)
_ML = helper.make_opsetid("ai.onnx.ml", 4)


def _model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Array],
    outputs: Sequence[str] = ("y",),
    strings: Mapping[str, Sequence[Any]] | None = None,
    integers: Mapping[str, Any] | None = None,
) -> onnx.ModelProto:
    declared = [value(n, a.shape, helper.np_dtype_to_tensor_dtype(a.dtype)) for n, a in inputs.items()]
    constants = {name: np.array(number, np.int64) for name, number in (integers or {}).items()}
    model = make(nodes, declared, outputs, constants)
    for name, texts in (strings or {}).items():
        encoded = [text.encode() for text in np.ravel(np.array(texts, object))]
        model.graph.initializer.append(helper.make_tensor(name, TensorProto.STRING, np.shape(texts), encoded))
    model.opset_import.append(_ML)
    return model


def _load(model: onnx.ModelProto, folder: Path, **options: Any) -> lite.Session:
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return lite.load(path, **options)


def _compare(model: onnx.ModelProto, inputs: Mapping[str, Array], folder: Path) -> dict[str, Array]:
    found: dict[str, Array] = _load(model, folder, backend="host").run(dict(inputs))
    for name, expected in run_by_onnxruntime(model, inputs).items():
        assert (found[name].dtype, found[name].shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(found[name], expected)
    return found


@pytest.mark.parametrize(
    ("nodes", "integers"),
    [
        ([node("Identity", ["x"], ["y"])], {}),
        ([node("Reshape", ["x", "s"], ["y"])], {"s": [5, 1]}),
        ([node("Flatten", ["x"], ["y"], axis=0)], {}),
        ([node("Unsqueeze", ["x", "a"], ["u"]), node("Squeeze", ["u"], ["y"])], {"a": [0]}),
        ([node("Unsqueeze", ["x", "a"], ["u"]), node("Transpose", ["u"], ["y"])], {"a": [0]}),
        ([node("Concat", ["x", "w"], ["y"], axis=0)], {}),
        ([node("Gather", ["x", "i"], ["y"])], {"i": [[4, 0], [-1, 2]]}),
        ([node("GatherND", ["x", "i"], ["y"])], {"i": [[3], [1]]}),
        ([node("GatherElements", ["x", "i"], ["y"])], {"i": [3, 1]}),
        ([node("Slice", ["x", "b", "e"], ["y"])], {"b": [1], "e": [4]}),
        ([node("Expand", ["x", "s"], ["y"])], {"s": [2, 5]}),
        ([node("Tile", ["x", "s"], ["y"])], {"s": [2]}),
        ([node("Split", ["x", "s"], ["y", "z"])], {"s": [2, 3]}),
        ([node("ScatterElements", ["x", "i", "w"], ["y"])], {"i": [3]}),
        ([node("Equal", ["x", "w"], ["y"])], {}),
        ([node("Equal", ["x", "w"], ["e"]), node("Where", ["e", "w", "x"], ["y"])], {}),
        ([node("Shape", ["x"], ["y"])], {}),
        ([node("Size", ["x"], ["y"])], {}),
        ([node("StringConcat", ["x", "w"], ["y"])], {}),
        ([node("StringSplit", ["x"], ["y", "z"], delimiter="o")], {}),
        ([node("StringSplit", ["x"], ["y", "z"], maxsplit=1)], {}),
        ([node("RegexFullMatch", ["x"], ["y"], pattern="[a-d].[gt]")], {}),
        ([node("SequenceConstruct", ["x", "w"], ["q"]), node("ConcatFromSequence", ["q"], ["y"], axis=0)], {}),
        ([node("SplitToSequence", ["x", "n"], ["q"]), node("SequenceAt", ["q", "p"], ["y"])], {"n": 2, "p": 1}),
    ],
    ids=lambda nodes: "+".join(n.op_type for n in nodes) if isinstance(nodes, list) else "",
)
def test_operators(nodes: list[onnx.NodeProto], integers: dict[str, Any], tmp_path: Path) -> None:
    outputs = list(nodes[-1].output)
    _compare(_model(nodes, {"x": WORDS}, outputs, {"w": ["dog"]}, integers), {"x": WORDS}, tmp_path)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int32, np.uint8], ids=lambda kind: kind.__name__)
def test_texts_are_numbers(kind: Any, tmp_path: Path) -> None:
    texts = np.array(["7", "12", "0"] if np.dtype(kind).kind in "iu" else ["7", "-1.25e3", "0.1"], object)
    to = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    nodes = [node("Cast", ["x"], ["y"], to=to), node("Cast", ["y"], ["z"], to=TensorProto.STRING)]
    model = _model(nodes, {"x": texts}, ["y", "z"])
    _compare(model, {"x": texts}, tmp_path)
    with pytest.raises(lite.LiteError, match="is not a number"):
        _load(model, tmp_path, backend="host").run({"x": np.array(["7", "x", "0"])})


@pytest.mark.parametrize("number", [0.1, 1 / 3, 1e20, -2.5e-7, 16777217, np.nan, np.inf, -np.inf, 0.0], ids=str)
def test_numbers_as_texts(number: float, tmp_path: Path) -> None:
    for kind in (np.float32, np.float64):
        x = np.array([number], kind)
        _compare(_model([node("Cast", ["x"], ["y"], to=TensorProto.STRING)], {"x": x}), {"x": x}, tmp_path)


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("LabelEncoder", {"keys_strings": ["dog", "cat"], "values_int64s": [4, 9], "default_int64": -7}),
        ("LabelEncoder", {"keys_strings": ["dog", "cat"], "values_floats": [0.5, 9], "default_float": 2.5}),
        ("LabelEncoder", {"keys_strings": ["dog", "cat"], "values_strings": ["D", "C"], "default_string": "?"}),
        ("LabelEncoder", {"keys_strings": ["dog", "cat"], "values_strings": ["D", "C"]}),
        ("CategoryMapper", {"cats_strings": ["dog", "cat"], "cats_int64s": [4, 9], "default_int64": -7}),
        ("OneHotEncoder", {"cats_strings": ["dog", "cat", "ape"]}),
    ],
)
def test_look_up_of_strings(op: str, attributes: dict[str, Any], tmp_path: Path) -> None:
    nodes = [node(op, ["x"], ["y"], domain="ai.onnx.ml", **attributes)]
    _compare(_model(nodes, {"x": WORDS}), {"x": WORDS}, tmp_path)


@pytest.mark.parametrize("op", ["LabelEncoder", "CategoryMapper"])
def test_look_up_of_strings_for_numbers(op: str, tmp_path: Path) -> None:
    keys, values = ("cats_int64s", "cats_strings") if op == "CategoryMapper" else ("keys_int64s", "values_strings")
    x = np.array([9, 4, 5])
    attributes: dict[str, Any] = {keys: [4, 9], values: ["a", "b"], "default_string": "?"}
    _compare(_model([node(op, ["x"], ["y"], domain="ai.onnx.ml", **attributes)], {"x": x}), {"x": x}, tmp_path)


@pytest.mark.full("onnx")
def test_labels_of_a_classifier_are_the_only_part_on_host(tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal((4, 3), np.float32)
    nodes = [
        node("Softmax", ["x"], ["p"]),
        node("ArgMax", ["p"], ["a"], axis=1, keepdims=0),
        node("Gather", ["names", "a"], ["y"]),
    ]
    model = _model(nodes, {"x": x}, strings={"names": ["ape", "bee", "cat"]})
    session = _load(model, tmp_path)
    assert session.run({"x": x})["y"].tolist() == run_by_onnxruntime(model, {"x": x})["y"].tolist()
    on_host = {a.op: dict(a.refusals) for a in session.assignment() if a.device == "host"}
    texts = {op for op, refusals in on_host.items() if "strings are only on host" in refusals.values()}
    assert texts <= {"lite.Strings", "Gather"}
    assert "Gather" in texts or len(session.devices) == 1


def test_strings_in_branches_and_loops(tmp_path: Path) -> None:
    state = [value("i", (), TensorProto.INT64), value("on", (), TensorProto.BOOL), value("t", (5,), TensorProto.STRING)]
    steps = [node("Identity", ["on"], ["go"]), node("StringConcat", ["t", "x"], ["u"])]
    results = [value("go", (), TensorProto.BOOL), value("u", (5,), TensorProto.STRING)]
    body = helper.make_graph(steps, "body", state, results)
    branches = {
        f"{name}_branch": helper.make_graph([step], name, [], [value("z", (5,), TensorProto.STRING)])
        for name, step in (("then", node("Identity", ["w"], ["z"])), ("else", node("Identity", ["x"], ["z"])))
    }
    nodes = [node("Loop", ["m", "", "x"], ["w"], body=body), node("If", ["c"], ["y"], **branches)]
    for condition in (True, False):
        inputs = {"x": WORDS, "m": np.array(2), "c": np.array(condition)}
        _compare(_model(nodes, inputs), inputs, tmp_path)


def test_inputs_are_texts(tmp_path: Path) -> None:
    session = _load(_model([node("Identity", ["x"], ["y"])], {"x": WORDS}), tmp_path)
    for given in (WORDS, WORDS.astype(str), WORDS.tolist()):
        assert session.run({"x": given})["y"].tolist() == WORDS.tolist()
    for wrong in (np.arange(5), [1, 2, 3, 4, 5], np.array([b"a"] * 5)):
        with pytest.raises(InputError, match=r"input 'x' must be string\[5\]"):
            session.run({"x": wrong})
    mixed = WORDS.copy()
    mixed[2] = 2.5
    with pytest.raises(InputError, match=r"input 'x' must be string\[5\]"):
        session.run({"x": mixed})


def test_strings_in_a_prepared_file(tmp_path: Path) -> None:
    nodes = [node("Equal", ["x", "w"], ["e"]), node("Where", ["e", "w", "x"], ["y"])]
    model = _model(nodes, {"x": WORDS}, strings={"w": ["dog"]})
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    convert(tmp_path / "model.onnx", tmp_path / "model.lite", targets=["host"])
    session = lite.load(tmp_path / "model.lite")
    assert session.run({"x": WORDS})["y"].tolist() == run_by_onnxruntime(model, {"x": WORDS})["y"].tolist()


def test_damaged_strings(tmp_path: Path) -> None:
    model = _model([node("Equal", ["x", "w"], ["y"])], {"x": WORDS}, strings={"w": ["dog"]})
    model.graph.initializer[0].string_data.append(b"more")
    with pytest.raises(ModelFormatError, match="it should have 1 strings"):
        _load(model, tmp_path)
    model.graph.initializer[0].string_data[:] = [b"\xff"]
    with pytest.raises(ModelFormatError, match="not in UTF-8"):
        _load(model, tmp_path)


def test_arithmetic_of_strings_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedOperatorError, match="is string"):
        _load(_model([node("Add", ["x", "x"], ["y"])], {"x": WORDS}), tmp_path)


def test_words_are_normalized(tmp_path: Path) -> None:
    """ONNX Runtime needs a locale of the system for this operator, so ONNX's documentation is the truth."""
    x = np.array(["Monday", "TUESday", "wednesday", "monday"], object)
    for attributes, expected in (
        (
            {"case_change_action": "LOWER", "stopwords": ["monday"], "is_case_sensitive": 1},
            ["monday", "tuesday", "wednesday"],
        ),
        ({"case_change_action": "UPPER", "stopwords": ["monday"]}, ["TUESDAY", "WEDNESDAY"]),
        ({"stopwords": ["monday"], "is_case_sensitive": 1}, ["Monday", "TUESday", "wednesday"]),
        ({"stopwords": ["monday", "tuesday", "wednesday"]}, [""]),
        ({"case_change_action": "LOWER"}, ["monday", "tuesday", "wednesday", "monday"]),
    ):
        model = _model([node("StringNormalizer", ["x"], ["y"], **attributes)], {"x": x})
        assert _load(model, tmp_path).run({"x": x})["y"].tolist() == expected
