"""Conv: kinds, attributes and element types against the reference in float64, and which kernel is chosen."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opencl_convolution_case import ConvolutionCase as Case
from opencl_convolution_case import difference, labels

from lite_opencl.device.devices import FoundDevice

SAME = {"pads": (1, 1, 1, 1)}
POINTWISE = Case(24, 40, (9, 7), (1, 1))
DENSE = Case(8, 20, (9, 11), (3, 3), SAME)
DEPTHWISE = Case(20, 20, (13, 9), (3, 3), SAME, groups=20)

CASES = {
    "pointwise": POINTWISE,
    "pointwise-batch-residual": replace(POINTWISE, batch=3, tail="residual"),
    "pointwise-scale": replace(POINTWISE, tail="scale"),
    "pointwise-one-pixel": replace(POINTWISE, size=(1, 1), batch=2),
    "pointwise-five-pixels": replace(POINTWISE, size=(5, 1)),
    "pointwise-stride": replace(POINTWISE, attributes={"strides": (2, 3)}),
    "pointwise-padding": replace(POINTWISE, attributes=SAME),
    "pointwise-groups": replace(POINTWISE, groups=4),
    "pointwise-weights-of-the-run": replace(POINTWISE, weights="input"),
    "dense": DENSE,
    "dense-residual": replace(DENSE, tail="residual", batch=2),
    "dense-weights-of-the-run": replace(DENSE, weights="input"),
    "dense-stride": replace(DENSE, attributes={"strides": (2, 2), **SAME}),
    "dense-uneven": replace(DENSE, attributes={"strides": (3, 2), "pads": (0, 2, 3, 1), "dilations": (2, 3)}),
    "dense-groups": replace(DENSE, groups=4),
    "first-layer": Case(3, 16, (33, 31), (7, 7), {"strides": (2, 2), "pads": (3, 3, 3, 3)}),
    "same-upper": replace(DENSE, attributes={"auto_pad": "SAME_UPPER", "strides": (2, 2)}),
    "same-lower": replace(DENSE, kernel=(4, 2), attributes={"auto_pad": "SAME_LOWER"}),
    "valid": replace(DENSE, attributes={"auto_pad": "VALID"}),
    "wide-padding": replace(DENSE, size=(2, 1), attributes={"pads": (5, 6, 7, 5)}),
    "line": Case(6, 10, (17,), (5,), {"pads": (2, 1), "strides": (2,)}),
    "volume": Case(4, 7, (5, 6, 7), (3, 2, 3), {"pads": (1, 0, 1, 1, 1, 0), "strides": (2, 1, 2)}, batch=2),
    "volume-dilated": Case(4, 6, (7, 5, 6), (3, 3, 1), {"dilations": (2, 1, 1)}, groups=2, tail="residual"),
    "depthwise": DEPTHWISE,
    "depthwise-stride": replace(DEPTHWISE, attributes={"strides": (2, 2), **SAME}, tail="residual"),
    "depthwise-5x5": replace(DEPTHWISE, kernel=(5, 5), attributes={"pads": (2, 2, 2, 2)}, batch=2),
    "depthwise-multiplier": replace(DEPTHWISE, outputs=60),
    "depthwise-dilated": replace(DEPTHWISE, attributes={"dilations": (2, 3)}),
    "depthwise-narrow": replace(DEPTHWISE, size=(6, 3)),
    "depthwise-wide": replace(DEPTHWISE, channels=3, outputs=3, groups=3, size=(5, 120), tail="scale"),
    "depthwise-weights-of-the-run": replace(DEPTHWISE, weights="input"),
}


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_the_reference(name: str) -> None:
    assert difference(CASES[name]) < 2e-6


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-14), ("float16", 1e-3), ("bfloat16", 1e-2)])
@pytest.mark.parametrize("name", ["pointwise-batch-residual", "dense-residual", "depthwise-stride", "first-layer"])
def test_element_types(name: str, dtype: str, tolerance: float) -> None:
    assert difference(CASES[name], dtype) < tolerance


@pytest.mark.parametrize("name", ["pointwise-batch-residual", "dense-uneven", "depthwise-stride", "volume", "line"])
def test_the_kernels_for_gpus_agree_too(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FoundDevice, "is_gpu", True)
    assert difference(CASES[name]) < 2e-6


def test_winograd_for_gpus_agrees_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FoundDevice, "is_gpu", True)
    case = Case(64, 64, (21, 18), (3, 3), SAME, tail="residual", batch=2)
    assert "winograd_product" in labels(case)
    assert difference(case) < 1e-5


@settings(max_examples=15, deadline=None, derandomize=True)
@given(data=st.data())
def test_agrees_with_the_reference_in_any_shape(data: st.DataObject) -> None:
    def draw(lowest: int, highest: int) -> int:
        return data.draw(st.integers(lowest, highest))

    groups = draw(1, 3)
    kernel, dilations, strides = ((draw(1, 4), draw(1, 4)), (draw(1, 2), draw(1, 2)), (draw(1, 3), draw(1, 3)))
    case = Case(
        groups * draw(1, 9),
        groups * draw(1, 13),
        (draw(7, 20), draw(7, 40)),
        kernel,
        {"strides": strides, "dilations": dilations, "pads": tuple(draw(0, 3) for _ in range(4))},
        groups=groups,
        batch=draw(1, 2),
        tail=data.draw(st.sampled_from(("", "relu", "residual", "scale"))),
    )
    assert difference(case) < 5e-6


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("pointwise", ["convolution_gemm"]),
        ("pointwise-stride", ["convolution_phases", "convolution_gemm"]),
        ("dense", ["convolution_phases", "convolution_gemm"]),
        ("depthwise", ["convolution_phases", "convolution_depthwise"]),
        ("depthwise-multiplier", ["convolution_phases", "convolution_depthwise"]),
    ],
)
def test_which_kernels_are_chosen(name: str, steps: list[str]) -> None:
    assert labels(CASES[name]) == steps
