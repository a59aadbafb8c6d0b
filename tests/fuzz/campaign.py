"""A campaign: targets attacked one after another, each by a worker that is watched and replaced when it dies."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from fuzz.corpus import ROOT, Corpus
from fuzz.execution import HANG_SECONDS, Finding
from fuzz.progress import Figures, Progress
from fuzz.shrinking import shrunk

__all__ = ["Result", "attack", "replayed"]

#: Python code is interrupted after HANG_SECONDS; a worker without progress for longer hangs in native code.
_NATIVE_HANG_SECONDS = 3 * HANG_SECONDS
#: Importing and instrumenting takes seconds, on a busy machine minutes.
_START_SECONDS = 300.0
_MOST_DEATHS = 20
_SHRINKING_TRIES = 40


class Result(NamedTuple):
    """Figures of one target.

    Attributes:
        target: the target's name.
        executions: number of executions.
        seconds: duration.
        findings: paths of the inputs that broke a rule.
        growth: the most memory that one execution added, in bytes.
        slowest: the longest execution in seconds.
        branches: number of branches that the seeds reached, and that were reached in the end; None without atheris.
        total: number of executions of this and earlier campaigns on this machine.
    """

    target: str
    executions: int
    seconds: float
    findings: list[Path]
    growth: int
    slowest: float
    branches: tuple[int, int] | None
    total: int


def attack(target: str, seconds: float, folder: Path) -> Result:
    """Attack a target for a time.

    Args:
        target: the target's name.
        seconds: duration.
        folder: the folder of all corpora.
    """
    corpus = Corpus(target, folder)
    progress = Progress(corpus.folder / "progress")
    progress.figures = Figures()
    start, began = time.monotonic(), time.time() - 1
    log = corpus.folder / "log.txt"
    log.unlink(missing_ok=True)
    for _ in range(_MOST_DEATHS):
        left = seconds - (time.monotonic() - start)
        if left < 1 and progress.figures.executions:
            break
        if not _run_worker(corpus, progress, max(left, 1), log):
            break
    figures = progress.figures
    return Result(
        target,
        figures.executions,
        time.monotonic() - start,
        corpus.findings_since(began),
        figures.growth,
        figures.slowest / 1e6,
        _branches(log.read_text(errors="replace")),
        _add_to_total(corpus.folder / "figures.json", figures),
    )


def replayed(target: str, file: Path) -> str:
    """Return the finding that an input leads to in a process of its own; empty if it breaks no rule."""
    try:
        done = _python(
            ["-m", "fuzz.replay", target, str(file)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        output, _ = done.communicate(timeout=_START_SECONDS)
    except subprocess.TimeoutExpired:
        done.kill()
        return f"hang: no answer in {_START_SECONDS:.0f} seconds"
    if done.returncode < 0:
        return f"death: {_signal(done.returncode)}"
    return str(output) if done.returncode else ""


def _run_worker(corpus: Corpus, progress: Progress, seconds: float, log: Path) -> bool:
    """Run a worker to its end; return True if it died, so that another one must go on."""
    executions = progress.figures.executions
    command = ["-m", "fuzz.worker", corpus.target, "--seconds", str(seconds), "--folder", str(corpus.folder.parent)]
    with log.open("ab") as output:
        worker = _python(command, stdout=output, stderr=subprocess.STDOUT)
        hangs = _watch(worker, progress)
    if not hangs and worker.returncode == 0:
        return False
    if progress.figures.executions == executions:
        raise RuntimeError(f"the worker of {corpus.target} ends before its first input; see {log}")
    how = "hang in native code" if hangs else f"death by {_signal(worker.returncode)}"
    data = progress.input
    if not hangs:
        data = shrunk(data, lambda part: _dies(corpus, part), lambda part: (), _SHRINKING_TRIES)
    text = log.read_text(errors="replace")[-4000:]
    corpus.store(Finding("hang" if hangs else "death", f"{how}: {text.splitlines()[-1:]}", text), data)
    return True


def _watch(worker: subprocess.Popen[bytes], progress: Progress) -> bool:
    """Wait for the end of a worker; kill it and return True if it makes no progress."""
    last, since, started = progress.figures.executions, time.monotonic(), False
    while True:
        try:
            worker.wait(1)
            return False
        except subprocess.TimeoutExpired:
            executions = progress.figures.executions
            if executions != last:
                last, since, started = executions, time.monotonic(), True
            if time.monotonic() - since > (_NATIVE_HANG_SECONDS if started else _START_SECONDS):
                worker.kill()
                worker.wait()
                return True


def _dies(corpus: Corpus, data: bytes) -> bool:
    file = corpus.folder / "candidate"
    file.write_bytes(data)
    return replayed(corpus.target, file).startswith("death")


def _python(command: Sequence[str], **options: object) -> subprocess.Popen[bytes]:
    path = os.pathsep.join(filter(None, [str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")]))
    environment = {**os.environ, "PYTHONPATH": path, "LITE_SAVED": "ignore", "LITE_CACHE_DIR": "off"}
    start: Callable[..., subprocess.Popen[bytes]] = subprocess.Popen
    return start([sys.executable, *command], env=environment, cwd=ROOT, **options)


def _signal(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def _branches(log: str) -> tuple[int, int] | None:
    """Return the numbers of branches in the log of libFuzzer: after the seeds, and in the end."""
    found = [int(number) for number in re.findall(r"(?:INITED|NEW|REDUCE|RELOAD|DONE|pulse)\s+cov: (\d+)", log)]
    first = re.search(r"INITED\s+cov: (\d+)", log)
    return (int(first[1]) if first else found[0], max(found)) if found else None


def _add_to_total(file: Path, figures: Figures) -> int:
    """Add the figures to those of earlier campaigns; return the number of executions of all."""
    before = json.loads(file.read_text()) if file.exists() else {"executions": 0, "growth": 0}
    executions = before["executions"] + figures.executions
    file.write_text(json.dumps({"executions": executions, "growth": max(before["growth"], figures.growth)}))
    return int(executions)
