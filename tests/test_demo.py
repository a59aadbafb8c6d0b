"""The demo and the command line, as a user types them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import catalog
import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples/ocr"
TINY = ROOT / "tests/models/goldens/tiny_conv/legacy"


def lite(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lite_core", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})


def expected_lines() -> list[str]:
    return (EXAMPLE / "picture.txt").read_text().splitlines()


def test_demo_reads_the_shipped_picture(tmp_path: Path) -> None:
    out = tmp_path / "annotated.png"
    shown = lite("demo", "--output", out, "--json")
    assert shown.returncode == 0, shown.stderr
    data = json.loads(shown.stdout)
    assert [line["text"] for line in data["lines"]] == expected_lines()
    assert min(line["score"] for line in data["lines"]) > 0.9
    assert [p["part"] for p in data["parts"]] == ["detection", "orientation", "recognition"]
    assert all(p["backend"] == "host" and p["seconds"] > 0 for p in data["parts"])
    import cv2

    sheet = cv2.imread(str(out))
    assert sheet is not None
    assert sheet.shape[1] > 640  # the picture and, beside it, what was read


def test_example_runs_by_itself(tmp_path: Path) -> None:
    out = tmp_path / "annotated.png"
    command = [sys.executable, EXAMPLE / "ocr.py", EXAMPLE / "picture.png", "--output", out]
    shown = subprocess.run(command, capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr
    assert all(line in shown.stdout for line in expected_lines())
    assert out.exists()


def test_demo_errors(tmp_path: Path) -> None:
    text = tmp_path / "no.png"
    text.write_text("this is not a picture")
    shown = lite("demo", text)
    assert shown.returncode == 2
    assert "is not a picture that can be read" in shown.stderr


def test_run_on_arrays(tmp_path: Path) -> None:
    inputs = TINY.parent / "inputs.npz"
    saved = tmp_path / "out.npz"
    shown = lite("run", TINY, "--input", inputs, "--save", saved, "--repeat", "2")
    assert shown.returncode == 0, shown.stderr
    assert "ran on host" in shown.stdout
    with np.load(saved) as found, np.load(TINY / "outputs.npz") as expected:
        assert found.files == expected.files
        for name in found.files:
            np.testing.assert_allclose(found[name], expected[name], atol=1e-5)


def test_run_on_an_image() -> None:
    path = catalog.ensure("pp_ocrv4_cls").model
    shown = lite(
        "run",
        path,
        "-i",
        EXAMPLE / "picture.png",
        "-s",
        "1x3x48x192",
        "--mean",
        "0.5",
        "--std",
        "0.5",
        "--json",
    )
    assert shown.returncode == 0, shown.stderr
    data = json.loads(shown.stdout)
    assert data["devices"] == ["host"]
    assert next(iter(data["outputs"].values()))["type"] == "float32[1, 2]"


def test_run_with_random_inputs_needs_shapes() -> None:
    path = catalog.ensure("pp_ocrv4_cls").model
    shown = lite("run", path)
    assert shown.returncode == 2
    assert "--shape x=1x3x" in shown.stderr
    assert lite("run", path, "--shape", "x=1x3x48x192").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("run", "nowhere.pdmodel"), 3, "there is no such file or folder"),
        (("run", ROOT / "README.md"), 3, "no installed plugin recognises it (paddle reads"),
        (("run", TINY, "--input", "y=x.npy"), 2, "there is no input 'y'"),
        (("run", TINY, "--input", "x.npy"), 2, "there is no file 'x.npy'"),
        (("run", TINY, "--shape", "3x3"), 2, "which 3x3 is not"),
        (("run", TINY, "--shape", "axb"), 2, "a shape reads like"),
        (("run", TINY, "--backend", "opencl"), 3, "backend 'opencl' is not installed"),
        (("nonsense",), 2, "No such command"),
        (("ops", "Nonsense"), 2, "the opset has no operator"),
    ],
)
def test_errors_say_what_to_do(arguments: tuple[str | Path, ...], code: int, message: str) -> None:
    shown = lite(*arguments)
    assert (shown.returncode, "Traceback" in shown.stderr) == (code, False), shown.stderr
    assert message in shown.stderr
    assert "next: lite" in shown.stderr


def test_inspect() -> None:
    shown = lite("inspect", TINY)
    assert shown.returncode == 0, shown.stderr
    assert "= Conv(" in shown.stdout
    data = json.loads(lite("inspect", TINY, "--json").stdout)
    assert data["metadata"]["format"] == "paddle"
    assert data["op_counts"]["Conv"] >= 1
    assert any(n["origin"]["op"] == "conv2d" for n in data["nodes"] if n["op"] == "Conv")
    for flags in (["--ops"], ["--weights"], ["--optimized"], ["--origins"]):
        assert lite("inspect", TINY, *flags).returncode == 0


def test_check() -> None:
    shown = lite("check", TINY)
    assert shown.returncode == 0, shown.stderr
    assert "can run" in shown.stdout
    assert json.loads(lite("check", TINY, "--json").stdout)["ok"] is True


def test_ops() -> None:
    assert "Conv" in lite("ops").stdout
    assert "dilations" in lite("ops", "Conv").stdout
    names = {o["name"] for o in json.loads(lite("ops", "--json").stdout)["operators"]}
    assert {"Conv", "LSTM", "Loop", "Resize"} <= names


def test_log_from_the_environment() -> None:
    for environment in ({"LITE_LOG": "debug"}, {"GLOG_v": "5"}):
        shown = lite("run", TINY, "--shape", "1x3x32x32", **environment)
        assert "lite.plugins: plugin 'paddle'" in shown.stderr
