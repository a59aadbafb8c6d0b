"""Commands that end because of a plugin: the message names its package, and the next command leads there."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import click
import numpy as np
import pytest

from lite_core import convert, load
from lite_core.builder import GraphBuilder
from lite_core.errors import BackendUnavailableError, ExecutionError
from lite_core.ir import Graph
from lite_core.kernel_backend import KernelBackend
from lite_core.plugins import PluginManager, hookimpl, manager
from lite_core.schedule import select_devices
from lite_onnx import plugin as plugin_of_onnx
from lite_tools.cli import group
from lite_tools.cli.program import main
from lite_tools.writing import write_model


def module(**hooks: Any) -> ModuleType:
    """Return the module of a plugin, with the results of its hooks."""
    made = ModuleType("a_plugin")
    made.LITE_API_VERSION = 1  # type: ignore[attr-defined]
    for hook, result in hooks.items():
        vars(made)[hook] = hookimpl(lambda result=result: result)
        vars(made)[hook].__name__ = hook
    return made


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., PluginManager]]:
    """Return a function that replaces the plugins of this process, given by the names of their packages."""

    def installed(**modules: Any) -> PluginManager:
        entries: Any = [
            SimpleNamespace(
                name=name.removeprefix("lite_"),
                value=name,
                dist=SimpleNamespace(name=name.replace("_", "-"), version="1.0", requires=None),
                load=lambda made=made: made,
            )
            for name, made in modules.items()
        ]
        plugins = PluginManager(lambda: entries)
        monkeypatch.setattr(manager, "_default", plugins)
        return plugins

    monkeypatch.delenv("LITE_PLUGINS", raising=False)
    yield installed
    group._refused.clear()


@pytest.fixture
def model(tmp_path: Path) -> Path:
    write_model(tmp_path / "model.lite", negation())
    return tmp_path / "model.lite"


def negation() -> Graph:
    b = GraphBuilder("negation")
    b.output(b.add("Neg", [b.input("x", "float32", [2])]), "y")
    return b.build()


def ended(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, dict[str, Any]]:
    """Run a command with ``--json``; return its exit code and the document that it prints."""
    with pytest.raises(SystemExit) as end:
        main([*map(str, arguments), "--json"])
    assert isinstance(end.value.code, int)
    return end.value.code, json.loads(capsys.readouterr().out)


# **** readers ****


class Format:
    name = "onnx"
    suffixes = (".onnx",)

    def sniff(self, path: Path) -> bool:
        return True

    def read(self, path: Path) -> Graph:
        return negation()


def test_conflict_over_a_format_ends_in_the_choice_of_a_package(
    install: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "a model.onnx"
    model.write_bytes(b"not read")
    plugins = {"lite_onnx": plugin_of_onnx, "lite_other": module(lite_formats=[Format()])}
    install(**plugins)
    code, told = ended(capsys, "inspect", model)
    assert code == 3
    assert told["next"] == f"LITE_PLUGINS=onnx=lite-onnx lite inspect '{model}' --json"
    monkeypatch.setenv("LITE_PLUGINS", "x86=lite-x86")
    install(**plugins)
    assert ended(capsys, "inspect", model)[1]["next"].startswith("LITE_PLUGINS=x86=lite-x86,onnx=lite-onnx lite ")
    monkeypatch.setenv("LITE_PLUGINS", "onnx=lite-other")
    install(**plugins)
    assert ended(capsys, "inspect", model)[0] == 0


def test_reader_that_is_installed_and_failed_is_not_installed_again(
    install: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "model.onnx").write_bytes(b"not read")
    install(lite_onnx=module(lite_format=[Format()]))
    code, told = ended(capsys, "inspect", tmp_path / "model.onnx")
    assert (code, told["next"]) == (3, "lite plugins lite-onnx")
    install()
    code, told = ended(capsys, "inspect", tmp_path / "model.onnx")
    assert (code, told["next"]) == (3, "pip install lite-onnx")


@pytest.mark.parametrize("result", ["a text", KeyError("oops")])
def test_reader_of_a_plugin_that_fails_leads_to_its_package(
    install: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], result: Any
) -> None:
    def read(self: Format, path: Path) -> Any:
        if isinstance(result, Exception):
            raise result
        return result

    monkeypatch.setattr(Format, "read", read)
    (tmp_path / "model.onnx").write_bytes(b"not read")
    install(lite_ink=module(lite_formats=[Format()]))
    code, told = ended(capsys, "run", tmp_path / "model.onnx")
    assert "the reader 'onnx' of plugin 'ink' (lite-ink 1.0)" in told["error"]
    assert (code, told["next"]) == (6, "lite plugins lite-ink")


def test_writer_of_a_plugin_that_fails_leads_to_its_package(
    install: Any, model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Format, "write", lambda self, graph, path: fails(), raising=False)
    install(lite_ink=module(lite_formats=[Format()]))
    code, told = ended(capsys, "convert", model, "-o", model.with_name("model.onnx"))
    assert "the writer 'onnx' of plugin 'ink' (lite-ink 1.0) failed with KeyError" in told["error"]
    assert (code, told["next"]) == (1, "lite plugins lite-ink")


# **** backends ****


def fails(*arguments: Any, **named: Any) -> Any:
    raise KeyError("oops")


class Failing(KernelBackend):
    """A backend with one kernel that fails, or whose compilation fails."""

    def __init__(self, name: str, **members: Any) -> None:
        super().__init__(name)
        self.kernel("Neg")(members.pop("kernel", np.negative))
        vars(self).update(members)


FAILING: list[dict[str, Any]] = [{"compile": fails}, {"kernel": lambda x, *, out: fails()}]


@pytest.mark.parametrize("members", FAILING)
@pytest.mark.parametrize(
    ("package", "step"), [("lite_zenith", "lite report {} -b zenith"), ("lite_x86", "lite doctor")]
)
def test_backend_that_fails_leads_to_a_report_for_its_authors(
    install: Any, model: Path, capsys: pytest.CaptureFixture[str], members: Any, package: str, step: str
) -> None:
    install(**{package: module(lite_backends=[Failing("zenith", **members)])})
    code, told = ended(capsys, "run", model, "-b", "zenith")
    assert code == 1
    assert f"{package.replace('_', '-')} 1.0" in told["error"]
    assert told["next"] == step.format(shlex.quote(str(model)))


@pytest.mark.parametrize("members", FAILING)
def test_conversion_that_fails_in_a_backend_says_so(
    install: Any, model: Path, capsys: pytest.CaptureFixture[str], members: Any
) -> None:
    install(lite_zenith=module(lite_backends=[Failing("zenith", **members)]))
    code, told = ended(capsys, "convert", model, "-o", model.with_name("new.lite"), "--targets", "zenith")
    assert code == 1
    assert "lite-zenith 1.0" in told["error"]
    assert "differ" not in told["error"]
    assert told["next"] == f"lite report {shlex.quote(str(model))} -b zenith"
    assert not model.with_name("new.lite").exists()


def test_file_for_a_backend_that_is_gone_names_its_package(install: Any, tmp_path: Path) -> None:
    plugins = install(lite_zenith=module(lite_backends=[Failing("zenith")]))
    convert(negation(), tmp_path / "model.lite", targets=["zenith", "host"], plugins=plugins)
    session = load(tmp_path / "model.lite", plugins=install())
    line = "zenith: the model is made for it, but it is not installed: pip install lite-zenith"
    assert line in session.selection_log
    with pytest.raises(
        BackendUnavailableError, match=r"\(installed: host, null\): pip install lite-zenith; `lite backends`"
    ):
        load(tmp_path / "model.lite", backend="zenith", plugins=install())


@pytest.mark.parametrize("stated", ["x; rm -rf / 1.0", "--index-url=evil 1.0", "this process -", "lite-zenith", ""])
def test_name_of_a_package_that_is_no_name_is_not_put_into_a_command(stated: str) -> None:
    (line, *_) = select_devices("auto", PluginManager(list), targets={"zenith": stated}).log
    assert line.endswith("it is not installed: none of Lite's packages brings it")


def test_failure_of_host_blames_no_plugin(install: Any, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(lite_zenith=module(lite_backends=[KernelBackend("zenith")]))
    session = load(model)
    monkeypatch.setattr(np, "negative", fails)
    with pytest.raises(ExecutionError) as caught:
        session.run(x=[1, 2])
    assert caught.value.source in ("", "lite-core")


# **** commands ****


def leave() -> None:
    sys.exit("the camera is not connected")


def test_command_that_exits_with_a_text_prints_it_as_json(install: Any, capsys: pytest.CaptureFixture[str]) -> None:
    as_json = click.Option(["--json", "as_json"], is_flag=True, expose_value=False)
    install(lite_camera=module(lite_commands=[click.Command("shoot", callback=leave, params=[as_json])]))
    code, told = ended(capsys, "shoot")
    assert code == 1
    assert told["error"] == "the camera is not connected (the command 'shoot' of plugin 'camera' (lite-camera 1.0))"
    assert told["exit_code"] == 1
    with pytest.raises(SystemExit) as end:
        main(["shoot"])
    assert end.value.code == 1
    assert "error: the camera is not connected" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("returned", "code", "shown"),
    [(None, 0, ""), (3, 3, ""), ("done", 5, "'done'"), (True, 5, "True"), (999, 5, "999"), (-1, 5, "-1")],
)
def test_what_a_command_returns_is_an_exit_code(
    install: Any, capsys: pytest.CaptureFixture[str], returned: Any, code: int, shown: str
) -> None:
    install(lite_camera=module(lite_commands=[click.Command("shoot", callback=lambda: returned)]))
    with pytest.raises(SystemExit) as end:
        main(["shoot"])
    assert end.value.code == code
    errors = capsys.readouterr().err
    assert (f"the command 'shoot' of plugin 'camera' (lite-camera 1.0) returned {shown}, expected" in errors) == (
        shown != ""
    )
    assert ("next: lite plugins lite-camera" in errors) == (shown != "")


def test_command_that_raises_leads_to_its_package(install: Any, capsys: pytest.CaptureFixture[str]) -> None:
    as_json = click.Option(["--json", "as_json"], is_flag=True, expose_value=False)
    install(lite_camera=module(lite_commands=[click.Command("shoot", callback=fails, params=[as_json])]))
    code, told = ended(capsys, "shoot")
    assert (code, told["next"]) == (5, "lite plugins lite-camera")


def test_command_of_a_plugin_that_failed_is_not_only_unknown(install: Any, capsys: pytest.CaptureFixture[str]) -> None:
    failed = module(lite_commands=[click.Command("shoot")])
    failed.LITE_API_VERSION = 99  # type: ignore[attr-defined]
    install(lite_camera=failed)
    code, told = ended(capsys, "shoot")
    assert told["error"].startswith("there is no command 'shoot'; plugin 'camera' (lite-camera 1.0) may have it, but ")
    assert (code, told["next"]) == (3, "lite plugins lite-camera")
    assert ended(capsys, "inspekt", "model.lite")[1]["next"] == "lite inspect model.lite --json"


# **** output ****


class Talkative(KernelBackend):
    """A backend that prints when it is asked for devices."""

    def probe(self) -> Any:
        print("hello from the driver")
        return super().probe()


def test_what_a_plugin_prints_is_kept_out_of_json(
    install: Any, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(lite_zenith=module(lite_backends=[Talkative("zenith")]))
    with pytest.raises(SystemExit):
        main(["run", str(model), "--json"])
    shown = capsys.readouterr()
    assert json.loads(shown.out)["outputs"]
    assert "hello from the driver" in shown.err


def test_what_a_plugin_prints_while_commands_are_found_is_kept_out(
    install: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    talkative = module(lite_commands=[click.Command("shoot", callback=lambda: print("{}"))])
    found = talkative.lite_commands
    talkative.lite_commands = hookimpl(lambda: print("hello") or found())  # type: ignore[func-returns-value]
    talkative.lite_commands.__name__ = "lite_commands"
    install(lite_camera=talkative)
    with pytest.raises(SystemExit):
        main(["shoot"])
    assert capsys.readouterr() == ("{}\n", "hello\n")
