"""Nodes of opset 1 to 6, which ONNX Runtime does not run, compared with NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from onnx import TensorProto
from versions_models import Array, OldModels, model_of, numbers


class Case(NamedTuple):
    """A node and its expected outputs."""

    op: str
    versions: tuple[int, ...]
    inputs: list[Array | None]
    attributes: dict[str, Any]
    expected: list[Array]
    constants: tuple[int, ...] = ()


X = numbers(2, 3, 4, 5)
CHANNELS = numbers(3, seed=1)
MATRIX = X[0, 0, :, :3]
INNER = numbers(3, 4, seed=2)
PER_CHANNEL = CHANNELS[:, None, None]
IMAGE = numbers(1, 1, 2, 3)
STATISTICS: list[Array] = [abs(numbers(3, seed=seed)) for seed in range(4)]
WORKSPACE = {"consumed_inputs": [0, 0]}


def _ints(*elements: int) -> Array:
    return np.array(elements, np.int64)


def _normalized(x: Array, scale: Array, bias: Array, mean: Array, variance: Array) -> Array:
    shape = (-1, 1, 1)
    steady = np.sqrt(variance.reshape(shape) + np.float32(1e-5))
    return (x - mean.reshape(shape)) / steady * scale.reshape(shape) + bias.reshape(shape)


def _powers(x: Array, order: float) -> Array:
    sums = (np.abs(x) ** np.float32(order)).sum(axis=(2, 3), keepdims=True)
    return np.asarray(sums ** np.float32(1 / order))


CASES = [
    Case("Add", (1, 6), [X, CHANNELS], {"broadcast": 1, "axis": 1}, [X + PER_CHANNEL]),
    Case("Add", (1, 6), [X, CHANNELS], {"broadcast": 1, "axis": -3}, [X + PER_CHANNEL]),
    Case("Add", (1, 6), [X, X[0, 0]], {"broadcast": 1}, [X + X[0, 0]]),
    Case("Add", (1,), [X, X], WORKSPACE, [X + X]),
    Case("Sub", (6,), [X, INNER], {"broadcast": 1, "axis": 1}, [X - INNER[:, :, None]]),
    Case("Mul", (1, 6), [X, numbers(1, 1)], {"broadcast": 1}, [X * numbers(1, 1)]),
    Case("Mul", (6,), [X, np.array(2, np.float32)], {"broadcast": 1, "axis": 0}, [X * 2]),
    Case("Div", (6,), [X, numbers(2)], {"broadcast": 1, "axis": 0}, [X / numbers(2)[:, None, None, None]]),
    Case("Pow", (1, 6), [abs(X), CHANNELS], {"broadcast": 1, "axis": 1}, [abs(X) ** PER_CHANNEL]),
    Case("Greater", (1, 6), [X, CHANNELS], {"broadcast": 1, "axis": 1}, [X > PER_CHANNEL]),
    Case("Less", (1, 6), [X, CHANNELS], {"broadcast": 1, "axis": 1}, [X < PER_CHANNEL]),
    Case("Equal", (1, 6), [X.astype(int), CHANNELS.astype(int)], {"broadcast": 1, "axis": 1},
         [X.astype(int) == PER_CHANNEL.astype(int)]),
    Case("And", (1, 6), [X > 0, CHANNELS > 0], {"broadcast": 1, "axis": 1}, [(X > 0) & (PER_CHANNEL > 0)]),
    Case("Or", (1, 6), [X > 0, CHANNELS > 0], {"broadcast": 1, "axis": 1}, [(X > 0) | (PER_CHANNEL > 0)]),
    Case("Xor", (1, 6), [X > 0, CHANNELS > 0], {"broadcast": 1, "axis": 1}, [(X > 0) ^ (PER_CHANNEL > 0)]),
    Case("PRelu", (1, 6), [X, CHANNELS], {}, [np.where(X < 0, X * PER_CHANNEL, X)]),
    Case("PRelu", (6,), [X, numbers(1)], {}, [np.where(X < 0, X * numbers(1), X)]),
    Case("PRelu", (6,), [MATRIX, CHANNELS], {}, [np.where(MATRIX < 0, MATRIX * CHANNELS, MATRIX)]),
    Case("Gemm", (1, 6), [X[0, 0], X[0, 1].T, CHANNELS[:1]], {"broadcast": 1, "alpha": 0.5},
         [0.5 * X[0, 0] @ X[0, 1].T + CHANNELS[:1]]),
    *(
        Case(op, (1,), [x], WORKSPACE, [y])
        for op, x, y in [
            ("Abs", X, abs(X)), ("Ceil", X, np.ceil(X)), ("Clip", X, X), ("Dropout", X, X),
            ("Elu", X, np.where(X < 0, np.expm1(X), X)), ("Exp", X / 8, np.exp(X / 8)), ("Floor", X, np.floor(X)),
            ("HardSigmoid", X, np.clip(0.2 * X + 0.5, 0, 1)), ("LeakyRelu", X, np.where(X < 0, 0.01 * X, X)),
            ("Log", abs(X), np.log(abs(X))), ("Max", X, X), ("Mean", X, X), ("Min", X, X), ("Neg", X, -X),
            ("Reciprocal", X, 1 / X), ("Relu", X, np.maximum(X, 0)), ("Sigmoid", X, 1 / (1 + np.exp(-X))),
            ("Sqrt", abs(X), np.sqrt(abs(X))), ("Sum", X, X), ("Tanh", X, np.tanh(X)),
            ("Selu", X, 1.0507 * np.where(X < 0, 1.6732 * np.expm1(X), X)),
        ]
    ),
    Case("InstanceNormalization", (1,), [X, CHANNELS, STATISTICS[0]], WORKSPACE,
         [(X - X.mean((2, 3), keepdims=True)) / np.sqrt(X.var((2, 3), keepdims=True) + 1e-5) * PER_CHANNEL
          + STATISTICS[0][:, None, None]]),
    Case("BatchNormalization", (1, 6), [X, *STATISTICS], {"is_test": 1}, [_normalized(X, *STATISTICS)]),
    Case("BatchNormalization", (1,), [X, *STATISTICS], {"is_test": 1, "spatial": 1, **WORKSPACE},
         [_normalized(X, *STATISTICS)]),
    Case("Dropout", (1, 6), [X], {"is_test": 1, "ratio": 0.3}, [X]),
    Case("Dropout", (6, 7, 9), [X], {}, [X, np.ones_like(X)]),
    Case("Dropout", (10, 11), [X], {"ratio": 0.5}, [X, np.ones_like(X, bool)]),
    Case("Cast", (1, 5), [X], {"to": "INT32"}, [X.astype(np.int32)]),
    Case("Cast", (1,), [X], {"to": "double"}, [X.astype(np.float64)]),
    Case("Cast", (6,), [X], {"to": TensorProto.INT64}, [X.astype(np.int64)]),
    Case("Concat", (1, 3), [X, X], {}, [np.concatenate([X, X], 1)]),
    Case("Concat", (1, 4), [X, X], {"axis": 3}, [np.concatenate([X, X], 3)]),
    Case("Clip", (1, 6), [X], {"min": -1.0, "max": 2.0}, [np.clip(X, -1, 2)]),
    Case("Clip", (1, 6), [X.astype(np.float16)], {"min": -1.0, "max": 1e30}, [np.maximum(X, -1).astype(np.float16)]),
    Case("Pad", (1,), [X], {"paddings": [0, 0, 1, 0, 0, 0, 0, 2], "value": 2.0},
         [np.pad(X, [(0, 0), (0, 0), (1, 0), (0, 2)], constant_values=2)]),
    Case("Pad", (2, 6), [X], {"pads": [0, 0, 1, 0, 0, 0, 0, 2]}, [np.pad(X, [(0, 0), (0, 0), (1, 0), (0, 2)])]),
    Case("Reshape", (1, 4), [X], {"shape": [0, -1, 10]}, [X.reshape(2, -1, 10)]),
    Case("Reshape", (1,), [X], {"shape": [6, 20], **WORKSPACE}, [X.reshape(6, 20)]),
    Case("Reshape", (5, 6), [X, _ints(6, 20)], {}, [X.reshape(6, 20)]),
    Case("Slice", (1, 6), [X], {"starts": [1], "ends": [3], "axes": [2]}, [X[:, :, 1:3]]),
    Case("Split", (1, 2, 6), [X], {"axis": 1, "split": [1, 2]}, [X[:, :1], X[:, 1:]]),
    Case("Split", (1,), [X, np.array([1, 2], np.float32)], {"axis": 1}, [X[:, :1], X[:, 1:]]),
    Case("Split", (2,), [X], {}, [X[:1], X[1:]]),
    Case("Tile", (1, 5), [X, np.array(2, np.float32), np.array(1, np.float32)], {}, [np.tile(X, (1, 2, 1, 1))], (2,)),
    Case("Tile", (1,), [X, np.array([3], np.float32), np.array([-1], np.float32)], {}, [np.tile(X, 3)], (1, 2)),
    Case("TopK", (1, 6), [X], {"k": 1, "axis": 3}, [X.max(3, keepdims=True), X.argmax(3)[..., None]]),
    Case("Upsample", (1, 6), [IMAGE], {"height_scale": 2.0, "width_scale": 3.0}, [IMAGE.repeat(2, 2).repeat(3, 3)]),
    Case("Upsample", (1,), [IMAGE], {"height_scale": 1.0, "width_scale": 1.5, "mode": "bilinear"},
         [np.array([[[np.interp(np.arange(4) / 1.5, np.arange(3), row) for row in IMAGE[0, 0]]]])]),
    Case("LpPool", (1,), [X], {"kernel_shape": [4, 5], "p": 2.0}, [_powers(X, 2)]),
    Case("LpPool", (1,), [X], {"kernel_shape": [4, 5], "p": 2.5}, [_powers(X, 2.5)]),
    Case("GlobalLpPool", (1,), [X], {}, [_powers(X, 2)]),
    Case("GlobalLpPool", (1,), [X], {"p": 1.5}, [_powers(X, 1.5)]),
    Case("Softmax", (1, 6), [X], {}, [(np.exp(X) / np.exp(X).sum((1, 2, 3), keepdims=True))]),
    Case("Softmax", (1,), [X[0, 0, 0]], {}, [np.ones((5, 1), np.float32).reshape(5)]),
    Case("ConstantFill", (1, 8), [], {"shape": [2, 3], "value": 1.5}, [np.full((2, 3), 1.5, np.float32)]),
    Case("ConstantFill", (1,), [X], {"extra_shape": [2]}, [np.zeros((*X.shape, 2), np.float32)]),
    Case("ConstantFill", (1,), [_ints(2, 3)], {"input_as_shape": 1, "value": 4.0, "dtype": TensorProto.INT64},
         [np.full((2, 3), 4)]),
    Case("ImageScaler", (1,), [X], {"scale": 2.0}, [X * 2]),
    Case("GivenTensorFill", (1,), [], {"values": [1.0, 2.0, 3.0, 4.0], "shape": [2, 2]},
         [np.array([[1, 2], [3, 4]], np.float32)]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("case", "version"),
    [pytest.param(c, v, id=f"{c.op}-{v}-{n}") for n, c in enumerate(CASES) for v in c.versions],
)
def test_same_as_numpy(case: Case, version: int, tmp_path: Path) -> None:
    found = OldModels(tmp_path).lite(
        case.op, version, case.inputs, len(case.expected), case.constants, **case.attributes
    )
    for ours, expected in zip(found, case.expected, strict=True):
        assert ours.shape == expected.shape
        assert ours.dtype == expected.dtype or expected.dtype == np.float64
        np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("version", [2, 11, 13])
def test_omitted_parts_of_a_split_count(version: int, tmp_path: Path) -> None:
    x = numbers(6)
    model = model_of("Split", version, [x], 3, {})
    model.graph.node[0].output[2] = ""
    del model.graph.output[2]
    found = OldModels(tmp_path).run(model, {"input_0": x})
    np.testing.assert_array_equal(found, [x[:2], x[2:4]])
