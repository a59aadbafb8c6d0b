"""Disks that are full, broken or read-only, and homes that do not exist: an error that names the file, or no cache.

Real small disks, read-only folders and unknown users are made in namespaces of their own, which need no privileges.
The library ``failing_files`` lets each call on a file fail.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from attempts import DEADLINE_SECONDS, Result, attempt, tiny_model
from disturbing import convert, disturb, environment, fill, left_behind

#: Pages of a disk that holds a few small entries of the cache, and no more.
SMALL_DISK_KIB = 64


@cache
def has_namespaces() -> bool:
    """Return True if this process may make namespaces with mounts of its own."""
    command = ["unshare", "-Urm", "mount", "-t", "tmpfs", "none", "/mnt"]
    return shutil.which("unshare") is not None and subprocess.run(command, capture_output=True).returncode == 0


def in_namespace(*mounts: str) -> list[str]:
    """Return a command that makes mounts of its own before it runs what follows; skip the test if it is refused."""
    if not has_namespaces():
        pytest.skip("the system refuses namespaces with mounts of their own (unshare -Urm)")
    return ["unshare", "-Urm", "sh", "-ec", " && ".join([*mounts, 'exec "$0" "$@"'])]


def small_disk(folder: Path) -> str:
    return f"mount -t tmpfs -o size={SMALL_DISK_KIB}k,mode=700 none '{folder}'"


def read_only(folder: Path) -> str:
    return f"mount --bind '{folder}' '{folder}' && mount -o remount,bind,ro '{folder}'"


def assert_right_without_cache(result: Result, backend: str, folder: Path) -> None:
    """Assert that a result is right, and that one warning names the folder that cannot be used."""
    assert result.right, result
    assert backend in result.devices
    assert len([line for line in result.warnings if str(folder) in line]) == 1, result.warnings


# **** every call ****


@pytest.mark.full("reliability")
@pytest.mark.parametrize("kind", ["ENOSPC", "EIO", "EDQUOT"])
def test_a_conversion_that_cannot_write_names_the_file(failing_files: Path, tmp_path: Path, kind: str) -> None:
    fill(tmp_path, "x86")
    convert(tmp_path, "host")
    told = disturb(failing_files, tmp_path, "convert:x86", kind)
    for one in told:
        assert one["status"] == 0, one
        assert one.get("expected"), one
    failed = [one for one in told if one["error"]]
    assert failed
    for one in failed:
        assert str(tmp_path) in one["error"], one
        assert "model.lite" in one["error"], one
        assert os.strerror(getattr(errno, kind)) in one["error"], one
    assert left_behind(tmp_path) == []


@pytest.mark.full("reliability")
@pytest.mark.parametrize("counted", ["changes", "reads"])
@pytest.mark.parametrize("kind", ["ENOSPC", "EIO"])
@pytest.mark.parametrize("backend", ["x86", "opencl"])
def test_a_cache_that_fails_changes_no_result(
    failing_files: Path, tmp_path: Path, backend: str, kind: str, counted: str
) -> None:
    fill(tmp_path, backend)
    step = 1 if counted == "changes" else 9  # each entry is opened and read in a few calls
    for one in disturb(failing_files, tmp_path, backend, kind, counted, step=step):
        assert one["status"] == 0, one
        assert one["right"] is True, one
        assert backend in one["devices"], one
        assert len(one["warnings"]) <= 3, one
    assert left_behind(tmp_path) == []


# **** real disks ****


@pytest.mark.full("reliability")
def test_a_full_disk_keeps_the_old_file(tmp_path: Path) -> None:
    """The command fails with the system's reason; the old file on the same disk stays complete."""
    disk = tmp_path / "disk"
    disk.mkdir()
    convert(tmp_path, "host")
    copied = f"cp '{tmp_path}/model.lite' '{disk}' && head -c 1M /dev/zero >'{disk}/rest' 2>/dev/null || true"
    kept = f"; status=$?; cmp '{tmp_path}/model.lite' '{disk}/model.lite' && exit $status"
    words = [sys.executable, "-m", "lite_core", "convert", tiny_model(), "-o", disk / "model.lite"]
    run = " ".join(f"'{word}'" for word in map(str, [*words, "--targets", "host", "--no-verify"]))
    wrapper = in_namespace(small_disk(disk), copied)[:-1]
    done = subprocess.run(
        [*wrapper, f"{small_disk(disk)} && {copied}\nset +e\n{run}{kept}\nexit 99"],
        env={**os.environ, **environment(tmp_path)},
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
    )
    assert done.returncode == 1, (done.returncode, done.stdout, done.stderr)
    assert os.strerror(errno.ENOSPC) in done.stderr
    assert "model.lite" in done.stderr


@pytest.mark.full("reliability")
@pytest.mark.parametrize("backend", ["x86", "opencl"])
def test_a_full_disk_under_the_cache(tmp_path: Path, backend: str) -> None:
    settings = environment(tmp_path)
    disk = tmp_path / "cache"
    disk.mkdir()
    result = attempt(tiny_model(), backend, wrapper=in_namespace(small_disk(disk)), **settings)
    assert_right_without_cache(result, backend, disk)


@pytest.mark.full("reliability")
@pytest.mark.parametrize("backend", ["x86", "opencl"])
def test_a_read_only_cache(tmp_path: Path, backend: str) -> None:
    """Entries that are there are used; missing ones are made, and kept in memory."""
    fill(tmp_path, backend)
    cache_folder = tmp_path / "cache"
    wrapper = in_namespace(read_only(cache_folder))
    full = attempt(tiny_model(), backend, wrapper=wrapper, **environment(tmp_path))
    assert full.right, full
    assert full.warnings == []
    for entry in cache_folder.rglob("*.*"):
        entry.unlink()
    result = attempt(tiny_model(), backend, wrapper=wrapper, **environment(tmp_path))
    assert_right_without_cache(result, backend, cache_folder)


HOMES = {
    "read-only": lambda home: (in_namespace(read_only(home)), str(home)),
    "missing": lambda home: ([], str(home / "missing/deep")),
    "a file": lambda home: ([], str(home / "file")),
    "a device": lambda home: ([], "/dev/null"),
    "empty": lambda home: ([], ""),
    "unset, for an unknown user": lambda home: (unknown_user(), None),
}


def unknown_user() -> list[str]:
    """Return a command that runs what follows as a user without a name, a home, or files of its own."""
    if os.geteuid() == 0 and shutil.which("setpriv"):
        return ["setpriv", "--reuid", "54321", "--regid", "54321", "--clear-groups"]
    pytest.skip("only root can become another user")


@pytest.mark.full("reliability")
@pytest.mark.parametrize("case", HOMES)
def test_homes_that_cannot_be_used(tmp_path: Path, case: str) -> None:
    """Neither cache nor configuration can be kept: everything runs, and nothing is written into the working folder."""
    home, work = tmp_path / "home", tmp_path / "work"
    for folder in (home, work):
        folder.mkdir()
    (home / "file").touch()
    wrapper, value = HOMES[case](home)
    result = attempt(
        tiny_model(),
        "x86",
        wrapper=wrapper,
        folder=Path("/") if case.startswith("unset") else work,
        HOME=value,
        LITE_CACHE_DIR=None,
        LITE_CONFIG_DIR=None,
        XDG_CACHE_HOME=None,
        XDG_CONFIG_HOME=None,
    )
    assert result.right, result
    assert "x86" in result.devices
    assert len(result.warnings) <= 2, result.warnings
    assert list(work.iterdir()) == []
