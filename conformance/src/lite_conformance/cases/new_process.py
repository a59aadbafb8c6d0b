"""Running a check in a new process, in which the backend has done nothing yet."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

from lite_conformance.cases.case import Context, Settings
from lite_conformance.drive.subject import Subject
from lite_conformance.judge.outcome import Failure, Outcome, Skipped

__all__ = ["run_in_new_process"]

# Characters of what a process wrote in the details of a failure.
_LOG_CHARACTERS = 12_000

#: A check with a folder of files that it reads.
Check = Callable[[Context, Path], Outcome]


def run_in_new_process(context: Context, check: Check, folder: Path) -> Outcome:
    """Run a check in a new process, on the same device.

    Args:
        context: the context; its backend must have been found by a specification.
        check: a function at the top level of a module.
        folder: passed to the check.

    Raises:
        Failure: the check failed, or the process died.
        Skipped: the backend is an object, which a new process cannot find.
    """
    spec = context.subject.specification
    if not spec:
        raise Skipped(
            "the backend was given as an object, which a new process cannot find; give its name, or file.py:name"
        )
    request = {
        "check": [check.__module__, check.__qualname__],
        "specification": spec,
        "settings": asdict(context.settings),
        "folder": str(folder),
        "result": str(folder / "result.json"),
    }
    done = subprocess.run(
        [sys.executable, "-m", "lite_conformance.cases.new_process"],
        input=json.dumps(request),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    result = folder / "result.json"
    if not result.exists():
        reason = f"a new process that used the backend ended with exit code {done.returncode} before it was done"
        raise Failure(reason, details=done.stdout[-_LOG_CHARACTERS:])
    answer = json.loads(result.read_text(encoding="utf-8"))
    if "failure" in answer:
        raise Failure(f"in a new process: {answer['failure']}")
    return Outcome(examples=answer["examples"])


def main() -> None:
    """Run the check that standard input names, and write its result to a file."""
    request = json.loads(sys.stdin.read())
    module, name = request["check"]
    check: Check = getattr(import_module(module), name)
    try:
        context = Context(Subject.open(request["specification"]), Settings(**request["settings"]))
        answer: dict[str, object] = {"examples": check(context, Path(request["folder"])).examples}
    except Failure as failure:
        answer = {"failure": failure.reason}
    temporary = Path(request["result"] + ".new")
    temporary.write_text(json.dumps(answer), encoding="utf-8")
    os.replace(temporary, request["result"])


if __name__ == "__main__":
    main()
