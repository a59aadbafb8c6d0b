"""Attributes of legacy operators whose values are tensors, as written since Paddle 2.4."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hand_made import run
from legacy_writer import Writer

from lite_core.errors import UnsupportedOperatorError
from lite_core.ops.evaluate import evaluate_graph
from lite_paddle.lowering import lower
from lite_paddle.reader.run_time_attributes import run_time_slots, unreadable_attributes

X = np.random.default_rng(8).standard_normal((2, 3, 4)).astype(np.float32)
IMAGE = np.random.default_rng(9).standard_normal((1, 2, 5, 6)).astype(np.float32)


def results(
    folder: Path, op_type: str, attrs: dict[str, Any], numbers: dict[str, float], *feeds: Any, **slots: Any
) -> list[Any]:
    """Run an operator whose attributes name the variables of ``numbers``, which are constants."""
    writer = Writer(version=2_006_002)
    inputs: dict[str, list[str]] = {}
    for column, (slot, array) in enumerate(zip(slots["inputs"], feeds)):
        writer.feed(slot, column, dims=array.shape)
        inputs[slot] = [slot]
    for name, value in numbers.items():
        dtype = 5 if isinstance(value, float) else 3
        constant = {"shape": [1], "dtype": dtype, "value": float(value)}
        writer.op("fill_constant", {}, {"Out": [name]}, constant)
    writer.op(op_type, inputs, {slots.get("output", "Out"): ["y"]}, attrs)
    writer.fetch("y", 0)
    return evaluate_graph(lower(writer.read(folder)), list(feeds))


@pytest.mark.parametrize(
    ("op_type", "attrs", "numbers", "expected"),
    [
        ("reduce_sum", {"dim": "$a"}, {"a": 1}, X.sum(1)),
        ("reduce_sum", {"dim": ["$a", "$b"]}, {"a": 0, "b": 2}, X.sum((0, 2))),
        ("reduce_mean", {"dim": "$a", "keep_dim": True}, {"a": 1}, X.mean(1, keepdims=True)),
        ("reduce_max", {"dim": "$a"}, {"a": 1}, X.max(1)),
        ("arg_max", {"axis": "$a", "dtype": 3}, {"a": 1}, X.argmax(1)),
        ("cumsum", {"axis": "$a"}, {"a": 1}, X.cumsum(1)),
        ("unsqueeze2", {"axes": ["$a"]}, {"a": 1}, X[:, None]),
        ("roll", {"shifts": "$a", "axis": [1]}, {"a": 1}, np.roll(X, 1, 1)),
        ("roll", {"shifts": ["$a", "$b"], "axis": [1, 2]}, {"a": 1, "b": 2}, np.roll(X, (1, 2), (1, 2))),
        ("dropout", {"dropout_prob": "$a"}, {"a": 0.25}, X * np.float32(0.75)),
        (
            "pad",
            {"paddings": [0, 0, 0, 0, 1, 0], "pad_value": "$a"},
            {"a": 2.0},
            np.pad(X, ((0, 0), (0, 0), (1, 0)), constant_values=2),
        ),
        ("fill_any_like", {"value": "$a"}, {"a": 2.0}, np.full_like(X, 2)),
    ],
)
def test_tensor_takes_precedence_over_the_attribute(
    tmp_path: Path, op_type: str, attrs: dict[str, Any], numbers: dict[str, float], expected: Any
) -> None:
    (result,) = results(tmp_path, op_type, attrs, numbers, X, inputs=("X",))
    np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kernel", ["$a", ["$a", "$b"]])
def test_kernel_of_a_pool(tmp_path: Path, kernel: Any) -> None:
    attrs = {"ksize": kernel, "pooling_type": "avg"}
    (result,) = results(tmp_path, "pool2d", attrs, {"a": 3, "b": 3}, IMAGE, inputs=("X",))
    windows = np.lib.stride_tricks.sliding_window_view(IMAGE, (3, 3), (2, 3))
    np.testing.assert_allclose(result, windows.mean((4, 5)), rtol=1e-5, atol=1e-6)


def test_rows_and_columns_of_eye(tmp_path: Path) -> None:
    attrs = {"num_rows": "$a", "num_columns": "$b"}
    (result,) = results(tmp_path, "eye", attrs, {"a": 2, "b": 3}, inputs=())
    np.testing.assert_array_equal(result, np.eye(2, 3))


@pytest.mark.parametrize("size", ["$a", ["$a", "$b"]])
def test_size_of_a_transposed_convolution(tmp_path: Path, size: Any) -> None:
    weight = np.ones((2, 1, 2, 2), np.float32)
    image = IMAGE[:, :, :5, :5]
    attrs = {"output_size": size, "strides": [2, 2]}
    slots: dict[str, Any] = {"inputs": ("Input", "Filter"), "output": "Output"}
    (result,) = results(tmp_path, "conv2d_transpose", attrs, {"a": 11, "b": 11}, image, weight, **slots)
    expected = np.zeros((1, 1, 11, 11), np.float32)
    expected[0, 0, :10, :10] = np.kron(image.sum(1)[0], np.ones((2, 2)))
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


def test_unreadable_attribute_is_an_operator_problem(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedOperatorError, match=r"softmax \(1 node\(s\): y\): its attribute axis is a tensor"):
        results(tmp_path, "softmax", {"axis": "$a"}, {"a": 1}, X, inputs=("X",))


def test_computed_kernel_size_is_an_operator_problem() -> None:
    with pytest.raises(UnsupportedOperatorError, match="ksize is computed when the model runs"):
        run("pool2d", {"X": IMAGE, "KernelSizeTensor": np.array([2, 2])}, {"pooling_type": "avg"})


def test_run_time_slots() -> None:
    named = {"axis": ["a"], "op_device": ["b"], "strange": ["c"]}
    slots = run_time_slots("cumsum", named)
    assert slots == {"AxisTensor": ["a"], "@strange": ["c"]}
    assert unreadable_attributes(slots) == ["strange"]
    assert unreadable_attributes(run_time_slots("cumsum", {"axis": ["a", "b"]})) == ["axis"]
