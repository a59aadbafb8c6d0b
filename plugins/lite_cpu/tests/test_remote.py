"""Compilation by the command that LITE_COMPILE_COMMAND names, in processes of the same machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from lite_cpu.machine import ARM_V8, X86_64_V3
from lite_cpu.machine_code import cache, remote
from lite_cpu.machine_code.cache import KernelCache
from lite_cpu.machine_code.objects import KernelCompileError, compile_ir

SERVER = f"{sys.executable} -m lite_cpu.machine_code.compile_server"
DOUBLE = """
define float @double(float %x) {
  %y = fadd float %x, %x
  ret float %y
}
"""


@pytest.fixture(autouse=True)
def _end_servers() -> Iterator[None]:
    yield
    while remote._idle:
        server = remote._idle.pop()
        server.communicate(timeout=60)  # its input ends, and then the process
        assert server.returncode == 0


def test_the_command_makes_the_same_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads at a time; the variables of an emulated Python do not reach the command."""
    machines = [X86_64_V3, ARM_V8] * 3
    expected = [compile_ir(DOUBLE, machine) for machine in machines]
    monkeypatch.setenv(remote.VARIABLE, SERVER)
    monkeypatch.setenv("PYTHONHOME", os.devnull)
    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(lambda m: KernelCache(None).get("double", partial(compile_ir, DOUBLE, m)), machines))
    assert made == expected
    assert len(remote._idle) in (1, 2)


def test_errors_name_the_kernel_and_do_not_end_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(remote.VARIABLE, SERVER)
    wrong = DOUBLE.replace("%x, %x", "%x, %missing")
    with pytest.raises(KernelCompileError, match=r"kernel double for x86-64-v3: .*\n.*%missing"):
        KernelCache(None).get("double", partial(compile_ir, wrong, X86_64_V3))
    with pytest.raises(KernelCompileError, match="(?s)failed:.*RecursionError"):
        KernelCache(None).get("double", partial(exec, "raise RecursionError"))
    KernelCache(None).get("double", partial(compile_ir, DOUBLE, X86_64_V3))
    assert len(remote._idle) == 1


def test_a_command_with_other_code_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(remote.VARIABLE, SERVER)
    monkeypatch.setattr(cache, "code_version", lambda: "llvmlite 0.1.2")
    with pytest.raises(KernelCompileError, match=r"LITE_COMPILE_COMMAND has llvmlite .*, this process has .* 0\.1\.2"):
        KernelCache(None).get("double", partial(compile_ir, DOUBLE, X86_64_V3))


@pytest.mark.parametrize("command", ["no-such-program", f"{sys.executable} -c ''"])
def test_a_command_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.setenv(remote.VARIABLE, command)
    with pytest.raises(KernelCompileError, match=f"LITE_COMPILE_COMMAND .*: {command}"):
        KernelCache(None).get("double", partial(compile_ir, DOUBLE, X86_64_V3))
