"""Tests of the search for MKL: order of locations, other and incomplete libraries, and the installed MKL, if any."""

from __future__ import annotations

import ctypes
import ctypes.util
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lite_x86 import detect, mkl
from lite_x86.backend import X86Backend
from lite_x86.mkl_search import Location, libraries_in, locations

linux = pytest.mark.skipif(sys.platform != "linux", reason="names of libraries as on Linux")
LIBRARY = "libmkl_rt.so.2"


@pytest.fixture(scope="module")
def installed() -> mkl.Mkl:
    """The MKL installed on this machine; skips the test if there is none."""
    found = mkl.search().mkl if detect.is_x86_64() else None
    if found is None:
        pytest.skip("there is no MKL here: pip install mkl")
    return found


def write_file(folder: Path, name: str = LIBRARY, content: bytes = b"not a library") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_bytes(content)
    return file


def install_wheel(site: Path, *files: str) -> None:
    """Write the metadata of an installed wheel ``mkl`` into ``site``, as pip does."""
    info = site / "mkl-2026.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mkl\nVersion: 2026.2\n")
    (info / "RECORD").write_text("".join(f"{file},,\n" for file in files))


# **** locations ****


@linux
def test_order_of_locations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, wheel, prefix = write_file(tmp_path / "own"), write_file(tmp_path / "lib"), write_file(tmp_path / "prefix/lib")
    conda, root, path = (
        write_file(tmp_path / "conda/lib"),
        write_file(tmp_path / "root/lib/intel64"),
        write_file(tmp_path / "path"),
    )
    install_wheel(tmp_path / "site", f"../lib/{LIBRARY}", "mkl-2026.2.dist-info/RECORD")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "prefix"))
    environment = {
        "LITE_MKL_PATH": str(own),
        "CONDA_PREFIX": str(tmp_path / "conda"),
        "MKLROOT": str(tmp_path / "root"),
        "LD_LIBRARY_PATH": f"{tmp_path / 'nowhere'}::{tmp_path / 'path'}",
    }
    *found, system = locations(environment)
    assert [(location.name, location.libraries) for location in found] == [
        ("LITE_MKL_PATH", (str(own),)),
        ("the wheel mkl", (str(wheel),)),
        ("the Python environment", (str(prefix),)),
        ("CONDA_PREFIX", (str(conda),)),
        ("MKLROOT", (str(root),)),
        ("LD_LIBRARY_PATH", (str(path),)),
    ]
    assert "libmkl_rt.so" in system.libraries
    assert not any(location.problem for location in found)


@linux
def test_locations_without_libraries_have_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_wheel(tmp_path, "mkl-2026.2.dist-info/RECORD")
    monkeypatch.syspath_prepend(str(tmp_path))
    environment = {"LITE_MKL_PATH": "/nowhere/mkl", "MKLROOT": str(tmp_path), "LD_LIBRARY_PATH": str(tmp_path)}
    problems = {location.name: location.problem for location in locations(environment)}
    assert problems["LITE_MKL_PATH"] == "/nowhere/mkl does not exist"
    assert problems["the wheel mkl"] == "mkl 2026.2 lists no libmkl_rt.so*"
    assert problems["CONDA_PREFIX"] == "not set"
    assert problems["MKLROOT"] == problems["LD_LIBRARY_PATH"] == f"no libmkl_rt.so* in {tmp_path}"


@linux
def test_newest_library_of_a_folder_comes_first(tmp_path: Path) -> None:
    for name in ("libmkl_rt.so", "libmkl_rt.so.2", "libmkl_rt.so.10", "libmkl_core.so.2"):
        write_file(tmp_path, name)
    assert [Path(file).name for file in libraries_in(tmp_path)] == ["libmkl_rt.so.10", "libmkl_rt.so.2", "libmkl_rt.so"]


# **** without MKL ****


@pytest.mark.skipif(not detect.is_x86_64(), reason="not an x86-64 processor")
def test_no_search_with_lite_mkl_off(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> mkl.Search:
        raise AssertionError("MKL was searched")

    monkeypatch.setattr(mkl, "search", fail)
    monkeypatch.setenv("LITE_MKL", "off")
    with caplog.at_level(logging.DEBUG, "lite.x86.mkl"):
        report = X86Backend().report()
    assert report[-1] == "MKL: not looked for, LITE_MKL=off"
    assert set(caplog.messages) == {report[-1]}


def test_missing_mkl_is_logged_as_information(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "lite.x86.mkl"):
        found = mkl.find({}, [Location("MKLROOT", problem="not set")])
    assert found.mkl is None
    assert [(record.levelname, record.message) for record in caplog.records] == [
        ("DEBUG", "MKLROOT: not set"),
        ("INFO", "MKL: not found, Lite's own kernels are used; `pip install mkl` installs it"),
    ]


@linux
def test_file_that_is_no_library(tmp_path: Path) -> None:
    file = write_file(tmp_path)
    for layer in ("core", "intel_lp64", "sequential", "def"):
        write_file(tmp_path, LIBRARY.replace("rt", layer))
    (attempt,) = mkl.find({}, [Location("MKLROOT", (str(file),))]).attempts
    assert attempt.library == str(file)
    assert "ELF" in attempt.result or "too short" in attempt.result  # messages of the loader


@linux
def test_bare_file_name_is_resolved_in_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_file(tmp_path)
    monkeypatch.chdir(tmp_path)
    first, *_ = locations({"LITE_MKL_PATH": LIBRARY})
    assert first.libraries == (str(tmp_path / LIBRARY),)


def test_library_that_is_not_mkl() -> None:
    name = ctypes.util.find_library("m") or pytest.skip("there is no libm to use as an example")
    (attempt,) = mkl.find({}, [Location("MKLROOT", (name,))]).attempts
    assert attempt.result == "not MKL, it has no cblas_sgemm"


def test_same_file_is_tried_once(tmp_path: Path) -> None:
    file = write_file(tmp_path)
    link = tmp_path / "libmkl_rt.so"
    link.symlink_to(file)
    searched = [Location("MKLROOT", (str(file),)), Location("CONDA_PREFIX", (str(link),))]
    attempts = mkl.find({}, searched).attempts
    assert [attempt.location for attempt in attempts] == ["MKLROOT", "CONDA_PREFIX"]
    assert str(attempts[1]) == f"CONDA_PREFIX: {link}: rejected above"


@pytest.mark.parametrize("content", [None, b"not a library"])
def test_unusable_path_named_by_the_user_is_a_warning(
    content: bytes | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / LIBRARY if content is None else write_file(tmp_path, content=content)
    first, *_ = locations({"LITE_MKL_PATH": str(file)})
    mkl.find({}, [first])
    (warning,) = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert warning.startswith("LITE_MKL_PATH: ")
    assert str(file) in warning


# **** the installed MKL ****


def test_installed_mkl_multiplies(installed: mkl.Mkl) -> None:
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    b = np.arange(12, dtype=np.float32).reshape(3, 4)
    c = np.full((2, 4), np.nan, np.float32)
    integer, number, pointer = ctypes.c_int, ctypes.c_float, ctypes.c_void_p
    sizes = (integer,) * 6
    signature = ctypes.CFUNCTYPE(None, *sizes, number, pointer, integer, pointer, integer, number, pointer, integer)
    row_major, not_transposed = 101, 111
    signature(installed.sgemm)(
        row_major, not_transposed, not_transposed, 2, 4, 3, 1, a.ctypes.data, 3, b.ctypes.data, 4, 0, c.ctypes.data, 4
    )
    np.testing.assert_array_equal(c, a @ b)
    set_num_threads = ctypes.CFUNCTYPE(integer, integer)(installed.set_num_threads_local)
    set_num_threads(1)
    assert set_num_threads(1) == 1  # returns the previous number


def test_installed_mkl_is_described(installed: mkl.Mkl) -> None:
    assert installed.path.is_file()
    assert installed.version.split(".")[0].isdigit()
    assert installed.sequential
    assert mkl.search().lines()[0] == f"MKL: {installed.version} at {installed.path}"
    assert mkl.search() is mkl.search()


def test_mkl_without_its_layers_is_rejected(installed: mkl.Mkl, tmp_path: Path) -> None:
    """Calling it would end the process."""
    file = tmp_path / installed.path.name
    shutil.copy(installed.path, file)
    # The loader already knows the bare name: it is that of the complete MKL.
    found = mkl.find(
        {}, [Location("MKLROOT", (str(file),)), Location("the system's libraries", (installed.path.name,))]
    )
    missing = tmp_path / installed.path.name.replace("mkl_rt", "mkl_core")
    assert [attempt.result for attempt in found.attempts] == [f"incomplete, there is no {missing}", "loaded"]
    assert found.mkl == installed


def test_mkl_used_with_threads_by_other_code(installed: mkl.Mkl) -> None:
    if not installed.path.with_name(installed.path.name.replace("mkl_rt", "mkl_intel_thread")).exists():
        pytest.skip("this MKL has no layer with threads")
    code = f"""
import ctypes
ctypes.CDLL({str(installed.path)!r}).MKL_Get_Max_Threads()
from lite_x86 import mkl
print(mkl.find({{"LITE_MKL_PATH": {str(installed.path)!r}}}).outcome)
"""
    environment = {**os.environ, "MKL_THREADING_LAYER": "INTEL"}
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert shown.returncode == 0, shown.stderr
    assert (
        shown.stdout.strip()
        == f"{installed.version} at {installed.path}, which other code in this process uses with threads"
    )
