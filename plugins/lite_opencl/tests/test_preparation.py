"""Preparation before a run, so that the run does not compile, wait between kernels or make copies."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from opencl_device import first_device, first_runtime, run

import lite_core as lite
from lite_core.builder import GraphBuilder
from lite_core.ir import Graph
from lite_opencl.compiled import executable as executables
from lite_opencl.programs.binary_cache import BinaryCache, cache_folder
from lite_opencl.programs.library import ProgramLibrary

X = np.random.default_rng(0).standard_normal((1, 3, 12, 12)).astype(np.float32)


def network() -> Graph:
    builder = GraphBuilder("network")
    random = np.random.default_rng(1)
    y = builder.input("x", "float32", ["n", 3, 12, 12])
    for _ in range(4):
        y = builder.add("Conv", [y, builder.constant(random.standard_normal((3, 3, 3, 3)).astype(np.float32))])
        y = builder.add("Sigmoid", [y])
    builder.output(builder.add("Softmax", [y]), "y")
    return builder.build()


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ProgramLibrary:
    """Replace the library of programs by an empty one with an empty folder."""
    runtime = first_runtime()
    library = ProgramLibrary(runtime.context, runtime.found, tmp_path)
    monkeypatch.setattr(runtime, "programs", library)
    return library


def session() -> lite.Session:
    return lite.load(network(), first_device()[1].label, fallback="never")


def test_first_run_after_prepare_builds_nothing(programs: ProgramLibrary) -> None:
    one = session()
    one.prepare({"x": X.shape})
    prepared, cached = programs.statistics, sorted(p.name for p in programs.cache.folder.iterdir())
    assert prepared.misses > 1
    one.run({"x": X})
    assert programs.statistics == prepared
    assert sorted(p.name for p in programs.cache.folder.iterdir()) == cached


def test_programs_come_from_memory_or_cache(programs: ProgramLibrary, tmp_path: Path) -> None:
    session().prepare({"x": X.shape})
    built = programs.statistics
    assert built.misses > 1
    assert built.hits == 0
    assert first_device()[0].kernel_counts()[1] >= built.misses
    session().prepare({"x": X.shape})
    assert programs.statistics == built
    first_runtime().programs = ProgramLibrary(first_runtime().context, first_runtime().found, tmp_path)
    session().prepare({"x": X.shape})
    assert first_runtime().programs.statistics.hits == built.misses
    assert first_runtime().programs.statistics.misses == 0


def test_doctor_reports_programs_and_cache(programs: ProgramLibrary) -> None:
    session().prepare({"x": X.shape})
    lines = first_device()[0].report()
    assert any(BinaryCache(cache_folder()).describe() in line for line in lines)
    assert any(str(programs.statistics) in line for line in lines)
    assert str(programs.cache.folder) in BinaryCache(programs.cache.folder).describe()
    assert "LITE_CACHE_DIR is off" in BinaryCache(None).describe()


def test_partition_is_enqueued_without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """All kernels are enqueued before the host waits once; each input and output is copied once."""
    one = session()
    one.run({"x": X})
    calls: list[str] = []

    def enqueue(*arguments: Any) -> Any:
        calls.append("enqueue")
        event = real(*arguments)
        return SimpleNamespace(wait=lambda: (calls.append("wait"), event.wait()))

    real = executables.cl.enqueue_nd_range_kernel
    monkeypatch.setattr(executables.cl, "enqueue_nd_range_kernel", enqueue)
    one.run({"x": X})
    count = Counter(calls)
    assert count["enqueue"] >= 5
    assert calls == ["enqueue"] * count["enqueue"] + ["wait"]
    monkeypatch.undo()
    profile = lite.RunProfile()
    one.run({"x": X}, profile=profile)
    assert [(copy.source, copy.target) for copy in profile.copies] == [("host", "opencl"), ("opencl", "host")]
    assert len(profile.partitions) == 1


def test_aligned_constants_in_main_memory_are_not_copied() -> None:
    runtime = first_runtime()
    if not runtime.found.unified_memory:
        pytest.skip("the device has its own memory")
    raw = np.zeros(4096 + 64, np.uint8)
    first = -raw.ctypes.data % 64
    aligned = raw[first : first + 4096].view(np.float32)
    aligned[:] = 1
    data = runtime.memory.constant(aligned)
    aligned[7] = 5  # no copy was made
    assert runtime.memory.download(data)[7] == 5
    shifted = raw[first + 4 : first + 4004].view(np.float32)
    copied = runtime.memory.constant(shifted)
    shifted[7] = 9
    assert runtime.memory.download(copied)[7] != 9


def test_read_only_constants_are_accepted(tmp_path: Path) -> None:
    """Constants of a mapped model file are read-only."""
    path = tmp_path / "weights"
    np.full(64, 2, np.float32).tofile(path)
    mapped = np.memmap(path, np.float32, mode="r")
    builder = GraphBuilder("mapped")
    builder.output(builder.add("Mul", [builder.input("x", "float32", (64,)), builder.constant(mapped)]), "y")
    x = np.arange(64, dtype=np.float32)
    np.testing.assert_array_equal(run(builder.build(), [x])[0], 2 * x)


def test_memory_use() -> None:
    (compiled,) = session().plan({"x": X.shape}).compiled
    use = compiled.executable.memory_use()  # type: ignore[attr-defined]
    assert use.arena_bytes == compiled.executable.scratch_bytes
    assert use.intervals
    assert use.weight_bytes >= 4 * 81 * 4
