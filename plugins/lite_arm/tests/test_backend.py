"""The backend ``arm``: what it says where it cannot run, what it detects where it can, and compiling from elsewhere."""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lite_core as lite
from lite_arm import detect, systems
from lite_arm.backend import ArmBackend
from lite_arm.detect import Processor
from lite_core.backend import Buffer, Options, Partition, Unavailable
from lite_core.builder import GraphBuilder
from lite_core.errors import BackendUnavailableError
from lite_core.ir import Graph
from lite_core.memory import HostMemory
from lite_core.ops.evaluate import evaluate_graph
from lite_core.plugins import available_backends, plugins_with
from lite_cpu.executable import ForeignExecutable
from lite_cpu.machine_code.image import CodeImage
from lite_cpu.saved.frame import read_frame

elsewhere = pytest.mark.skipif(detect.is_arm_64(), reason="this is an ARM processor")


def network() -> Graph:
    """Return convolutions by Winograd (whose weights a kernel makes), by products, and a fully connected layer."""
    rng = np.random.default_rng(0)
    b = GraphBuilder("network")
    x = b.input("x", "float32", [1, 16, 20, 20])
    y = b.add("Conv", [x, b.constant(rng.standard_normal((48, 16, 3, 3), np.float32))], {"pads": (1, 1, 1, 1)})
    y = b.add("Relu", [b.add("Conv", [y, b.constant(rng.standard_normal((32, 48, 1, 1), np.float32))])])
    y = b.add("Flatten", [b.add("GlobalAveragePool", [y])])
    b.output(b.add("MatMul", [y, b.constant(rng.standard_normal((32, 10), np.float32))]), "y")
    return b.build()


@pytest.fixture
def on_arm(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Function that lets this be an ARM processor with some features, as far as detection goes."""

    def pretend(*features: str) -> None:
        processor = Processor("Cortex-A76", frozenset(features), {1: 64 << 10, 2: 1 << 20}, 2.4e9)
        monkeypatch.setattr(detect, "is_arm_64", lambda: True)
        monkeypatch.setattr(detect, "this_processor", lambda: processor)

    return pretend


def test_the_plugin_is_installed() -> None:
    assert isinstance(available_backends()["arm"], ArmBackend)


@elsewhere
def test_elsewhere_it_is_unavailable_with_the_reason() -> None:
    backend = ArmBackend()
    answer = backend.probe()
    assert isinstance(answer, Unavailable)
    assert answer.reason == f"this is not a 64-bit ARM process but {platform.machine()}"
    assert "convert" in answer.remedy
    assert backend.report() == []
    with pytest.raises(BackendUnavailableError, match=r"'arm' .*is not available: this is not a 64-bit ARM"):
        lite.load(network(), backend="arm", plugins=plugins_with(ArmBackend()))


def test_probe(on_arm: Any) -> None:
    on_arm("neon", "dotprod", "fullfp16")
    backend = ArmBackend()
    (device,) = backend.probe()
    assert (device.name, device.level, device.score) == ("Cortex-A76", "arm-v8+dotprod+fp16", 10.0)
    assert device.features == {"neon", "dotprod", "fullfp16"}
    assert device.flops > 0
    machine = backend.machine_of(device)
    assert machine == backend.machine()
    assert (machine.l1_bytes, machine.l2_bytes) == (64 << 10, 1 << 20)
    assert backend.machine_of(backend.device_of_level("cortex-a76")) == machine
    assert backend.machine_of(backend.device_of_level("cortex-a53")).name == "arm-v8"
    assert any(line.startswith("compiles here: ") for line in backend.report())


def test_a_processor_without_neon_is_unavailable(on_arm: Any) -> None:
    on_arm("crc")
    answer = ArmBackend().probe()
    assert isinstance(answer, Unavailable)
    assert "NEON" in answer.reason


@pytest.mark.parametrize(("system", "title"), [("darwin", "macOS"), ("win32", "Windows")])
def test_untested_systems_ask_for_a_variable(
    system: str, title: str, on_arm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_arm("neon")
    monkeypatch.setattr(systems, "system", lambda: system)
    answer = ArmBackend().probe()
    assert isinstance(answer, Unavailable)
    assert title in answer.reason
    assert systems.VARIABLE in answer.remedy
    monkeypatch.setenv(systems.VARIABLE, "1")
    (device,) = ArmBackend().probe()
    assert device.details["system"].startswith("experimental: ")


@elsewhere
@pytest.mark.parametrize("level", ["arm-v8", "cortex-a76"])
def test_models_are_compiled_for_it_elsewhere_and_computed_by_the_references(level: str) -> None:
    backend, graph = ArmBackend(), network()
    device = backend.device_of_level(level)
    executable = backend.compile(Partition("part", graph), device, Options(threads=2))
    assert isinstance(executable, ForeignExecutable)
    memory, x = HostMemory(), np.linspace(-1, 1, 16 * 20 * 20, dtype=np.float32).reshape(1, 16, 20, 20)
    given, result = Buffer(graph.inputs[0].type, memory, x), Buffer(graph.outputs[0].type, memory)
    executable.run([given], [result], None)
    np.testing.assert_array_equal(result.data, evaluate_graph(graph, [x])[0])
    program, *rest = executable.save()
    assert isinstance(program, bytes)
    description = read_frame(memoryview(program)).description
    assert description["machine"] == backend.machine_of(device).name
    codes = [bytes(piece) for piece in rest[: 1 + len(description["kernels"])]]
    assert {CodeImage.from_bytes(code).architecture for code in codes} == {"aarch64"}


@elsewhere
def test_the_default_target_is_what_every_processor_has() -> None:
    assert ArmBackend().target().level == "arm-v8"
