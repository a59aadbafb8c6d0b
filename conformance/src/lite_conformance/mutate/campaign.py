"""Running a campaign: worker processes for batches of operators, whose results are kept as they come."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from lite_conformance.mutate.plan import Plan
from lite_conformance.mutate.result import Result, append, drop_incomplete_line, fingerprint, read_results
from lite_core.errors import LiteError

__all__ = ["Campaign", "CampaignError"]

#: Operators for one worker process; the start of a process takes a second or two.
_BATCH = 12
#: Seconds without an answer after which a worker counts as hanging; its own time limit stops most mutants before.
_SILENCE = 180.0

Progress = Callable[[Result], None]


class CampaignError(LiteError):
    """A process that tries mutants failed, not because of a mutant."""


class Campaign:
    """A campaign whose results are in a file, so that it can be interrupted and continued.

    A mutant that was found in an earlier call is not tried again. A survivor is tried again if a case, the judge or a
    reference has changed since.

    Args:
        plan: the mutants to try.
        file: file with the results, one JSON object a line; extended.
        jobs: number of worker processes.
        progress: called with each new result.
    """

    def __init__(self, plan: Plan, file: Path, jobs: int = 1, progress: Progress | None = None) -> None:
        self._plan = plan
        self._file = file
        self._jobs = jobs
        self._progress = progress
        self._lock = threading.Lock()
        self._workers: set[subprocess.Popen[str]] = set()
        self._ended = False
        self._ids = plan.ids()
        wanted = {id for ids in self._ids.values() for id in ids}
        drop_incomplete_line(file)
        kept = read_results([file]) if file.exists() else {}
        self.results = {id: result for id, result in kept.items() if id in wanted}

    @property
    def total(self) -> int:
        """The number of mutants of the plan."""
        return sum(map(len, self._ids.values()))

    def finished(self) -> set[str]:
        """Return the ids of the mutants that need not be tried again."""
        with self._lock:  # another worker may add a result
            tried = list(self.results.values())
        return {result.id for result in tried if result.killed or result.suite == fingerprint()}

    def run(self) -> None:
        """Try every mutant that is not finished."""
        known = self.finished()
        ops = [op for op, ids in self._ids.items() if not known.issuperset(ids)]
        batches = [ops[start : start + _BATCH] for start in range(0, len(ops), _BATCH)]
        pool = ThreadPoolExecutor(self._jobs)
        try:
            for done in [pool.submit(self._run_batch, batch) for batch in batches]:
                done.result()
        finally:
            self._ended = True
            for worker in list(self._workers):
                worker.kill()
            pool.shutdown(wait=True, cancel_futures=True)

    def _run_batch(self, ops: Sequence[str]) -> None:
        remaining = list(ops)
        while remaining and not self._ended:
            interrupted = self._run_worker(remaining)
            if interrupted is not None and not self._ended:
                id, op, family, kind, level = interrupted
                reason = "the process died, or did not answer"
                self._add(Result(id, op, family, kind, True, level, "", reason, fingerprint()))

    def _run_worker(self, remaining: list[str]) -> list[Any] | None:
        """Run a worker for operators, and remove those that it finishes; return the mutant that ended it, if any.

        Raises:
            CampaignError: the worker failed outside a mutant.
        """
        worker = subprocess.Popen(
            [sys.executable, "-m", "lite_conformance.mutate.worker"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8",
        )  # fmt: skip
        self._workers.add(worker)
        errors: list[str] = []
        threading.Thread(target=lambda: errors.append(worker.stderr.read()[-2000:]), daemon=True).start()  # type: ignore[union-attr]
        request = {"plan": self._plan.to_dict(), "ops": remaining, "known": sorted(self.finished())}
        assert worker.stdin is not None
        with suppress(BrokenPipeError):  # a worker that cannot start is reported below, with what it says
            worker.stdin.write(json.dumps(request) + "\n")
            worker.stdin.flush()
        lines = _lines_of(worker)
        trying: list[Any] | None = None
        try:
            while (line := lines.get(timeout=_SILENCE)) is not None:
                message: dict[str, Any] = json.loads(line)
                if "trying" in message:
                    trying = message["trying"]
                elif "result" in message:
                    trying = None
                    self._add(Result(**message["result"]))
                else:
                    remaining.remove(message["done"])
        except queue.Empty:
            worker.kill()
        finally:
            worker.kill() if worker.poll() is None and trying else None
            code = worker.wait()
            self._workers.discard(worker)
        if trying is None and remaining and not self._ended:
            raise CampaignError(
                f"a process that tries mutants of {remaining[0]} ended with {code}; it said: {''.join(errors).strip()}"
            )
        return trying

    def _add(self, result: Result) -> None:
        with self._lock:
            append(self._file, result)
            self.results[result.id] = result
        if self._progress is not None:
            self._progress(result)


def _lines_of(worker: subprocess.Popen[str]) -> queue.SimpleQueue[str | None]:
    """Return a queue of the lines that a process writes; None after the last one."""
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def read() -> None:
        assert worker.stdout is not None
        for line in worker.stdout:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    return lines
