"""Schedulers and workers of Dask in processes of their own, for tests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

__all__ = ["dask_cluster", "dask_process", "importable"]

Process = subprocess.Popen[str]


@contextmanager
def dask_process(*arguments: str, line: str, **variables: str) -> Iterator[tuple[str, Process]]:
    """Run `dask scheduler` or `dask worker` until the end of the context.

    Args:
        arguments: of the command.
        line: a regular expression; the context begins when it is found in the log.
        variables: more variables of the environment.

    Yields:
        the first group of the match, and the process.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "dask", *arguments],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **variables},
    )
    assert process.stderr is not None
    try:
        text = ""
        while not (found := re.search(line, text)):
            read = process.stderr.readline()
            assert read, f"dask {' '.join(arguments)} ended with {process.wait()}:\n{text}"
            text += read
        threading.Thread(target=process.stderr.read, daemon=True).start()  # so that the log never blocks it
        yield found[1], process
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            raise


@contextmanager
def dask_cluster(workers: int = 1, **variables: str) -> Iterator[str]:
    """Run a scheduler with workers of one thread; yield the scheduler's address."""
    kind = ("--protocol", "tls") if any("TLS" in name for name in variables) else ()
    options = ("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", *kind)
    with ExitStack() as stack:
        address, _ = stack.enter_context(dask_process(*options, line=r"Scheduler at: +(\S+)", **variables))
        for _ in range(workers):
            worker = ("worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard", *kind)
            stack.enter_context(dask_process(*worker, line=r"(Registered to)", **variables))
        yield address


def importable() -> dict[str, str]:
    """Return the variable with which another process can import what lies beside this file."""
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    return {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
