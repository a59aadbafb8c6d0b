"""Tests of the choice between MKL and Lite's own kernels: settings, measurement, stored times, and computed results."""

from __future__ import annotations

import json
import logging
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lite_core as lite
from lite_core.plugins.backends import plugins_with
from lite_core.schedule.profile import RunProfile
from lite_cpu.machine_code.cache import KernelCache
from lite_cpu.machine_code.library import KernelLibrary
from lite_x86 import detect, mkl, mkl_choice
from lite_x86.backend import X86Backend
from lite_x86.mkl_choice import Choice, Times, choose
from lite_x86.options import MklSetting, mkl_setting

x86 = pytest.mark.skipif(not detect.is_x86_64(), reason="not an x86-64 processor")
FASTER, SLOWER = Times(mkl=0.002, own=0.0024), Times(mkl=0.0026, own=0.0024)
AUTO, ALWAYS = mkl_setting({}, {}), mkl_setting({}, {"LITE_MKL": "always"})

pytestmark = x86


def found(*, sequential: bool = True) -> mkl.Search:
    """Return a search that found an MKL, which tests must not call."""
    return mkl.Search("2026.2 at mkl_rt", mkl.Mkl(Path("mkl_rt"), "2026.2", sequential, 0x1000, 0x2000))


@pytest.fixture
def library(tmp_path: Path) -> KernelLibrary:
    return KernelLibrary(detect.this_machine(), KernelCache(tmp_path / "kernels"))


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[Times]:
    """A list of times that replace measurements, used from the end."""
    times: list[Times] = []
    monkeypatch.setattr(mkl_choice, "_measure", lambda sgemm, library: times.pop())
    return times


# **** the choice ****


def test_without_mkl_own_kernels_are_chosen(library: KernelLibrary, caplog: pytest.LogCaptureFixture) -> None:
    assert choose(AUTO, mkl.Search("not found"), library) == Choice(None, "")
    assert not caplog.records
    choose(ALWAYS, mkl.Search("not found"), library)
    assert [r.message for r in caplog.records] == ["LITE_MKL=always has no effect, MKL: not found"]


def test_faster_mkl_is_used(library: KernelLibrary, measured: list[Times]) -> None:
    measured.append(FASTER)
    choice = choose(AUTO, found(), library)
    assert choice.sgemm is not None
    assert (choice.sgemm.name, choice.sgemm.address) == ("MKL", 0x1000)
    times = "512 x 512 x 512 took 2.0 ms, own kernels 2.4 ms"
    assert choice.reason == f"MKL 2026.2 computes large matrix products: {times}"


def test_slower_mkl_is_not_used(
    library: KernelLibrary, measured: list[Times], caplog: pytest.LogCaptureFixture
) -> None:
    measured.append(SLOWER)
    caplog.set_level(logging.INFO, "lite.x86.mkl")
    reason = "MKL 2026.2 found, not used: 512 x 512 x 512 took 2.6 ms, own kernels 2.4 ms"
    assert choose(AUTO, found(), library) == Choice(None, reason)
    assert [r.message for r in caplog.records] == [reason]


@pytest.mark.parametrize(("mkl_ms", "faster"), [(94.9, True), (95.1, False), (100, False)])
def test_small_gain_does_not_count(mkl_ms: float, faster: bool) -> None:
    assert Times(mkl_ms, 100).mkl_is_faster is faster


def test_always_is_not_measured(library: KernelLibrary, measured: list[Times]) -> None:
    choice = choose(ALWAYS, found(), library)
    assert choice.sgemm is not None
    assert choice.reason == "MKL 2026.2 computes large matrix products: LITE_MKL=always"


@pytest.mark.parametrize("setting", [AUTO, ALWAYS])
def test_mkl_with_threads_is_rejected(library: KernelLibrary, setting: MklSetting) -> None:
    reason = "MKL 2026.2 found, not used: other code in this process uses it with threads"
    assert choose(setting, found(sequential=False), library) == Choice(None, reason)


# **** stored times ****


def test_times_are_measured_once_on_a_machine(library: KernelLibrary, measured: list[Times]) -> None:
    measured += [SLOWER, FASTER]
    first = choose(AUTO, found(), library)
    assert choose(AUTO, found(), library) == first
    assert measured == [SLOWER]


def test_damaged_file_is_replaced_by_a_new_measurement(
    library: KernelLibrary, measured: list[Times], caplog: pytest.LogCaptureFixture
) -> None:
    measured += [SLOWER, FASTER]
    choose(AUTO, found(), library)
    assert library.cache.folder is not None
    (file,) = library.cache.folder.glob("sgemm-*.json")
    file.write_text('{"mkl_seconds": ')
    assert choose(AUTO, found(), library).sgemm is None
    assert f"{file} cannot be read" in caplog.text
    assert json.loads(file.read_text())["mkl_seconds"] == SLOWER.mkl


def test_unwritable_folder_is_a_warning(
    tmp_path: Path, measured: list[Times], caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    measured.append(FASTER)
    library = KernelLibrary(detect.this_machine(), KernelCache(tmp_path / "file"))
    with caplog.at_level(logging.WARNING, "lite.x86.mkl"):
        assert choose(AUTO, found(), library).sgemm is not None
    assert f"{tmp_path / 'file'} cannot be used" in caplog.text


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="this system has no user ids")
@pytest.mark.parametrize("unsafe", ["folder", "file"])
def test_times_that_others_can_change_are_measured_again(tmp_path: Path, measured: list[Times], unsafe: str) -> None:
    measured += [SLOWER, FASTER]
    library = KernelLibrary(detect.this_machine(), KernelCache(tmp_path / "kernels"))
    assert choose(AUTO, found(), library).sgemm is not None
    (file,) = shutil.copytree(tmp_path / "kernels", tmp_path / "planted").iterdir()
    (file if unsafe == "file" else file.parent).chmod(0o777)
    planted = KernelLibrary(detect.this_machine(), KernelCache(tmp_path / "planted"))
    assert choose(AUTO, found(), planted).sgemm is None
    assert measured == []


def test_without_a_folder_every_choice_measures(measured: list[Times]) -> None:
    measured += [SLOWER, FASTER]
    library = KernelLibrary(detect.this_machine(), KernelCache(None))
    assert [choose(AUTO, found(), library).sgemm is None for _ in range(2)] == [False, True]


# **** the backend ****


def products(shape: tuple[int, ...], width: int) -> tuple[lite.Graph, dict[str, np.ndarray[Any, Any]]]:
    """Return a graph with a product, a bias and a Relu, and its input and expected output."""
    random = np.random.default_rng(0)
    x, w, bias = (random.standard_normal(s).astype(np.float32) for s in (shape, (shape[-1], width), (width,)))
    b = lite.GraphBuilder("products")
    product = b.add("MatMul", [b.input("x", "float32", shape), b.constant(w)])
    b.output(b.add("Relu", [b.add("Add", [product, b.constant(bias)])]), "y")
    return b.build(), {"x": x, "expected": np.maximum(x.astype(np.float64) @ w + bias, 0)}


def test_mkl_is_not_searched_without_a_large_product(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> mkl.Search:
        raise AssertionError("MKL was searched")

    monkeypatch.setattr(mkl, "search", fail)
    graph, arrays = products((200, 256), 256)
    session = lite.load(graph, backend="x86", plugins=plugins_with(X86Backend()), fallback="never")
    np.testing.assert_allclose(session.run(x=arrays["x"])["y"], arrays["expected"], atol=1e-3)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> mkl.Mkl:
    """The MKL installed on this machine, with ``LITE_MKL=always``; skips the test if there is none."""
    search = mkl.search()
    if search.mkl is None or not search.mkl.sequential:
        pytest.skip(f"no MKL to use here: {search.outcome}")
    monkeypatch.setenv("LITE_MKL", "always")
    return search.mkl


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("shape", "width"), [((300, 280), 270), ((4, 128, 256), 300), ((2, 3, 64, 512), 256)])
def test_installed_mkl_computes_products(installed: mkl.Mkl, shape: tuple[int, ...], width: int, threads: int) -> None:
    graph, arrays = products(shape, width)
    plugins = plugins_with(X86Backend())
    session = lite.load(graph, backend="x86", plugins=plugins, threads=threads, fallback="never")
    profile = RunProfile()
    actual, expected = session.run({"x": arrays["x"]}, profile=profile)["y"], arrays["expected"]
    np.testing.assert_allclose(actual, expected, rtol=0, atol=4e-6 * expected.max())
    assert [kernel.kernel for kernel in profile.kernels] == ["MKL sgemm", "elementwise"]


def test_installed_mkl_is_reported(installed: mkl.Mkl) -> None:
    assert X86Backend().report()[-1] == f"MKL {installed.version} computes large matrix products: LITE_MKL=always"


def test_installed_mkl_is_measured(installed: mkl.Mkl, library: KernelLibrary) -> None:
    choice = choose(AUTO, mkl.search(), library)
    times = "512 x 512 x 512 took "
    verdict = "found, not used" if choice.sgemm is None else "computes large matrix products"
    assert choice.reason.startswith(f"MKL {installed.version} {verdict}: {times}")
