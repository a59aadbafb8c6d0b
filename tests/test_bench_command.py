"""``lite bench``: its measurements and its output. Speed itself is not asserted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lite_core.builder import GraphBuilder
from lite_core.errors import InputError
from lite_core.session import Session, load
from lite_onnx import write
from lite_tools.diagnostics import measure_latency

ROOT = Path(__file__).parents[1]
TINY = ROOT / "tests/models/goldens/tiny_conv/legacy"


def lite(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lite_core", "bench", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=os.environ)


@pytest.fixture
def onnx_model(tmp_path: Path) -> Path:
    builder = GraphBuilder("small")
    x = builder.input("x", "float32", ["batch", 8])
    weights = builder.constant(np.ones((8, 4), np.float32))
    builder.output(builder.add("Relu", [builder.add("MatMul", [x, weights])]), "y")
    write(builder.build(), tmp_path / "small.onnx")
    return tmp_path / "small.onnx"


def test_backends_and_threads_are_measured_in_turns(onnx_model: Path) -> None:
    options = ["-b", "x86", "-b", "host", "-t", "1", "-t", "2", "--shape", "2x8", "--seconds", "0.05", "--json"]
    run = lite(onnx_model, *options)
    assert run.returncode == 0, run.stderr
    data = json.loads(run.stdout)
    names = ["x86, 1 thread", "x86, 2 threads", "host, 1 thread", "host, 2 threads"]
    assert [r["name"] for r in data["results"]] == names
    assert [r["devices"] for r in data["results"]] == [["x86"], ["x86"], ["host"], ["host"]]
    for result in data["results"]:
        assert result["runs"] >= 5
        assert 0 < result["fastest_seconds"] <= result["median_seconds"] <= result["p90_seconds"]
    assert data["inputs"] == {"x": "random, seed 0"}


def test_a_paddle_model_as_a_table() -> None:
    run = lite(TINY, "-b", "x86", "--shape", "1x3x32x32", "--seconds", "0.05")
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[-1].split()[-1] == "1.00"


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["-b", "nonsense", "--shape", "2x8"], 3, "nonsense"),
        (["--shape", "2x9"], 2, "x"),
        ([], 2, "--shape"),
        (["--seconds", "0"], 2, "--seconds"),
    ],
)
def test_errors_name_the_option(onnx_model: Path, options: list[str], code: int, message: str) -> None:
    run = lite(onnx_model, *options)
    assert run.returncode == code, run.stdout + run.stderr
    assert message in run.stderr
    assert "Traceback" not in run.stderr


def test_nothing_to_measure() -> None:
    def inputs(session: Session) -> dict[str, np.ndarray]:
        return {}

    with pytest.raises(InputError, match="0 session"):
        measure_latency({}, inputs, 1.0)
    with pytest.raises(InputError, match="0 s"):
        measure_latency({"host": lambda: load(TINY, backend="host")}, inputs, 0)
