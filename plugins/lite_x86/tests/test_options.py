"""Tests of the option ``mkl`` and of ``LITE_MKL``, for compiled and for restored programs."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy_sgemm import NumpySgemm
from saving import Sketch, run, saved

import lite_core as lite
from lite_core.backend import Device, Options, Partition, ReportsFindings, Stale, TakesOptions
from lite_core.errors import InputError
from lite_core.plugins import plugins_with
from lite_cpu.executable import CpuExecutable
from lite_x86 import detect, mkl, mkl_choice
from lite_x86.backend import X86Backend
from lite_x86.mkl_choice import Times
from lite_x86.options import MklSetting, mkl_setting

DEVICE = Device("x86")
AUTO, ALWAYS, NEVER = "auto", "always", "never"


# **** accepted values ****


@pytest.mark.parametrize("options", [{}, {"mkl": AUTO}, {"mkl": ALWAYS}, {"mkl": NEVER}])
def test_valid_options_are_accepted(options: dict[str, str]) -> None:
    X86Backend().check_options(options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mlk": NEVER}, "backend 'x86' has no option 'mlk' (did you mean 'mkl'?); it has: mkl"),
        ({"mkl": AUTO, "blas": NEVER}, "backend 'x86' has no option 'blas'; it has: mkl"),
        ({"mkl": "off"}, "option 'mkl' of backend 'x86' must be one of 'auto', 'always', 'never'; it is 'off'"),
        ({"mkl": False}, "option 'mkl' of backend 'x86' must be one of 'auto', 'always', 'never'; it is False"),
    ],
)
def test_invalid_options_are_errors(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        X86Backend().check_options(options)


def test_backend_implements_the_optional_protocols() -> None:
    assert isinstance(X86Backend(), TakesOptions)
    assert isinstance(X86Backend(), ReportsFindings)


@pytest.mark.parametrize(
    ("own", "environment", "setting"),
    [
        ({}, {}, MklSetting(AUTO)),
        ({}, {"LITE_MKL": "off"}, MklSetting(NEVER, "LITE_MKL=off")),
        ({}, {"LITE_MKL": "ALWAYS"}, MklSetting(ALWAYS, "LITE_MKL=always")),
        ({}, {"LITE_MKL": "on"}, MklSetting(AUTO)),
        ({"mkl": NEVER}, {"LITE_MKL": "always"}, MklSetting(NEVER, "the option mkl=never")),
        ({"mkl": ALWAYS}, {"LITE_MKL": "off"}, MklSetting(ALWAYS, "the option mkl=always")),
        ({"mkl": AUTO}, {"LITE_MKL": "off"}, MklSetting(AUTO)),
    ],
)
def test_option_overrides_the_environment(
    own: dict[str, str], environment: dict[str, str], setting: MklSetting
) -> None:
    assert mkl_setting(own, environment) == setting


# **** effects, with a NumPy function instead of MKL ****


@pytest.fixture
def sgemm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> NumpySgemm:
    """A NumPy function that the search finds instead of MKL, and that measures slower."""
    if not detect.is_x86_64():
        pytest.skip("not an x86-64 processor")
    function = NumpySgemm()
    found = mkl.Search("9.9 at mkl_rt", mkl.Mkl(Path("mkl_rt"), "9.9", True, function.offered().address, 0))
    monkeypatch.delenv("LITE_MKL", raising=False)
    monkeypatch.setenv("LITE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(mkl, "search", lambda: found)
    monkeypatch.setattr(mkl_choice, "_measure", lambda *_: Times(mkl=2.0, own=1.0))
    return function


@pytest.fixture
def mkl_is_faster(sgemm: NumpySgemm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mkl_choice, "_measure", lambda *_: Times(mkl=1.0, own=2.0))


def options(setting: str | None) -> Options:
    return Options(own={} if setting is None else {"mkl": setting})


class Product:
    """A partition with one large product, and a backend that compiles and restores it."""

    def __init__(self, sgemm: NumpySgemm) -> None:
        g = Sketch()
        self.example = g.done(g.add("MatMul", g.input(300, 300), g.constant(300, 300)))
        self.part = Partition("part", self.example.graph)
        self.backend = X86Backend()
        self._sgemm = sgemm

    def compiled(self, setting: str | None) -> CpuExecutable:
        executable = self.backend.compile(self.part, DEVICE, options(setting))
        assert isinstance(executable, CpuExecutable)
        return executable

    def restored(self, saved_with: str | None, setting: str | None) -> CpuExecutable | Stale:
        """Save and restore as the core does, which rejects programs of another compatibility by itself."""
        then, here = (self.backend.compatibility(DEVICE, options(each)) for each in (saved_with, setting))
        pieces = saved(self.compiled(saved_with))
        restored = self.backend.restore(pieces, self.part, DEVICE, options(setting))
        assert then == here or isinstance(restored, Stale)
        return restored

    def calls_mkl(self, executable: CpuExecutable) -> bool:
        before = len(self._sgemm.calls)
        (y,) = run(executable, self.example.graph, self.example.inputs)
        (x,), (weights,) = self.example.inputs.values(), self.example.graph.constants.values()
        np.testing.assert_allclose(y, x @ weights, rtol=1e-4, atol=1e-3)
        return len(self._sgemm.calls) > before


@pytest.fixture
def product(sgemm: NumpySgemm) -> Product:
    return Product(sgemm)


def test_each_session_has_its_own_setting(product: Product) -> None:
    executables = {setting: product.compiled(setting) for setting in (None, AUTO, ALWAYS, NEVER)}
    assert {setting: product.calls_mkl(e) for setting, e in executables.items()} == {
        None: False,
        AUTO: False,
        ALWAYS: True,
        NEVER: False,
    }


@pytest.mark.usefixtures("mkl_is_faster")
def test_faster_mkl_is_called_unless_never(product: Product) -> None:
    settings = (None, AUTO, ALWAYS, NEVER)
    assert [product.calls_mkl(product.compiled(setting)) for setting in settings] == [True, True, True, False]


def test_load_passes_the_option_to_the_backend(product: Product, sgemm: NumpySgemm) -> None:
    graph, inputs, plugins = product.example.graph, product.example.inputs, plugins_with(product.backend)

    def session(setting: str) -> lite.Session:
        own = {"x86": {"mkl": setting}}
        return lite.load(graph, backend="x86", plugins=plugins, threads=1, fallback="never", backend_options=own)

    always, never = session(ALWAYS), session(NEVER)
    never.run(inputs)
    assert not sgemm.calls
    always.run(inputs)
    assert len(sgemm.calls) == 1
    with pytest.raises(InputError, match="'mkl' of backend 'x86' must be one of"):
        session("sometimes")


def test_environment_applies_without_an_option(product: Product, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITE_MKL", "always")
    assert [product.calls_mkl(product.compiled(setting)) for setting in (None, AUTO, NEVER)] == [True, False, False]
    monkeypatch.setenv("LITE_MKL", "off")
    assert [product.calls_mkl(product.compiled(setting)) for setting in (None, ALWAYS)] == [False, True]


def test_mkl_is_not_searched_with_never(product: Product, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> mkl.Search:
        raise AssertionError("MKL was searched")

    monkeypatch.setattr(mkl, "search", fail)
    assert not product.calls_mkl(product.compiled(NEVER))
    assert isinstance(product.restored(NEVER, NEVER), CpuExecutable)


# **** saved programs ****


@pytest.mark.parametrize("setting", [None, AUTO, ALWAYS, NEVER])
def test_saved_program_is_used_with_the_same_setting(product: Product, setting: str | None) -> None:
    restored = product.restored(setting, setting)
    assert isinstance(restored, CpuExecutable)
    assert product.calls_mkl(restored) == (setting == ALWAYS)


@pytest.mark.parametrize(("saved_with", "setting"), [(ALWAYS, NEVER), (ALWAYS, AUTO), (NEVER, ALWAYS), (AUTO, ALWAYS)])
def test_saved_program_is_stale_with_an_incompatible_setting(product: Product, saved_with: str, setting: str) -> None:
    assert isinstance(product.restored(saved_with, setting), Stale)


@pytest.mark.usefixtures("mkl_is_faster")
@pytest.mark.parametrize("forbid", [lambda env: NEVER, lambda env: env("LITE_MKL", "off")], ids=["option", "variable"])
def test_saved_program_that_calls_mkl_is_not_used_with_never(
    product: Product, forbid: Callable[[Any], str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces = saved(product.compiled(None))
    assert isinstance(product.backend.restore(pieces, product.part, DEVICE, options(None)), CpuExecutable)
    stale = product.backend.restore(pieces, product.part, DEVICE, options(forbid(monkeypatch.setenv)))
    assert isinstance(stale, Stale)
    assert "another library's matrix product" in stale.reason


def test_saved_own_kernels_are_used_where_mkl_is_not_required(product: Product) -> None:
    for saved_with, setting in ((AUTO, NEVER), (NEVER, AUTO), (None, NEVER), (NEVER, None)):
        restored = product.restored(saved_with, setting)
        assert isinstance(restored, CpuExecutable)
        assert not product.calls_mkl(restored)


def test_always_has_no_effect_without_mkl(product: Product, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mkl, "search", lambda: mkl.Search("not found"))
    assert isinstance(product.restored(AUTO, ALWAYS), CpuExecutable)
