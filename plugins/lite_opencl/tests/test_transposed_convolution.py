"""ConvTranspose: tails, packed weights and phases against the reference in float64."""

from __future__ import annotations

from dataclasses import replace

import pytest
from opencl_convolution_case import ConvolutionCase as Case
from opencl_convolution_case import difference, labels
from tiers import in_part

TWICE = Case(8, 16, (7, 5), (2, 2), {"strides": (2, 2)}, op="ConvTranspose")


def like(kernel: int, pads: int = 0, strides: tuple[int, int] = (2, 2), **more: object) -> Case:
    return replace(TWICE, kernel=(kernel, kernel), attributes={"strides": strides, "pads": (pads,) * 4, **more})


CASES = {
    "2x2-stride-2-residual": replace(TWICE, batch=2, tail="residual"),
    "2x2-stride-2-one-channel": replace(TWICE, outputs=1, batch=2),
    "2x2-stride-2-groups": replace(TWICE, groups=2, tail="scale"),
    "2x2-stride-2-weights-of-the-run": replace(TWICE, weights="input"),
    "4x4-stride-2": like(4, 1),
    "3x3-stride-1": replace(like(3, 1, strides=(1, 1)), channels=64, size=(9, 9)),
    "3x3-weights-of-the-run": replace(like(3, 1), weights="input"),
    "dilation-against-stride": like(3, strides=(3, 1), dilations=(2, 3)),
    "dilation-shares-a-factor": like(3, strides=(4, 2), dilations=(2, 2)),
}


@pytest.mark.parametrize("name", in_part("opencl", CASES, ["2x2-stride-2-residual"]))
def test_agrees_with_the_reference(name: str) -> None:
    assert difference(CASES[name]) < 2e-6


def test_windows_that_do_not_overlap_need_no_padding_step() -> None:
    assert labels(TWICE) == ["transposed_convolution"] * 4
