"""Conv: tiles, tails and kernels of GPUs against the reference in float64, and the choice of kernels."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opencl_convolution_case import ConvolutionCase as Case
from opencl_convolution_case import difference, labels
from tiers import in_part

from lite_opencl.device.devices import FoundDevice

SAME = {"pads": (1, 1, 1, 1)}
POINTWISE = Case(24, 40, (9, 7), (1, 1))
DENSE = Case(8, 20, (9, 11), (3, 3), SAME)
DEPTHWISE = Case(20, 20, (13, 9), (3, 3), SAME, groups=20)

CASES = {
    "pointwise-batch-residual": replace(POINTWISE, batch=3, tail="residual"),
    "pointwise-scale": replace(POINTWISE, tail="scale"),
    "pointwise-one-pixel": replace(POINTWISE, size=(1, 1), batch=2),
    "pointwise-five-pixels": replace(POINTWISE, size=(5, 1)),
    "pointwise-weights-of-the-run": replace(POINTWISE, weights="input"),
    "dense-residual": replace(DENSE, tail="residual", batch=2),
    "dense-weights-of-the-run": replace(DENSE, weights="input"),
    "first-layer": Case(3, 16, (33, 31), (7, 7), {"strides": (2, 2), "pads": (3, 3, 3, 3)}),
    "depthwise-stride": replace(DEPTHWISE, attributes={"strides": (2, 2), **SAME}, tail="residual"),
    "depthwise-5x5": replace(DEPTHWISE, kernel=(5, 5), attributes={"pads": (2, 2, 2, 2)}, batch=2),
    "depthwise-narrow": replace(DEPTHWISE, size=(6, 3)),
    "depthwise-wide": replace(DEPTHWISE, channels=3, outputs=3, groups=3, size=(5, 120), tail="scale"),
    "depthwise-weights-of-the-run": replace(DEPTHWISE, weights="input"),
}
GPU_CASES = {
    "pointwise": CASES["pointwise-batch-residual"],
    "dense-uneven": replace(DENSE, attributes={"strides": (3, 2), "pads": (0, 2, 3, 1), "dilations": (2, 3)}),
    "depthwise": CASES["depthwise-stride"],
    "volume": Case(4, 7, (5, 6, 7), (3, 2, 3), {"pads": (1, 0, 1, 1, 1, 0), "strides": (2, 1, 2)}, batch=2),
    "line": Case(6, 10, (17,), (5,), {"pads": (2, 1), "strides": (2,)}),
}


@pytest.mark.parametrize("name", in_part("opencl", CASES, ["depthwise-stride"]))
def test_agrees_with_the_reference(name: str) -> None:
    assert difference(CASES[name]) < 2e-6


@pytest.mark.full("opencl")
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-14), ("float16", 1e-3), ("bfloat16", 1e-2)])
@pytest.mark.parametrize("name", ["dense-residual", "depthwise-stride"])
def test_tails_in_other_types(name: str, dtype: str, tolerance: float) -> None:
    assert difference(CASES[name], dtype) < tolerance


@pytest.mark.parametrize("name", in_part("opencl", GPU_CASES, ["dense-uneven"]))
def test_gpu_kernels_agree_with_the_reference(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FoundDevice, "is_gpu", True)
    assert difference(GPU_CASES[name]) < 2e-6


@pytest.mark.full("opencl")
def test_gpu_winograd_agrees_with_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FoundDevice, "is_gpu", True)
    case = Case(64, 64, (21, 18), (3, 3), SAME, tail="residual", batch=2)
    assert "winograd_product" in labels(case)
    assert difference(case) < 1e-5


@pytest.mark.full("opencl")
@settings(max_examples=15, deadline=None, derandomize=True)
@given(data=st.data())
def test_random_shapes_agree_with_the_reference(data: st.DataObject) -> None:
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
    ("case", "steps"),
    [
        (POINTWISE, ["convolution_gemm"]),
        (replace(POINTWISE, attributes={"strides": (2, 3)}), ["convolution_phases", "convolution_gemm"]),
        (DENSE, ["convolution_phases", "convolution_gemm"]),
        (DEPTHWISE, ["convolution_phases", "convolution_depthwise"]),
        (replace(DEPTHWISE, outputs=60), ["convolution_phases", "convolution_depthwise"]),
    ],
)
def test_kernel_choice(case: Case, steps: list[str]) -> None:
    assert labels(case) == steps
