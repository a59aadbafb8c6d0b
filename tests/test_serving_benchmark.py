"""The benchmark of `lite serve`: it runs, its results are kept and become tables. Speed is not asserted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import catalog
import pytest

import list_serving
from workspace import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))
from serving_load import hey, recorded
from serving_load.recorded import Idle, Throughput

MACHINE = {
    "processor": "P", "microarchitecture": "m1", "family": "1", "model": "2", "stepping": "3", "extensions": ["avx2"],
    "cores": 2, "system": "Linux 6.1",
}  # fmt: skip
ABOUT = {"measured": "2026-01-02", "revision": "abc", "load": 0.5}


def entry(engine: str, connections: int, per_second: float, p99: float) -> Throughput:
    return Throughput(
        model="net", engine=engine, batching="off", connections=connections, per_second=per_second, median=1.0, p99=p99,
        processor=1.0, **ABOUT,
    )  # fmt: skip


def test_the_best_throughput_keeps_the_latency() -> None:
    kept, faster, late = entry("x86", 2, 100, 10), entry("x86", 4, 150, 49.9), entry("x86", 8, 900, 50.0)
    assert recorded.best([kept, late, faster]) == {("net", "x86", "off"): faster}
    assert not recorded.best([late])


def test_results_are_kept_by_section_and_become_tables(tmp_path: Path) -> None:
    file = tmp_path / "m1.json"
    measured = [entry("x86", 2, 300, 10), entry("onnxruntime", 2, 200, 20)]
    recorded.update(file, MACHINE, {"throughput": measured})
    recorded.update(file, MACHINE, {"idle": [Idle(seconds=30.0, processor=0.0, **ABOUT)]})
    assert recorded.read(file).entries == {"throughput": measured, "idle": [Idle(seconds=30.0, processor=0.0, **ABOUT)]}
    text = list_serving.results(tmp_path)
    assert "| net | off | 300 (2) | 200 (2) | **1.50** |" in text
    assert "0.00 s of processor time in 30 s" in text
    assert "benchmarks/serving.py --record" in list_serving.results(tmp_path / "nothing")


@pytest.mark.full("serving")
@pytest.mark.skipif(not hey.is_installed(), reason="hey is not installed: make clients")
def test_the_benchmark_runs(tmp_path: Path) -> None:
    try:
        catalog.ensure("mobilenet_v3_small-legacy")
    except catalog.ModelUnavailableError as error:
        pytest.skip(str(error))
    command = [sys.executable, ROOT / "benchmarks/serving.py", "--short", "--record", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (file,) = tmp_path.glob("*.json")
    found = recorded.read(file)
    assert {entry.engine for entry in found.entries["throughput"]} == set(recorded.ENGINES)
    assert {"cost", "idle", "many"} <= found.entries.keys()
    assert "ONNX Runtime, per second" in list_serving.results(tmp_path)
