"""Tests of the estimated speed of a processor."""

from __future__ import annotations

import pytest

from lite_cpu.machine import X86_64_V2, X86_64_V3, X86_64_V4, Machine
from lite_cpu.tuning import Tuning
from lite_x86 import detect, speed
from lite_x86.backend import X86Backend


@pytest.mark.parametrize(("machine", "per_cycle"), [(X86_64_V2, 8), (X86_64_V3, 32), (X86_64_V4, 32)])
def test_peak_flops(machine: Machine, per_cycle: int) -> None:
    assert speed.peak_flops(machine, 3e9, 1) == 3e9 * per_cycle
    assert speed.peak_flops(machine, 3e9, 4) == 4 * 3e9 * per_cycle


def test_peak_is_unknown_without_a_clock() -> None:
    assert speed.peak_flops(X86_64_V3, 0.0, 8) == 0


def test_bandwidth_is_limited_by_memory() -> None:
    one, four, many = (speed.bandwidth(X86_64_V3, cores) for cores in (1, 4, 64))
    assert one < four == many


def test_what_was_measured_is_reported() -> None:
    """The scheduler compares devices by these numbers."""
    measured = X86_64_V3.with_tuning(Tuning(0, 13.0, 3e10, 5e10, 1e-8, 1e-6, is_measured=True))
    assert speed.peak_flops(measured, 3e9, 2) == speed.peak_flops(measured, 0.0, 2) == 1e11
    assert speed.bandwidth(measured, 2) == 6e10
    assert [speed.launch_seconds(measured, cores) for cores in (1, 2)] == [1e-8, 1e-8 + 1e-6]


@pytest.mark.skipif(not detect.is_x86_64(), reason="not an x86-64 processor")
def test_device_reports_its_speed() -> None:
    (device,) = X86Backend().probe()  # type: ignore[misc]
    clock, machine = detect.this_processor().clock_hertz, X86Backend().machine()
    assert device.flops == speed.peak_flops(machine, clock, detect.usable_cores())
    assert device.bandwidth == speed.bandwidth(machine, detect.usable_cores())
    assert device.launch_seconds == speed.launch_seconds(machine, detect.usable_cores())
