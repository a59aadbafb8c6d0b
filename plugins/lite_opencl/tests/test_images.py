"""Weights as images: agreement with the reference, choice, saving and restoring."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from opencl_convolution_case import ConvolutionCase as Case
from opencl_convolution_case import difference
from opencl_device import first_device, first_runtime

import lite_core as lite
from lite_compiler.tournaments.chooser import Chooser
from lite_core.backend import Options
from lite_core.ir import DType
from lite_core.ops.evaluate import evaluate_graph
from lite_opencl.compiled.launches import ImageLocation
from lite_opencl.device.devices import FoundDevice, _image_texels
from lite_opencl.device.images import ConstantImage, fits_image
from lite_opencl.lowering import compile as compiler
from lite_opencl.lowering.compile import lower_graph
from lite_opencl.lowering.steps import PlannedStep
from lite_opencl.tuning.stopwatch import Stopwatch
from lite_opencl.tuning.table import TuningTable

SAME = {"pads": (1, 1, 1, 1)}
POINTWISE = Case(24, 40, (9, 7), (1, 1))
DENSE = Case(8, 20, (9, 11), (3, 3), SAME)

CASES = {
    "pointwise-groups": replace(POINTWISE, groups=4),
    "pointwise-batch-residual": replace(POINTWISE, batch=3, tail="residual"),
    "dense": DENSE,
    "dense-groups": replace(DENSE, groups=2, batch=2),
    "dense-stride": replace(DENSE, attributes={"strides": (2, 2), **SAME}),
    "odd-channels": Case(7, 13, (6, 9), (3, 2)),
    "fewer-channels-than-rows": Case(5, 3, (17, 19), (3, 3), SAME),
    "volume": Case(4, 7, (5, 6, 7), (3, 2, 3), {"pads": (1, 0, 1, 1, 1, 0), "strides": (2, 1, 2)}, batch=2),
    "winograd": Case(64, 64, (21, 18), (3, 3), SAME, tail="residual", batch=2),
    "transposed": Case(6, 10, (7, 5), (3, 3), {"strides": (2, 2)}, op="ConvTranspose"),
}
ROWS_CASES = ["pointwise-groups", "dense", "odd-channels"]


@pytest.fixture
def runtime() -> Any:
    """Return the runtime of a device with images."""
    runtime = first_runtime()
    if not runtime.found.image_texels:
        pytest.skip(f"{runtime.name} has no images over buffers")
    return runtime


def take_images(monkeypatch: pytest.MonkeyPatch, rows: int | None = None) -> list[int]:
    """Choose images wherever they are candidates, of so many rows if given. Return a list that gets the chosen rows."""
    taken: list[int] = []

    def choose(_: Chooser[Any], problem: str, candidates: Sequence[Any], steps: Callable[..., Any]) -> Any:
        assert not getattr(candidates[0], "image", False), "images must not be chosen without measuring"
        fitting = (c for c in candidates if getattr(c, "image", False) and rows in (None, c.rows))
        chosen = next(fitting, candidates[0])
        if chosen is not candidates[0]:
            taken.append(chosen.rows)
        return chosen

    monkeypatch.setattr(Chooser, "choose", choose)
    return taken


def images_of(case: Case, runtime: Any, dtype: str = "float32", **options: Any) -> list[ConstantImage]:
    """Return the images that a case reads, without compiling it."""
    return images_in(lower_graph(case.graph(dtype), Options(**options), runtime).steps)


def images_in(steps: Sequence[PlannedStep]) -> list[ConstantImage]:
    return [a for step in steps for a in step.arguments if isinstance(a, ConstantImage)]


@pytest.mark.full("opencl")
@pytest.mark.parametrize("name", [name for name in CASES if name not in ROWS_CASES])
def test_agrees_with_the_reference(name: str, runtime: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = take_images(monkeypatch)
    assert difference(CASES[name]) < 1e-5
    assert taken


@pytest.mark.full("opencl")
@pytest.mark.parametrize("rows", [4, 8])
@pytest.mark.parametrize("name", ROWS_CASES)
def test_images_with_every_number_of_rows(name: str, rows: int, runtime: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = take_images(monkeypatch, rows)
    assert difference(CASES[name]) < 2e-6
    assert taken == [rows]


@pytest.mark.full("opencl")
@pytest.mark.parametrize("rows", [4, 8, 16])
@pytest.mark.parametrize("name", ["pointwise-groups", "dense-stride", "winograd"])
def test_images_in_gpu_tiles(name: str, rows: int, runtime: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FoundDevice, "is_gpu", True)
    taken = take_images(monkeypatch, rows)
    assert difference(replace(CASES[name], size=(43, 41))) < 1e-5
    assert taken == [rows]


@pytest.mark.full("opencl")
def test_float16_weights_are_read_as_images(runtime: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """GPUs keep 16-bit weights, and read them as an image of 16-bit floats."""
    monkeypatch.setattr(FoundDevice, "is_gpu", True)
    taken = take_images(monkeypatch)
    assert difference(DENSE, "float16") < 1e-3
    assert taken
    assert [image.tensor.dtype for image in images_of(DENSE, runtime, "float16")] == [DType.FLOAT16]


def test_image_and_buffer_share_an_upload(runtime: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FoundDevice, "is_gpu", True)
    graph = replace(DENSE, size=(43, 41)).graph("float32")
    in_buffers = lower_graph(graph, Options(), runtime).steps[-1]
    take_images(monkeypatch, dict(in_buffers.kernel.defines)["ROWS"])
    (image,) = images_in(lower_graph(graph, Options(), runtime).steps)
    assert image.constant in [tensor.storage.memory for tensor in in_buffers.tensors]
    assert runtime.images.get(image.constant, DType.FLOAT32) is runtime.images.get(image.constant, DType.FLOAT32)


def test_images_are_not_used_by_default(runtime: Any) -> None:
    assert not images_of(DENSE, runtime)


@pytest.mark.full("opencl")
@pytest.mark.parametrize("seconds", [0.5, 2.0])
def test_images_are_used_if_measured_to_be_faster(
    seconds: float, runtime: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Images take ``seconds``, everything else takes 1 second."""
    measure = Stopwatch(runtime)

    def compare(steps: Sequence[PlannedStep], others: Sequence[PlannedStep]) -> tuple[float, float]:
        are_images = [bool(images_in(steps)), bool(images_in(others))]
        if are_images == [False, True]:
            assert all(map(isfinite, measure(steps, others)))
        first, second = (seconds if is_image else 1.0 for is_image in are_images)
        return first, second

    monkeypatch.setattr(compiler, "Stopwatch", lambda _: compare)
    monkeypatch.setattr(runtime, "tuning", TuningTable(runtime.found, None))
    assert len(images_of(DENSE, runtime, tune=True)) == (1 if seconds < 1 else 0)


@pytest.mark.parametrize(
    ("kind", "case"),
    [
        ("weights of the run", replace(DENSE, weights="input")),
        ("depthwise", Case(20, 20, (13, 9), (3, 3), SAME, groups=20)),
    ],
)
def test_images_need_known_weights_of_a_product(
    kind: str, case: Case, runtime: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = take_images(monkeypatch)
    assert not images_of(case, runtime)
    assert not taken


@pytest.mark.parametrize("texels", [0, 8 * 24 * 9 // 4 - 1])
def test_images_are_limited_by_the_device(texels: int, runtime: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The device has no images, or only ones smaller than the 8 x 3 x 3 weights of 20 output channels, padded to 24."""
    taken = take_images(monkeypatch, 8)
    monkeypatch.setattr(FoundDevice, "image_texels", texels)
    assert not images_of(DENSE, runtime, exact=True)
    monkeypatch.setattr(FoundDevice, "image_texels", 8 * 24 * 9 // 4)
    assert len(images_of(DENSE, runtime, exact=True)) == 1
    assert taken == [8]


@pytest.mark.parametrize(
    ("dtype", "size", "fits"),
    [
        (DType.FLOAT32, 16, True),
        (DType.FLOAT16, 16, True),
        (DType.FLOAT32, 0, False),
        (DType.FLOAT32, 18, False),
        (DType.FLOAT32, 20, False),
        (DType.FLOAT64, 16, False),
        (DType.BFLOAT16, 16, False),
        (DType.INT32, 16, False),
    ],
)
def test_fits_image(dtype: DType, size: int, fits: bool, runtime: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FoundDevice, "image_texels", 4)
    assert fits_image(runtime.found, dtype, size) is fits


def test_images_are_saved_and_restored(runtime: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The launches in a model file contain the locations of packed weights that are read as images."""
    take_images(monkeypatch)
    graph, (given,) = DENSE.graph("float32"), DENSE.inputs()
    label = first_device()[1].label
    lite.convert(graph, tmp_path / "dense.lite", label)
    monkeypatch.undo()
    monkeypatch.delattr(compiler, "lower_graph")  # a restored partition is not lowered
    session = lite.load(tmp_path / "dense.lite", label, fallback="never")
    (compiled,) = session.plan({"x": given.shape}).compiled
    executable: Any = compiled.executable
    arguments = [a for launch in executable.compiled.launches for a in launch.arguments]
    assert [a.dtype for a in arguments if isinstance(a, ImageLocation)] == ["float32"]
    (found,) = session.run({"x": given}).values()
    np.testing.assert_allclose(found, evaluate_graph(graph, [given])[0], rtol=1e-4, atol=1e-5)


class _OldDevice:
    """A device before OpenCL 1.2, which has images, but not over buffers."""

    image_support = True

    @property
    def image_max_buffer_size(self) -> int:
        raise cl.LogicError("clGetDeviceInfo", cl.status_code.INVALID_VALUE)


def test_devices_without_images_over_buffers() -> None:
    assert _image_texels(cl, _OldDevice()) == 0
    assert _image_texels(cl, SimpleNamespace(image_support=False, image_max_buffer_size=65536)) == 0
    assert _image_texels(cl, SimpleNamespace(image_support=True, image_max_buffer_size=65536)) == 65536
