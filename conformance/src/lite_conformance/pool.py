"""Worker processes: each runs one case at a time, and is replaced when a case takes it down."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lite_conformance.case import Case, Settings
from lite_conformance.executor import start_record
from lite_conformance.expectations import Entry, Expectations
from lite_conformance.record import Record, Status
from lite_conformance.worker import EXAMPLE_MARK
from lite_core.errors import BackendUnavailableError, InputError, LiteError

__all__ = ["Pool", "Worker", "WorkerDiedError"]

_START_SECONDS = 120.0
_TAIL = 6000


class WorkerDiedError(LiteError):
    """A worker process ended, or did not answer in time.

    Args:
        message: one line.
        status: CRASHED or HUNG.
        details: what it wrote to standard error before.
    """

    def __init__(self, message: str, status: Status, details: str) -> None:
        super().__init__(message)
        self.status = status
        self.details = details


class Worker:
    """One process that runs cases, see :mod:`lite_conformance.worker`.

    Raises:
        BackendUnavailableError: the backend is not installed, or has no device here.
        InputError: the settings name something that is not a backend.
        WorkerDiedError: the process died or hung while it opened the backend.
    """

    def __init__(self, settings: Settings) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        self._answered = 0
        environment = dict(os.environ)
        # Several workers share the processors; a case that is about threads makes its own.
        for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            environment.setdefault(variable, "1")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "lite_conformance.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            encoding="utf-8",
            env=environment,
        )
        self._answers: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        try:
            answer = self._ask(asdict(settings), _START_SECONDS)
        except BaseException:
            self.close()
            raise
        if "ready" not in answer:
            self.close()
            if "unavailable" in answer:
                raise BackendUnavailableError(answer["unavailable"])
            raise InputError(answer["usage"])
        #: Where the suite runs and with what.
        self.header: dict[str, Any] = answer["ready"]
        #: What the backend's package says about itself.
        self.expectations = Expectations(
            tuple(Entry(**entry) for entry in answer["expectations"]), self.header["expectations"]
        )

    def run(self, case: Case, timeout: float, repro: str | None = None, *, again: bool = False) -> Record:
        """Run a case.

        Args:
            case: the case.
            timeout: seconds that it may take, times its patience.
            repro: folder for a script that repeats a failure.
            again: the case took a process down before: write the script before each run.

        Raises:
            WorkerDiedError: the process died, or had to be ended.
        """
        answer = self._ask({"run": case.name, "repro": repro, "again": again}, timeout * case.patience)
        return Record.from_dict(answer["record"])

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):  # what was left to write has no reader any more
                    stream.close()
        self._errors.close()

    def _ask(self, request: dict[str, Any], timeout: float) -> dict[str, Any]:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            answer = self._answers.get(timeout=timeout)
        except queue.Empty:
            # faulthandler answers SIGABRT with where every thread stands.
            self._process.send_signal(getattr(signal, "SIGABRT", signal.SIGTERM))
            self._wait()
            tail, example = self._tail()
            raise WorkerDiedError(f"not done after {timeout:g} s{example}", Status.HUNG, tail) from None
        except OSError:
            answer = None
        if answer is None:
            self._wait()
            tail, example = self._tail()
            raise WorkerDiedError(_cause(self._process.returncode) + example, Status.CRASHED, tail)
        self._answered = self._errors.seek(0, os.SEEK_END)
        parsed: dict[str, Any] = json.loads(answer)
        return parsed

    def _wait(self) -> None:
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        try:
            for line in self._process.stdout:
                self._answers.put(line)
        except (OSError, ValueError):  # closed while it was being read
            pass
        self._answers.put(None)

    def _tail(self) -> tuple[str, str]:
        """The end of what the process wrote to standard error since its last answer, and at which example it was."""
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(self._answered, size - _TAIL))
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        examples = [line.removeprefix(EXAMPLE_MARK) for line in lines if line.startswith(EXAMPLE_MARK)]
        rest = "\n".join(line for line in lines if not line.startswith(EXAMPLE_MARK))
        return rest, f" at {examples[-1]}" if examples else ""


def _cause(code: int | None) -> str:
    if code is None:
        return "the process did not end"
    if code >= 0:
        return f"the process ended with exit code {code}"
    try:
        return f"the process was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"the process was ended by signal {-code}"


@dataclass(slots=True)
class Pool:
    """Several workers that share a list of cases.

    Attributes:
        settings: of the run.
        jobs: how many processes.
        timeout: seconds that a case may take.
        repro: folder for scripts that repeat failures; None writes none.
    """

    settings: Settings
    jobs: int = 1
    timeout: float = 60.0
    repro: str | None = None

    def run(self, cases: Sequence[Case], first: Worker | None, on_record: Callable[[Case, Record], None]) -> None:
        """Run cases; ``on_record`` is called in this thread as each one ends.

        Args:
            cases: what to run.
            first: a worker that is there already.
            on_record: takes a case and its record.
        """
        waiting = deque(cases)
        done: queue.Queue[tuple[Case, Record] | BaseException | None] = queue.Queue()
        stop = threading.Event()
        count = max(1, min(self.jobs, len(waiting)))
        threads = [
            threading.Thread(target=self._serve, args=(waiting, done, stop, first if i == 0 else None), daemon=True)
            for i in range(count)
        ]
        for thread in threads:
            thread.start()
        running = count
        try:
            while running:
                item = done.get()
                if item is None:
                    running -= 1
                elif isinstance(item, BaseException):
                    raise item
                else:
                    on_record(*item)
        finally:
            stop.set()
            waiting.clear()
            for thread in threads:
                thread.join()

    def _serve(
        self,
        waiting: deque[Case],
        done: queue.Queue[tuple[Case, Record] | BaseException | None],
        stop: threading.Event,
        worker: Worker | None,
    ) -> None:
        try:
            while not stop.is_set():
                try:
                    case = waiting.popleft()
                except IndexError:
                    break
                worker, record = self.run_one(case, worker)
                done.put((case, record))
        except BaseException as error:
            done.put(error)
        finally:
            if worker is not None:
                worker.close()
            done.put(None)

    def run_one(self, case: Case, worker: Worker | None) -> tuple[Worker | None, Record]:
        """A record of the case, and the worker if it is still alive."""
        try:
            worker = worker or Worker(self.settings)
            return worker, worker.run(case, self.timeout, self.repro)
        except WorkerDiedError as death:
            record = start_record(case, self.settings)
            record.status, record.reason, record.details = death.status, str(death), death.details
            if worker is not None:
                record.backend = worker.header["backend"]
                record.device = f"{worker.header['device']}: {worker.header['device_name']}"
                worker.close()
            record.examples = 1
            if self.repro:
                self._write_down(case)
            return None, record

    def _write_down(self, case: Case) -> None:
        """Run a deadly case once more, for the script that repeats it."""
        worker = None
        try:
            worker = Worker(self.settings)
            worker.run(case, self.timeout, self.repro, again=True)
        except WorkerDiedError:
            pass  # as expected; the script was written before
        finally:
            if worker is not None:
                worker.close()
