"""The process that runs cases: ``python -m lite_conformance.run.worker``.

It speaks JSON, one object on a line. First it reads its settings and answers with what it found (``ready``),
or why there is nothing to test (``unavailable``, ``usage``); then each ``{"run": name}`` is answered by a record.
Whatever the backend prints goes to standard error, and what it reads is empty. When standard input ends, so does the
process, whatever it is doing: the one that started it is gone.
"""

from __future__ import annotations

import faulthandler
import json
import os
import platform
import queue
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import IO, Any

from lite_conformance.cases.case import Case, Context, Settings
from lite_conformance.cases.catalogue import all_cases
from lite_conformance.drive.subject import Subject
from lite_conformance.judge.outcome import Failure, Replay
from lite_conformance.run.executor import execute
from lite_conformance.run.expectations import Expectations, find_expectations, read_expectations
from lite_conformance.run.repro import write_script
from lite_core.backend import API_VERSION
from lite_core.errors import BackendUnavailableError, LiteError

__all__ = ["EXAMPLE_MARK", "describe", "expectations_for", "keeper", "main"]

#: Begins the line on standard error that says which example is about to run.
EXAMPLE_MARK = "example: "


def main() -> None:
    """Serve until standard input ends."""
    answers, requests = _take_streams()
    faulthandler.enable()
    settings = Settings(**json.loads(requests.get()))
    home = os.getcwd()
    try:
        subject = Subject.open(settings.backend)
        expectations = expectations_for(settings, subject)
        cases = {case.name: case for case in all_cases(settings)}
    except BackendUnavailableError as error:
        return _answer(answers, {"unavailable": str(error)})
    except LiteError as error:
        return _answer(answers, {"usage": str(error)})
    except Failure as failure:
        return _answer(answers, {"failed": failure.reason, "details": traceback.format_exc()})
    header = describe(subject, expectations)
    _answer(answers, {"ready": header, "expectations": [asdict(entry) for entry in expectations.entries]})
    subject.on_example = lambda text: print(EXAMPLE_MARK + text, file=sys.stderr, flush=True)
    while True:
        request = json.loads(requests.get())
        os.chdir(home)  # a backend may have gone elsewhere; paths are those of the user
        case = cases[request["run"]]
        context = Context(subject, settings, expectations.allowance(case.name))
        keep = keeper(case, settings, request.get("repro"))
        # A case that took a process down is run again to be kept: each run is written down before it starts.
        subject.on_run = keep if request.get("again") else None
        _answer(answers, {"record": execute(case, context, keep).to_dict()})


def _take_streams() -> tuple[IO[str], queue.SimpleQueue[str]]:
    """Where answers go, and the requests as they come; the backend gets other streams in their place."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints must not get between the answers
    given = os.fdopen(os.dup(0), encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    requests: queue.SimpleQueue[str] = queue.SimpleQueue()

    def listen() -> None:
        for line in given:
            requests.put(line)
        os._exit(0)  # nobody is left to hear an answer; a case that hangs would keep the process for ever

    threading.Thread(target=listen, daemon=True, name="requests").start()
    return answers, requests


def keeper(case: Case, settings: Settings, folder: str | None) -> Callable[[Replay], object] | None:
    """What writes a failure of a case down as a script, where a folder for scripts is given."""
    return None if folder is None else partial(write_script, Path(folder), case.name, settings)


def expectations_for(settings: Settings, subject: Subject) -> Expectations:
    """The file that the settings name, or else the backend's own."""
    if settings.expectations:
        return read_expectations(Path(settings.expectations))
    return find_expectations(subject.module)


def describe(subject: Subject, expectations: Expectations) -> dict[str, Any]:
    """Where the suite runs and with what: the report's header."""
    names = ["lite-core", "lite-conformance", "numpy", "hypothesis"]
    owner = next((r for r, b in subject.plugins.ask("lite_backends") if b is subject.backend), None)
    if owner is not None and owner.version != "-":
        names.append(owner.distribution)
    return {
        "backend": subject.backend.name,
        "device": subject.device.label,
        "device_name": str(subject.device.name),
        "device_details": {str(k): str(v) for k, v in dict(subject.device.details).items()},
        "memory": str(subject.memory.space),
        "plugin": owner.label if owner is not None and owner.version != "-" else "",
        "api_version": API_VERSION,
        "versions": {**{name: _version(name) for name in names}, "python": platform.python_version()},
        "platform": f"{platform.system()}, {platform.machine()}",
        "expectations": expectations.source,
    }


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "not installed"


def _answer(answers: IO[str], message: dict[str, Any]) -> None:
    answers.write(json.dumps(message) + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
