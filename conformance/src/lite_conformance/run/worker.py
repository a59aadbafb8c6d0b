"""The process that runs cases: ``python -m lite_conformance.run.worker``.

The protocol is JSON, one object per line. First the worker reads its settings and answers with the report's header
(``ready``), or with the reason why nothing can be tested (``unavailable``, ``usage``, ``failed``). Then it answers
each ``{"run": name}`` with ``begins`` when it has generated the case, with ``example`` before each drawn example, and
with the record of the case. The backend's output goes to standard error, and its standard input is empty. The process
exits immediately when its standard input ends, because its parent has ended.
"""

from __future__ import annotations

import faulthandler
import json
import os
import queue
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import IO, Any

from lite_conformance.cases.case import Case, Context, Settings
from lite_conformance.cases.catalogue import CaseFinder
from lite_conformance.cases.operators import all_tables
from lite_conformance.cases.plugins.importing import imported_plugins
from lite_conformance.drive.subject import Subject
from lite_conformance.judge.outcome import Failure, Replay
from lite_conformance.run.executor import execute
from lite_conformance.run.header import describe, expectations_for
from lite_conformance.run.repro import write_script
from lite_core.errors import BackendUnavailableError, LiteError

__all__ = ["EXAMPLE_MARK", "failure_writer", "main"]

#: Start of a line on standard error that describes the example about to run.
EXAMPLE_MARK = "example: "


def main() -> None:
    """Answer requests until standard input ends."""
    answers, requests = _take_streams()
    faulthandler.enable()
    settings = Settings(**json.loads(requests.get()))
    home = os.getcwd()
    try:
        subject = Subject.open(settings.backend)
        expectations = expectations_for(settings, subject)
        imported_plugins()
        cases = CaseFinder(settings)
    except BackendUnavailableError as error:
        return _answer(answers, {"unavailable": str(error)})
    except LiteError as error:
        return _answer(answers, {"usage": str(error)})
    except Failure as failure:
        return _answer(answers, {"failed": failure.reason, "details": traceback.format_exc()})
    header = describe(subject, expectations)
    _answer(answers, {"ready": header, "expectations": [asdict(entry) for entry in expectations.entries]})

    def announce(example: str) -> None:
        print(EXAMPLE_MARK + example, file=sys.stderr, flush=True)
        _answer(answers, {"example": example})

    subject.on_example = announce
    if not settings.plugin:
        all_tables()  # while the parent chooses the cases
    while True:
        request = json.loads(requests.get())
        os.chdir(home)  # the backend may have changed the folder; the user's paths are relative to this one
        case = cases[request["run"]]
        _answer(answers, {"begins": case.name})
        context = Context(subject, settings, expectations.allowance(case.name))
        write = failure_writer(case, settings, request.get("repro"))
        # A case that crashed a process is run again with its script written before each run.
        subject.on_run = write if request.get("again") else None
        _answer(answers, {"record": execute(case, context, write).to_dict()})


def _take_streams() -> tuple[IO[str], queue.SimpleQueue[str]]:
    """Return the stream for answers and the queue of requests, and redirect the backend's standard streams."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # output of libraries must not mix with the answers
    given = os.fdopen(os.dup(0), encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    requests: queue.SimpleQueue[str] = queue.SimpleQueue()

    def listen() -> None:
        for line in given:
            requests.put(line)
        os._exit(0)  # the parent has ended; a hanging case would keep this process alive

    threading.Thread(target=listen, daemon=True, name="requests").start()
    return answers, requests


def failure_writer(case: Case, settings: Settings, folder: str | None) -> Callable[[Replay], object] | None:
    """Return a function that writes the script of a failure of a case, or None without a folder for scripts."""
    return None if folder is None else partial(write_script, Path(folder), case.name, settings)


def _answer(answers: IO[str], message: dict[str, Any]) -> None:
    answers.write(json.dumps(message) + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
