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
from dataclasses import asdict, dataclass, field
from typing import Any

from lite_conformance.cases.case import Case, Settings
from lite_conformance.reports.record import Record, Status
from lite_conformance.run.executor import start_record
from lite_conformance.run.expectations import Entry, Expectations
from lite_conformance.run.worker import EXAMPLE_MARK
from lite_core.errors import BackendUnavailableError, InputError, LiteError

__all__ = ["Pool", "Worker", "WorkerDiedError"]

_START_SECONDS = 120.0
_ABORT_SECONDS = 5.0
# Characters of a dead process's last words in a record, and bytes that the example is looked for in.
_TAIL = 12_000
_LOOK_BACK = 2**20


class WorkerDiedError(LiteError):
    """A worker process ended, did not answer in time, or cannot open the backend.

    Args:
        message: one line.
        status: CRASHED, HUNG, or FAILED where the backend raised.
        details: what it wrote to standard error before.
    """

    def __init__(self, message: str, status: Status, details: str) -> None:
        super().__init__(message)
        self.status = status
        self.details = details


class Worker:
    """One process that runs cases, see :mod:`lite_conformance.run.worker`.

    It leads a process group of its own, which ends with it: a backend may start processes, too.

    Raises:
        BackendUnavailableError: the backend is not installed, or has no device here.
        InputError: the settings name something that is not a backend.
        WorkerDiedError: the process died or hung while it opened the backend, or the backend raised.
    """

    def __init__(self, settings: Settings) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        self._answered = 0
        self._closing = threading.Lock()
        environment = dict(os.environ)
        # Several workers share the processors; a case that is about threads makes its own.
        for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            environment.setdefault(variable, "1")
        # It would send the sessions of the suite to another device than the one under test.
        environment.pop("LITE_BACKEND", None)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "lite_conformance.run.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            encoding="utf-8",
            env=environment,
            start_new_session=True,
        )
        self._answers: queue.Queue[str | None] = queue.Queue()
        listener = threading.Thread(target=self._listen, daemon=True)
        listener.start()
        threading.Thread(target=self._await_end, args=(listener,), daemon=True).start()
        try:
            answer = self._ask(asdict(settings), _START_SECONDS)
        except BaseException:
            self.close()
            raise
        if "ready" not in answer:
            self.close()
            if "failed" in answer:
                raise WorkerDiedError(answer["failed"], Status.FAILED, answer["details"])
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
        """End the process and those that it started; from any thread, more than once."""
        with self._closing:
            self._kill()
            if self._process.stdin is not None:
                with contextlib.suppress(OSError):  # what was left to write has no reader any more
                    self._process.stdin.close()
            # The other stream is the listener's: closing it while it is read would wait for its end.
            self._errors.close()

    def _ask(self, request: dict[str, Any], timeout: float) -> dict[str, Any]:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            answer = self._answers.get(timeout=min(timeout, threading.TIMEOUT_MAX))
        except queue.Empty:
            # faulthandler answers SIGABRT with where every thread stands.
            self._process.send_signal(getattr(signal, "SIGABRT", signal.SIGTERM))
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_ABORT_SECONDS)
            self._kill()
            tail, example = self._tail()
            raise WorkerDiedError(f"not done after {timeout:g} s{example}", Status.HUNG, tail) from None
        except (OSError, ValueError):  # the process has closed its end, or close() this one
            answer = None
        if answer is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_ABORT_SECONDS)
            code = self._process.poll()
            self._kill()
            tail, example = self._tail()
            raise WorkerDiedError(_cause(code) + example, Status.CRASHED, tail)
        self._answered = os.fstat(self._errors.fileno()).st_size
        parsed: dict[str, Any] = json.loads(answer)
        return parsed

    def _kill(self) -> None:
        if sys.platform != "win32":
            with contextlib.suppress(ProcessLookupError, PermissionError):  # nobody of the group is left
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as stream, contextlib.suppress(OSError, ValueError):
            for line in stream:
                if line.startswith("{"):  # else printed before the worker could redirect it
                    self._answers.put(line)
        self._answers.put(None)

    def _await_end(self, listener: threading.Thread) -> None:
        """A process that the backend started may hold the stream open after the worker has died."""
        self._process.wait()
        listener.join(1)
        self._answers.put(None)

    def _tail(self) -> tuple[str, str]:
        """The end of what the process wrote to standard error since its last answer, and at which example it was."""
        if self._errors.closed:
            return "", ""
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(self._answered, size - _LOOK_BACK))
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        examples = [line.removeprefix(EXAMPLE_MARK) for line in lines if line.startswith(EXAMPLE_MARK)]
        rest = "\n".join(line for line in lines if not line.startswith(EXAMPLE_MARK))
        return rest[-_TAIL:], f" at {examples[-1]}" if examples else ""


def _cause(code: int | None) -> str:
    if code is None:
        return "the process stopped answering"
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
    _alive: set[Worker] = field(default_factory=set, init=False, repr=False)
    _stopped: threading.Event = field(default_factory=threading.Event, init=False, repr=False)

    def run(self, cases: Sequence[Case], first: Worker | None, on_record: Callable[[Case, Record], None]) -> None:
        """Run cases; ``on_record`` is called in this thread as each one ends.

        However this ends, by an interrupt too, no process is left.

        Args:
            cases: what to run.
            first: a worker that is there already.
            on_record: takes a case and its record.
        """
        waiting = deque(cases)
        done: queue.Queue[tuple[Case, Record] | BaseException | None] = queue.Queue()
        count = max(1, min(self.jobs, len(waiting)))
        threads = [
            threading.Thread(target=self._serve, args=(waiting, done, first if i == 0 else None), daemon=True)
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
            waiting.clear()
            self._stopped.set()
            for worker in list(self._alive):
                worker.close()
            for thread in threads:
                thread.join()

    def _serve(
        self,
        waiting: deque[Case],
        done: queue.Queue[tuple[Case, Record] | BaseException | None],
        worker: Worker | None,
    ) -> None:
        if worker is not None:
            self._alive.add(worker)
        try:
            while not self._stopped.is_set():
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
                self._end(worker)
            done.put(None)

    def run_one(self, case: Case, worker: Worker | None) -> tuple[Worker | None, Record]:
        """A record of the case, and the worker if it is still alive."""
        try:
            worker = worker or self._begin()
            return worker, worker.run(case, self.timeout, self.repro)
        except BackendUnavailableError as error:  # its device may be taken, or lost since the last crash
            record = start_record(case, self.settings)
            record.status, record.reason = Status.SKIPPED, str(error)
            return None, record
        except WorkerDiedError as death:
            record = start_record(case, self.settings)
            record.status, record.reason, record.details = death.status, str(death), death.details
            if worker is not None:
                record.backend = worker.header["backend"]
                record.device = f"{worker.header['device']}: {worker.header['device_name']}"
                self._end(worker)
            record.examples = 1
            if self.repro and worker is not None and not self._stopped.is_set():
                self._write_down(case)
            return None, record

    def _write_down(self, case: Case) -> None:
        """Run a deadly case once more, for the script that repeats it."""
        worker = None
        try:
            worker = self._begin()
            worker.run(case, self.timeout, self.repro, again=True)
        except (WorkerDiedError, BackendUnavailableError):
            pass  # as expected; the script was written before
        finally:
            if worker is not None:
                self._end(worker)

    def _begin(self) -> Worker:
        worker = Worker(self.settings)
        self._alive.add(worker)
        if self._stopped.is_set():  # between the start and the line above
            worker.close()
        return worker

    def _end(self, worker: Worker) -> None:
        worker.close()
        self._alive.discard(worker)
