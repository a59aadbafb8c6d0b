"""The plugin lite-paddle in Lite: formats by content, a list of unsupported operators, refusal of damaged files."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import lite_core as lite
from lite_core.errors import ModelFormatError, UnsupportedOperatorError

GOLDENS = Path(__file__).parents[3] / "tests/models/goldens"
TINY = GOLDENS / "tiny_conv/pir"


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "lite_core", *map(str, arguments)], capture_output=True, text=True)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Copy a small PIR model; return the program file."""
    folder = tmp_path / "model"
    shutil.copytree(TINY, folder)
    return next(folder.glob("*.json"))


def rename_operators(program: Path, **names: str) -> None:
    text = program.read_text()
    for old, new in names.items():
        assert f'"1.{old}"' in text
        text = text.replace(f'"1.{old}"', f'"1.{new}"')
    program.write_text(text)


def test_formats_are_recognised_by_content(model: Path) -> None:
    renamed = model.with_name("network.weights")
    model.rename(renamed)
    parameters = next(renamed.parent.glob("*.pdiparams"))
    moved = parameters.rename(renamed.parent.parent / "elsewhere.bin")
    session = lite.load(renamed, backend="host", reader_options={"params": moved})
    assert session.graph.metadata["kind"] == "pir"


@pytest.mark.parametrize("flavour", ["pir", "legacy", "separate"])
def test_a_folder_is_a_model(flavour: str) -> None:
    assert lite.load(GOLDENS / "tiny_conv" / flavour, backend="host").devices == ("host",)


def test_a_stem_is_a_model() -> None:
    stem = next(TINY.glob("*.json")).with_suffix("")
    assert lite.load(stem, backend="host").inputs


def test_every_unsupported_operator_is_in_one_error(model: Path) -> None:
    rename_operators(model, conv2d="conv_from_mars", relu="relu_from_venus")
    with pytest.raises(UnsupportedOperatorError) as caught:
        lite.load(model)
    found = {p.op: p for p in caught.value.problems}
    assert set(found) == {"pd_op.conv_from_mars", "pd_op.relu_from_venus"}
    assert all(p.nodes for p in found.values())
    for text in (str(model), "pd_op.conv_from_mars", "pd_op.relu_from_venus", "has no lowering for it"):
        assert text in str(caught.value)


def test_check_reports_unsupported_operators(model: Path) -> None:
    rename_operators(model, conv2d="conv_from_mars")
    completed = run("check", model)
    assert completed.returncode == 1
    assert "pd_op.conv_from_mars" in completed.stdout
    data = json.loads(run("check", model, "--json").stdout)
    assert data["ok"] is False
    assert data["problems"][0]["op"] == "pd_op.conv_from_mars"
    assert data["problems"][0]["nodes"]


def test_training_graph_is_reported(model: Path) -> None:
    rename_operators(model, relu="relu_grad")
    with pytest.raises(ModelFormatError, match=r"training.*save"):
        lite.load(model)
    completed = run("run", model)
    assert completed.returncode == 6
    assert "training" in completed.stderr


def test_a_truncated_program_and_truncated_parameters(model: Path) -> None:
    parameters = next(model.parent.glob("*.pdiparams"))
    whole = parameters.read_bytes()
    parameters.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ModelFormatError, match=str(parameters)):
        lite.load(model)
    parameters.write_bytes(whole)
    text = model.read_text()
    model.write_text(text[: len(text) // 2])
    with pytest.raises(ModelFormatError, match=str(model)):
        lite.load(model)


def test_missing_parameters_are_reported(model: Path) -> None:
    next(model.parent.glob("*.pdiparams")).unlink()
    with pytest.raises(ModelFormatError, match="pdiparams"):
        lite.load(model)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"PK\x03\x04 and more", "zip"),
        (b"\x80\x02}q\x00.", "pickle"),
        (b"\x00\x01\x02\x03", "model.pdmodel"),
        (b'{"json": "of another kind"}', "model.pdmodel"),
    ],
)
def test_foreign_files(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "model.pdmodel"
    file.write_bytes(content)
    with pytest.raises(ModelFormatError, match=message):
        lite.load(file)


def test_origins_name_the_users_operators() -> None:
    graph = lite.read_model(TINY)
    origins = {n.origin.op for n in graph.nodes if n.origin}
    assert "pd_op.conv2d" in origins


def test_the_documentation_lists_every_operator() -> None:
    from lite_paddle.lowering import supported_ops

    page = (Path(__file__).parents[3] / "docs/paddle.md").read_text().partition("## Operators")[2]
    assert set(re.findall(r"`(\w+)`", page.partition("| --- |")[2])) == set(supported_ops())
