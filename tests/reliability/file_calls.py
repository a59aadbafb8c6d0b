"""A program that lets calls on files fail, one after another, or is killed at each, and prints what became of it.

    LD_PRELOAD=failing_files.so python file_calls.py ACTION FOLDER kill|ERROR changes|reads FIRST STEP

ACTION is ``convert:TARGET``, which writes FOLDER/model.lite, or the name of a backend, whose session writes its cache
in FOLDER/cache. Each attempt is a forked process. The call with the number FIRST fails in the first one, or kills it,
the one with the number FIRST + STEP in the next. ENOSPC lasts: a full disk refuses the later calls, too. After each
attempt, another process does the same undisturbed, except that nothing is converted: it runs the file. A line of JSON
describes both. The program ends when an attempt makes fewer calls than the number of the one that would fail.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attempts import in_a_child, load_and_run, tiny_model

import lite_core as lite
from lite_core.container import ModelFile

shim = ctypes.CDLL(None)
shim.failed_call.restype = ctypes.c_char_p


def convert(folder: Path, target: str) -> dict[str, Any]:
    """Write the file of the network for a target."""
    try:
        lite.convert(tiny_model(), folder / "model.lite", [target], verify=False)
        return {"error": "", "expected": True}
    except lite.LiteError as error:
        return {"error": str(error), "expected": True}


def run(model: Path, backend: str) -> dict[str, Any]:
    """Load and run a model."""
    return load_and_run(model, backend)[0]._asdict()


def disturbed(work: Callable[[], dict[str, Any]], folder: Path, number: int, kind: str, reads: bool) -> dict[str, Any]:
    """Work while the call with a number fails."""
    code = 0 if kind == "kill" else getattr(errno, kind)
    shim.fault_at(str(folder).encode(), ctypes.c_long(number), code, int(kind == "ENOSPC"), int(reads))
    told = work()
    told["calls"], told["function"] = shim.calls_made(), shim.failed_call().decode()
    shim.fault_at(b"", 0, 0, 0, 0)
    return told


def check(folder: Path, target: str) -> dict[str, Any]:
    """Verify the file that was converted, and run it."""
    file = ModelFile.open(folder / "model.lite")
    file.verify()
    return {**run(folder / "model.lite", target), "targets": [record.backend for record in file.targets]}


def main(action: str, folder: Path, kind: str, counted: str, first: int, step: int) -> None:
    """Disturb one call after another."""
    kind_of_action, _, target = action.partition(":")
    work: Callable[[], dict[str, Any]] = functools.partial(run, tiny_model(), action)
    after = work
    if kind_of_action == "convert":
        work, after = functools.partial(convert, folder, target), functools.partial(check, folder, target)
    import lite_tools.conversion  # noqa: F401 - once for all children

    run(tiny_model(), "host")
    if action == "opencl":  # importing starts no device
        import lite_opencl.compiled.executable
        import lite_opencl.lowering.compile  # noqa: F401
    entries = sorted(path for kind_of_entry in ("kernel", "bin") for path in folder.rglob(f"*.{kind_of_entry}"))
    while True:
        for entry in entries[:1]:  # it is written again in each attempt, and the others are read
            entry.unlink(missing_ok=True)
        told = in_a_child(functools.partial(disturbed, work, folder, first, kind, counted == "reads"))
        if told["status"] == 0 and told.get("calls", first) < first:
            break
        told.update(call=first, after=in_a_child(after))
        told["files"] = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
        print(json.dumps(told), flush=True)
        first += step


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4], int(sys.argv[5]), int(sys.argv[6]))
