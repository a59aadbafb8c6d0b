"""Flushing of instruction caches: new code is what runs, by each way that a system may offer."""

from __future__ import annotations

import ctypes
import functools
import logging
import mmap
import os
import platform
import sys

import pytest

from lite_cpu.machine_code import instruction_cache
from lite_cpu.machine_code.instruction_cache import flush_instruction_cache

linux = pytest.mark.skipif(sys.platform != "linux", reason="Windows and macOS have functions of their own")
on_arm = pytest.mark.skipif(
    platform.machine() != "aarch64" or sys.platform != "linux", reason="the routine is code for AArch64, on Linux"
)


@linux
def test_own_routine_is_mapped_readable_and_executable() -> None:
    routine = instruction_cache._own_routine()
    assert routine is not None
    assert ctypes.string_at(routine, len(instruction_cache._ROUTINE)) == instruction_cache._ROUTINE
    with open("/proc/self/maps") as maps:
        (line,) = [each for each in maps if each.startswith(f"{routine:x}-")]
    assert line.split()[1].startswith("r-x")


@linux
def test_system_without_any_way_is_noted(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(instruction_cache, "_flush", functools.cache(instruction_cache._flush.__wrapped__))
    monkeypatch.setattr(instruction_cache, "_of_a_library", lambda: None)
    monkeypatch.delattr(os, "memfd_create")  # as in a Python built for an old system
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    with caplog.at_level(logging.WARNING, logger="lite.cpu.machine_code"):
        flush_instruction_cache(0, 0)
        flush_instruction_cache(0, 0)
    (message,) = caplog.messages
    assert "libgcc_s" in message
    assert "memfd_create" in message


@on_arm
@pytest.mark.parametrize("way", ["library", "own routine"])
def test_rewritten_code_is_what_runs(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "own routine":
        monkeypatch.setattr(instruction_cache, "_of_a_library", lambda: None)
    monkeypatch.setattr(instruction_cache, "_flush", functools.cache(instruction_cache._flush.__wrapped__))
    try:
        memory = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError as error:
        pytest.skip(f"the system refuses memory that is writable and executable: {error}")
    address = ctypes.addressof((ctypes.c_char * mmap.PAGESIZE).from_buffer(memory))
    function = ctypes.CFUNCTYPE(ctypes.c_int)(address)
    for number in range(500):
        # mov w0, #number; ret
        memory[:8] = (0x52800000 | number << 5).to_bytes(4, "little") + 0xD65F03C0.to_bytes(4, "little")
        flush_instruction_cache(address, 8)
        assert function() == number
