"""Tests of the estimated speed of a processor."""

from __future__ import annotations

import pytest

from lite_cpu.machine import X86_64_V2, X86_64_V3, X86_64_V4, Machine
from lite_x86 import detect, speed
from lite_x86.backend import X86Backend


@pytest.mark.parametrize(("machine", "per_cycle"), [(X86_64_V2, 8), (X86_64_V3, 32), (X86_64_V4, 32)])
def test_peak_flops(machine: Machine, per_cycle: int) -> None:
    assert speed.peak_flops(machine, 3e9, 1) == 3e9 * per_cycle
    assert speed.peak_flops(machine, 3e9, 4) == 4 * 3e9 * per_cycle


def test_peak_is_unknown_without_a_clock() -> None:
    assert speed.peak_flops(X86_64_V3, 0.0, 8) == 0


def test_bandwidth_is_limited_by_memory() -> None:
    assert speed.bandwidth(1) < speed.bandwidth(4) == speed.bandwidth(64)


@pytest.mark.skipif(not detect.is_x86_64(), reason="not an x86-64 processor")
def test_device_reports_its_speed() -> None:
    (device,) = X86Backend().probe()  # type: ignore[misc]
    clock = detect.this_processor().clock_hertz
    assert device.flops == speed.peak_flops(detect.this_machine(), clock, detect.usable_cores())
    assert device.bandwidth == speed.bandwidth(detect.usable_cores())
    assert device.launch_seconds == speed.LAUNCH_SECONDS
