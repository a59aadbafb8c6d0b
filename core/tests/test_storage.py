"""What is kept on disk stays whole, stays within its limit, and never fails who uses it."""

from __future__ import annotations

import logging
import math
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lite_core import storage
from lite_core.errors import LiteError
from lite_core.storage import (
    DiskCache,
    cache_folder,
    cache_limit,
    configuration,
    configuration_folder,
    update_configuration,
)

MIB = 2**20
DAY = 86400.0
logger = logging.getLogger("lite.test.cache")


def cache(folder: Path | None) -> DiskCache:
    return DiskCache(folder, ".bin", logger)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def age(path: Path, seconds: float) -> None:
    """As if it was last used so long ago."""
    then = time.time() - seconds
    os.utime(path, (then, then))


@pytest.fixture(autouse=True)
def limit(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("LITE_CACHE_LIMIT", "1")
    monkeypatch.setenv("LITE_CONFIG_DIR", str(tmp_path_factory.mktemp("configuration")))


def test_an_entry_is_read_as_it_was_written(tmp_path: Path) -> None:
    folder = tmp_path / "made" / "when needed"
    cache(folder).write("a", b"kernel")
    assert cache(folder).read("a") == b"kernel"
    assert cache(folder).read("b") is None
    assert names(folder) == ["a.bin"]
    assert cache(None).read("a") is None
    cache(None).write("a", b"kernel")


def test_the_limit_is_read_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert cache_limit() == MIB
    monkeypatch.setenv("LITE_CACHE_LIMIT", "off")
    assert math.isinf(cache_limit())
    monkeypatch.delenv("LITE_CACHE_LIMIT")
    assert cache_limit() == 1024 * MIB
    assert not caplog.records
    monkeypatch.setenv("LITE_CACHE_LIMIT", "a lot")
    assert cache_limit() == cache_limit() == 1024 * MIB
    assert caplog.text.count("LITE_CACHE_LIMIT=a lot") == 1


@pytest.mark.parametrize(("setting", "expected"), [("", None), ("off", None), ("here", Path("here/things"))])
def test_the_environment_chooses_the_folder(
    monkeypatch: pytest.MonkeyPatch, setting: str, expected: Path | None
) -> None:
    monkeypatch.setenv("LITE_CACHE_DIR", setting)
    assert cache_folder("things") == expected


def test_entries_not_used_for_longest_make_room(tmp_path: Path) -> None:
    for i in range(8):
        (tmp_path / f"{i}.bin").write_bytes(bytes(MIB // 8))
        age(tmp_path / f"{i}.bin", (10 - i) * DAY)
    assert cache(tmp_path).read("1") == bytes(MIB // 8)  # no longer the second oldest
    cache(tmp_path).write("new", bytes(MIB // 8))
    assert names(tmp_path) == ["1.bin", "4.bin", "5.bin", "6.bin", "7.bin", "new.bin"]


def test_a_folder_within_its_limit_is_left_as_it_is(tmp_path: Path) -> None:
    for i in range(7):
        (tmp_path / f"{i}.bin").write_bytes(bytes(MIB // 8))
        age(tmp_path / f"{i}.bin", 1000 * DAY)
    cache(tmp_path).write("new", bytes(MIB // 8))
    assert len(names(tmp_path)) == 8


def test_without_a_limit_everything_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITE_CACHE_LIMIT", "off")
    one = cache(tmp_path)
    for i in range(5):
        one.write(str(i), bytes(MIB))
    assert len(names(tmp_path)) == 5
    assert one.describe() == f"5 with 5.0 MiB in {tmp_path}"


def test_the_limit_holds_whoever_writes_and_however_long(tmp_path: Path) -> None:
    """Three that each know nothing of the others, as processes do."""
    most = 0.0
    writers = [cache(tmp_path) for _ in range(3)]
    for i in range(60):
        writers[i % 3].write(str(i), bytes(MIB // 16))
        most = max(most, sum(path.stat().st_size for path in tmp_path.iterdir()))
    assert most <= MIB * (1 + 3 / 8 + 1 / 16)
    assert {"58.bin", "59.bin"} <= set(names(tmp_path))


def test_only_a_read_after_a_while_is_noted(tmp_path: Path) -> None:
    one = cache(tmp_path)
    one.write("a", b"kernel")
    for seconds, is_noted in ((60.0, False), (2 * DAY, True)):
        age(one.path("a"), seconds)
        before = one.path("a").stat().st_mtime
        one.read("a")
        assert (one.path("a").stat().st_mtime > before) == is_noted


def test_what_dead_processes_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    for name in ("a.1-2.tmp", "a.lock", "b.3-4.tmp", "b.lock", "tuning.json"):
        (tmp_path / name).write_bytes(b"left")
    for name in ("a.1-2.tmp", "a.lock", "tuning.json"):
        age(tmp_path / name, DAY)
    cache(tmp_path).write("new", b"kernel")
    assert names(tmp_path) == ["b.3-4.tmp", "b.lock", "new.bin", "tuning.json"]


def test_what_cannot_be_removed_stays_and_the_next_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(8):
        (tmp_path / f"{i}.bin").write_bytes(bytes(MIB // 8))
        age(tmp_path / f"{i}.bin", (10 - i) * DAY)
    unlink = os.unlink

    def busy(path: str) -> None:
        if path.endswith(("0.bin", "1.bin")):
            raise PermissionError(13, "in use")
        unlink(path)

    monkeypatch.setattr(storage.os, "unlink", busy)
    cache(tmp_path).write("new", bytes(MIB // 8))
    assert names(tmp_path) == ["0.bin", "1.bin", "5.bin", "6.bin", "7.bin", "new.bin"]


def test_a_folder_that_is_of_no_use_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("no folder")
    one = cache(tmp_path / "file" / "things")
    one.write("a", b"kernel")
    one.write("a", b"kernel")
    assert one.read("a") is None
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "LITE_CACHE_DIR" in caplog.text


def test_it_says_what_it_holds(tmp_path: Path) -> None:
    one = cache(tmp_path)
    one.write("a", bytes(MIB // 2))
    assert one.describe() == f"1 with 0.5 MiB of at most 1 MiB in {tmp_path}"
    assert cache(None).describe() == "kept in memory only (LITE_CACHE_DIR is off)"


def test_threads_share_one(tmp_path: Path) -> None:
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
from lite_core.storage import DiskCache
cache = DiskCache(Path(sys.argv[1]), ".bin", logging.getLogger("lite.test"))
for i in range(100):
    content = bytes([i]) * 40000
    cache.write(str(i), content)
    assert cache.read(str(i)) in (content, None)
"""


def test_processes_share_a_folder(tmp_path: Path) -> None:
    """All write the same entries, while each of them removes the oldest."""
    started = [
        subprocess.Popen([sys.executable, "-c", PROCESS, str(tmp_path)], stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    for process in started:
        _, said = process.communicate(timeout=60)
        assert (process.returncode, said) == (0, "")
    assert {path.suffix for path in tmp_path.iterdir()} == {".bin"}
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= MIB * (1 + 3 / 8) + 3 * 40000


def test_settings_are_written_into_one_file_and_the_others_stay() -> None:
    assert dict(configuration()) == {}
    update_configuration({"cache_limit_mib": 7, "toy": {"speed": "high"}})
    update_configuration({"cache_limit_mib": 8})
    assert dict(configuration()) == {"cache_limit_mib": 8, "toy": {"speed": "high"}}
    update_configuration({"toy": None})
    assert dict(configuration()) == {"cache_limit_mib": 8}
    assert names(configuration_folder()) == ["config.json"]


def test_the_cache_is_where_the_configuration_says_unless_the_environment_says_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LITE_CACHE_DIR", raising=False)
    update_configuration({"cache_folder": str(tmp_path), "cache_limit_mib": 3})
    assert cache_folder("kernels") == tmp_path / "kernels"
    assert cache_limit() == MIB
    monkeypatch.delenv("LITE_CACHE_LIMIT")
    assert cache_limit() == 3 * MIB
    monkeypatch.setenv("LITE_CACHE_DIR", "off")
    assert cache_folder("kernels") is None


@pytest.mark.parametrize("text", ["{", "[]", '"cache"', "\0"])
def test_a_damaged_configuration_is_a_line_in_the_log_and_is_not_overwritten(
    text: str, caplog: pytest.LogCaptureFixture
) -> None:
    file = configuration_folder() / "config.json"
    file.write_text(text)
    assert dict(configuration()) == {}
    assert str(file) in caplog.text
    with pytest.raises(LiteError, match="repair or remove it"):
        update_configuration({"cache_limit_mib": 1})
    assert file.read_text() == text


def test_a_setting_of_the_wrong_type_is_a_line_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("LITE_CACHE_DIR", raising=False)
    monkeypatch.delenv("LITE_CACHE_LIMIT")
    update_configuration({"cache_folder": 5, "cache_limit_mib": [1]})
    assert cache_folder("kernels") is not None
    assert cache_limit() == 1024 * MIB
    assert "cache_folder in the configuration must be text" in caplog.text
    assert "cache_limit_mib in the configuration=[1] is neither" in caplog.text
