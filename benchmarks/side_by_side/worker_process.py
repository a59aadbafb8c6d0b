"""The parent's end of a worker: starts the process, sends requests, stops it between them, and reads its CPU time."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from side_by_side.engines import Job

BENCHMARKS = Path(__file__).resolve().parents[1]
_TICKS = os.sysconf("SC_CLK_TCK")
# Every worker imports NumPy. Its BLAS would use all processors regardless of the engine's limit, and spin afterwards.
_COMMON = {"OPENBLAS_NUM_THREADS": "1"}


class WorkerError(Exception):
    """A worker ended; the message has the end of its standard error."""


class WorkerProcess:
    """A process that has loaded one model in one engine and computes only on request.

    If its job is done alone, the process is stopped between two requests, with all of its threads.

    Attributes:
        first_result_seconds: time from before the start of the process to its first result.
        peak_memory_bytes: its peak resident memory until then.
        computes: what the engine says that it computes in; empty if it says nothing.
    """

    def __init__(self, job: Job, python: Path, environment: Mapping[str, str]) -> None:
        """Start the process and wait for its first result.

        Raises:
            WorkerError: the engine could not load or run the model.
        """
        paths = [str(BENCHMARKS), *filter(None, [os.environ.get("PYTHONPATH")])]
        common = {} if job.alone else _COMMON
        variables = {**os.environ, **common, **environment, "PYTHONPATH": os.pathsep.join(paths)}
        # Without bytecode files, every start would compile all modules, unlike in normal use of an engine.
        variables.pop("PYTHONDONTWRITEBYTECODE", None)
        command = [str(python), "-m", "side_by_side.worker", json.dumps(dataclasses.asdict(job))]
        self._job = job
        self._stderr = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115 (close() closes it)
        start = time.perf_counter()
        self._process = subprocess.Popen(
            command, env=variables, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr
        )
        try:
            first = self._read_response()
            self.peak_memory_bytes: int = first["peak_memory_bytes"]
            self.computes: str = first["computes"]
        except BaseException:
            self.close()
            raise
        self.first_result_seconds = time.perf_counter() - start
        self._stop()

    def run(self, count: int) -> tuple[list[float], float]:
        """Run ``count`` times; return the seconds of each, and the CPU seconds of all together."""
        response = self._ask({"run": count})
        return response["seconds"], response["cpu_seconds"]

    def save(self, file: Path) -> None:
        """Write the output of one run to a ``.npy`` file."""
        self._ask({"save": str(file)})

    def cpu_seconds(self) -> float:
        """Return the CPU time of all threads of the process so far, in steps of the kernel's clock (10 ms)."""
        stat = Path(f"/proc/{self._process.pid}/stat").read_text()
        # NOTE: the second field is the program's name in parentheses, which may contain spaces.
        fields = stat.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._continue()
        with contextlib.suppress(BrokenPipeError):  # it may have ended already
            self._process.stdin.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._stderr.close()

    def __enter__(self) -> WorkerProcess:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._continue()
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise WorkerError(self._failure()) from None
        response = self._read_response()
        self._stop()
        return response

    def _stop(self) -> None:
        """Stop the process if it works alone, and wait until all of its threads have stopped."""
        if self._job.alone:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):  # it may have ended already
                os.kill(self._process.pid, signal.SIGSTOP)
                os.waitid(os.P_PID, self._process.pid, os.WSTOPPED)

    def _continue(self) -> None:
        if self._job.alone and self._process.returncode is None:
            self._process.send_signal(signal.SIGCONT)

    def _read_response(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise WorkerError(self._failure())
        response: dict[str, Any] = json.loads(line)
        return response

    def _failure(self) -> str:
        code = self._process.wait()
        self._stderr.seek(0)
        lines = [line.strip() for line in self._stderr if line.strip()]
        return f"{self._job.engine}: the process ended with {code}: {' '.join(lines[-3:])[-400:]}"
