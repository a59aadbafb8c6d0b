"""Weights of 8 and 4 bits: Paddle's memory orders, against weights that Paddle itself quantized."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import hand_made
import numpy as np
import pytest
from paddle_cases import paddle_is_installed
from test_reader_pir import data, fetch, first, load, op

from lite_core.errors import LiteError

FIXTURES = Path(__file__).parent / "fixtures"
Array = np.ndarray[Any, Any]

with np.load(FIXTURES / "weight_only.npz") as _stored:
    STORED = {name: _stored[name] for name in _stored.files}
CASES = sorted({name.rsplit(" ", 1)[0] for name in STORED})


def check(arrays: dict[str, Array], case: str) -> None:
    algorithm, arch, group = case.split()
    content, scales, weights = (arrays[f"{case} {part}"] for part in ("content", "scales", "weights"))
    random = np.random.default_rng(0)
    x = random.standard_normal((3, len(weights))).astype(np.float16)
    bias = random.standard_normal(weights.shape[1]).astype(np.float16)
    attrs = {"weight_dtype": algorithm.removeprefix("weight_only_"), "arch": int(arch), "group_size": int(group)}
    slots = {"x": x, "weight": content, "bias": bias, "weight_scale": scales}
    (y,) = hand_made.run(
        "weight_only_linear", slots, attrs, outputs=["out"], parameters=["weight", "bias", "weight_scale"]
    )
    (identity,) = hand_made.run(
        "weight_only_linear",
        {"x": np.eye(len(weights), dtype=np.float16), "weight": content, "weight_scale": scales},
        attrs, outputs=["out"], parameters=["weight", "weight_scale"],
    )  # fmt: skip
    np.testing.assert_array_equal(identity, weights)
    expected = x.astype(np.float64) @ weights.astype(np.float64) + bias
    np.testing.assert_allclose(y, expected, rtol=2e-3, atol=2e-2)


@pytest.mark.parametrize("case", CASES)
def test_weights_in_paddles_order(case: str) -> None:
    check(STORED, case)


@pytest.mark.full("models")
def test_weights_quantized_now_for_every_architecture(tmp_path: Path) -> None:
    if not paddle_is_installed():
        pytest.skip("PaddlePaddle is not installed; it quantizes the weights")
    made = tmp_path / "made.npz"
    command = [
        sys.executable,
        str(FIXTURES / "make_weight_only.py"),
        str(made),
        "70",
        "75",
        "80",
        "86",
        "89",
        "90",
        "100",
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    with np.load(made) as stored:
        arrays = {name: stored[name] for name in stored.files}
    for case in sorted({name.rsplit(" ", 1)[0] for name in arrays}):
        check(arrays, case)


def test_integers_of_8_bits_without_an_order() -> None:
    """llm_int8_linear and weight_dequantize store columns one after the other, without an offset."""
    random = np.random.default_rng(3)
    numbers = random.integers(-127, 128, (5, 7), dtype=np.int8)
    scales = random.random(5, dtype=np.float32)
    x = random.standard_normal((2, 3, 7)).astype(np.float16)
    slots = {"x": x, "weight": numbers, "weight_scale": scales}
    (y,) = hand_made.run("llm_int8_linear", slots, outputs=["out"], parameters=["weight", "weight_scale"])
    weights = (numbers * scales[:, None]).T
    assert y.dtype == np.float16
    np.testing.assert_allclose(y, x.astype(np.float64) @ weights, rtol=1e-3, atol=2e-2)
    slots = {"x": numbers, "scale": scales}
    (found,) = hand_made.run(
        "weight_dequantize", slots, {"algo": "llm.int8"}, outputs=["out"], parameters=["x", "scale"]
    )
    np.testing.assert_array_equal(found, weights)


def test_scale_of_each_channel() -> None:
    x, scales = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([1, 2, 4], np.float32)
    (y,) = hand_made.run("apply_per_channel_scale", {"x": x, "scales": scales}, outputs=["out"])
    np.testing.assert_array_equal(y, x * scales)


@pytest.mark.parametrize(
    ("attrs", "shape", "message"),
    [
        ({"arch": 0}, (16, 128), "attribute arch is 0"),
        ({"arch": 80}, (16, 96), r"weight \[96, 16\] in 8 bits does not have tiles of 64 rows"),
        ({"arch": 80, "group_size": 64}, (16, 128), r"scales have the shape \[16\], expected \[2, 16\]"),
        ({"arch": 80, "weight_dtype": "float8"}, (16, 128), "weight_dtype is 'float8', expected int8 or int4"),
    ],
)
def test_weights_that_cannot_be_read(attrs: dict[str, Any], shape: tuple[int, int], message: str) -> None:
    slots = {
        "x": np.ones((1, shape[1]), np.float16),
        "weight": np.zeros(shape, np.int8),
        "weight_scale": np.ones(shape[0], np.float16),
    }
    with pytest.raises(LiteError, match=message):
        hand_made.run(
            "weight_only_linear", slots, {"weight_dtype": "int8", **attrs},
            outputs=["out"], parameters=["weight", "weight_scale"],
        )  # fmt: skip


def test_weights_that_are_computed_are_refused() -> None:
    slots = {
        "x": np.ones((1, 128), np.float16),
        "weight": np.zeros((16, 128), np.int8),
        "weight_scale": np.ones(16, np.float16),
    }
    with pytest.raises(LiteError, match="must be parameters.*'weight_0' is computed"):
        hand_made.run("weight_only_linear", slots, {"weight_dtype": "int8"}, outputs=["out"])


def test_operands_in_pir(tmp_path: Path) -> None:
    product = op("1.weight_only_linear", [1, 2, 3, 4], [5], {"weight_dtype": "int8", "arch": 80, "group_size": -1})
    program = load(tmp_path, [*(data(number, f"value_{number}") for number in range(1, 5)), product, fetch(5)])
    read = first(program, "weight_only_linear")
    assert {slot: values[0].name for slot, values in read.inputs.items()} == {
        "x": "value_1", "weight": "value_2", "bias": "value_3", "weight_scale": "value_4"
    }  # fmt: skip
    assert list(read.outputs) == ["out"]
