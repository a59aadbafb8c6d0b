"""``lite run --tap`` and ``lite inspect --print-nodes``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import lite_core as lite
from lite_core.builder import GraphBuilder
from lite_tools.cli.inspect import command as inspect
from lite_tools.cli.run import command as run
from lite_tools.conversion import convert
from lite_tools.writing import write_model

X = np.array([[-1, 4]], np.float32)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model that is not optimized: a square root of an absolute value, and its exponential."""
    b = GraphBuilder("model")
    root = b.add("Sqrt", [b.add("Abs", [b.input("x", "float32", [1, 2])], output="absolute")], output="root")
    b.output(b.add("Exp", [b.add("Identity", [root])]), "y")
    path = tmp_path / "model.lite"
    write_model(path, b.build())
    np.save(tmp_path / "x.npy", X)
    return path


def test_run_shows_and_saves_tapped_values(model: Path, tmp_path: Path) -> None:
    inputs = ["-b", "host", "-i", str(tmp_path / "x.npy"), "--tap", "abs*", "--tap", "before:exp"]
    shown = CliRunner().invoke(run, [str(model), *inputs, "--save", str(tmp_path / "y.npz")])
    assert shown.exit_code == 0, shown.output
    assert "tap absolute (Abs abs, kernel host on host): float32[1, 2] min 1 max 4 mean 2.5" in shown.output
    with np.load(tmp_path / "y.npz") as saved:
        assert [*saved] == ["y", "absolute", "root"]
        np.testing.assert_array_equal(saved["root"], [[1, 2]])
    told = json.loads(CliRunner().invoke(run, [str(model), *inputs, "--json"]).output)
    assert [(tap["value"], tap["type"], tap["max"]) for tap in told["taps"]] == [
        ("absolute", "float32[1, 2]", 4),
        ("root", "float32[1, 2]", 2),
    ]


def test_inspect_writes_a_model_that_prints_values(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = tmp_path / "printing.lite"
    shown = CliRunner().invoke(inspect, [str(model), "--print-nodes", "root", "-o", str(written)])
    assert shown.exit_code == 0, shown.output
    assert f"lite run {written}" in shown.output
    lite.load(written, "host").run({"x": X})
    assert capsys.readouterr().err.startswith("tap root (Sqrt sqrt, kernel host on host): float32[1, 2]")
    wrong = CliRunner().invoke(inspect, [str(model), "--print-nodes", "roots", "-o", str(written)])
    assert "near: root" in str(wrong.exception)
    assert CliRunner().invoke(inspect, [str(model), "--print-nodes", "root"]).exit_code == 2


def test_a_model_that_prints_keeps_its_prepared_plans_and_its_trust(model: Path, tmp_path: Path) -> None:
    prepared, written = tmp_path / "prepared.lite", tmp_path / "printing.lite"
    convert(model, prepared, targets=["x86"])
    shown = CliRunner().invoke(inspect, [str(prepared), "--print-nodes", "root", "-o", str(written)])
    assert shown.exit_code == 0, shown.output
    session = lite.load(written)
    session.prepare()
    (note,) = session.notes  # nothing about code that is not used
    assert "root" in note
    assert session.file is not None
    session.file.verify()
    assert session.devices == ("x86",)


def test_another_format_becomes_a_file_that_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = Path(__file__).parents[3] / "tests/models/goldens/tiny_conv/legacy"
    written = tmp_path / "printing.lite"
    shown = CliRunner().invoke(inspect, [str(model), "--print-nodes", "before:softmax", "-o", str(written)])
    assert shown.exit_code == 0, shown.output
    lite.load(written, "host").run({"x": np.zeros((1, 3, 32, 32), np.float32)})
    assert capsys.readouterr().err.startswith("tap ")
