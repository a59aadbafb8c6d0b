"""Tests of the backend ``x86``: discovery, probe and report."""

from __future__ import annotations

import importlib.util
import platform
import subprocess
import sys
from typing import Any

import cpuinfo
import numpy as np
import pytest
from saving import Sketch, saved

from lite_core import load
from lite_core.backend import Options, Partition, Unavailable
from lite_core.builder import GraphBuilder
from lite_core.errors import BackendUnavailableError
from lite_core.plugins import available_backends, default_plugins, plugins_with
from lite_cpu.executable import CpuExecutable
from lite_cpu.saved.frame import read_frame
from lite_x86 import detect
from lite_x86.backend import X86Backend

x86 = pytest.mark.skipif(not detect.is_x86_64(), reason="not an x86-64 processor")


def replace_processor(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Make the backend detect the processor that ``text`` describes."""
    processor = detect.Processor(*detect.parse_cpuinfo(text), {})
    monkeypatch.setattr(detect, "is_x86_64", lambda: True)
    monkeypatch.setattr(detect, "this_processor", lambda: processor)
    monkeypatch.setattr(detect, "this_machine", lambda: detect.machine_for(processor))


def test_the_plugin_is_installed() -> None:
    assert isinstance(available_backends()["x86"], X86Backend)
    (record,) = [r for r in default_plugins().records() if r.name == "x86"]
    assert (record.distribution, record.phase) == ("lite-x86", "ready")


def test_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    replace_processor(monkeypatch, cpuinfo.ZEN_4)
    (device,) = X86Backend().probe()
    assert (device.label, device.name, device.score) == ("x86", "AMD EPYC 9654 96-Core Processor", 10.0)
    assert device.flops == 0  # the clock is unknown
    assert device.bandwidth > 0
    assert device.details["level"] == "x86-64-v4+vnni+bf16"
    assert "avx512vnni" in device.details["features"].split(", ")
    assert device.details["cores"] == f"{detect.usable_cores()} usable"
    assert device.details["caches"] == "unknown"
    assert X86Backend().machine().dot_product


def test_probed_device_states_its_level_and_features(monkeypatch: pytest.MonkeyPatch) -> None:
    replace_processor(monkeypatch, cpuinfo.ZEN_4)
    backend = X86Backend()
    (device,) = backend.probe()
    same = backend.device_of_level(device.level)
    assert (same.level, same.features) == (device.level, device.features)
    assert backend.machine_of(device) == backend.machine() == backend.machine_of(same)


@x86
@pytest.mark.skipif(not importlib.util.find_spec("llvmlite"), reason="compiles")
@pytest.mark.parametrize("level", ["x86-64-v3", "x86-64-v4+vnni+bf16"])
def test_code_for_a_level_that_the_processor_lacks_is_compiled_without_being_run(
    level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace_processor(monkeypatch, cpuinfo.NEHALEM)
    backend, g = X86Backend(), Sketch()
    y = g.add("Conv", g.input(1, 16, 20, 20), g.constant(48, 16, 3, 3))  # Winograd: its weights are made by a kernel
    graph = g.done(g.add("Conv", y, g.constant(32, 48, 1, 1))).graph
    device = backend.device_of_level(level)
    machine = backend.machine_of(device)
    assert not backend.runs_here(machine)
    assert backend.runs_here(backend.machine())

    def run_it(*_: Any) -> None:
        raise AssertionError("code for another processor is run")

    monkeypatch.setattr("lite_cpu.lowering.winograd.prepare_winograd", run_it)
    executable = backend.compile(Partition("part", graph), device, Options())
    assert isinstance(executable, CpuExecutable)
    description = read_frame(memoryview(saved(executable)[0])).description
    assert description["machine"] == level
    assert all(level in key for key, _ in description["kernels"])


def test_other_architecture_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    backend = X86Backend()
    assert backend.probe() == Unavailable(
        "this is not a 64-bit x86 process but aarch64",
        "use a backend for this processor; `lite backends` shows what is installed",
    )
    assert backend.report() == []
    with pytest.raises(BackendUnavailableError, match="'x86' is not available: .* but aarch64"):
        backend.machine()


def test_processor_below_v2_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    replace_processor(monkeypatch, cpuinfo.CORE_2)
    answer = X86Backend().probe()
    assert isinstance(answer, Unavailable)
    assert answer.reason == "the processor lacks popcnt, sse4.1, sse4.2 of x86-64-v2"


@x86
def test_report() -> None:
    lines = X86Backend().report()
    assert lines[0].startswith("level: x86-64-v")
    assert any(line.startswith("MKL: ") for line in lines)


@x86
def test_kernels_are_counted_once() -> None:
    b = GraphBuilder("absolute")
    b.output(b.add("Abs", [b.input("x", "float32", [4])]), "y")
    backend, graph = X86Backend(), b.build()
    assert backend.kernel_counts() == (0, 0, 0.0)
    for _ in range(2):
        load(graph, backend="x86", plugins=plugins_with(backend)).prepare()
        assert sum(backend.kernel_counts()[:2]) == 1


@x86
def test_probe_neither_searches_mkl_nor_imports_the_compiler() -> None:
    code = """
import sys
from lite_core.plugins import available_backends
from lite_x86 import mkl
available_backends()["x86"].probe()
print("llvmlite" in sys.modules, mkl._search_once.cache_info().misses)
"""
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.split() == ["False", "0"]


@x86
def test_output_over_an_input_is_written_after_its_last_use() -> None:
    b = GraphBuilder("two readers")
    x = b.input("x", "float32", [4])
    b.output(b.add("Abs", [x]), "y")
    b.output(b.add("Neg", [x]), "z")
    session = load(b.build(), backend="x86", fallback="never")
    array = np.array([-1, -2, 3, 4], np.float32)
    outputs = session.run({"x": array}, out={"y": array})
    assert array.tolist() == [1, 2, 3, 4]
    assert outputs["z"].tolist() == [1, 2, -3, -4]
