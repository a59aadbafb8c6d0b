"""The cache of compiled programs, and rebuilding of damaged ones."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyopencl as cl
import pytest
from opencl_device import first_device, first_runtime

from lite_core.ir import DType
from lite_opencl.chains import Chain
from lite_opencl.device.errors import OpenClError
from lite_opencl.programs.kernel_source import KernelSource
from lite_opencl.programs.library import ProgramLibrary

COPY = KernelSource(
    "elementwise",
    "elementwise",
    (64, 1, 1),
    (("Y_PARAMETERS", ""), ("X_PARAMETERS", ""), ("Y_INDEX", "column"), ("X_INDEX", "column")),
    (("X", DType.FLOAT32), ("Y", DType.FLOAT32)),
    Chain(DType.FLOAT32),
)
BROKEN = COPY._replace(defines=(("Y_INDEX", "no_such_name"), *COPY.defines[:2], COPY.defines[3]))


def library(folder: Path) -> ProgramLibrary:
    runtime = first_runtime()
    return ProgramLibrary(runtime.context, runtime.found, folder)


def cached_program(folder: Path) -> Path:
    """Fill an empty folder with one program, and return its entry."""
    programs = library(folder)
    programs.store(programs.load([COPY]).unfinished)
    (entry,) = folder.iterdir()
    return entry


def counts(programs: ProgramLibrary) -> tuple[int, int, int]:
    statistics = programs.statistics
    return statistics.hits, statistics.misses, statistics.rebuilt


def test_cached_programs_are_not_rebuilt(tmp_path: Path) -> None:
    first, second = library(tmp_path), library(tmp_path)
    unfinished = first.load([COPY]).unfinished
    assert unfinished == [first.key(COPY)]
    first.store(unfinished)
    assert (second.load([COPY, COPY]).found, second.load([COPY]).in_memory) == (1, 1)
    assert (counts(first), counts(second)) == ((0, 1, 0), (1, 0, 0))


def test_building_and_storing_report_their_progress(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    programs, logger = library(tmp_path), logging.getLogger("lite.progress")
    other = COPY._replace(defines=(("UNUSED", "1"), *COPY.defines))
    logger.addHandler(caplog.handler)  # its records do not reach the root
    try:
        with caplog.at_level(logging.DEBUG, "lite.progress"):
            programs.store(programs.load([COPY, other]).unfinished)
    finally:
        logger.removeHandler(caplog.handler)
    shown = [record.getMessage() for record in caplog.records if record.name == "lite.progress"]
    assert shown == [
        f"{what}: {state}"
        for what in ("building programs", "storing programs")
        for state in ("0 of 2 done", "1 of 2 done", "over")
    ]


def test_program_is_not_cached_before_it_has_run(tmp_path: Path) -> None:
    first = library(tmp_path)
    first.load([COPY])
    assert list(tmp_path.iterdir()) == []
    assert first.load([COPY]).unfinished == [first.key(COPY)]


@pytest.mark.parametrize("damage", [lambda entry: entry[:-9], lambda entry: b"", lambda entry: b"x" * 99])
def test_damaged_entry_is_rebuilt(
    tmp_path: Path, damage: Callable[[bytes], bytes], caplog: pytest.LogCaptureFixture
) -> None:
    entry = cached_program(tmp_path)
    whole = entry.read_bytes()
    entry.write_bytes(damage(whole))
    programs = library(tmp_path)
    with caplog.at_level(logging.WARNING, "lite.opencl.cache"):
        programs.store(programs.load([COPY]).unfinished)
    assert counts(programs) == (0, 1, 1)
    assert entry.name in caplog.text
    assert entry.read_bytes()[:8] == whole[:8]


def test_binary_refused_by_driver_is_rebuilt(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cached_program(tmp_path)
    programs = library(tmp_path)
    programs.cache.write(programs.key(COPY), b"made by another driver")
    with caplog.at_level(logging.WARNING, "lite.opencl.cache"):
        programs.load([COPY])
    assert counts(programs) == (0, 1, 1)
    assert "CL_" in caplog.text  # the status of the driver


def test_unusable_folder_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("no folder")
    programs = library(tmp_path / "file" / "opencl")
    other = COPY._replace(local=(32, 1, 1))
    with caplog.at_level(logging.WARNING, "lite.opencl.cache"):
        programs.store(programs.load([COPY, other]).unfinished)
    assert counts(programs) == (0, 2, 0)
    (record,) = caplog.records
    assert str(tmp_path / "file") in record.getMessage()


has_users = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="this system has no user ids")


@has_users
@pytest.mark.parametrize("unsafe", ["folder", "binary", "link"])
def test_binary_that_others_can_change_is_not_used(tmp_path: Path, unsafe: str) -> None:
    cached_program(tmp_path / "opencl")
    (entry,) = shutil.copytree(tmp_path / "opencl", tmp_path / "planted").iterdir()
    if unsafe == "link":
        entry.symlink_to(entry.rename(tmp_path / "elsewhere"))
    else:
        (entry if unsafe == "binary" else entry.parent).chmod(0o777)
    programs = library(entry.parent)
    programs.load([COPY])
    assert counts(programs) == (0, 1, 0)


@has_users
def test_fifo_and_device_at_the_places_of_binaries_are_replaced(tmp_path: Path) -> None:
    other = COPY._replace(local=(32, 1, 1))
    programs = library(tmp_path)
    os.mkfifo(tmp_path / f"{programs.key(COPY)}.bin")
    (tmp_path / f"{programs.key(other)}.bin").symlink_to("/dev/zero")
    loading = threading.Thread(target=programs.load, args=([COPY, other],), daemon=True)
    loading.start()
    loading.join(60)
    assert counts(programs) == (0, 2, 0), "it hangs, or it used what is planted"
    programs.store([programs.key(COPY), programs.key(other)])
    assert library(tmp_path).load([COPY, other]).found == 2


KERNEL = """
import os
from lite_opencl.device.devices import find_devices
device = find_devices()[0].device
import pyopencl as cl
cl.Kernel(cl.Program(cl.Context([device]), "kernel void f() {}").build(cache_dir=False), "f")
print("PYOPENCL_NO_CACHE" in os.environ)
"""


@pytest.mark.full("opencl")
def test_pyopencl_reads_and_writes_no_files_of_its_own(tmp_path: Path) -> None:
    """Its cache contains pickled code, and it does not check who can write to the folder."""
    first_runtime()
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "POCL_CACHE_DIR": str(tmp_path / "pocl")}
    environment.pop("PYOPENCL_NO_CACHE", None)
    command = [sys.executable, "-c", KERNEL]
    completed = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
    assert completed.stdout == "False\n", "the environment is as before"
    assert {path.name for path in tmp_path.iterdir()} <= {"pocl"}


def test_concurrent_loads_build_each_program_once(tmp_path: Path) -> None:
    programs = library(tmp_path)
    others = [COPY._replace(local=(size, 1, 1)) for size in (16, 32)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: programs.load([COPY, *others]), range(8)))
    assert counts(programs) == (0, 3, 0)


def test_compiler_output_of_successful_builds_is_not_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build = cl.Program.build

    def build_with_output(*arguments: Any, **more: Any) -> cl.Program:
        cl.compiler_output("Kernel was vectorized. Done.")
        return build(*arguments, **more)

    monkeypatch.setattr(cl.Program, "build", build_with_output)
    several = [COPY, *(COPY._replace(local=(size, 1, 1)) for size in (16, 32))]
    with warnings.catch_warnings(record=True) as caught:
        programs = library(tmp_path)
        programs.store(programs.load(several).unfinished)
        assert library(tmp_path).load(several).found == 3
    assert [str(w.message) for w in caught] == []


def test_equal_numbers_with_different_text_have_different_keys(tmp_path: Path) -> None:
    programs = library(tmp_path)
    written = [COPY._replace(defines=(*COPY.defines, ("NUMBER", number))) for number in ("0.0f", "-0.0f")]
    same = [COPY._replace(defines=(*COPY.defines, ("NUMBER", number))) for number in (1, True)]
    assert len({programs.key(source) for source in written}) == 2
    assert same[0] == same[1]
    assert len({programs.key(source) for source in same}) == 2


def test_compiler_settings_are_part_of_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = library(tmp_path).key(COPY)
    monkeypatch.setenv("POCL_WORK_GROUP_METHOD", "loops")
    assert library(tmp_path).key(COPY) != usual
    monkeypatch.delenv("POCL_WORK_GROUP_METHOD")
    assert library(tmp_path).key(COPY) == usual


def test_build_failure_has_status_and_log(tmp_path: Path) -> None:
    with pytest.raises(OpenClError, match="CL_BUILD_PROGRAM_FAILURE") as caught:
        library(tmp_path).load([BROKEN])
    assert caught.value.status == "BUILD_PROGRAM_FAILURE"
    assert "no_such_name" in str(caught.value)
    assert first_device()[1].name in str(caught.value)
