"""Notes of sessions on the command line: on standard error, once, also with JSON."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from lite_core.builder import GraphBuilder
from lite_tools.cli.cache import command as cache
from lite_tools.cli.check import command as check
from lite_tools.cli.inspect import command as inspect
from lite_tools.cli.run import command as run
from lite_tools.commands import print_notes
from lite_tools.writing import write_model

#: Commands with their arguments, all of which load a session.
COMMANDS = [
    (run, []),
    (run, ["--repeat", "3", "--json"]),
    (check, []),
    (check, ["--json"]),
    (inspect, ["--memory", "--json"]),
    (cache, ["fill", "--json"]),
]


def notes_of(stderr: str) -> list[str]:
    return [line for line in stderr.splitlines() if line.startswith("note: ")]


@pytest.mark.parametrize(("command", "arguments"), COMMANDS)
def test_no_backend_but_host(
    relu_model: Path, command: click.Command, arguments: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LITE_BACKENDS", "nonsense")
    monkeypatch.setenv("LITE_CACHE_DIR", str(tmp_path))
    words = [*arguments[:1], str(relu_model), *arguments[1:]] if command is cache else [str(relu_model), *arguments]
    done = CliRunner().invoke(command, words)
    assert done.exit_code == 0, done.output
    (note,) = notes_of(done.stderr)
    assert "everything runs on host" in note
    assert "LITE_BACKENDS='nonsense'" in note
    assert "note: " not in done.stdout
    if "--json" in arguments:
        json.loads(done.stdout)


def test_precision_that_is_not_used(relu_model: Path) -> None:
    done = CliRunner().invoke(run, [str(relu_model), "--backend", "host", "--precision", "float16", "--json"])
    (note,) = notes_of(done.stderr)
    assert "precision float16 was asked for" in note
    assert "host computes 1 of 1 nodes" in note


def test_nodes_on_host(tmp_path: Path) -> None:
    """The note is there once, also if an error follows; `lite check` does not name itself."""
    b = GraphBuilder("det")
    b.output(b.add("Det", [b.input("x", "float32", [1, 3, 3])]))
    model = str(tmp_path / "det.lite")
    write_model(model, b.build())
    done = CliRunner().invoke(run, [model, "--backend", "x86", "--require-backend", "x86"])
    assert f"{done.stderr}{done.exception}".count("1 of 1 nodes run on host") == 1
    assert "do not run on 'x86'" in str(done.exception)
    (note,) = notes_of(CliRunner().invoke(check, [model, "--backend", "x86"]).stderr)
    assert "1 of 1 nodes run on host" in note
    assert "lite check" not in note


def test_no_note_without_a_reason(relu_model: Path) -> None:
    assert notes_of(CliRunner().invoke(run, [str(relu_model), "--backend", "host"]).stderr) == []


def test_notes_are_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    with click.Context(click.Command("several")):
        print_notes(["first", "second"])
        print_notes(["second", "third"])
    assert capsys.readouterr().err.split("\n") == ["note: first", "note: second", "note: third", ""]
