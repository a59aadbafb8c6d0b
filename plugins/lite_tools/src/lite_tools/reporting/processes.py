"""Processes of a report: each step that may crash or hang runs in one, and its end is part of the report."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lite_core.errors import LiteError
from lite_tools.examining.process import module_path

__all__ = ["End", "run_python"]

_PROGRAM = "import sys; sys.path[:] = sys.argv.pop(1).split({separator!r}); {statements}"
#: Output beyond this number of bytes is left out in the middle.
_MOST_BYTES = 2**21


@dataclass(frozen=True)
class End:
    """The end of a process.

    Attributes:
        code: its exit code; negative for a signal, None if it did not end in time and was stopped.
        output: what it wrote to standard output.
        log: what it wrote to standard error.
    """

    code: int | None
    output: str
    log: str

    @property
    def kind(self) -> str:
        """``ran``, ``failed``, ``crashed`` or ``hung``."""
        if self.code is None:
            return "hung"
        return "crashed" if self.code < 0 or self.code > 2**16 else "failed" if self.code else "ran"

    @property
    def signal(self) -> str:
        """The name of the signal that ended the process, or its exit code."""
        if self.code is None or self.code >= 0:
            return f"exit code {'none' if self.code is None else hex(self.code) if self.code > 2**16 else self.code}"
        with contextlib.suppress(ValueError):
            return signal.Signals(-self.code).name
        return f"signal {-self.code}"

    @property
    def last_line(self) -> str:
        """The last line of the log, before the stack of a crash."""
        lines = self.log.partition("Fatal Python error")[0].strip().splitlines()
        return lines[-1] if lines else ""


def run_python(
    statements: str, arguments: Sequence[str], scratch: Path, seconds: float, *, log_level: str = "", folder: str = "."
) -> End:
    """Run statements in a new Python process, and wait until it ends.

    Args:
        statements: the statements; ``sys`` is imported.
        arguments: the process's ``sys.argv[1:]``.
        scratch: a folder for its output.
        seconds: the time after which it is stopped, together with the processes that it has started.
        log_level: the value of ``LITE_LOG``; if empty, the process logs as this one does.
        folder: its working folder.

    Raises:
        LiteError: there is no Python interpreter to start.
    """
    if not sys.executable or getattr(sys, "frozen", False):
        raise LiteError("a report runs the model in a process of its own, and there is no Python interpreter to run it")
    environment: Mapping[str, str] = {**os.environ, "LITE_LOG": log_level} if log_level else os.environ
    program = _PROGRAM.format(separator=os.pathsep, statements=statements)
    path = os.pathsep.join(map(os.path.abspath, module_path()))
    with open(scratch / "stdout", "w+b") as output, open(scratch / "stderr", "w+b") as log:
        process = subprocess.Popen(
            [sys.executable, "-X", "faulthandler", "-c", program, path, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=log,
            env=environment,
            cwd=folder,
            start_new_session=True,
        )
        code: int | None = None
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = process.wait(seconds)
        finally:
            with contextlib.suppress(OSError):
                if hasattr(os, "killpg"):
                    os.killpg(process.pid, signal.SIGKILL)
                else:
                    process.kill()
            process.wait()
        return End(code, _text(scratch / "stdout"), _text(scratch / "stderr"))


def _text(path: Path) -> str:
    """Return a text file, without the middle of a very large one."""
    content = path.read_bytes()
    if len(content) > _MOST_BYTES:
        left_out = len(content) - _MOST_BYTES
        half = _MOST_BYTES // 2
        content = content[:half] + f"\n[{left_out} bytes are left out]\n".encode() + content[-half:]
    return content.decode("utf-8", "replace")
