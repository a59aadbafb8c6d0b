"""Nodes of old versions, compared with ONNX Runtime, which has kernels for opset 7 and newer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest
from versions_models import Array, OldModels, numbers


class Case(NamedTuple):
    """A node, and the opsets that it is tested in."""

    op: str
    versions: tuple[int, ...]
    inputs: list[Array | None]
    attributes: Mapping[str, Any] = MappingProxyType({})
    outputs: int = 1
    #: Positions of inputs that are initializers.
    constants: tuple[int, ...] = ()


X = numbers(2, 3, 4, 5)
IMAGE = numbers(1, 2, 4, 6)
ROW = numbers(2, 12)
REDUCTIONS = ("ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
              "ReduceSumSquare")  # fmt: skip
CEILED = {"kernel_shape": [2, 2], "strides": [3, 3], "pads": [0, 0, 1, 1], "ceil_mode": 1}


def _floats(*elements: float) -> Array:
    return np.array(elements, np.float32)


def _ints(*elements: int) -> Array:
    return np.array(elements, np.int64)


CASES = [
    Case("Squeeze", (7, 11, 12), [numbers(1, 3, 1)], {"axes": [0]}),
    Case("Squeeze", (7, 12), [numbers(1, 3, 1)]),
    Case("Unsqueeze", (7, 12), [ROW], {"axes": [0, 3]}),
    Case("Unsqueeze", (11, 12), [ROW], {"axes": [-1]}),
    Case("ReduceSum", (7, 11, 12), [X], {"axes": [1, 2], "keepdims": 0}),
    Case("ReduceLogSum", (7, 17), [abs(X)], {"axes": [1]}),
    *(Case(op, (7, 11, 13, 17), [X], {"axes": [1, 2]}) for op in REDUCTIONS),
    *(Case(op, (7, 17), [X / 8], {"keepdims": 0}) for op in REDUCTIONS),
    Case("Clip", (7, 10), [X], {"min": -2.0, "max": 3.0}),
    Case("Clip", (7, 10), [X], {"max": 3.0}),
    Case("Clip", (7, 10), [X], {"min": 0.0, "max": 3.4028234663852886e38}),
    Case("Clip", (7, 10), [X]),
    Case("Pad", (7, 10), [X], {"pads": [0, 1, 0, 2, 1, 0, 0, -1], "value": 1.5}),
    Case("Pad", (7, 10), [X], {"pads": [0, 0, 1, 2, 0, 0, 2, 0], "mode": "reflect"}),
    Case("Pad", (7,), [X], {"pads": [0, 0, 1, 2, 0, 0, 2, 0], "mode": "edge", "value": 3.0}),
    Case("Slice", (7, 9), [X], {"starts": [1, -3], "ends": [2, 1000], "axes": [1, 3]}),
    Case("Slice", (7, 9), [X], {"starts": [0, 1], "ends": [1, -1]}),
    Case("Split", (7, 11, 12), [X], {"axis": 3, "split": [2, 3]}, outputs=2),
    Case("Split", (7, 12, 13, 17), [X], {"axis": 2}, outputs=2),
    Case("TopK", (7, 9), [X], {"k": 2, "axis": 2}, outputs=2),
    Case("TopK", (7,), [X], {"k": 3}, outputs=2),
    Case("Dropout", (7, 10, 11), [X], {"ratio": 0.3}),
    Case("BatchNormalization", (7, 8), [X, *(abs(numbers(3, 4, 5, seed=s)) for s in range(4))], {"spatial": 0}),
    Case("BatchNormalization", (7, 8, 9, 13), [X, *(abs(numbers(3, seed=s)) for s in range(4))], {"epsilon": 0.01}),
    Case("BatchNormalization", (7, 8), [ROW, *(abs(numbers(12, seed=s)) for s in range(4))], {"spatial": 0}),
    Case("MeanVarianceNormalization", (7, 8), [X]),
    Case("MeanVarianceNormalization", (7, 8), [X], {"across_channels": 1}),
    Case("MeanVarianceNormalization", (7, 8), [X], {"normalize_variance": 0}),
    *(Case(op, (7, 10, 11, 12), [X]) for op in ("Softmax", "LogSoftmax", "Hardmax")),
    *(Case(op, (7, 12), [X], {"axis": 2}) for op in ("Softmax", "LogSoftmax", "Hardmax")),
    *(Case(op, (11, 12), [X], {"axis": -1}) for op in ("Softmax", "LogSoftmax", "Hardmax")),
    Case("Softmax", (7, 12), [numbers(2, 5, 1, 1)]),
    Case("Softmax", (11,), [numbers(2, 5, 4)], {"axis": -2}),
    Case("Softmax", (7, 12), [numbers(2, 1, 1, 1)]),
    Case("Upsample", (7, 8), [IMAGE], {"scales": [1.0, 1.0, 2.0, 3.0]}),
    Case("Upsample", (7, 8), [IMAGE], {"scales": [1.0, 1.0, 2.5, 1.3]}),
    Case("Upsample", (7, 8), [IMAGE], {"scales": [1.0, 1.0, 2.5, 1.3], "mode": "linear"}),
    Case("Upsample", (9,), [IMAGE, _floats(1, 1, 2.5, 3)], {"mode": "linear"}, constants=(1,)),
    Case("Upsample", (9,), [IMAGE, _floats(1, 1, 2, 3)]),
    Case("Resize", (10,), [IMAGE, _floats(1, 1, 2, 3)], constants=(1,)),
    Case("Resize", (10,), [IMAGE, _floats(1, 1, 0.6, 0.4)], constants=(1,)),
    Case("Resize", (10,), [IMAGE, _floats(1, 1, 0.6, 1.7)], constants=(1,)),
    Case("Resize", (10,), [IMAGE, _floats(1, 1, 0.6, 1.7)]),
    Case("Resize", (10,), [IMAGE, _floats(1, 1, 1, 1)], constants=(1,)),
    Case("Resize", (10,), [IMAGE, _floats(1, 1, 0.6, 1.7)], {"mode": "linear"}, constants=(1,)),
    Case("Resize", (11,), [IMAGE, _floats(), _floats(1, 1, 2, 0.5)], {"mode": "cubic"}, constants=(1, 2)),
    *(
        Case("Resize", (11,), [IMAGE, _floats(), _floats(1, 1, *scales)],
             {"coordinate_transformation_mode": "tf_half_pixel_for_nn", "nearest_mode": rounding}, constants=(1, 2))
        for scales in ((2, 3), (0.5, 0.7), (1.5, 0.4)) for rounding in ("floor", "round_prefer_floor")
    ),
    Case("Resize", (11, 12), [IMAGE, _floats(), _floats(), _ints(1, 2, 7, 3)], constants=(1, 2, 3)),
    Case("GridSample", (16, 19), [IMAGE, numbers(1, 3, 2, 2) / 6], {"mode": "bilinear"}),
    Case("GridSample", (16, 19), [IMAGE, numbers(1, 3, 2, 2) / 6], {"mode": "bicubic", "align_corners": 1}),
    Case("GridSample", (16, 19), [IMAGE, numbers(1, 3, 2, 2) / 6]),
    Case("GridSample", (16,), [IMAGE, numbers(1, 3, 2, 2) / 6], {"mode": "nearest"}),
    Case("RoiAlign", (10, 15), [IMAGE, _floats(0.3, 0.6, 4.2, 3.1, 0, 1, 2, 3).reshape(2, 4), _ints(0, 0)],
         {"output_height": 2, "output_width": 3, "sampling_ratio": 2}),
    Case("Scatter", (9, 10), [X, np.array([[[[1, 4]]]]), _floats(10, 20).reshape(1, 1, 1, 2)], {"axis": 3}),
    Case("Scatter", (9, 10), [ROW, np.array([[1]]), _floats(10).reshape(1, 1)]),
    Case("OneHot", (9, 10), [_ints(0, 2, 3), np.array(3), _floats(0, 1)], constants=(1,)),
    Case("GroupNormalization", (18, 20), [numbers(2, 6, 3), numbers(2), numbers(2, seed=1)], {"num_groups": 2}),
    Case("PRelu", (7, 8), [X, numbers(3, 1, 1)]),
    Case("Gemm", (7, 9, 10), [numbers(2, 3), numbers(3, 4), numbers(4)], {"alpha": 0.5}),
    Case("AveragePool", (7, 9, 10), [X], {"kernel_shape": [3, 2], "strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    Case("AveragePool", (10, 11, 18), [X], CEILED),
    Case("MaxPool", (8, 9, 10, 11), [X], {"kernel_shape": [3, 2], "strides": [2, 2], "auto_pad": "SAME_LOWER"}, 2),
    Case("MaxPool", (10, 11, 18), [X], CEILED),
    Case("ConvTranspose", (7, 10), [X, numbers(3, 2, 3, 3)], {"strides": [2, 2], "output_shape": [8, 10]}),
    Case("ConvTranspose", (7, 10), [X, numbers(3, 2, 3, 3)], {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    Case("LpPool", (7, 11), [X], {"kernel_shape": [2, 2], "p": 3}),
    Case("QuantizeLinear", (10, 12), [X, np.array(0.1, np.float32), np.array(3, np.uint8)]),
    Case("DequantizeLinear", (10, 12), [X.astype(np.int8), np.array(0.1, np.float32), np.array(3, np.int8)]),
    Case("Max", (7,), [X, -X]),
    Case("Mean", (7,), [X, X * X]),
    Case("Affine", (7,), [X], {"alpha": 2.0, "beta": 1.0}),
    Case("Affine", (7,), [X]),
    Case("Scale", (7,), [X], {"scale": 3.0}),
    Case("ImageScaler", (7,), [X], {"scale": 0.5, "bias": [1.0, 2.0, 3.0]}),
    Case("ScaledTanh", (7,), [X], {"alpha": 2.0, "beta": 0.5}),
    Case("ParametricSoftplus", (7,), [X], {"alpha": 2.0, "beta": 0.5}),
    Case("ThresholdedRelu", (7, 9), [X], {"alpha": 0.5}),
    Case("ThresholdedRelu", (7, 9), [X]),
    Case("Crop", (7,), [X], {"border": [1, 0, 2, 1]}),
    Case("Crop", (7,), [X], {"border": [1, 2, 0, 0], "scale": [2, 3]}),
    Case("DynamicSlice", (7,), [ROW, _ints(1, 2), _ints(2, 9), _ints(0, 1)]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("case", "version"),
    [pytest.param(c, v, id=f"{c.op}-{v}-{n}") for n, c in enumerate(CASES) for v in c.versions],
)
def test_same_as_onnxruntime(case: Case, version: int, tmp_path: Path) -> None:
    models = OldModels(tmp_path)
    expected = models.onnxruntime(case.op, version, case.inputs, case.outputs, **case.attributes)
    found = models.lite(case.op, version, case.inputs, case.outputs, case.constants, **case.attributes)
    assert len(found) == len(expected) == case.outputs
    for ours, theirs in zip(found, expected):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-5)
