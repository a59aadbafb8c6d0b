"""Prepared partitions for several shapes and numbers of threads share their weights, in the file and in memory."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lite_core
from lite_core import Graph, GraphBuilder, Session
from lite_core.container import ModelFile
from lite_core.processors import useful_threads
from lite_cpu.backend import CpuBackend

pytestmark = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="this is not an x86 processor")

Array = np.ndarray[Any, Any]

WIDTHS = (48, 80)
SHAPES = [{"x": (1, 8, 16, width)} for width in WIDTHS]
WEIGHTS = {"first": (32, 8, 3, 3), "second": (64, 32, 1, 1), "last": (64, 40)}


def network() -> Graph:
    """Build convolutions of a picture of any width, and a product of its mean."""
    random = np.random.default_rng(0)
    weights = {name: (0.1 * random.standard_normal(shape)).astype(np.float32) for name, shape in WEIGHTS.items()}
    b = GraphBuilder("any_width")
    y = b.add("Conv", [b.input("x", "float32", [1, 8, 16, "width"]), b.constant(weights["first"], "first")])
    y = b.add("Conv", [b.add("Relu", [y]), b.constant(weights["second"])])
    y = b.add("ReduceMean", [y, b.ints(2, 3)], {"keepdims": 0})
    b.output(b.add("MatMul", [y, b.constant(weights["last"])]), "y")
    return b.build()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "model.lite"


def picture(width: int) -> Array:
    return np.random.default_rng(width).standard_normal((1, 8, 16, width)).astype(np.float32)


def constants_of(session: Session, shapes: Mapping[str, tuple[int, ...]]) -> dict[int, int]:
    """Return address and size of each constant array that the program of a plan reads."""
    (compiled,) = session.plan(shapes).compiled
    owners = compiled.executable._program._owners  # type: ignore[attr-defined]
    return {array.ctypes.data: array.nbytes for array in owners if isinstance(array, np.ndarray)}


def test_widths_and_threads_share_packed_weights_in_the_file_and_in_memory(file: Path) -> None:
    report = lite_core.convert(network(), file, "x86", shapes=SHAPES, threads=[1, 2])
    assert report.agrees
    assert report.warnings == ()
    opened = ModelFile.open(file)
    plans = opened.targets[0].plans
    assert [(dict(plan.shapes), plan.threads) for plan in plans] == [(s, t) for s in SHAPES for t in (1, 2)]
    (_, *weights), *others = [plan.partitions[0].sections for plan in plans]
    assert all([*other[1:]] == weights for other in others)
    packed = [name for name in weights if name.startswith("packed/")]
    assert len(packed) == 2  # the first convolution's weights are made from its filters
    assert {plan.partitions[0].reads for plan in plans} == {("first",)}

    saved = {s.name: bytes(opened.section(s.name)) for s in opened.sections if s.name.startswith(("code/", "weights/"))}
    of_plans = {name for plan in plans for name in plan.partitions[0].sections if name in saved}
    of_other_sizes = {name for part in opened.targets[0].kernels for name in part.sections} - of_plans
    assert saved.keys() == of_plans | of_other_sizes
    assert len({*saved.values()}) == len(saved)  # each is stored once
    assert len(of_plans) == len(plans) + len(weights) - len(packed)
    assert report.targets[0].saved_bytes == sum(map(len, saved.values()))
    sizes = [s.size for s in opened.sections if s.name.startswith(("constants/", "weights/"))]
    weight_bytes = sum(4 * int(np.prod(shape)) for shape in WEIGHTS.values())
    assert weight_bytes <= sum(sizes) < 1.3 * weight_bytes  # panels are padded to whole vectors

    sessions = [lite_core.load(file, backend="x86", threads=threads) for threads in (1, 2)]
    used = [constants_of(session, shapes) for session, shapes in zip(sessions, SHAPES)]
    assert used[0] == used[1]
    mapped = {np.frombuffer(content, np.uint8).ctypes.data for content in opened.contents(packed)}
    assert mapped <= {*used[0]}
    for session, width in zip(sessions, WIDTHS):
        expected = lite_core.load(network(), backend="x86", threads=1).run(x=picture(width))["y"]
        np.testing.assert_allclose(session.run(x=picture(width))["y"], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("threads", [1, None])
def test_file_is_prepared_for_one_thread_and_for_all(
    file: Path, threads: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = lite_core.convert(network(), file, "x86", shapes=SHAPES)
    assert report.targets[0].threads == tuple(sorted({1, useful_threads()}))
    assert report.warnings == ()

    def compile(*arguments: Any) -> None:
        raise AssertionError("it is compiled, not restored")

    monkeypatch.setattr(CpuBackend, "compile", compile)
    session = lite_core.load(file, backend="x86", threads=threads)
    before = session.selection_log
    for width in WIDTHS:
        assert session.run(x=picture(width))["y"].shape == (1, 40)
    assert session.selection_log == before
