"""The public names of lite_tools.commands, lazy commands, and commands of plugins in the group ``lite``."""

from __future__ import annotations

import importlib
import json
import pkgutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from installed_plugins import install, lite

from lite_tools import commands, plugin
from lite_tools.cli import main
from lite_tools.cli.group import lite as group
from lite_tools.commands import LazyCommand, backend_options_option

COMMAND = """
import click

@click.command("greet")
@click.argument("name")
@click.option("--loud", is_flag=True)
def command(name, loud):
    '''Greet NAME.'''
    click.echo(f"hello {name.upper() if loud else name}")
    return 4
"""

# **** names ****


def test_public_names_are_in_their_modules() -> None:
    assert sorted(commands.__all__) == sorted(commands._MODULES)
    for name, module in commands._MODULES.items():
        assert getattr(commands, name) is getattr(importlib.import_module(f"lite_tools.commands.{module}"), name)
    with pytest.raises(AttributeError, match="nonsense"):
        _ = commands.nonsense


def test_no_module_has_a_public_name() -> None:
    assert {m.name for m in pkgutil.iter_modules(commands.__path__)}.isdisjoint(commands.__all__)


def test_listing_commands_does_not_import_them() -> None:
    code = (
        "import sys; from lite_tools.plugin import lite_commands; print([c.name for c in lite_commands()]); "
        "print([m for m in sys.modules if m.startswith(('lite_tools.cli', 'lite_tools.conversion', 'rich'))])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names, imported = shown.stdout.splitlines()
    assert names == str(list(plugin._COMMANDS))
    assert imported == "[]"


# **** lazy commands ****


@pytest.fixture
def greet(site: Path) -> LazyCommand:
    (site / "greeting_command.py").write_text(COMMAND)
    return LazyCommand("greet", "Say hello", "greeting_command")


def test_lazy_command_is_listed_without_importing_its_module(greet: LazyCommand) -> None:
    shown = CliRunner().invoke(click.Group("g", commands=[greet]), ["--help"])
    assert "greet  Say hello" in shown.output
    assert "greeting_command" not in sys.modules


def test_lazy_command_behaves_like_the_real_one(greet: LazyCommand) -> None:
    outer = click.Group("g", commands=[greet])
    for command, words in ((greet, []), (outer, ["greet"])):
        assert CliRunner().invoke(command, [*words, "you", "--loud"]).output == "hello YOU\n"
        shown = CliRunner().invoke(command, [*words, "--help"])
        assert "Greet NAME." in shown.output
        assert "--loud" in shown.output
        wrong = CliRunner().invoke(command, words)
        assert (wrong.exit_code, "Missing argument 'NAME'" in wrong.output) == (2, True)
    assert outer.main(["greet", "you"], standalone_mode=False) == 4
    assert greet.main(["you"], standalone_mode=False) == 4


def test_lazy_command_has_the_parameters_of_the_real_one(greet: LazyCommand) -> None:
    assert [parameter.name for parameter in greet.params] == ["name", "loud"]
    with click.Context(greet) as context:
        assert greet.to_info_dict(context)["params"][0]["name"] == "name"


@pytest.mark.parametrize("name", plugin._COMMANDS)
def test_commands_have_their_listed_names(name: str) -> None:
    with click.Context(group) as context:
        command = group.get_command(context, name)
    assert isinstance(command, LazyCommand)
    assert command.real.name == name
    assert command.real.help


# **** the group ****

TAKES_RUN = """
import click
from lite_core.plugins import hookimpl

LITE_API_VERSION = 1

@hookimpl
def lite_commands():
    return [click.Command("run", callback=print), click.Command("{name}", callback=lambda: print("{name} here"))]
"""


def test_plugins_cannot_take_used_command_names(site: Path) -> None:
    install(site, "first", TAKES_RUN, distribution="a-first")
    install(site, "second", TAKES_RUN.replace("{name}", "first"), distribution="b-second")
    shown = lite(site, "first")
    assert shown.returncode == 3
    assert "'run' is taken by lite-tools" in shown.stderr
    for part in ("the command 'first'", "'first' (a-first 1.0)", "'second' (b-second 1.0)", "LITE_PLUGINS=first="):
        assert part in shown.stderr
    assert "Run MODEL" in lite(site, "run", "--help").stdout
    assert lite(site, "first", LITE_PLUGINS="first=b-second").stdout == "first here\n"


def test_incompatible_version_of_lite_tools_is_an_error(site: Path) -> None:
    """lite-tools may be installed in a version that is incompatible with the core."""
    info = site / "lite_tools-9.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: lite-tools\nVersion: 9.0\nRequires-Dist: lite-core>=9.0\n"
    )
    (info / "entry_points.txt").write_text(
        "[lite.plugins]\ntools = lite_tools.plugin\n[lite.tools]\nmain = lite_tools.cli:main\n"
    )
    for arguments in (["doctor"], ["run", "x"], ["--help"]):
        shown = lite(site, *arguments)
        assert shown.returncode == 3
        assert "plugin 'tools' (lite-tools 9.0) failed at version: requires lite-core >=9.0" in shown.stderr
        assert "next: pip install --upgrade lite-tools lite-core\n" in shown.stderr
        assert "Traceback" not in shown.stderr


# **** options ****


def parsed(*texts: str) -> Any:
    found: list[Any] = []
    command = click.Command("c", callback=lambda backend_options: found.append(backend_options))
    arguments = [word for text in texts for word in ("-O", text)]
    result = CliRunner().invoke(backend_options_option(command), arguments)
    return found[0] if found else result.output


def test_options_of_backends() -> None:
    assert parsed() == {}
    assert parsed("x86.mkl=never", "x86.depth=3", "toy.on=true", 'toy.names=["a"]', "toy.text=a=b", "toy.none=") == {
        "x86": {"mkl": "never", "depth": 3},
        "toy": {"on": True, "names": ["a"], "text": "a=b", "none": ""},
    }


@pytest.mark.parametrize("text", ["x86", "x86.mkl", "x86=never", ".mkl=never", "x86.=never"])
def test_malformed_options_of_backends(text: str) -> None:
    assert "BACKEND.NAME=VALUE" in parsed(text)


TAKES_OPTIONS = """
from lite_core import InputError, KernelBackend
from lite_core.plugins import hookimpl

LITE_API_VERSION = 1

class Backend(KernelBackend):
    def check_options(self, options):
        if options != {"level": 3}:
            raise InputError(f"the options are {options}")

backend = Backend("{name}")

@backend.kernel("Relu", dtypes=["float32"])
def relu(x, *, out):
    out[...] = x

@hookimpl
def lite_backends():
    return [backend]
"""


@pytest.mark.parametrize(
    "command", [["run"], ["bench", "--seconds", "0.01"], ["check"], ["inspect", "--memory"]], ids=lambda words: words[0]
)
def test_commands_that_run_models_accept_options_of_backends(
    site: Path, tmp_path: Path, relu_model: Path, command: list[str]
) -> None:
    install(site, "toy", TAKES_OPTIONS)
    words = [*command, str(relu_model), "-b", "toy", "--json"]
    shown = lite(site, *words, "-O", "toy.level=3")
    assert shown.returncode == 0, shown.stderr
    shown = lite(site, *words, "--backend-option", "toy.level=4")
    assert shown.returncode == 2
    assert "the options are {'level': 4}" in json.loads(shown.stdout)["error"]


# **** doctor ****


def test_doctor_shows_warnings(site: Path) -> None:
    install(site, "odd", TAKES_OPTIONS.replace("def check_options", "def check_option"))
    shown = lite(site, "doctor")
    assert shown.returncode == 0
    assert "plugin 'odd' (lite-odd 1.0)\n  backend 'odd' has 'check_option', which is never used" in shown.stdout
    (record,) = [p for p in json.loads(lite(site, "doctor", "--json").stdout)["plugins"] if p["name"] == "odd"]
    assert record["phase"] == "ready"
    assert record["warnings"]


def test_error_for_a_missing_command_names_its_package(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    known = {"read-minds": "lite-telepathy"}
    monkeypatch.setattr("lite_tools.cli.group.known_distributions", lambda kind: known)
    with pytest.raises(SystemExit, match="3"):
        main(["read-minds"])
    shown = capsys.readouterr().err
    assert "next: pip install lite-telepathy" in shown
