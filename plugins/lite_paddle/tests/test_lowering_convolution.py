"""Convolutions against Paddle: paddings, layouts, transposed ones with given sizes, deformable ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hand_made import graph_of, run
from paddle_cases import Case, check, parametrize_cases

from lite_core.errors import UnsupportedOperatorError

RNG = np.random.default_rng(0)


def array(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.standard_normal(shape).astype(np.float32)


X = array(2, 4, 9, 7)
OPEN = [(None, 4, None, None)]


def conv(channels: int = 4, out: int = 6, kernel: Any = 3, **options: Any) -> Callable[[Any], Any]:
    return lambda p: p.nn.Conv2D(channels, out, kernel, **options)


def transposed(channels: int = 4, out: int = 6, kernel: Any = 3, **options: Any) -> Callable[[Any], Any]:
    return lambda p: p.nn.Conv2DTranspose(channels, out, kernel, **options)


WEIGHT = array(4, 6, 3, 3)


def transposed_to(size: list[int], **options: Any) -> Callable[[Any], Any]:
    return lambda p: lambda x, w: p.nn.functional.conv2d_transpose(x, w, output_size=size, **options)


def deformable(groups: int = 1) -> Callable[[Any], Any]:
    options = {"padding": 1, "stride": 2, "deformable_groups": 2, "groups": groups}

    def build(p: Any) -> Any:
        return lambda x, offset, w, mask=None: p.vision.ops.deform_conv2d(x, offset, w, mask=mask, **options)

    return build


OFFSETS, MASK = array(2, 36, 5, 4), np.abs(array(2, 18, 5, 4))

CASES = [
    Case("plain", conv(), [X]),
    Case("open_size", conv(padding=1), [X], shapes=OPEN),
    Case("no_bias", conv(bias_attr=False), [X]),
    Case("strided", conv(stride=2, padding=1), [X]),
    Case("dilated", conv(dilation=2, padding=2), [X]),
    Case("four_pads", conv(padding=[1, 2, 0, 3]), [X]),
    Case("same", conv(padding="SAME", stride=2), [X]),
    Case("same_open", conv(padding="SAME", stride=2), [X], shapes=OPEN),
    Case("same_ignores_dilation", conv(padding="SAME", dilation=2), [X]),
    Case("valid", conv(padding="VALID", kernel=(3, 5)), [X]),
    Case("grouped", conv(groups=2), [X]),
    Case("depthwise", conv(out=8, groups=4, padding=1), [X]),
    Case("channels_last", conv(padding=1, data_format="NHWC"), [X.transpose(0, 2, 3, 1).copy()]),
    Case("one_axis", lambda p: p.nn.Conv1D(4, 5, 3, padding=1), [X[:, :, 0]]),
    Case("three_axes", lambda p: p.nn.Conv3D(2, 3, 3, padding=1, stride=2), [array(1, 2, 5, 6, 7)]),
    Case("three_axes_six_pads", lambda p: p.nn.Conv3D(2, 3, 3, padding=[1, 0, 2, 1, 0, 1]), [array(1, 2, 5, 6, 7)]),
    Case("three_axes_same", lambda p: p.nn.Conv3D(2, 3, 2, padding="SAME", stride=2), [array(1, 2, 5, 6, 7)]),
    Case("three_axes_last", lambda p: p.nn.Conv3D(2, 3, 3, data_format="NDHWC"), [array(1, 5, 6, 7, 2)]),
    Case("transposed", transposed(stride=2, padding=1), [X]),
    Case("transposed_open", transposed(stride=2, padding=1), [X], shapes=OPEN),
    Case("transposed_output_padding", transposed(stride=2, padding=1, output_padding=1), [X]),
    Case("transposed_four_pads", transposed(stride=2, padding=[1, 0, 2, 1]), [X]),
    Case("transposed_dilated", transposed(stride=2, dilation=2), [X]),
    Case("transposed_same", transposed(stride=2, padding="SAME"), [X[:, :, :3, :5]]),
    Case("transposed_same_open", transposed(stride=2, padding="SAME"), [X[:, :, :3, :5]], shapes=OPEN),
    Case("transposed_valid", transposed(stride=3, padding="VALID"), [X]),
    Case("transposed_grouped", transposed(stride=2, groups=2), [X]),
    Case("transposed_depthwise", transposed(out=4, stride=2, groups=4), [X]),
    Case("transposed_last", transposed(stride=2, data_format="NHWC"), [X.transpose(0, 2, 3, 1).copy()]),
    Case("transposed_to_size", transposed_to([18, 14], stride=2, padding=1), [X, WEIGHT]),
    Case(
        "transposed_to_size_open",
        transposed_to([18, 14], stride=2, padding=1),
        [X, WEIGHT],
        shapes=[*OPEN, (4, 6, 3, 3)],
    ),
    Case("transposed_three_axes", lambda p: p.nn.Conv3DTranspose(2, 3, 3, stride=2, padding=1), [array(1, 2, 3, 4, 5)]),
    Case("transposed_one_axis", lambda p: p.nn.Conv1DTranspose(4, 5, 3, stride=2), [X[:, :, 0]]),
    Case("deformable", deformable(), [X, OFFSETS, array(6, 4, 3, 3), MASK]),
    Case("deformable_grouped", deformable(2), [X, OFFSETS, array(6, 2, 3, 3), MASK]),
    Case("deformable_without_mask", deformable(), [X, OFFSETS, array(6, 4, 3, 3)]),
]


@parametrize_cases(CASES)
def test_matches_paddle(case: Case, kind: str, paddle_models: Callable[[str], Path]) -> None:
    check(case, paddle_models(kind), kind)


def test_defaults_of_a_file_of_paddle_1() -> None:
    x, w = array(1, 1, 4, 4), array(1, 1, 3, 3)
    (y,) = run("conv2d", {"Input": x, "Filter": w}, outputs=["Output"], version=1_006_000)
    expected = [[np.sum(x[0, 0, i : i + 3, j : j + 3] * w[0, 0]) for j in range(2)] for i in range(2)]
    np.testing.assert_allclose(y[0, 0], expected, rtol=1e-5)


def test_fused_activation_bias_and_residual() -> None:
    x, w, bias, residual = array(1, 2, 4, 4), array(3, 2, 1, 1), array(3), array(1, 3, 4, 4)
    (y,) = run(
        "conv2d",
        {"Input": x, "Filter": w, "Bias": bias, "ResidualData": residual},
        {"fuse_activation": "leaky_relu", "fuse_alpha": 0.25},
        outputs=["Output"],
    )
    plain = np.einsum("nchw,oc->nohw", x, w[:, :, 0, 0]) + bias[:, None, None] + residual
    np.testing.assert_allclose(y, np.where(plain > 0, plain, 0.25 * plain), rtol=1e-4, atol=1e-5)
    (y,) = run("conv2d", {"Input": x, "Filter": w}, {"fuse_relu": True}, outputs=["Output"])
    np.testing.assert_allclose(y, np.maximum(np.einsum("nchw,oc->nohw", x, w[:, :, 0, 0]), 0), rtol=1e-4, atol=1e-5)


def test_bias_of_a_transposed_convolution() -> None:
    x, w, bias = array(1, 2, 3, 3), array(2, 3, 1, 1), array(3)
    (y,) = run("conv2d_transpose", {"Input": x, "Filter": w, "Bias": bias}, outputs=["Output"])
    np.testing.assert_allclose(
        y, np.einsum("nchw,co->nohw", x, w[:, :, 0, 0]) + bias[:, None, None], rtol=1e-4, atol=1e-5
    )


def test_a_convolution_of_open_size_is_one_node() -> None:
    graph = graph_of(
        "conv2d",
        {"Input": X, "Filter": array(6, 4, 3, 3)},
        {"padding_algorithm": "SAME", "strides": [2, 2]},
        outputs=["Output"],
        shapes={"Input": (-1, 4, -1, -1)},
    )
    assert [n.op for n in graph.nodes] == ["Conv"]


def test_impossible_output_size_is_refused() -> None:
    with pytest.raises(UnsupportedOperatorError, match="output_size 30 must be at least 17 and less than"):
        run(
            "conv2d_transpose",
            {"Input": X, "Filter": array(4, 2, 3, 3)},
            {"strides": [2, 2], "paddings": [1, 1], "output_size": [30, 13]},
            outputs=["Output"],
        )
