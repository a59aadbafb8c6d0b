"""Exit codes of errors about models: where nothing is, what is damaged, and what no installed package reads."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from lite_core.builder import GraphBuilder
from lite_core.container import ModelFile
from lite_core.errors import (
    BackendUnavailableError,
    ExecutionError,
    InputError,
    LiteError,
    ModelFormatError,
    RunTimeoutError,
    UntrustedCodeError,
)
from lite_core.plugins import PluginManager
from lite_tools.cli.program import main
from lite_tools.commands.errors import exit_code_of
from lite_tools.writing import write_model


@pytest.fixture
def model(tmp_path: Path) -> Path:
    b = GraphBuilder("small")
    b.output(b.add("Relu", [b.input("x", "float32", (2,))]), "y")
    write_model(tmp_path / "model.lite", b.build())
    return tmp_path / "model.lite"


def ended(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str]:
    """Run a command; return its exit code and what it has written to standard error."""
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    assert isinstance(end.value.code, int)
    return end.value.code, capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (ExecutionError, 1),
        (RunTimeoutError, 1),
        (InputError, 2),
        (BackendUnavailableError, 3),
        (ModelFormatError, 6),
        (UntrustedCodeError, 6),
    ],
)
def test_each_class_has_its_code(kind: type[LiteError], code: int) -> None:
    assert exit_code_of(kind("reason")) == code


@pytest.mark.parametrize("command", ["run", "check", "inspect", "bench"])
@pytest.mark.parametrize("name", ["nowhere.lite", "nowhere.onnx", "no/where", "", "a" * 300])
def test_a_path_where_nothing_is(command: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, told = ended(capsys, command, name)
    assert code == 2
    assert f"next: lite {command} --help" in told


def test_a_damaged_file_of_lite(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    offset = next(section.offset for section in ModelFile.open(model).sections if section.name == "graph")
    content = bytearray(model.read_bytes())
    content[offset] ^= 1
    model.with_name("other.lite").write_bytes(content)
    code, told = ended(capsys, "run", model.with_name("other.lite"))
    assert code == 6
    assert "graph" in told
    assert f"next: lite inspect {model.with_name('other.lite')} --sections" in told
    assert ended(capsys, "inspect", model.with_name("other.lite"), "--sections")[0] == 6


@pytest.mark.parametrize(
    ("content", "found"), [(b"", "an empty file"), (b"PK\3\4....", "zip archive"), (b"\1\2", "x01")]
)
def test_a_foreign_file(content: bytes, found: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "model.bin").write_bytes(content)
    code, told = ended(capsys, "check", tmp_path / "model.bin")
    assert code == 6
    assert found in told
    assert "lite reads .lite" in told
    assert "next: lite check --help" in told
    assert "doctor" not in told


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe.lite")
    code, told = ended(capsys, "run", tmp_path / "pipe.lite")
    assert code == 6
    assert "is a named pipe" in told


def test_a_format_whose_package_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = PluginManager(list)
    monkeypatch.setattr("lite_core.formats.choosing.default_plugins", lambda: alone)
    monkeypatch.setattr("lite_tools.cli.plugin_steps.default_plugins", lambda: alone)
    (tmp_path / "model.onnx").write_bytes(b"\x08\x08\x12\x04test")
    code, told = ended(capsys, "check", tmp_path / "model.onnx")
    assert code == 3
    assert "next: pip install lite-onnx\n" in told


def test_codes_in_json(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model.write_bytes(model.read_bytes()[:100])
    with pytest.raises(SystemExit) as end:
        main(["check", str(model), "--json"])
    assert end.value.code == 6
    assert json.loads(capsys.readouterr().out)["exit_code"] == 6
