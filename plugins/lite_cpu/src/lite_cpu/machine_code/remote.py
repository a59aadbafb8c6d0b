"""Compilation in another process, for tests under emulation: an emulated compiler takes a hundred times as long.

The environment variable ``LITE_COMPILE_COMMAND`` names the command, which runs natively on the same machine::

    LITE_COMPILE_COMMAND="/path/to/python -m lite_cpu.machine_code.compile_server"

Both ends exchange pickled objects through the command's pipes, each after eight bytes with its length, least
significant first. A request is a version of the code and a function that builds a kernel; an answer is the kernel's
image, or the text of an error.
"""

from __future__ import annotations

import os
import pickle
import shlex
import subprocess
from collections.abc import Callable
from typing import IO

from lite_cpu.machine_code.image import CodeImage
from lite_cpu.machine_code.objects import KernelCompileError

__all__ = ["VARIABLE", "build", "read_message", "write_message"]

VARIABLE = "LITE_COMPILE_COMMAND"

# Variables of the emulated process that would mislead a native one: its Python's folders, its libraries, the emulator's
# settings, and the variable that makes a process ask another one to compile.
_NOT_PASSED_ON = ("PYTHON", "LD_", "QEMU_", VARIABLE)

#: The processes that wait for a request; each thread that compiles takes one, or starts another.
_idle: list[subprocess.Popen[bytes]] = []
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_idle.clear)


def build(function: Callable[[], CodeImage], version: str) -> CodeImage:
    """Have the command call a function, and return the image that it makes.

    Args:
        function: what builds a kernel; pickle must know it and its arguments by the names of their modules.
        version: the version of the code that the command must have.

    Raises:
        KernelCompileError: the command does not run, has another version, or the function raised an exception there.
    """
    request = pickle.dumps((version, function))
    try:
        server = _idle.pop()
    except IndexError:
        server = _start()
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        write_message(server.stdin, request)
        answer: CodeImage | str = pickle.loads(read_message(server.stdout))
    except (OSError, EOFError):
        server.kill()
        raise KernelCompileError(
            f"the command of {VARIABLE} ended with {server.wait()}: {os.environ.get(VARIABLE)}"
        ) from None
    _idle.append(server)
    if isinstance(answer, str):
        raise KernelCompileError(answer)
    return answer


def read_message(source: IO[bytes]) -> bytes:
    """Return the next pickled object; empty if the other end was closed."""
    size = int.from_bytes(source.read(8), "little")
    message = source.read(size)
    return message if len(message) == size else b""


def write_message(target: IO[bytes], message: bytes) -> None:
    """Send a pickled object."""
    target.write(len(message).to_bytes(8, "little") + message)
    target.flush()


def _start() -> subprocess.Popen[bytes]:
    command = os.environ[VARIABLE]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_PASSED_ON)}
    try:
        return subprocess.Popen(
            shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, start_new_session=True
        )
    except OSError as error:
        raise KernelCompileError(f"the command of {VARIABLE} does not start: {command}: {error}") from error
