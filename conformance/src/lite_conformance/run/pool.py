"""A pool of worker processes: each runs one case at a time, and is replaced when a case crashes it."""

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
# Characters of a dead process's log in a record, and bytes of it that are searched for the last example.
_LOG_CHARACTERS = 12_000
_EXAMPLE_SEARCH_BYTES = 2**20


class WorkerDiedError(LiteError):
    """A worker process ended, did not answer in time, or cannot open the backend.

    Args:
        message: one line.
        status: CRASHED, HUNG, or FAILED if the backend raised.
        details: the end of what it wrote to standard error.
    """

    def __init__(self, message: str, status: Status, details: str) -> None:
        super().__init__(message)
        self.status = status
        self.details = details


class Worker:
    """A process that runs cases, see :mod:`lite_conformance.run.worker`.

    The process leads its own process group, which is killed with it, because a backend may start processes.

    Args:
        settings: settings of the run.
        wait: wait until the process has opened the backend; if False, call :meth:`await_ready` before the first case.

    Raises:
        BackendUnavailableError: the backend is not installed, or has no device here.
        InputError: the settings name something that is not a backend.
        WorkerDiedError: the process died or hung while it opened the backend, or the backend raised.
    """

    def __init__(self, settings: Settings, wait: bool = True) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        self._answered = 0
        self._closing = threading.Lock()
        environment = dict(os.environ)
        # Several workers share the processors; cases that test threads start their own.
        for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            environment.setdefault(variable, "1")
        # LITE_BACKEND would redirect the sessions of the suite to another device.
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
        #: The header of the report, see :func:`lite_conformance.run.header.describe`.
        self.header: dict[str, Any] = {}
        #: The expectations of the backend's package.
        self.expectations = Expectations()
        self._send(asdict(settings))
        if wait:
            self.await_ready()

    def await_ready(self) -> None:
        """Wait until the process has opened the backend; raises what the class documents."""
        try:
            answer = self._receive(_START_SECONDS)
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
        self.header = answer["ready"]
        entries = tuple(Entry(**entry) for entry in answer["expectations"])
        self.expectations = Expectations(entries, self.header["expectations"])

    def run(self, case: Case, timeout: float, repro: str | None = None, *, again: bool = False) -> Record:
        """Run a case.

        Args:
            case: the case.
            timeout: time limit in seconds, multiplied by the case's factor. Each example of a drawn case has this
                time: on some devices, compiling one takes seconds.
            repro: folder for a script that repeats a failure.
            again: True if the case crashed a process before: write the script before each run.

        Raises:
            WorkerDiedError: the process died, or was killed after the time limit.
        """
        self._send({"run": case.name, "repro": repro, "again": again})
        self._receive(_START_SECONDS)  # the process has generated the case, whose time begins now
        answer = self._receive(timeout * case.timeout_factor)
        while "example" in answer:
            answer = self._receive(timeout * case.timeout_factor)
        return Record.from_dict(answer["record"])

    def close(self) -> None:
        """End the process and the processes that it started; callable from any thread, repeatedly."""
        with self._closing:
            self._kill()
            if self._process.stdin is not None:
                with contextlib.suppress(OSError):  # flushing to a dead process fails
                    self._process.stdin.close()
            # The listener closes stdout: closing it here would wait for the listener's read.
            self._errors.close()

    def _send(self, request: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except (OSError, ValueError):  # the process has closed its end of the pipe, or close() this end
            self._answers.put(None)

    def _receive(self, timeout: float) -> dict[str, Any]:
        try:
            answer = self._answers.get(timeout=min(timeout, threading.TIMEOUT_MAX))
        except queue.Empty:
            # On SIGABRT, faulthandler writes the stack of every thread.
            self._process.send_signal(getattr(signal, "SIGABRT", signal.SIGTERM))
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_ABORT_SECONDS)
            self._kill()
            log, example = self._log_and_example()
            raise WorkerDiedError(f"not done after {timeout:g} s{example}", Status.HUNG, log) from None
        if answer is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_ABORT_SECONDS)
            code = self._process.poll()
            self._kill()
            log, example = self._log_and_example()
            raise WorkerDiedError(_cause(code) + example, Status.CRASHED, log)
        parsed: dict[str, Any] = json.loads(answer)
        if "example" not in parsed:  # the log names the example that runs
            self._answered = os.fstat(self._errors.fileno()).st_size
        return parsed

    def _kill(self) -> None:
        if sys.platform != "win32":
            with contextlib.suppress(ProcessLookupError, PermissionError):  # the process group is empty
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as stream, contextlib.suppress(OSError, ValueError):
            for line in stream:
                if line.startswith("{"):  # other lines were printed before the worker redirected its output
                    self._answers.put(line)
        self._answers.put(None)

    def _await_end(self, listener: threading.Thread) -> None:
        """Report the end of the process, even if a process that the backend started keeps the stream open."""
        self._process.wait()
        listener.join(1)
        self._answers.put(None)

    def _log_and_example(self) -> tuple[str, str]:
        """Return the end of the process's log since its last answer, and the example that was running."""
        if self._errors.closed:
            return "", ""
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(self._answered, size - _EXAMPLE_SEARCH_BYTES))
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        examples = [line.removeprefix(EXAMPLE_MARK) for line in lines if line.startswith(EXAMPLE_MARK)]
        rest = "\n".join(line for line in lines if not line.startswith(EXAMPLE_MARK))
        return rest[-_LOG_CHARACTERS:], f" at {examples[-1]}" if examples else ""


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
    """A pool of workers that share a list of cases.

    Attributes:
        settings: settings of the run.
        jobs: number of processes.
        timeout: time limit of a case, or of each example of a drawn case, in seconds.
        repro: folder for scripts that repeat failures; None to write none.
    """

    settings: Settings
    jobs: int = 1
    timeout: float = 60.0
    repro: str | None = None
    _alive: set[Worker] = field(default_factory=set, init=False, repr=False)
    _stopped: threading.Event = field(default_factory=threading.Event, init=False, repr=False)

    def run(self, cases: Sequence[Case], first: Worker | None, on_record: Callable[[Case, Record], None]) -> None:
        """Run cases, and call ``on_record`` in this thread when each one ends.

        All worker processes are ended when this returns or raises, also after an interrupt.

        Args:
            cases: the cases to run.
            first: a worker that has been started already, or None.
            on_record: called with a case and its record.
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
        except KeyboardInterrupt:
            # Cases that have ended count, before the rest is ended.
            with contextlib.suppress(queue.Empty):
                while True:
                    ended = done.get_nowait()
                    if isinstance(ended, tuple):
                        on_record(*ended)
            raise
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
                self._end_worker(worker)
            done.put(None)

    def run_one(self, case: Case, worker: Worker | None) -> tuple[Worker | None, Record]:
        """Run a case; return the worker, or None if it ended, and the record."""
        try:
            worker = worker or self._start_worker()
            return worker, worker.run(case, self.timeout, self.repro)
        except BackendUnavailableError as error:  # the device may be in use, or lost since the last crash
            record = start_record(case, self.settings)
            record.status, record.reason = Status.SKIPPED, str(error)
            return None, record
        except WorkerDiedError as death:
            record = start_record(case, self.settings)
            record.status, record.reason, record.details = death.status, str(death), death.details
            if worker is not None:
                record.backend = worker.header["backend"]
                record.device = f"{worker.header['device']}: {worker.header['device_name']}"
                self._end_worker(worker)
            record.examples = 1
            if self.repro and worker is not None and not self._stopped.is_set():
                self._write_repro(case)
            return None, record

    def _write_repro(self, case: Case) -> None:
        """Run a case that crashed once more, to write the script that repeats it."""
        worker = None
        try:
            worker = self._start_worker()
            worker.run(case, self.timeout, self.repro, again=True)
        except (WorkerDiedError, BackendUnavailableError):
            pass  # expected; the script is written before the crash
        finally:
            if worker is not None:
                self._end_worker(worker)

    def _start_worker(self) -> Worker:
        worker = Worker(self.settings)
        self._alive.add(worker)
        if self._stopped.is_set():  # stopped before the worker was registered
            worker.close()
        return worker

    def _end_worker(self, worker: Worker) -> None:
        worker.close()
        self._alive.discard(worker)
