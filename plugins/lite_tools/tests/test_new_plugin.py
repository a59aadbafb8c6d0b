"""The command ``lite new-plugin``: what it prints, what it refuses, and that it never overwrites anything."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from new_plugins import PLUGINS

from lite_tools.cli import main
from lite_tools.cli.new_plugin_files import write_package
from lite_tools.cli.new_plugin_kinds import KINDS
from lite_tools.cli.new_plugin_names import LITES_OWN
from workspace import distributions

FILES = [
    "pyproject.toml",
    "README.md",
    "src/lite_my_chip/__init__.py",
    "src/lite_my_chip/backend.py",
    "src/lite_my_chip/conformance.toml",
    "src/lite_my_chip/device.py",
    "src/lite_my_chip/plugin.py",
    "src/lite_my_chip/py.typed",
    "tests/test_backend.py",
    "tests/test_package.py",
    ".github/workflows/test.yml",
    ".gitignore",
]


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that runs a command line that must be refused in an empty folder, and returns the message."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, code: int = 2) -> str:
        with pytest.raises(SystemExit) as ended:
            main(list(arguments))
        assert ended.value.code == code
        return capsys.readouterr().err

    return run


def test_files_and_next_commands(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "lite_core", "new-plugin", "kernel-backend", "my_chip"]
    shown = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert (shown.returncode, shown.stderr) == (0, "")
    folder = tmp_path / "lite-my-chip"
    found = sorted(f.relative_to(folder).as_posix() for f in folder.rglob("*") if f.is_file())
    assert found == sorted(FILES)
    lines = [line.strip() for line in shown.stdout.splitlines()]
    assert [line for line in lines if line in FILES] == FILES
    assert lines[0] == "the package of backend 'my_chip' is written to lite-my-chip:"
    assert lines[-4:] == [
        "cd lite-my-chip",
        "pip install -e '.[test]'",
        "lite backends",
        "lite-conformance --backend my_chip --level L1",
    ]


def test_several_kinds_and_services_as_json_in_another_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my plugins").mkdir()
    with pytest.raises(SystemExit):
        main(["new-plugin", "command, operator", "my_chip", "-o", "my plugins", "--ci", "azure,gitlab", "--json"])
    data = json.loads(capsys.readouterr().out)
    assert (data["name"], data["kinds"]) == ("my_chip", ["operator", "command"])
    folder = tmp_path / data["folder"]
    assert folder == tmp_path / "my plugins/lite-my-chip"
    assert all((folder / file).is_file() for file in data["files"])
    assert {"azure-pipelines.yml", ".gitlab-ci.yml"} <= {*data["files"]}
    assert not (folder / ".github").exists()
    assert data["next"] == [
        "cd 'my plugins/lite-my-chip'",
        "pip install -e '.[test]'",
        "lite ops my_chip.Squish",
        "lite my-chip --help",
        "pytest",
    ]


def test_help_names_every_kind(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["new-plugin", "--help"])
    shown = capsys.readouterr().out
    for name, kind in KINDS.items():
        assert re.search(rf"^ +{name} +{re.escape(kind.about)}$", shown, re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("opertor", "toy"), "'opertor' is none of these: kernel-backend, backend, operator"),
        (("operator,", "toy"), "'' is none of these"),
        (("toy", "operator"), "'toy' is none of these"),
        (("backend,kernel-backend", "toy"), "one backend"),
        (("backend", "toy", "--numba"), "lite new-plugin kernel-backend NAME"),
        (("operator", "toy", "--ci", "jenkins"), "'jenkins' is none of these: github, gitlab, azure, none"),
        (("operator", "toy", "--output", "nowhere"), "'nowhere' does not exist"),
        (("operator",), "'NAME'"),
    ],
)
def test_arguments_that_are_refused(refused: Any, tmp_path: Path, arguments: tuple[str, ...], expected: str) -> None:
    message = refused("new-plugin", *arguments)
    assert expected in message
    step = {"opertor": "operator toy", "backend": "kernel-backend toy --numba"}.get(arguments[0], "--help")
    assert f"next: lite new-plugin {step}\n" in message
    assert not list(tmp_path.iterdir())


def test_the_former_command_names_its_successor(refused: Any) -> None:
    message = refused("new-backend", "toy")
    assert "`lite new-plugin kernel-backend NAME`" in message
    assert "next: lite new-plugin kernel-backend toy" in message


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("host", "'host'"),
        ("null", "'null'"),
        ("auto", "'auto'"),
        ("lite", "'lite'"),
        ("x86", "'x86'"),
        ("conformance", "'conformance'"),
        ("My-Chip", "'My-Chip'.*example my_chip$"),
        ("lite_toy", "example toy$"),
        ("lite-x86", "'lite-x86'"),
        ("9x", "'9x'"),
        ("a__b", "example a_b$"),
        ("a_", "example a$"),
        ("../up", "example up$"),
        ("é", "'é'"),
        ("", "''"),
        ("toy\n", "'toy"),
    ],
)
def test_invalid_names(refused: Any, tmp_path: Path, name: str, message: str) -> None:
    shown = refused("new-plugin", "operator", name)
    assert re.search(message, shown, re.MULTILINE)
    example = re.search(r"for example (\w+)$", shown, re.MULTILINE)
    assert f"next: lite new-plugin {f'operator {example[1]}' if example else '--help'}\n" in shown
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["run", "demo", "new_plugin"])
def test_a_command_cannot_have_the_name_of_another(refused: Any, tmp_path: Path, name: str) -> None:
    assert "has a command of this name" in refused("new-plugin", "pass,command", name)
    write_package(PLUGINS["pass"], tmp_path / name)  # as a name of anything else it can be used


def test_the_names_of_all_distributions_of_lite_are_taken() -> None:
    assert {f"lite-{name}" for name in LITES_OWN} >= {distribution.name for distribution in distributions()}


@pytest.mark.parametrize("existing", ["folder", "file", "dangling link"])
def test_nothing_is_overwritten(refused: Any, tmp_path: Path, existing: str) -> None:
    target = tmp_path / "lite-toy"
    if existing == "folder":
        target.mkdir()
        (target / "README.md").write_text("mine")
    elif existing == "file":
        target.write_text("mine")
    else:
        target.symlink_to(tmp_path / "nowhere")
    assert "'lite-toy' exists" in refused("new-plugin", "operator", "toy")
    assert [f.name for f in tmp_path.iterdir()] == ["lite-toy"]
    if existing == "folder":
        assert [f.read_text() for f in target.iterdir()] == ["mine"]


def test_folder_that_cannot_be_written(refused: Any) -> None:
    assert "File name too long" in refused("new-plugin", "operator", "n" * 300, code=1)


def test_full_disk_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.write_text

    def full(path: Path, *arguments: Any, **named: Any) -> int:
        if path.name == "plugin.py":
            raise OSError(28, "No space left on device")
        return real(path, *arguments, **named)

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(click.ClickException, match="No space left on device"):
        write_package(PLUGINS["operator"], tmp_path / "lite-toy")
    assert not list(tmp_path.iterdir())
