"""``lite report``: a bundle of a model that runs, fails or crashes, without private names, and the command in it."""

from __future__ import annotations

import getpass
import json
import os
import shlex
import socket
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from installed_plugins import install, lite

from lite_core.builder import GraphBuilder
from lite_core.container import ModelFile
from lite_tools.reporting import ReportRequest, write_report
from lite_tools.writing import write_model

WEIGHTS = np.random.default_rng(0).standard_normal((64, 8)).astype(np.float32)
BROKEN = """
import ctypes
import os
import numpy as np
import lite_core as lite
from lite_core.plugins import hookimpl

LITE_API_VERSION = 1

broken = lite.KernelBackend("broken")

@broken.kernel("Relu")
def relu(x):
    return np.maximum(x, 0)

@broken.kernel("Exp")
def wrong_pointer(x):
    ctypes.string_at(0)

@broken.kernel("Neg")
def unfinished(x):
    raise ValueError(f"there is no table in {os.path.expanduser('~')}/tables/neg.bin")

@hookimpl
def lite_backends():
    return [broken]
"""

BROKEN_PASS = """
import ctypes
from lite_core.plugins import hookimpl

LITE_API_VERSION = 1

class Broken:
    name = "broken"

    def __call__(self, graph):
        ctypes.string_at(0)

@hookimpl
def lite_passes():
    return [Broken()]
"""


def make_model(folder: Path, op: str) -> Path:
    """Write a model whose last but one node is of an operator."""
    b = GraphBuilder("model")
    x = b.add("MatMul", [b.input("x", "float32", ["batch", 64]), b.constant(WEIGHTS, "weights")])
    x = b.add("Relu", [x], name="sound")
    b.output(b.add("Relu", [b.add(op, [x], name="culprit")], name="after"), "y")
    path = folder / f"model_of_{op}.lite"
    write_model(path, b.build())
    return path


def unpacked(report: Path, folder: Path) -> dict[str, bytes]:
    """Unpack a report; return its files, by name."""
    with zipfile.ZipFile(report) as archive:
        archive.extractall(folder)
        return {name: archive.read(name) for name in archive.namelist()}


def run_command(command: str, folder: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """Run the command of a report in the folder that it was unpacked into."""
    words = shlex.split(command)
    assert words[0] == "lite"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])}
    command_line = [sys.executable, "-m", "lite_core", *words[1:]]
    return subprocess.run(command_line, cwd=folder, env=environment, capture_output=True, text=True)


def check_private(files: dict[str, bytes], *names: str) -> None:
    """Check that no file has private names."""
    for file, content in files.items():
        for name in names:
            if len(name) > 3 and name != "root":
                assert name.encode() not in content, f"{file} contains {name}"


@pytest.mark.full("reliability")
def test_model_that_runs(tmp_path: Path) -> None:
    model = make_model(tmp_path, "Sqrt")
    result = write_report(ReportRequest(str(model), "host"), tmp_path / "report.zip", with_doctor=False)
    assert (result.outcome, result.replay, result.node) == ("ran", "ran", [])
    files = unpacked(tmp_path / "report.zip", tmp_path / "unpacked")
    assert sorted(files) == sorted(["manifest.json", *result.files])
    check_private(files, str(tmp_path), getpass.getuser(), socket.gethostname(), os.path.expanduser("~"))
    (weights,) = ModelFile.open(tmp_path / "unpacked/model.lite").graph().constants.values()
    assert (weights != WEIGHTS).mean() > 0.99
    with np.load(tmp_path / "unpacked/inputs.npz") as inputs:
        assert inputs["x"].shape == (1, 64)  # the smallest batch


@pytest.mark.full("reliability")
def test_model_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "broken.lite").write_bytes(b"no model")
    result = write_report(ReportRequest(str(tmp_path / "broken.lite")), tmp_path / "report.zip", with_doctor=False)
    assert (result.outcome, result.command) == ("failed", "")
    assert "<model>" in result.summary
    files = unpacked(tmp_path / "report.zip", tmp_path)
    assert "Traceback" in files["error.txt"].decode()
    assert "nothing to run" in files["REPLAY.md"].decode()
    check_private(files, str(tmp_path))


@pytest.mark.full("reliability")
def test_crash(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    install(site, "broken", BROKEN)
    model = make_model(tmp_path, "Exp")
    report = tmp_path / "report.zip"
    done = lite(site, "report", str(model), "--backend", "broken", "--output", str(report), "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["outcome"], result["replay"], result["node_replay"]) == ("crashed", "crashed", "crashed")
    assert result["node"] == ["culprit"]
    files = unpacked(report, tmp_path / "unpacked")
    check_private(files, str(tmp_path), getpass.getuser(), socket.gethostname(), os.path.expanduser("~"))
    for text in (files["error.txt"].decode(), files["REPLAY.md"].decode()):
        assert all(name in text for name in ("SIGSEGV", "culprit", "wrong_pointer", "broken/")), text
    assert "backend" in files["doctor.txt"].decode()
    assert run_command(result["command"], tmp_path / "unpacked", site).returncode < 0
    assert run_command(result["node_command"], tmp_path / "unpacked", site).returncode < 0


@pytest.mark.full("reliability")
def test_crash_while_loading(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    install(site, "broken_pass", BROKEN_PASS)
    model = make_model(tmp_path, "Exp")
    done = lite(site, "report", str(model), "--backend", "host", "--output", str(tmp_path / "report.zip"), "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["outcome"], result["replay"], result["node"]) == ("crashed", "crashed", [])
    assert "SIGSEGV while loading the model" in result["summary"]
    files = unpacked(tmp_path / "report.zip", tmp_path / "unpacked")
    assert "in __call__" in files["error.txt"].decode()
    assert run_command(result["command"], tmp_path / "unpacked", site).returncode < 0


@pytest.mark.full("reliability")
def test_error(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    install(site, "broken", BROKEN)
    model = make_model(tmp_path, "Neg")
    report, given = tmp_path / "report.zip", tmp_path / "given.npy"
    np.save(given, np.full((3, 64), 4242.0, np.float32))
    arguments = ["report", str(model), "-b", "broken", "--threads", "1", "-o", str(report), "-i", str(given), "--json"]
    result = json.loads(lite(site, *arguments).stdout)
    assert (result["outcome"], result["replay"], result["node_replay"]) == ("failed", "failed", "failed")
    assert result["node"] == ["culprit"]
    assert any("--with-inputs" in item for item in result["left_out"])
    files = unpacked(report, tmp_path / "unpacked")
    assert "there is no table in <home>/" in files["error.txt"].decode()
    with np.load(tmp_path / "unpacked/inputs.npz") as inputs:
        assert inputs["x"].shape == (3, 64)
        assert (inputs["x"] != 4242.0).all()
    failed = run_command(result["command"], tmp_path / "unpacked", site)
    assert failed.returncode == 1
    assert "culprit" in failed.stderr
    exists = lite(site, *arguments)
    assert exists.returncode == 2
    assert "--force" in exists.stdout
    result = json.loads(lite(site, *arguments, "--force", "--with-weights", "--with-inputs").stdout)
    unpacked(report, tmp_path / "with")
    (weights,) = ModelFile.open(tmp_path / "with/model.lite").graph().constants.values()
    np.testing.assert_array_equal(weights, WEIGHTS)
    with np.load(tmp_path / "with/inputs.npz") as inputs:
        assert (inputs["x"] == 4242.0).all()
    assert not any("weights" in item or "input" in item for item in result["left_out"])


@pytest.mark.full("reliability")
def test_options_that_do_not_fit(tmp_path: Path) -> None:
    model = make_model(tmp_path, "Sqrt")
    done = lite(tmp_path, "report", str(model), "--shape", "y=1x2", "--output", str(tmp_path / "report.zip"))
    assert done.returncode == 2
    assert "'y'" in done.stderr
    assert not (tmp_path / "report.zip").exists()
