"""ConvTranspose: strides, pads and sizes against the reference in float64."""

from __future__ import annotations

from dataclasses import replace

import pytest
from opencl_convolution_case import ConvolutionCase as Case
from opencl_convolution_case import difference, labels

TWICE = Case(8, 16, (7, 5), (2, 2), {"strides": (2, 2)}, op="ConvTranspose")


def like(kernel: int, pads: int = 0, strides: tuple[int, int] = (2, 2), **more: object) -> Case:
    return replace(TWICE, kernel=(kernel, kernel), attributes={"strides": strides, "pads": (pads,) * 4, **more})


SAME_SIZE = {"strides": (2, 2)}
CASES = {
    "2x2-stride-2": TWICE,
    "2x2-stride-2-residual": replace(TWICE, batch=2, tail="residual"),
    "2x2-stride-2-one-channel": replace(TWICE, outputs=1, batch=2),
    "2x2-stride-2-groups": replace(TWICE, groups=2, tail="scale"),
    "2x2-stride-2-weights-of-the-run": replace(TWICE, weights="input"),
    "4x4-stride-2": like(4, 1),
    "3x3-stride-2-groups": replace(like(3, 1, output_padding=(1, 1)), groups=2),
    "3x3-stride-1": replace(like(3, 1, strides=(1, 1)), channels=64, size=(9, 9)),
    "3x3-weights-of-the-run": replace(like(3, 1), weights="input"),
    "dilation-against-stride": like(3, strides=(3, 1), dilations=(2, 3)),
    "dilation-shares-a-factor": like(3, strides=(4, 2), dilations=(2, 2)),
    "more-stride-than-kernel": like(2, strides=(3, 3), output_padding=(2, 0)),
    "pads-that-cut-off-inputs": like(3, 3),
    "same-upper": replace(TWICE, kernel=(3, 3), attributes={**SAME_SIZE, "auto_pad": "SAME_UPPER"}),
    "same-lower": replace(TWICE, kernel=(3, 3), attributes={**SAME_SIZE, "auto_pad": "SAME_LOWER"}),
    "larger-than-covered": replace(TWICE, kernel=(3, 3), attributes={**SAME_SIZE, "output_shape": (16, 14)}),
    "smaller-than-covered": replace(TWICE, kernel=(3, 3), attributes={**SAME_SIZE, "output_shape": (11, 9)}),
    "line": replace(TWICE, size=(9,), kernel=(4,), attributes={"strides": (2,), "pads": (1, 1)}),
    "volume": replace(TWICE, size=(3, 4, 5), kernel=(2, 3, 3), attributes={"strides": (2, 1, 3)}, batch=2),
}


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_the_reference(name: str) -> None:
    assert difference(CASES[name]) < 2e-6


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-14), ("float16", 1e-3), ("bfloat16", 1e-2)])
def test_element_types(dtype: str, tolerance: float) -> None:
    assert difference(CASES["4x4-stride-2"], dtype) < tolerance


def test_windows_that_do_not_overlap_are_read_where_they_lie() -> None:
    assert labels(TWICE) == ["transposed_convolution"] * 4
