"""``lite trust``: what it shows, what it stores, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from test_convert import Toy, network

from lite_core import convert
from lite_core.container import ModelFile
from lite_core.errors import ModelFormatError
from lite_core.plugins import plugins_with
from lite_tools.cli.trust import command
from lite_tools.writing import write_model


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that another user converted."""
    monkeypatch.setenv("LITE_CONFIG_DIR", str(tmp_path / "other"))
    convert(network(), tmp_path / "m.lite", "toy", threads=2, plugins=plugins_with(Toy()))
    monkeypatch.setenv("LITE_CONFIG_DIR", str(tmp_path / "config"))
    return tmp_path / "m.lite"


def trust(*arguments: object) -> Result:
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def is_trusted(file: Path) -> bool:
    return ModelFile.open(file).code_is_trusted("own")


def test_a_file_is_trusted_listed_and_removed(file: Path, tmp_path: Path) -> None:
    digest = ModelFile.open(file).code_digest
    shown = trust("--show", file)
    assert (shown.exit_code, is_trusted(file)) == (0, False)
    assert "not trusted" in shown.output
    assert digest in shown.output
    for _ in range(2):  # twice is no more than once
        assert trust(file).exit_code == 0
    assert is_trusted(file)
    assert (tmp_path / "config/trusted").read_text().split() == [digest, "'m.lite'"]
    listed = json.loads(trust("--list", "--json").output)
    assert listed["trusted"] == [{"digest": digest, "name": "'m.lite'"}]
    assert trust("--remove", file).exit_code == 0
    assert not is_trusted(file)
    assert "nothing is trusted" in trust("--list").output


def test_the_report_is_available_as_json(file: Path) -> None:
    (row,) = json.loads(trust(file, "--json").output)["files"]
    assert (row["trusted"], row["targets"]) == (True, "toy")
    assert row["code_bytes"] == len(b"state of toy/0threads: 2")


@pytest.mark.parametrize("arguments", [[], ["--list", "m.lite"], ["--show", "--remove", "m.lite"]])
def test_wrong_usage_is_refused(arguments: list[str]) -> None:
    result = trust(*arguments)
    assert result.exit_code == 2
    assert "--list" in result.output


def test_a_file_without_code_cannot_be_trusted(tmp_path: Path) -> None:
    write_model(tmp_path / "plain.lite", network())
    result = trust(tmp_path / "plain.lite")
    assert result.exit_code == 2
    assert "no code" in result.output


def test_a_model_of_another_format_has_nothing_to_trust(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"\x08\x08")
    with pytest.raises(ModelFormatError, match=r"^not a \.lite file: .*m\.onnx\. `lite trust` is for the compiled"):
        raise trust(tmp_path / "m.onnx").exception or AssertionError


def test_a_list_that_cannot_be_written_is_an_error(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "taken").write_text("")
    monkeypatch.setenv("LITE_CONFIG_DIR", str(tmp_path / "taken"))
    result = trust(file)
    assert result.exit_code == 1
    assert "cannot be" in result.output
