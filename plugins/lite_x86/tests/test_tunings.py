"""The tuning in use: stored files, sessions, and the command that measures."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import cpuinfo
import numpy as np
import pytest
from click.testing import CliRunner

from lite_core import GraphBuilder, Session, load
from lite_core.backend import Unavailable
from lite_cpu.backend import CpuDevice
from lite_cpu.machine import Machine
from lite_cpu.tuning import Tuning
from lite_tools.cli import lite
from lite_x86 import detect, tunings
from lite_x86.backend import X86Backend

HERE = detect.is_x86_64() and detect.this_processor().features
pytestmark = pytest.mark.skipif(not HERE, reason="not an x86-64 processor")

MEASURED = Tuning(0, 31.0, 9e9, threads=2, is_measured=True, source="measured 2026-01-31")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """This machine, with an empty cache."""
    monkeypatch.setenv("LITE_CACHE_DIR", str(tmp_path / "cache"))
    return detect.this_machine()


def file_of(machine: Machine) -> Path:
    path = tunings.path(machine)
    assert path is not None
    return path


def test_without_a_measurement_the_family_decides(machine: Machine) -> None:
    assert tunings.read(machine) is None
    assert tunings.in_use(machine) == tunings.known(machine)
    assert not tunings.forget(machine)


def test_stored_tuning_is_used(machine: Machine) -> None:
    tunings.write(machine, MEASURED)
    assert tunings.in_use(machine) == MEASURED
    assert X86Backend().machine() == machine.with_tuning(MEASURED)
    (path,) = file_of(machine).parent.iterdir()
    assert path == file_of(machine)
    assert tunings.forget(machine)
    assert tunings.in_use(machine) == tunings.known(machine)


def change(path: Path, key: str, value: Any) -> None:
    """Change a number of the tuning, or what was measured."""
    stored = json.loads(path.read_text())
    stored["tuning" if key in stored["tuning"] else "measured"][key] = value
    path.write_text(json.dumps(stored))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("tile_rows", 15),
        ("tile_rows", -1),
        ("winograd_weight", "13"),
        ("winograd_weight", float("nan")),
        ("bandwidth", {"l1": 1.0}),
        ("flops", -1.0),
        ("source", 5),
        ("processor", "another"),
        ("lite", "0.0.1"),
    ],
)
def test_damaged_and_foreign_files_are_not_used(
    key: str, value: Any, machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    tunings.write(machine, MEASURED)
    change(file_of(machine), key, value)
    assert tunings.read(machine) is None
    assert str(file_of(machine)) in caplog.text
    assert "lite tune" in caplog.text


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"tuning": null}', "[" * 100_000])
def test_files_that_are_no_tuning_are_not_used(text: str, machine: Machine, caplog: pytest.LogCaptureFixture) -> None:
    tunings.write(machine, MEASURED)
    file_of(machine).write_text(text)
    assert tunings.read(machine) is None
    assert "is not used" in caplog.text


def test_levels_are_measured_separately(machine: Machine) -> None:
    tunings.write(machine, MEASURED)
    assert tunings.read(replace(machine, name="x86-64-v2")) is None


def test_without_a_cache_nothing_is_stored(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITE_CACHE_DIR", "off")
    tunings.write(machine, MEASURED)
    assert tunings.path(machine) is None
    assert tunings.in_use(machine) == tunings.known(machine)


def test_device_keeps_its_tuning(machine: Machine) -> None:
    """A tuning that is measured later changes no choice of sessions that have begun."""
    backend = X86Backend()
    before = device_of(backend)
    tunings.write(machine, MEASURED)
    tunings._in_use.clear()  # as another process would see it
    after = device_of(backend)
    assert before.machine.tuning == tunings.known(machine)
    assert after.machine.tuning == MEASURED
    assert backend.machine_of(before) == machine.with_tuning(before.machine.tuning)
    assert backend.machine_of(after) == machine.with_tuning(MEASURED) == backend.machine()
    assert after.details["tuning"] == MEASURED.source
    here = backend.device_of_level(machine.name)
    assert backend.machine_of(here) == backend.machine()


def device_of(backend: X86Backend) -> CpuDevice:
    devices = backend.probe()
    assert not isinstance(devices, Unavailable)
    (device,) = devices
    assert isinstance(device, CpuDevice)
    return device


def test_code_for_other_processors_does_not_depend_on_this_one(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    processor = detect.Processor(*detect.parse_cpuinfo(cpuinfo.ZEN_3), {})
    monkeypatch.setattr(detect, "this_processor", lambda: processor)
    monkeypatch.setattr(detect, "this_machine", lambda: detect.machine_for(processor))
    backend = X86Backend()
    assert backend.machine_of(backend.device_of_level("x86-64-v4+vnni+bf16")).tuning == Tuning()


def test_plain_load_measures_nothing(machine: Machine) -> None:
    session = product(tune=False)
    assert not file_of(machine).exists()
    assert f"tuning: {tunings.known(machine).source}" in session.describe()


def product(*, tune: bool) -> Session:
    """Return a session of a product of matrices on x86, after a run."""
    builder = GraphBuilder("product")
    x = builder.input("x", "float32", (4, 16))
    builder.output(builder.add("MatMul", [x, builder.constant(np.ones((16, 16), np.float32))]), "y")
    session = load(builder.build(), "x86", threads=1, fallback="never", tune=tune)
    assert np.allclose(session.run(x=np.ones((4, 16), np.float32))["y"], 16.0)
    return session


def test_measurement(machine: Machine) -> None:
    """A session with tune=True measures; the command shows, measures again and removes."""
    product(tune=True)
    stored = tunings.read(machine)
    assert stored is not None
    assert stored == tunings.in_use(machine)
    assert stored.is_measured
    assert stored.source.startswith("measured 20")
    assert stored.bandwidth > 0
    assert stored.flops > 0
    assert stored.winograd_weight > 0
    assert stored.threads >= 1
    run = CliRunner()
    shown = json.loads(run.invoke(lite, ["tune", "--show", "--json"]).output)["backends"]["x86"]
    assert shown["flops"] == stored.flops
    assert stored.source in run.invoke(lite, ["tune", "--show"]).output
    measured = json.loads(run.invoke(lite, ["tune", "--json"]).output)["backends"]["x86"]
    assert measured["is_measured"]
    assert measured["flops"] != stored.flops
    assert "(removed)" in run.invoke(lite, ["tune", "--clear"]).output
    assert not file_of(machine).exists()
