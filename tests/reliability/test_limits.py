"""Limits that the system sets to a process: an error of Lite or a MemoryError, or it works; never a crash or a hang.

Afterwards, without the limit, the same session gives the right result, or a new one does if loading had failed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attempts import DEADLINE_SECONDS, attempt, tiny_model

pytest.importorskip("resource", reason="this system has no such limits")
pytestmark = pytest.mark.full("reliability")

#: MiB of address space above what the process uses before: from too little to open the model to enough to compile.
ADDRESS_SPACE = (0, 0.25, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512)
#: NOFILE counts descriptors above those that are open.
LIMITS = {
    "NOFILE": (1, 2, 3, 4, 5, 6, 8, 12),
    "FSIZE": (0, 100, 4096, 65536),
    "MEMLOCK": (0, 65536),
    "STACK": (262144, 524288, 1048576, "unlimited"),
    "CORE": (0,),
}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the network's kernels."""
    folder = tmp_path_factory.mktemp("limits")
    for backend in ("x86", "host"):
        assert attempt(tiny_model(), backend, LITE_CACHE_DIR=str(folder)).right
    return folder


def under(
    resource: str, values: tuple[Any, ...], backend: str, cache: str, *, wrapper: tuple[str, ...] = ()
) -> list[dict[str, Any]]:
    """Return what ``under_limits.py`` tells of each value, after checking it."""
    program = Path(__file__).with_name("under_limits.py")
    done = subprocess.run(
        [*wrapper, sys.executable, program, tiny_model(), backend, resource, *map(str, values)],
        env={**os.environ, "LITE_CACHE_DIR": cache, "LITE_BACKENDS": "x86,host"},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=4 * DEADLINE_SECONDS,
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(told) == len(values)
    for one in told:
        assert one["status"] == 0, one
        assert one.get("expected"), one
        assert one["right"] is not False, one
        assert one["right_after"] is True, one
        if one["right"] and backend not in one["devices"]:
            assert any(note.startswith(backend) for note in one["notes"]), one  # the reason for the other device
    works = sum(one["right"] is True for one in told)
    print(f"{backend}, {resource}: {works} of {len(told)} worked, the others were errors with a name")
    return told


@pytest.mark.parametrize("resource", ["AS", "DATA"])
@pytest.mark.parametrize("backend", ["x86", "host"])
def test_memory(cache: Path, backend: str, resource: str) -> None:
    told = under(resource, ADDRESS_SPACE, backend, str(cache))
    assert told[-1]["devices"] == [backend]


@pytest.mark.parametrize("resource", LIMITS)
def test_other_limits(cache: Path, resource: str) -> None:
    told = under(resource, LIMITS[resource], "x86", str(cache))
    assert told[-1]["devices"] == ["x86"]


def test_memory_while_kernels_are_compiled() -> None:
    """Few values, since each compiles all kernels."""
    under("AS", (2, 16, 64, 128, 256, 512), "x86", "off")


def test_files_while_kernels_are_compiled(tmp_path: Path) -> None:
    """Nothing can be written: the kernels stay in memory."""
    (one,) = under("FSIZE", (0,), "x86", str(tmp_path))
    assert one["devices"] == ["x86"]
    assert len(one["warnings"]) == 1
    assert str(tmp_path) in one["warnings"][0]


@pytest.fixture
def folder_of_another_user() -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Return a folder that belongs to a user without processes, and a command that runs what follows as this user."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("the limit counts the processes of a user, and only root can become another one")
    folder = Path(tempfile.mkdtemp())
    os.chown(folder, 54321, 54321)
    yield folder, ("setpriv", "--reuid", "54321", "--regid", "54321", "--clear-groups")
    shutil.rmtree(folder)


def test_threads_that_cannot_be_created(folder_of_another_user: tuple[Path, tuple[str, ...]]) -> None:
    """The session works with the threads that it gets."""
    folder, wrapper = folder_of_another_user
    under("NPROC", (1000,), "x86", str(folder), wrapper=wrapper)  # compiles the kernels
    for one in under("NPROC", (0, 1, 2, 3), "x86", str(folder), wrapper=wrapper):
        assert one["right"] is True, one
        assert one["devices"] == ["x86"], one
