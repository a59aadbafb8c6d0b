"""Kernel cache: kernels are compiled once per machine by all threads and processes, and damaged entries again."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lite_cpu.machine_code import cache as cache_module
from lite_cpu.machine_code.cache import KernelCache, default_folder
from lite_cpu.machine_code.file_lock import file_lock
from lite_cpu.machine_code.image import CodeImage


def image_of(code: bytes = b"\xc3") -> CodeImage:
    return CodeImage(code, {"kernel": 0}, "x86_64")


class Builder:
    """A build function that counts its calls."""

    def __init__(self, image: CodeImage | None = None) -> None:
        self.image = image or image_of()
        self.calls = 0

    def __call__(self) -> CodeImage:
        self.calls += 1
        return self.image


def never() -> CodeImage:
    raise AssertionError("a kernel that is stored was built again")


def entry_of(folder: Path) -> Path:
    (entry,) = folder.glob("*.kernel")
    return entry


def test_kernel_is_built_once_and_then_read(tmp_path):
    build = Builder()
    first = KernelCache(tmp_path / "kernels")
    assert first.get("relu", build) == first.get("relu", build) == build.image
    assert KernelCache(tmp_path / "kernels").get("relu", never) == build.image
    assert build.calls == 1
    assert (first.statistics.hits, first.statistics.misses, first.statistics.rebuilt) == (1, 1, 0)
    assert first.statistics.compile_seconds > 0


def test_different_keys_are_different_kernels(tmp_path):
    cache = KernelCache(tmp_path)
    cache.get("a", Builder(image_of(b"a")))
    cache.get("b", Builder(image_of(b"b")))
    assert [KernelCache(tmp_path).get(key, never).code for key in "ab"] == [b"a", b"b"]


def test_kernels_stay_in_memory_without_a_folder():
    build = Builder()
    cache = KernelCache(None)
    assert cache.get("relu", build) is cache.get("relu", build)
    assert build.calls == 1


def test_folder_contains_only_entries(tmp_path):
    cache = KernelCache(tmp_path)
    cache.get_many([(str(i), Builder()) for i in range(5)], threads=3)
    assert [path.suffix for path in tmp_path.iterdir()] == [".kernel"] * 5


def test_entries_depend_on_the_versions_of_code_and_compiler(tmp_path, monkeypatch):
    KernelCache(tmp_path).get("relu", Builder())
    assert "llvmlite" in cache_module.code_version()
    cache_module._full_key.cache_clear()
    monkeypatch.setattr(cache_module, "code_version", lambda: "another version")
    build = Builder(image_of(b"new"))
    assert KernelCache(tmp_path).get("relu", build).code == b"new"
    assert build.calls == 1
    cache_module._full_key.cache_clear()


def test_exception_of_a_build_is_passed_on_and_not_cached(tmp_path):
    cache = KernelCache(tmp_path)
    with pytest.raises(ZeroDivisionError):
        cache.get("relu", lambda: 1 // 0)  # type: ignore[arg-type, return-value]
    assert list(tmp_path.iterdir()) == []
    build = Builder()
    assert cache.get("relu", build) == build.image


# where the folder is


@pytest.mark.parametrize(("setting", "expected"), [("", None), ("off", None), ("here", Path("here/kernels"))])
def test_the_environment_chooses_the_folder(monkeypatch, setting, expected):
    monkeypatch.setenv("LITE_CACHE_DIR", setting)
    assert default_folder() == expected


def test_default_folder_is_the_users_cache(monkeypatch, tmp_path):
    monkeypatch.delenv("LITE_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = default_folder()
    assert folder is not None
    assert folder.parts[-2:] == ("lite", "kernels")
    if sys.platform == "linux":
        assert folder == tmp_path / "lite" / "kernels"


# damage


def flip_last_bit(entry: Path) -> None:
    content = bytearray(entry.read_bytes())
    content[-1] ^= 1
    entry.write_bytes(content)


DAMAGES = {
    "empty": (lambda entry: entry.write_bytes(b""), "at least"),
    "header cut": (lambda entry: entry.write_bytes(entry.read_bytes()[:20]), "at least"),
    "cut": (lambda entry: entry.write_bytes(entry.read_bytes()[:-1]), "checksum"),
    "bit flipped": (flip_last_bit, "checksum"),
    "something else": (lambda entry: entry.write_bytes(b"x" * 200), "found b'xxxxxxxx'"),
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_damaged_entry_is_logged_and_rebuilt(tmp_path, caplog, kind):
    damage, reason = DAMAGES[kind]
    KernelCache(tmp_path).get("relu", Builder())
    damage(entry_of(tmp_path))
    cache, build = KernelCache(tmp_path), Builder()
    with caplog.at_level(logging.WARNING, "lite.cpu.cache"):
        assert cache.get("relu", build) == build.image
    assert build.calls == 1
    assert (cache.statistics.misses, cache.statistics.rebuilt) == (1, 1)
    assert len(caplog.records) == 1
    assert reason in caplog.text
    assert KernelCache(tmp_path).get("relu", never) == build.image


def test_entry_of_another_kernel_is_rebuilt(tmp_path, caplog):
    cache = KernelCache(tmp_path)
    cache.get("relu", Builder())
    shutil.copy(entry_of(tmp_path), cache._path("gelu"))
    build = Builder(image_of(b"gelu"))
    assert KernelCache(tmp_path).get("gelu", build).code == b"gelu"
    assert "it belongs to 'relu" in caplog.text


def test_unusable_folder_is_logged_once(tmp_path, caplog):
    occupied = tmp_path / "file"
    occupied.write_text("not a folder")
    cache, build = KernelCache(occupied / "kernels"), Builder()
    for key in ("a", "b", "a"):
        assert cache.get(key, build) == build.image
    assert build.calls == 2
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "LITE_CACHE_DIR" in caplog.text


def test_failed_write_is_logged_once(tmp_path, caplog, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    cache, build = KernelCache(tmp_path), Builder()
    assert cache.get("a", build) == cache.get("b", build) == build.image
    assert "No space left" in caplog.text
    assert len(caplog.records) == 1
    assert list(tmp_path.iterdir()) == []


# other users

has_users = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="this system has no user ids")


def planted(folder: Path, key: str = "relu", code: bytes = b"evil") -> Path:
    """Store a whole kernel with other code, and return its entry."""
    KernelCache(folder).get(key, Builder(image_of(code)))
    return KernelCache(folder)._path(key)


def give_away(path: Path) -> None:
    if os.geteuid():
        pytest.skip("only root can create what belongs to another user")
    os.chown(path, 65534, -1)


@has_users
@pytest.mark.parametrize("kind", ["writable", "in a writable parent", "foreign", "link of another user"])
def test_code_of_a_folder_that_others_can_change_is_not_used(tmp_path, caplog, kind):
    planted(tmp_path / "first")
    folder = shutil.copytree(tmp_path / "first", tmp_path / "parent" / "kernels")
    if kind == "foreign":
        give_away(folder)
    elif kind == "link of another user":
        folder = tmp_path / "link"
        folder.symlink_to(tmp_path / "parent" / "kernels")
        if os.geteuid():
            pytest.skip("only root can create what belongs to another user")
        os.lchown(folder, 65534, -1)
    else:
        (folder if kind == "writable" else folder.parent).chmod(0o777)
    build = Builder(image_of(b"good"))
    assert KernelCache(folder).get("relu", build).code == b"good"
    assert KernelCache(folder).get("gelu", build).code == b"good"
    assert build.calls == 2
    assert len(list(folder.iterdir())) == 1
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert str(folder) in caplog.text
    assert "LITE_CACHE_DIR" in caplog.text


@has_users
@pytest.mark.parametrize("kind", ["writable", "foreign", "link"])
def test_code_of_an_entry_that_others_can_change_is_not_used(tmp_path, kind):
    entry = planted(tmp_path)
    if kind == "writable":
        entry.chmod(0o666)
    elif kind == "foreign":
        give_away(entry)
    else:
        entry.symlink_to(entry.rename(tmp_path / "elsewhere"))
    build = Builder(image_of(b"good"))
    assert KernelCache(tmp_path).get("relu", build).code == b"good"
    assert KernelCache(tmp_path).get("relu", never).code == b"good", "what is made again replaces the entry"


PLANTED = """
import os, sys
from pathlib import Path
from lite_cpu.machine_code.cache import KernelCache
from lite_cpu.machine_code.image import CodeImage

folder = Path(sys.argv[1])
cache = KernelCache(folder)
os.mkfifo(cache._path("a"))
os.mkfifo(cache._path("b").with_suffix(".lock"))
cache._path("c").symlink_to("/dev/zero")
cache._path("d").mkdir()
for key in "abcd":
    print(cache.get(key, lambda: CodeImage(key.encode(), {"kernel": 0}, "x86_64")).code.decode())
"""


@has_users
def test_nothing_hangs_where_entries_and_locks_should_be(tmp_path):
    command = [sys.executable, "-c", PLANTED, str(tmp_path)]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    assert completed.stdout.split() == ["a", "b", "c", "d"]


@has_users
def test_lock_is_not_taken_through_a_link(tmp_path):
    """The link leads to a file that another process holds a lock on, and to a file that does not exist."""
    folder = tmp_path / "kernels"
    folder.mkdir()
    cache = KernelCache(folder)
    cache._path("relu").with_suffix(".lock").symlink_to(tmp_path / "held")
    cache._path("gelu").with_suffix(".lock").symlink_to(tmp_path / "missing")
    with file_lock(tmp_path / "held", 0), file_lock(cache._path("relu").with_suffix(".lock"), 1) as waited:
        assert not waited
    for key in ("relu", "gelu"):
        assert cache.get(key, Builder()) == image_of()
    assert not (tmp_path / "missing").exists()


# threads and processes


def test_threads_build_a_kernel_once(tmp_path):
    ready = threading.Barrier(8)
    build = Builder()
    cache = KernelCache(tmp_path)

    def want(_: int) -> CodeImage:
        ready.wait()
        return cache.get("relu", build)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(want, range(8)))
    assert build.calls == 1
    assert found == [build.image] * 8
    assert (cache.statistics.hits, cache.statistics.misses) == (7, 1)


PROCESS = """
import sys, time
from pathlib import Path
from lite_cpu.machine_code.cache import KernelCache
from lite_cpu.machine_code.image import CodeImage

folder, log = map(Path, sys.argv[1:])

def build():
    with log.open("a") as built:
        built.write("x")
    time.sleep(0.3)
    return CodeImage(b"code", {"kernel": 0}, "x86_64")

print("ready", flush=True)
sys.stdin.readline()
print(KernelCache(folder).get("relu", build).code.decode())
"""


@pytest.mark.skipif(os.name != "posix", reason="processes share no locks here")
def test_processes_build_a_kernel_once(tmp_path):
    command = [sys.executable, "-c", PROCESS, str(tmp_path / "kernels"), str(tmp_path / "log")]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    assert [process.communicate()[0] for process in processes] == ["code\n"] * 4
    assert (tmp_path / "log").read_text() == "x"


@pytest.mark.skipif(os.name != "posix", reason="processes share no locks here")
def test_lock_of_a_stopped_process_is_not_waited_for_indefinitely(tmp_path, monkeypatch):
    monkeypatch.setattr(cache_module, "_PATIENCE_SECONDS", 0.02)
    cache, build = KernelCache(tmp_path), Builder()
    with file_lock(cache._path("relu").with_suffix(".lock"), 0):
        assert cache.get("relu", build) == build.image
    assert build.calls == 1
    assert KernelCache(tmp_path).get("relu", never) == build.image


# many at once


def test_get_many_keeps_the_order_and_builds_each_missing_kernel_once(tmp_path):
    builds = {key: Builder(image_of(key.encode())) for key in "abcdef"}
    KernelCache(tmp_path).get("c", builds["c"])
    cache = KernelCache(tmp_path)
    cache.get("d", builds["d"])
    order = "fabacdeaf"
    found = cache.get_many([(key, builds[key]) for key in order], threads=3)
    assert b"".join(image.code for image in found).decode() == order
    assert {key: build.calls for key, build in builds.items()} == dict.fromkeys("abcdef", 1)
    assert cache.statistics.misses == 5


def test_get_many_builds_in_parallel(tmp_path):
    meet = threading.Barrier(3, timeout=30)

    def build() -> CodeImage:
        meet.wait()  # fails unless three threads are here at the same time
        return image_of()

    assert len(KernelCache(tmp_path).get_many([(key, build) for key in "abc"], threads=3)) == 3


def test_get_many_reports_its_progress(tmp_path, caplog):
    cache = KernelCache(tmp_path)
    cache.get("a", Builder())
    logger = logging.getLogger("lite.progress")
    logger.addHandler(caplog.handler)  # its records do not reach the root
    try:
        with caplog.at_level(logging.DEBUG, "lite.progress"):
            cache.get_many([(key, Builder()) for key in "abcd"], threads=2)
    finally:
        logger.removeHandler(caplog.handler)
    steps = [f"compiling kernels: {done} of 3 done" for done in range(3)]
    assert [record.getMessage() for record in caplog.records if record.name == "lite.progress"] == [
        *steps,
        "compiling kernels: over",
    ]


def test_get_many_passes_on_exceptions_of_builds(tmp_path):
    with pytest.raises(ZeroDivisionError):
        KernelCache(tmp_path).get_many([("a", Builder()), ("b", lambda: 1 // 0)], threads=2)  # type: ignore[list-item, return-value]


WARM_START = """
import sys
from pathlib import Path
from lite_cpu.machine_code.cache import KernelCache
from lite_cpu.machine_code.objects import load

cache = KernelCache(Path(sys.argv[1]))
code = load([cache.get("scale", lambda: sys.exit("compiled again"))])
print(code.address(0, "f") > 0, "llvmlite" in sys.modules)
"""


def test_warm_start_imports_no_compiler(tmp_path):
    import platform

    KernelCache(tmp_path).get("scale", lambda: CodeImage(b"\xc3" * 4, {"f": 0}, platform.machine()))
    command = [sys.executable, "-c", WARM_START, str(tmp_path)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "True False\n"
