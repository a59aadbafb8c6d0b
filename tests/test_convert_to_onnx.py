"""``lite convert MODEL -o model.onnx`` with the arguments of a user."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lite_core as lite_api
from lite_core.errors import InputError
from lite_core.plugins import PluginManager
from lite_tools.conversion.other_formats import writer_for

ROOT = Path(__file__).parents[1]
TINY = ROOT / "tests/models/goldens/tiny_conv/legacy"


def convert(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lite_core", "convert", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT)


def test_model_computes_like_paddle(tmp_path: Path) -> None:
    output = tmp_path / "model.onnx"
    completed = convert(TINY, "-o", output)
    assert completed.returncode == 0, completed.stderr
    assert str(output) in completed.stdout
    session = lite_api.load(output, backend="host")
    with np.load(TINY.parent / "inputs.npz") as given, np.load(TINY / "outputs.npz") as expected:
        found = session.run({name: given[name] for name in given.files})
        for result, name in zip(found.values(), expected.files, strict=True):
            np.testing.assert_allclose(result, expected[name], atol=1e-5)


def test_as_json_and_from_a_lite_file(tmp_path: Path) -> None:
    graph = lite_api.read_model(TINY)
    lite_api.convert(graph, tmp_path / "model.lite", ["host"], verify=False)
    completed = convert(tmp_path / "model.lite", "-o", tmp_path / "model.onnx", "--json")
    assert completed.returncode == 0, completed.stderr
    answer = json.loads(completed.stdout)
    assert (answer["format"], answer["nodes"]) == ("onnx", 21)
    assert answer["size"] == (tmp_path / "model.onnx").stat().st_size


@pytest.mark.parametrize(
    "option", ["--targets=x86", "--weights=float16", "--precision=float16", "--tune", "--input-shape=1x3x32x32"]
)
def test_options_for_lite_files_are_refused(option: str, tmp_path: Path) -> None:
    completed = convert(TINY, "-o", tmp_path / "model.onnx", option)
    assert completed.returncode == 2
    assert ".lite" in completed.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_format_that_is_only_read(tmp_path: Path) -> None:
    completed = convert(TINY, "-o", tmp_path / "model.pdmodel")
    assert completed.returncode == 2
    assert "'paddle'" in completed.stderr


def test_a_format_that_is_not_installed() -> None:
    with pytest.raises(InputError, match="pip install lite-onnx"):
        writer_for(Path("model.onnx"), plugins=PluginManager(list))
    assert writer_for(Path("model.lite"), plugins=PluginManager(list)) is None
    assert writer_for(Path("model"), plugins=PluginManager(list)) is None
