"""Models outside ONNX's text that ONNX Runtime runs, and random operators, n-grams and images."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper
from runtime_models import run_by_onnxruntime
from small_models import graph, load, make, node, value

import lite_core as lite
from lite_core.errors import ExecutionError, InputError

Array = np.ndarray[Any, Any]

_NODES = Path(onnx.__file__).parent / "backend/test/data/node"


def _compare(model: onnx.ModelProto, inputs: Mapping[str, Array], folder: Path, tolerance: float = 0) -> lite.Session:
    session = load(model, folder)
    found = session.run(dict(inputs))
    for name, expected in run_by_onnxruntime(model, inputs).items():
        assert (found[name].dtype, found[name].shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(found[name], expected, atol=tolerance, rtol=0)
    return session


# **** shapes ****


@pytest.mark.parametrize("has_window", [True, False])
def test_stft_of_a_signal_without_an_axis_for_parts(has_window: bool, tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal((2, 64), np.float32)
    constants = {"step": np.array(8), "window": np.hanning(16).astype(np.float32), "length": np.array(16)}
    inputs = ["x", "step", "window", ""] if has_window else ["x", "step", "", "length"]
    model = make([node("STFT", inputs, ["y"])], [value("x", ("batch", "length_of_x"))], constants=constants)
    _compare(model, {"x": x}, tmp_path, 1e-5)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (1, 1, 1)], ids=str)
@pytest.mark.parametrize("condition", [True, False])
def test_condition_of_any_rank(shape: tuple[int, ...], condition: bool, tmp_path: Path) -> None:
    branches = {
        "then_branch": graph([node("Neg", ["x"], ["a"])], ["a"]),
        "else_branch": graph([node("Abs", ["x"], ["a"])], ["a"]),
    }
    model = make([node("If", ["c"], ["y"], **branches)], ["x", value("c", shape, TensorProto.BOOL)])
    _compare(model, {"x": np.array([1, -2], np.float32), "c": np.full(shape, condition)}, tmp_path)


def _product(*outputs: str) -> onnx.ModelProto:
    inputs = [value("a", ("n", "m")), value("b", ("m", "n"))]
    return make([node("MatMul", ["a", "b"], ["y"])], inputs, outputs or ["y"])


def test_name_of_two_sizes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The product needs one size for `m`, and none for `n`."""
    with caplog.at_level("INFO", "lite.onnx"):
        session = _compare(_product(), {"a": np.ones((2, 3), np.float32), "b": np.ones((3, 5), np.float32)}, tmp_path)
    assert "dimension 1 of input 'b' is called 'n_2', not 'n'" in caplog.text
    assert {name: str(type) for name, type in session.inputs.items()} == {
        "a": "float32[n, m]",
        "b": "float32[m, n_2]",
    }
    with pytest.raises(InputError, match="symbol 'm' is 3"):
        session.run({"a": np.ones((2, 3), np.float32), "b": np.ones((4, 5), np.float32)})


def test_name_of_two_sizes_in_one_input(tmp_path: Path) -> None:
    model = make([node("Relu", ["x"], ["y"])], [value("x", ("n", "n"))])
    _compare(model, {"x": np.ones((2, 5), np.float32)}, tmp_path)


def test_names_that_operators_need_are_kept(tmp_path: Path) -> None:
    tokens = [value(name, ("batch", "length")) for name in ("a", "b")]
    session = load(make([node("Add", ["a", "b"], ["y"])], tokens), tmp_path)
    assert {str(type) for type in session.inputs.values()} == {"float32[batch, length]"}


def test_names_are_kept_where_shapes_depend_on_data(tmp_path: Path) -> None:
    nodes = [node("NonZero", ["a"], ["i"]), node("GatherND", ["a", "t"], ["y"]), node("Transpose", ["i"], ["t"])]
    nodes.append(node("Relu", ["b"], ["z"]))
    model = make(nodes, [value("a", ("n",)), value("b", ("n",))], ["y", "z"])
    assert {str(type) for type in load(model, tmp_path).inputs.values()} == {"float32[n]"}


# **** random operators ****

_RANDOM: dict[str, dict[str, Any]] = {
    "RandomNormal": {"shape": [200, 300], "mean": 1.0, "scale": 2.0},
    "RandomUniform": {"shape": [200, 300], "low": 1.0, "high": 4.0},
    "RandomNormalLike": {"mean": 1.0, "scale": 2.0},
    "RandomUniformLike": {"low": 1.0, "high": 4.0},
    "Multinomial": {"sample_size": 60000},
}


def _random(op: str, **attributes: Any) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """Build a model that adds something to random numbers, so that they are not its only node."""
    inputs = {"x": np.zeros((200, 300), np.float32)}
    if op == "Multinomial":
        inputs = {"x": np.log(np.array([[0.15, 0.25, 0.6]], np.float32))}
    given = ["x"] if "shape" not in attributes else []
    nodes = [node(op, given, ["r"], **attributes), node("Identity", ["r"], ["y"])]
    if not given:
        nodes[1] = node("Add", ["r", "x"], ["y"])
    return make(nodes, [value("x", inputs["x"].shape)]), inputs


@pytest.mark.parametrize("op", _RANDOM)
def test_random_numbers_have_the_distribution_of_onnxruntime(op: str, tmp_path: Path) -> None:
    model, inputs = _random(op, **_RANDOM[op], seed=3.0)
    found, expected = load(model, tmp_path).run(inputs)["y"], run_by_onnxruntime(model, inputs)["y"]
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    error = 6 * expected.std() * (2 / expected.size) ** 0.5
    assert abs(found.mean(dtype=float) - expected.mean(dtype=float)) < error
    np.testing.assert_allclose(np.quantile(found, [0.1, 0.5, 0.9]), np.quantile(expected, [0.1, 0.5, 0.9]), atol=0.06)


def test_bernoulli_states_the_probability_of_one(tmp_path: Path) -> None:
    """ONNX's text says so. Its function body compares the other way round, and ONNX Runtime runs that body."""
    x = np.full((200, 300), 0.3, np.float32)
    model = make([node("Bernoulli", ["x"], ["y"], seed=3.0)], [value("x", x.shape)])
    assert abs(load(model, tmp_path).run({"x": x})["y"].mean() - 0.3) < 0.02
    assert abs(run_by_onnxruntime(model, {"x": x})["y"].mean() - 0.7) < 0.02


@pytest.mark.parametrize("op", [*_RANDOM, "Bernoulli"])
def test_a_seed_makes_runs_equal(op: str, tmp_path: Path) -> None:
    attributes = _RANDOM.get(op, {})
    for seed, is_equal in (({"seed": 3.0}, True), ({}, False)):
        model, inputs = _random(op, **attributes, **seed)
        inputs = {"x": np.full((200, 300), 0.5, np.float32)} if op == "Bernoulli" else inputs
        session = load(model, tmp_path)
        runs = [session.run(inputs)["y"] for _ in range(2)] + [load(model, tmp_path).run(inputs)["y"]]
        assert [np.array_equal(runs[0], other) for other in runs[1:]] == [is_equal] * 2


# **** n-grams ****


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize(("shortest", "longest", "skips"), [(1, 1, 0), (1, 2, 0), (2, 2, 3), (1, 3, 1)])
@pytest.mark.parametrize("kind", [np.int32, np.int64, object], ids=["int32", "int64", "string"])
def test_ngrams(mode: str, shortest: int, longest: int, skips: int, kind: Any, tmp_path: Path) -> None:
    pool: Sequence[Any] = [2, 3, 5, 3, 5, 4, 5, 6, 7, 1, 2, 3, 5, 5, 5]
    x = np.random.default_rng(0).integers(1, 8, (3, 40))
    attributes: dict[str, Any] = {
        "mode": mode,
        "min_gram_length": shortest,
        "max_gram_length": longest,
        "max_skip_count": skips,
        "ngram_counts": [0, 3, 9],
        "ngram_indexes": [6, 1, 0, 2, 3, 7, 5, 4],
        "weights": [1.0, 0.5, 2.0, 4.0, 0.25, 3.0, 8.0, 16.0],
    }
    if kind is object:
        attributes["pool_strings"] = [str(number) for number in pool]
    else:
        attributes["pool_int64s"] = pool
    inputs = {"x": x.astype(str).astype(object) if kind is object else x.astype(kind)}
    onnx_kind = TensorProto.STRING if kind is object else onnx.helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    model = make([node("TfIdfVectorizer", ["x"], ["y"], **attributes)], [value("x", ("rows", 40), onnx_kind)])
    _compare(model, inputs, tmp_path)


# **** images ****


@pytest.mark.parametrize("case", sorted(_NODES.glob("test_image_decoder_*")), ids=lambda path: path.name[19:])
def test_images_of_onnx(case: Path) -> None:
    arrays = []
    for name in ("input_0", "output_0"):
        message = onnx.TensorProto()
        message.ParseFromString((case / f"test_data_set_0/{name}.pb").read_bytes())
        arrays.append(numpy_helper.to_array(message))
    session = lite.load(case / "model.onnx")
    (found,) = session.run({next(iter(session.inputs)): arrays[0]}).values()
    assert found.shape == arrays[1].shape
    # Versions of the libraries behind Pillow decode lossy formats differently.
    assert np.abs(found.astype(int) - arrays[1]).max() <= 4


def _decoder(folder: Path) -> Path:
    model = make([node("ImageDecoder", ["x"], ["y"])], [value("x", ("n",), TensorProto.UINT8)])
    path = folder / "decoder.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def test_bytes_that_are_no_image(tmp_path: Path) -> None:
    with pytest.raises(
        ExecutionError, match=r"the 9 bytes, which begin with b'.*', are in no image format that Pillow"
    ):
        lite.load(_decoder(tmp_path)).run({"x": np.arange(9, dtype=np.uint8)})


def test_images_without_pillow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)  # importing it fails, as if it were not installed
    session = lite.load(_decoder(tmp_path), backend="host")
    with pytest.raises(ExecutionError, match=r'pip install "lite-onnx\[images\]"'):
        session.run({"x": np.zeros(9, np.uint8)})
