"""Completion: the answers to shells, what they need, and bash, zsh and fish themselves."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from pseudo_terminals import Terminal

from lite_tools.cli import lite
from lite_tools.commands.value_types import ARRAY_FILE, BACKENDS, MODEL_FILE, OPERATOR, PRECISION
from lite_tools.completion.description import describe
from lite_tools.completion.rebuilt import rebuild
from lite_tools.completion.shells import SHELLS, VARIABLE
from lite_tools.completion.stored import known_description


@click.group()
def group() -> None:
    """A program."""


@group.command("run")
@click.argument("model", type=MODEL_FILE)
@click.option("--backend", "-b", type=BACKENDS, help="Where it runs. Several are separated by commas.")
@click.option("--input", "-i", type=ARRAY_FILE, multiple=True)
@click.option("--precision", type=PRECISION)
@click.option("--into", type=click.Path(file_okay=False))
@click.option("--kind", type=click.Choice(["small", "large"]))
@click.option("--fast/--slow")
@click.option("--secret", hidden=True)
def run(**options: object) -> None:
    """Run a model."""


@group.command("ops")
@click.argument("name", type=OPERATOR)
def ops(name: str) -> None:
    """List operators. They are many."""


NAMES = {
    "backend": {"opencl": "", "x86": ""},
    "operator": {"Conv": "", "ConvTranspose": "", "lite.Swish": ""},
    "precision": {"float16": "", "float32": ""},
    "suffix": {".lite": "", ".onnx": ""},
}


def items(*words: str, shell: str = "zsh") -> list[tuple[str, str]]:
    """Return the types and values that complete the last of the words, which follow the program's name."""
    rebuilt = rebuild("lite", json.loads(json.dumps(describe(group)["command"])), NAMES)
    asked = SHELLS[shell](rebuilt, {}, "lite", VARIABLE)
    return [(item.type, item.value) for item in asked.get_completions([*words[:-1]], words[-1])]


def words(*typed: str) -> list[str]:
    return [value for type, value in items(*typed) if type == "plain"]


def test_commands_and_options_are_completed() -> None:
    assert words("") == ["ops", "run"]
    assert words("run", "--s") == ["--slow"]
    assert words("run", "--f") == ["--fast"]
    assert words("run", "--secre") == []  # hidden
    assert "--help" in words("run", "--h")


def test_names_are_completed() -> None:
    assert words("run", "-b", "") == ["auto", "opencl", "x86"]
    assert words("run", "-b", "opencl,") == ["opencl,x86"]
    assert words("run", "--backend", "X") == ["x86"]
    assert words("run", "--backend=o") == ["--backend=opencl"]
    assert words("run", "--precision", "softmax_*=float3") == ["softmax_*=float32"]
    assert words("ops", "con") == ["Conv", "ConvTranspose"]
    assert words("run", "--kind", "s") == ["small"]


def test_files_are_left_to_the_shell() -> None:
    assert items("run", "mod") == [("files", "lite|onnx")]
    assert items("run", "a.onnx", "-i", "") == [("files", "npy|npz|png|jpg|jpeg|bmp|webp")]
    assert items("run", "--into", "out") == [("dir", "out")]


def test_bash_makes_the_equals_sign_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMP_WORDS", "lite run --backend = op")
    monkeypatch.setenv("COMP_CWORD", "4")
    asked = SHELLS["bash"](rebuild("lite", describe(group)["command"], NAMES), {}, "lite", VARIABLE)
    assert asked.complete() == "plain,opencl"


def test_description_has_the_real_commands_and_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITE_CACHE_DIR", str(tmp_path))
    stored = tmp_path / "completion" / "commands.json"
    stored.parent.mkdir(0o700)
    stored.write_bytes(b"{")  # damaged: it is written again
    described = known_description()
    assert json.loads(stored.read_bytes())["command"] == described["command"]
    assert {"run", "convert", "cache"} <= described["command"]["commands"].keys()
    assert "fill" in described["command"]["commands"]["cache"]["commands"]
    assert "host" in described["names"]["backend"]
    assert ".lite" in described["names"]["suffix"]
    assert "Conv" in described["names"]["operator"]


ANSWER = """
import sys
from lite_tools.cli import main
try:
    main([])
except SystemExit as end:
    slow = [name for name in ("numpy", "rich", "lite_tools.cli.run", "lite_tools.cli.group") if name in sys.modules]
    print("imported:", *slow)
    sys.exit(end.code)
"""


def test_second_answer_imports_no_command(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "LITE_CACHE_DIR": str(tmp_path),
        "_LITE_COMPLETE": "bash_complete",
        "COMP_WORDS": "lite run --require-backend ho",
        "COMP_CWORD": "3",
    }
    first, second = (
        subprocess.run([sys.executable, "-c", ANSWER], env=environment, capture_output=True, text=True)
        for _ in range(2)
    )
    assert first.stdout.startswith("plain,host\nimported: numpy"), first.stderr
    assert second.stdout == "plain,host\nimported:\n"


def test_command_prints_a_script() -> None:
    for shell in SHELLS:
        result = CliRunner().invoke(lite, ["completion", shell])
        assert result.exit_code == 0
        assert f"{VARIABLE}={shell}_complete" in result.output
        printed = json.loads(CliRunner().invoke(lite, ["completion", shell, "--json"]).output)
        assert printed["script"] == result.output


# **** shells ****

COMPLETED = [
    ("lite comple", "lite completion"),
    ("lite run -b hos", "lite run -b host"),
    ("lite ops ConvTr", "lite ops ConvTranspose"),
    ("lite run networ", "lite run network.lite"),
    ("lite cache fil", "lite cache fill"),
]


def require(shell: str) -> str:
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not installed")
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a model and another file, and the program of this environment on the path."""
    monkeypatch.setenv("LITE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", os.pathsep.join((os.path.dirname(sys.executable), os.environ["PATH"])))
    monkeypatch.chdir(tmp_path)
    for name in ("network.lite", "network.txt"):
        (tmp_path / name).touch()
    return tmp_path


@pytest.mark.full("commands")
@pytest.mark.parametrize(
    ("shell", "arguments", "prepare"),
    [("bash", ("--norc", "-i"), ""), ("zsh", ("-f", "-i"), "autoload -Uz compinit; compinit -u; ")],
)
def test_shell_completes_what_is_typed(shell: str, arguments: Sequence[str], prepare: str, folder: Path) -> None:
    terminal = Terminal([require(shell), *arguments], {"PS1": "> "})
    try:
        terminal.type(f'{prepare}eval "$(lite completion {shell})"; echo REA""DY\n')
        terminal.wait_for("READY")
        for typed, completed in COMPLETED:
            terminal.type("\x15")  # removes the line
            terminal.type(f"{typed}\t")
            terminal.wait_for(completed.removeprefix(typed))
            terminal.type("\x15echo DO''NE\n")
            terminal.wait_for("DONE")
    finally:
        terminal.kill()


@pytest.mark.full("commands")
def test_fish_completes_what_is_typed(folder: Path) -> None:
    fish = require("fish")
    for typed, completed in COMPLETED:
        script = f"lite completion fish | source; complete -C '{typed}'"
        result = subprocess.run([fish, "--no-config", "-c", script], capture_output=True, text=True)
        offered = [line.partition("\t")[0] for line in result.stdout.splitlines()]
        assert offered[:1] == [completed.rpartition(" ")[2]], result
