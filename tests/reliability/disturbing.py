"""The files of a conversion or a cache, while calls on them fail or processes are killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from attempts import DEADLINE_SECONDS, attempt, tiny_model

import lite_core as lite

__all__ = ["convert", "disturb", "environment", "fill", "left_behind", "make_a_day_older", "write_a_day_later"]

#: The names of what a user wants to find in these folders; everything else is left behind by a writer.
_WANTED = (".lite", ".kernel", ".bin", ".json")


def environment(folder: Path) -> dict[str, str]:
    """Return the variables that put everything Lite writes into a folder, and PoCL's own cache beside it."""
    beside = folder.with_name(f"{folder.name}-pocl")
    beside.mkdir(exist_ok=True)
    return {
        "LITE_CACHE_DIR": str(folder / "cache"),
        "LITE_CONFIG_DIR": str(folder / "config"),
        "LITE_BACKENDS": "x86,opencl,host",
        "POCL_CACHE_DIR": str(beside),
    }


def fill(folder: Path, backend: str) -> None:
    """Fill the cache in a folder with what the network needs."""
    result = attempt(tiny_model(), backend, **environment(folder))
    assert result.right, result


def convert(folder: Path, target: str) -> None:
    """Write ``model.lite`` into a folder."""
    lite.convert(tiny_model(), folder / "model.lite", [target], verify=False)


def disturb(
    library: Path, folder: Path, action: str, kind: str, counted: str = "changes", first: int = 1, step: int = 1
) -> list[dict[str, Any]]:
    """Return what ``file_calls.py`` tells of each attempt; its documentation explains the arguments."""
    program = Path(__file__).with_name("file_calls.py")
    done = subprocess.run(
        [sys.executable, program, action, folder, kind, counted, str(first), str(step)],
        env={**os.environ, **environment(folder), "LD_PRELOAD": str(library)},
        capture_output=True,
        text=True,
        timeout=3 * DEADLINE_SECONDS,
    )
    assert done.returncode == 0, (done.returncode, done.stdout[-500:], done.stderr[-2000:])
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert told
    for one in told:
        assert one["after"]["status"] == 0, one["after"]
        assert one["after"].get("right") is True, one["after"]
    print(f"{action}, {kind} at each of {len(told)} calls")
    return told


def left_behind(folder: Path) -> list[str]:
    """Return the names of files that writers left in a folder.

    Neither the marks of questions to backends, one file for each backend, nor the user's key, which is made once, can
    pile up.
    """
    wanted = [path for path in folder.rglob("*") if path.is_file() and path.parent.name not in ("probing", "config")]
    return sorted(path.name for path in wanted if not path.name.endswith(_WANTED))


def make_a_day_older(folder: Path) -> None:
    """Make every file in a folder a day older."""
    for path in folder.rglob("*"):
        if path.is_file():
            status = path.stat()
            os.utime(path, (status.st_atime - 86400, status.st_mtime - 86400))


def write_a_day_later(folder: Path, backend: str) -> None:
    """Make every file in a folder a day older, and write an entry of the cache again."""
    make_a_day_older(folder)
    next((folder / "cache").rglob("*.kernel" if backend == "x86" else "*.bin")).unlink()
    fill(folder, backend)
