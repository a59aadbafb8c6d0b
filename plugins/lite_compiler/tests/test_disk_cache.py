"""Disk cache: entries stay complete, sizes stay within the limit, and failures do not raise."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lite_compiler.disk_cache import DiskCache
from lite_core.storage import configuration_folder

has_users = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="this system has no user ids")

MIB = 2**20
DAY = 86400.0
logger = logging.getLogger("lite.test.cache")


def cache(folder: Path | None) -> DiskCache:
    return DiskCache(folder, ".bin", logger)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def give_away(path: Path) -> None:
    """Make another user the owner of a file or a folder."""
    if os.geteuid():
        pytest.skip("only root can create what belongs to another user")
    os.chown(path, 65534, -1)


def age(path: Path, seconds: float) -> None:
    """Set the time of the last use to so many seconds ago."""
    then = time.time() - seconds
    os.utime(path, (then, then))


@pytest.fixture(autouse=True)
def limit(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("LITE_CACHE_LIMIT", "1")
    monkeypatch.setenv("LITE_CONFIG_DIR", str(tmp_path_factory.mktemp("configuration")))


def test_entry_round_trip(tmp_path: Path) -> None:
    folder = tmp_path / "made" / "when needed"
    cache(folder).write("a", b"kernel")
    assert cache(folder).read("a") == b"kernel"
    assert cache(folder).read("b") is None
    assert names(folder) == ["a.bin"]
    assert cache(None).read("a") is None
    cache(None).write("a", b"kernel")


def test_least_recently_used_entries_are_removed(tmp_path: Path) -> None:
    for i in range(8):
        (tmp_path / f"{i}.bin").write_bytes(bytes(MIB // 8))
        age(tmp_path / f"{i}.bin", (10 - i) * DAY)
    assert cache(tmp_path).read("1") == bytes(MIB // 8)  # no longer the second oldest
    cache(tmp_path).write("new", bytes(MIB // 8))
    assert names(tmp_path) == ["1.bin", "4.bin", "5.bin", "6.bin", "7.bin", "new.bin"]


def test_folder_within_its_limit_stays_unchanged(tmp_path: Path) -> None:
    for i in range(7):
        (tmp_path / f"{i}.bin").write_bytes(bytes(MIB // 8))
        age(tmp_path / f"{i}.bin", 1000 * DAY)
    cache(tmp_path).write("new", bytes(MIB // 8))
    assert len(names(tmp_path)) == 8


def test_without_a_limit_no_entry_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITE_CACHE_LIMIT", "off")
    one = cache(tmp_path)
    for i in range(5):
        one.write(str(i), bytes(MIB))
    assert len(names(tmp_path)) == 5
    assert re.search(rf"\b5 .*5\.0 MiB.*{re.escape(str(tmp_path))}", one.describe())


def test_limit_holds_for_several_independent_writers(tmp_path: Path) -> None:
    most = 0.0
    writers = [cache(tmp_path) for _ in range(3)]
    for i in range(60):
        writers[i % 3].write(str(i), bytes(MIB // 16))
        most = max(most, sum(path.stat().st_size for path in tmp_path.iterdir()))
    assert most <= MIB * (1 + 3 / 8 + 1 / 16)
    assert {"58.bin", "59.bin"} <= set(names(tmp_path))


def test_reading_updates_only_an_old_time_of_use(tmp_path: Path) -> None:
    one = cache(tmp_path)
    one.write("a", b"kernel")
    for seconds, is_updated in ((60.0, False), (2 * DAY, True)):
        age(one.path("a"), seconds)
        before = one.path("a").stat().st_mtime
        one.read("a")
        assert (one.path("a").stat().st_mtime > before) == is_updated


def test_only_old_leftovers_of_writers_are_removed(tmp_path: Path) -> None:
    for name in ("a.1-2.tmp", "a.lock", "b.3-4.tmp", "b.lock", "tuning.json"):
        (tmp_path / name).write_bytes(b"left")
    for name in ("a.1-2.tmp", "a.lock", "tuning.json"):
        age(tmp_path / name, DAY)
    cache(tmp_path).write("new", b"kernel")
    assert names(tmp_path) == ["b.3-4.tmp", "b.lock", "new.bin", "tuning.json"]


def test_entry_that_cannot_be_removed_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(8):
        (tmp_path / f"{i}.bin").write_bytes(bytes(MIB // 8))
        age(tmp_path / f"{i}.bin", (10 - i) * DAY)
    unlink = os.unlink

    def busy(path: str | Path) -> None:
        if str(path).endswith(("0.bin", "1.bin")):
            raise PermissionError(13, "in use")
        unlink(path)

    monkeypatch.setattr(os, "unlink", busy)
    cache(tmp_path).write("new", bytes(MIB // 8))
    assert names(tmp_path) == ["0.bin", "1.bin", "5.bin", "6.bin", "7.bin", "new.bin"]


def test_unusable_folder_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("no folder")
    one = cache(tmp_path / "file" / "things")
    one.write("a", b"kernel")
    one.write("a", b"kernel")
    assert one.read("a") is None
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "LITE_CACHE_DIR" in caplog.text


PLANTED = """
import logging, os, sys
from pathlib import Path
from lite_compiler.disk_cache import DiskCache
from lite_core.storage import configuration, configuration_folder
logging.basicConfig(format="%(message)s")
folder = Path(sys.argv[1])
os.mkfifo(folder / "fifo.bin")
(folder / "zero.bin").symlink_to("/dev/zero")
(folder / "link.bin").symlink_to(folder / "whole.bin")
cache = DiskCache(folder, ".bin", logging.getLogger("lite.test"))
cache.write("whole", b"kernel")
print([cache.read(name) for name in ("fifo", "zero", "link", "whole")])
cache.write("fifo", b"made again")
print(cache.read("fifo"))
os.mkfifo(configuration_folder() / "config.json")
print(dict(configuration()))
"""


@has_users
def test_planted_entries_are_misses_and_nothing_hangs(tmp_path: Path) -> None:
    completed = subprocess.run(
        [sys.executable, "-c", PLANTED, str(tmp_path)], capture_output=True, text=True, timeout=10, check=True
    )
    assert completed.stdout.splitlines() == ["[None, None, None, b'kernel']", "b'made again'", "{}"]
    about_the_entry, about_the_configuration = completed.stderr.splitlines()
    assert str(tmp_path / "fifo.bin") in about_the_entry
    assert str(configuration_folder() / "config.json") in about_the_configuration


@has_users
@pytest.mark.parametrize("kind", ["all can write to", "all can write to the parent of", "another user owns"])
def test_folder_that_others_can_change_is_not_used(tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: str) -> None:
    folder = tmp_path / "parent" / "things"
    folder.mkdir(parents=True)
    (folder / "a.bin").write_bytes(b"planted")
    if kind == "another user owns":
        give_away(folder)
    else:
        (folder if kind == "all can write to" else folder.parent).chmod(0o777)
    for one in (cache(folder), cache(folder)):
        assert one.read("a") is None
        one.write("b", b"kernel")
        assert "not used" in one.describe()
    assert names(folder) == ["a.bin"]
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    for word in (str(folder), "LITE_CACHE_DIR", "65534" if kind == "another user owns" else "chmod go-w"):
        assert word in caplog.text


@has_users
def test_entry_that_was_swapped_is_a_miss(tmp_path: Path) -> None:
    one = cache(tmp_path)
    one.write("a", b"kernel")
    one.path("a").chmod(0o666)
    assert one.read("a") is None
    one.write("b", b"kernel")
    give_away(one.path("b"))
    assert one.read("b") is None


def test_links_at_the_places_of_temporary_files_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "victim").write_bytes(b"victim")
    (tmp_path / "things").mkdir()
    for name in (f"a.{os.getpid()}-{threading.get_ident()}.tmp", "a.tmp", "a.bin.tmp", "a.bin"):
        (tmp_path / "things" / name).symlink_to(tmp_path / "victim")
    cache(tmp_path / "things").write("a", b"kernel")
    assert cache(tmp_path / "things").read("a") == b"kernel"
    assert (tmp_path / "victim").read_bytes() == b"victim"


FILLED_BY_ROOT = """
import logging, os, sys
from pathlib import Path
from lite_compiler.disk_cache import DiskCache
logging.basicConfig(format="%(message)s")
os.setgid(65534)
os.setuid(65534)
cache = DiskCache(Path(sys.argv[1]), ".bin", logging.getLogger("lite.test"))
cache.write("b", b"kernel")
cache.write("c", b"kernel")
print([cache.read(name) for name in "abc"])
"""


@has_users
def test_folder_that_root_filled_is_read() -> None:
    if os.geteuid():
        pytest.skip("only root can fill a folder for all users")
    with tempfile.TemporaryDirectory(dir="/tmp") as parent:  # other users cannot enter the folders of pytest
        Path(parent).chmod(0o755)
        folder = Path(parent) / "things"
        cache(folder).write("a", b"kernel")
        folder.chmod(0o755)
        (folder / "a.bin").chmod(0o644)
        command = [sys.executable, "-c", FILLED_BY_ROOT, str(folder)]
        completed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert completed.stdout == "[b'kernel', None, None]\n"
    (line,) = completed.stderr.splitlines()
    assert str(folder) in line
    assert "Permission denied" in line


def test_cache_stays_where_it_is_when_the_working_folder_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    one = cache(Path("things"))
    one.write("a", b"kernel")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert one.read("a") == b"kernel"


def test_describe_gives_number_size_and_folder(tmp_path: Path) -> None:
    one = cache(tmp_path)
    one.write("a", bytes(MIB // 2))
    assert re.search(rf"\b1 .*0\.5 MiB.* 1 MiB.*{re.escape(str(tmp_path))}", one.describe())
    assert "LITE_CACHE_DIR" in cache(None).describe()


def test_threads_share_a_cache(tmp_path: Path) -> None:
    one = cache(tmp_path)

    def use(i: int) -> bool:
        one.write(str(i), bytes([i]) * (MIB // 32))
        return one.read(str(i)) in (bytes([i]) * (MIB // 32), None)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(use, range(200)))
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= MIB * (1 + 1 / 8 + 8 / 32)


PROCESS = """
import logging, sys
from pathlib import Path
from lite_compiler.disk_cache import DiskCache
cache = DiskCache(Path(sys.argv[1]), ".bin", logging.getLogger("lite.test"))
for i in range(100):
    content = bytes([i]) * 40000
    cache.write(str(i), content)
    assert cache.read(str(i)) in (content, None)
"""


def test_processes_share_a_folder(tmp_path: Path) -> None:
    """All processes write the same entries while each removes the oldest ones."""
    started = [
        subprocess.Popen([sys.executable, "-c", PROCESS, str(tmp_path)], stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    for process in started:
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (0, "")
    assert {path.suffix for path in tmp_path.iterdir()} == {".bin"}
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= MIB * (1 + 3 / 8) + 3 * 40000
