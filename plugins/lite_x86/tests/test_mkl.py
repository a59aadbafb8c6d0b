"""The search for MKL: the order of places, what is no MKL, what is half of one, and the real one where it is."""

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
from lite_x86.mkl_search import Place, libraries_in, places

linux = pytest.mark.skipif(sys.platform != "linux", reason="names of libraries as on Linux")
LIBRARY = "libmkl_rt.so.2"


@pytest.fixture(scope="module")
def real() -> mkl.Mkl:
    """The MKL of this machine."""
    found = mkl.search().mkl if detect.is_x86_64() else None
    if found is None:
        pytest.skip("there is no MKL here: pip install mkl")
    return found


def put(folder: Path, name: str = LIBRARY, content: bytes = b"not a library") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_bytes(content)
    return file


def install_wheel(site: Path, *files: str) -> None:
    """Leave in ``site`` what pip leaves there after installing a wheel ``mkl``."""
    info = site / "mkl-2026.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mkl\nVersion: 2026.2\n")
    (info / "RECORD").write_text("".join(f"{file},,\n" for file in files))


# **** where ****


@linux
def test_places_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, wheel, prefix = put(tmp_path / "own"), put(tmp_path / "lib"), put(tmp_path / "prefix/lib")
    conda, root, path = put(tmp_path / "conda/lib"), put(tmp_path / "root/lib/intel64"), put(tmp_path / "path")
    install_wheel(tmp_path / "site", f"../lib/{LIBRARY}", "mkl-2026.2.dist-info/RECORD")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "prefix"))
    environment = {
        "LITE_MKL_PATH": str(own),
        "CONDA_PREFIX": str(tmp_path / "conda"),
        "MKLROOT": str(tmp_path / "root"),
        "LD_LIBRARY_PATH": f"{tmp_path / 'nowhere'}::{tmp_path / 'path'}",
    }
    *found, system = places(environment)
    assert [(place.name, place.libraries) for place in found] == [
        ("LITE_MKL_PATH", (str(own),)),
        ("the wheel mkl", (str(wheel),)),
        ("the Python environment", (str(prefix),)),
        ("CONDA_PREFIX", (str(conda),)),
        ("MKLROOT", (str(root),)),
        ("LD_LIBRARY_PATH", (str(path),)),
    ]
    assert "libmkl_rt.so" in system.libraries
    assert not any(place.empty for place in found)


@linux
def test_places_that_are_empty_say_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_wheel(tmp_path, "mkl-2026.2.dist-info/RECORD")
    monkeypatch.syspath_prepend(str(tmp_path))
    environment = {"LITE_MKL_PATH": "/nowhere/mkl", "MKLROOT": str(tmp_path), "LD_LIBRARY_PATH": str(tmp_path)}
    said = {place.name: place.empty for place in places(environment)}
    assert said["LITE_MKL_PATH"] == "/nowhere/mkl does not exist"
    assert said["the wheel mkl"] == "mkl 2026.2 lists no libmkl_rt.so*"
    assert said["CONDA_PREFIX"] == "not set"
    assert said["MKLROOT"] == said["LD_LIBRARY_PATH"] == f"no libmkl_rt.so* in {tmp_path}"


@linux
def test_the_newest_of_a_folder_comes_first(tmp_path: Path) -> None:
    for name in ("libmkl_rt.so", "libmkl_rt.so.2", "libmkl_rt.so.10", "libmkl_core.so.2"):
        put(tmp_path, name)
    assert [Path(file).name for file in libraries_in(tmp_path)] == ["libmkl_rt.so.10", "libmkl_rt.so.2", "libmkl_rt.so"]


# **** what is no MKL ****


@pytest.mark.skipif(not detect.is_x86_64(), reason="not an x86-64 processor")
def test_off(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> mkl.Search:
        raise AssertionError("MKL was searched")

    monkeypatch.setattr(mkl, "search", fail)
    monkeypatch.setenv("LITE_MKL", "off")
    with caplog.at_level(logging.DEBUG, "lite.x86.mkl"):
        report = X86Backend().report()
    assert report[-1] == "MKL: not looked for, LITE_MKL=off"
    assert set(caplog.messages) == {report[-1]}


def test_nothing_anywhere_is_one_line_of_information(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "lite.x86.mkl"):
        found = mkl.find({}, [Place("MKLROOT", empty="not set")])
    assert found.mkl is None
    assert [(record.levelname, record.message) for record in caplog.records] == [
        ("DEBUG", "MKLROOT: not set"),
        ("INFO", "MKL: not found, Lite's own kernels do all; `pip install mkl` brings it"),
    ]


@linux
def test_files_that_are_no_libraries(tmp_path: Path) -> None:
    file = put(tmp_path)
    for layer in ("core", "intel_lp64", "sequential", "def"):
        put(tmp_path, LIBRARY.replace("rt", layer))
    (attempt,) = mkl.find({}, [Place("MKLROOT", (str(file),))]).attempts
    assert attempt.library == str(file)
    assert "ELF" in attempt.result or "too short" in attempt.result  # the words are the loader's


@linux
def test_a_bare_file_name_is_a_file_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path)
    monkeypatch.chdir(tmp_path)
    first, *_ = places({"LITE_MKL_PATH": LIBRARY})
    assert first.libraries == (str(tmp_path / LIBRARY),)


def test_a_library_that_is_not_mkl() -> None:
    name = ctypes.util.find_library("m") or pytest.skip("no library of mathematics to stand in")
    (attempt,) = mkl.find({}, [Place("MKLROOT", (name,))]).attempts
    assert attempt.result == "not MKL, it has no cblas_sgemm"


def test_a_file_is_tried_once(tmp_path: Path) -> None:
    file = put(tmp_path)
    link = tmp_path / "libmkl_rt.so"
    link.symlink_to(file)
    where = [Place("MKLROOT", (str(file),)), Place("CONDA_PREFIX", (str(link),))]
    attempts = mkl.find({}, where).attempts
    assert [attempt.place for attempt in attempts] == ["MKLROOT", "CONDA_PREFIX"]
    assert str(attempts[1]) == f"CONDA_PREFIX: {link}: refused before"


@pytest.mark.parametrize("content", [None, b"not a library"])
def test_a_path_that_a_user_names_in_vain_is_a_warning(
    content: bytes | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / LIBRARY if content is None else put(tmp_path, content=content)
    first, *_ = places({"LITE_MKL_PATH": str(file)})
    mkl.find({}, [first])
    (warning,) = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert warning.startswith("LITE_MKL_PATH: ")
    assert str(file) in warning


# **** the real one ****


def test_the_real_mkl_multiplies(real: mkl.Mkl) -> None:
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    b = np.arange(12, dtype=np.float32).reshape(3, 4)
    c = np.full((2, 4), np.nan, np.float32)
    integer, number, pointer = ctypes.c_int, ctypes.c_float, ctypes.c_void_p
    sizes = (integer,) * 6
    signature = ctypes.CFUNCTYPE(None, *sizes, number, pointer, integer, pointer, integer, number, pointer, integer)
    row_major, not_transposed = 101, 111
    signature(real.sgemm)(
        row_major, not_transposed, not_transposed, 2, 4, 3, 1, a.ctypes.data, 3, b.ctypes.data, 4, 0, c.ctypes.data, 4
    )
    np.testing.assert_array_equal(c, a @ b)
    set_num_threads = ctypes.CFUNCTYPE(integer, integer)(real.set_num_threads_local)
    set_num_threads(1)
    assert set_num_threads(1) == 1  # what it was before


def test_the_real_mkl_says_what_it_is(real: mkl.Mkl) -> None:
    assert real.path.is_file()
    assert real.version.split(".")[0].isdigit()
    assert real.sequential
    assert mkl.search().lines()[0] == f"MKL: {real.version} at {real.path}"
    assert mkl.search() is mkl.search()


def test_an_mkl_without_its_layers_is_refused(real: mkl.Mkl, tmp_path: Path) -> None:
    """MKL itself would end the process."""
    file = tmp_path / real.path.name
    shutil.copy(real.path, file)
    # The bare name is one that the loader knows by now: that of the complete one.
    found = mkl.find({}, [Place("MKLROOT", (str(file),)), Place("the system's libraries", (real.path.name,))])
    missing = tmp_path / real.path.name.replace("mkl_rt", "mkl_core")
    assert [attempt.result for attempt in found.attempts] == [f"incomplete, there is no {missing}", "loaded"]
    assert found.mkl == real


def test_an_mkl_that_other_code_uses_with_threads(real: mkl.Mkl) -> None:
    if not real.path.with_name(real.path.name.replace("mkl_rt", "mkl_intel_thread")).exists():
        pytest.skip("this MKL has no layer with threads")
    code = f"""
import ctypes
ctypes.CDLL({str(real.path)!r}).MKL_Get_Max_Threads()
from lite_x86 import mkl
print(mkl.find({{"LITE_MKL_PATH": {str(real.path)!r}}}).outcome)
"""
    environment = {**os.environ, "MKL_THREADING_LAYER": "INTEL"}
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.strip() == f"{real.version} at {real.path}, which other code in this process uses with threads"
