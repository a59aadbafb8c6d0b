"""Files and folders that other users can change are neither read nor written, and nothing at their place can block."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lite_core.private_files import open_private, read_private, unsafe_reason, write_private

if not hasattr(os, "geteuid"):
    pytest.skip("this system has no user ids", allow_module_level=True)

SOMEBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can create what belongs to another user")


@pytest.fixture(autouse=True)
def watchdog() -> Iterator[None]:
    """Fail a test that waits for a FIFO or a device."""

    def hangs(*_: object) -> None:
        pytest.fail("it hangs")

    former = signal.signal(signal.SIGALRM, hangs)
    signal.alarm(10)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, former)


def folder(path: Path, mode: int = 0o755, owner: int = -1) -> Path:
    path.mkdir()
    path.chmod(mode)
    os.chown(path, owner, -1)
    return path


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


# **** folders ****


@pytest.mark.parametrize("mode", [0o700, 0o755, 0o555])
def test_folder_that_only_its_owner_can_change_is_safe(tmp_path: Path, mode: int) -> None:
    assert unsafe_reason(folder(tmp_path / "own", mode)) == ""
    assert unsafe_reason(tmp_path / "own" / "missing" / "too") == ""


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o757, 0o1777])
def test_folder_that_others_can_write_to_is_unsafe(tmp_path: Path, mode: int) -> None:
    reason = unsafe_reason(folder(tmp_path / "open", mode))
    assert f"{mode:04o}" in reason
    assert f"chmod go-w {tmp_path / 'open'}" in reason


@pytest.mark.parametrize(("mode", "is_safe"), [(0o777, False), (0o770, False), (0o1777, True)])
def test_parents_are_judged_too(tmp_path: Path, mode: int, is_safe: bool) -> None:
    """In a parent with the sticky bit, others cannot rename or remove the folder."""
    parent = folder(tmp_path / "parent", mode)
    for below in (folder(parent / "own", 0o700), parent / "missing", folder(parent / "own" / "inner")):
        assert (unsafe_reason(below) == "") == is_safe
    assert is_safe or str(parent) in unsafe_reason(parent / "own")


@as_root
@pytest.mark.parametrize("mode", [0o700, 0o755, 0o1777])
def test_folder_of_another_user_is_unsafe(tmp_path: Path, mode: int) -> None:
    foreign = folder(tmp_path / "foreign", mode, SOMEBODY)
    for path in (foreign, foreign / "missing", folder(foreign / "own", 0o700)):
        assert str(foreign) in unsafe_reason(path)
        assert str(SOMEBODY) in unsafe_reason(path)


def test_own_link_to_a_safe_folder_is_safe(tmp_path: Path) -> None:
    folder(tmp_path / "own", 0o700)
    (tmp_path / "relative").symlink_to("own/../own")
    (tmp_path / "absolute").symlink_to(tmp_path / "relative")
    assert unsafe_reason(tmp_path / "absolute") == ""
    assert unsafe_reason(tmp_path / "absolute" / "missing") == ""


def test_link_through_a_folder_that_others_can_write_to_is_unsafe(tmp_path: Path) -> None:
    (folder(folder(tmp_path / "open", 0o777) / "own", 0o700) / "inner").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "open" / "own")
    for path in (tmp_path / "link", tmp_path / "link" / "inner", tmp_path / "link" / ".." / "own"):
        assert str(tmp_path / "open") in unsafe_reason(path)


@as_root
def test_link_of_another_user_is_unsafe(tmp_path: Path) -> None:
    """Its owner can make it lead elsewhere at any time."""
    folder(tmp_path / "own", 0o700)
    link = folder(tmp_path / "parent", 0o1777) / "link"
    link.symlink_to(tmp_path / "own")
    os.lchown(link, SOMEBODY, -1)
    assert str(link) in unsafe_reason(link)
    assert str(link) in unsafe_reason(link / "missing")


def test_device_or_file_among_the_parents_is_named(tmp_path: Path) -> None:
    """The remedy is not to change the access to a device that all users need."""
    open_file(tmp_path / "file", 0o666)
    (tmp_path / "link").symlink_to("/dev/null")
    for path in (tmp_path / "file", tmp_path / "link", Path("/dev/null")):
        for below in (path, path / "missing"):
            reason = unsafe_reason(below)
            assert str(path.resolve()) in reason
            assert "a folder" in reason
            assert "chmod" not in reason


def test_links_in_a_circle_are_unsafe(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert str(tmp_path / "a") in unsafe_reason(tmp_path / "a")


def test_relative_folder_is_judged_in_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder(tmp_path / "open", 0o777))
    assert str(tmp_path / "open") in unsafe_reason(Path("cache"))
    monkeypatch.chdir(folder(tmp_path / "own", 0o700))
    assert unsafe_reason(Path("cache")) == ""


def test_folder_that_somebody_created_first_is_not_used(tmp_path: Path) -> None:
    cache = folder(tmp_path / "parent", 0o1777) / "cache"
    assert unsafe_reason(cache) == ""
    cache.mkdir()
    cache.chmod(0o777)
    with pytest.raises(OSError, match=str(cache)):
        write_private(cache / "entry", b"x")
    assert list(cache.iterdir()) == []


def test_folder_that_somebody_creates_at_the_same_moment_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = folder(tmp_path / "parent", 0o1777) / "cache"
    mkdir = Path.mkdir

    def overtaken(self: Path, *arguments: int, **more: bool) -> None:
        mkdir(self)
        self.chmod(0o777)
        mkdir(self, *arguments, **more)

    monkeypatch.setattr(Path, "mkdir", overtaken)
    with pytest.raises(OSError, match=f"chmod go-w {cache}"):
        write_private(cache / "entry", b"x")
    assert list(cache.iterdir()) == []


def test_folder_that_somebody_creates_before_a_file_is_opened_is_not_read(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = folder(own / "parent", 0o1777) / "cache"
    (own / "mine").write_bytes(b"linked by somebody else, into a folder of theirs")
    opened = os.open

    def overtaken(path: Path, *arguments: int) -> int:
        folder(cache, 0o777)
        os.link(own / "mine", cache / "entry")
        return opened(path, *arguments)

    monkeypatch.setattr(os, "open", overtaken)
    with pytest.raises(OSError, match=f"chmod go-w {cache}"):
        read_private(cache / "entry")


# **** reading ****


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Path]:
    """A file outside the folder that a link may lead to; no test may change it."""
    file = tmp_path / "victim"
    file.write_bytes(b"victim")
    yield file
    assert file.read_bytes() == b"victim"
    assert mode_of(file) == 0o644


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return folder(tmp_path / "own", 0o700)


def open_file(path: Path, mode: int) -> None:
    path.write_bytes(b"planted")
    path.chmod(mode)


def unix_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        former = os.getcwd()
        os.chdir(path.parent)  # the names of sockets are short
        try:
            listening.bind(path.name)
        finally:
            os.chdir(former)


def sparse(path: Path) -> None:
    path.touch(0o600)
    os.truncate(path, 6 * 2**30)


PLANTED: dict[str, Callable[[Path], object]] = {
    "a link": lambda path: path.symlink_to(path.parent.parent / "victim"),
    "a link to nothing": lambda path: path.symlink_to("missing"),
    "a link to /dev/zero": lambda path: path.symlink_to("/dev/zero"),
    "a FIFO": lambda path: os.mkfifo(path, 0o600),
    "a socket": unix_socket,
    "a folder": lambda path: path.mkdir(),
    "a file that the group can write to": lambda path: open_file(path, 0o620),
    "a file that all can write to": lambda path: open_file(path, 0o602),
    "a sparse file of 6 GiB": sparse,
}


@pytest.mark.parametrize("planted", PLANTED)
def test_only_safe_files_are_read(own: Path, victim: Path, planted: str) -> None:
    entry = own / "entry"
    PLANTED[planted](entry)
    with pytest.raises(OSError, match=str(entry)) as refused:
        read_private(entry)
    assert not isinstance(refused.value, FileNotFoundError)
    with pytest.raises(OSError, match=str(entry)):
        open_private(entry, os.O_RDWR | os.O_CREAT, most=2**20)


@pytest.mark.parametrize("planted", PLANTED)
def test_writing_replaces_what_is_planted(own: Path, victim: Path, planted: str) -> None:
    entry = own / "entry"
    PLANTED[planted](entry)
    if planted == "a folder":
        with pytest.raises(OSError, match=str(entry)):
            write_private(entry, b"content")
    else:
        write_private(entry, b"content")
        assert read_private(entry) == b"content"
    assert [path.name for path in own.iterdir()] == ["entry"]


@as_root
def test_file_of_another_user_is_not_read(own: Path) -> None:
    write_private(own / "entry", b"content")
    os.chown(own / "entry", SOMEBODY, -1)
    with pytest.raises(OSError, match=str(SOMEBODY)):
        read_private(own / "entry")


def test_size_is_bounded(own: Path) -> None:
    write_private(own / "entry", b"12345")
    assert read_private(own / "entry", most=5) == b"12345"
    with pytest.raises(OSError, match="4"):
        read_private(own / "entry", most=4)


def test_missing_file_is_not_found(own: Path) -> None:
    for path in (own / "missing", own / "missing" / "too"):
        with pytest.raises(FileNotFoundError):
            read_private(path)


def test_files_of_an_unsafe_folder_are_not_touched(tmp_path: Path) -> None:
    unsafe = folder(tmp_path / "open", 0o777)
    (unsafe / "entry").write_bytes(b"planted")
    with pytest.raises(OSError, match=str(unsafe)):
        read_private(unsafe / "entry")
    for path in (unsafe / "new", unsafe / "inner" / "new"):
        with pytest.raises(OSError, match=str(unsafe)):
            write_private(path, b"content")
    assert [path.name for path in unsafe.iterdir()] == ["entry"]


# **** writing ****


@pytest.mark.parametrize("umask", [0o000, 0o002, 0o077])
def test_new_files_and_folders_are_private_whatever_the_umask(own: Path, umask: int) -> None:
    script = """
import os, sys
from pathlib import Path
from lite_core.private_files import open_private, write_private
os.umask(int(sys.argv[2]))
write_private(Path(sys.argv[1], "a/b/entry"), b"content")
os.close(open_private(Path(sys.argv[1], "c/d/lock"), os.O_RDWR | os.O_CREAT))
"""
    subprocess.run([sys.executable, "-c", script, str(own), str(umask)], check=True, timeout=60)
    modes = {path.name: mode_of(path) for path in own.rglob("*")}
    assert modes == {"a": 0o700, "b": 0o700, "entry": 0o600, "c": 0o700, "d": 0o700, "lock": 0o600}


def test_existing_file_is_kept_on_request(own: Path) -> None:
    write_private(own / "key", b"first", replace=False)
    with pytest.raises(FileExistsError):
        write_private(own / "key", b"second", replace=False)
    assert read_private(own / "key") == b"first"
    write_private(own / "key", b"third")
    assert read_private(own / "key") == b"third"
    assert [path.name for path in own.iterdir()] == ["key"]


def test_failed_write_leaves_nothing_behind(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        write_private(own / "entry", b"content")
    assert list(own.iterdir()) == []
