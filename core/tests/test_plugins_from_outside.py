"""What the environment says about plugins: LITE_BACKENDS allows backends, LITE_TRACE_PLUGINS shows every step."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import NoReturn

import pytest
from installed_plugins import GOOD, install, lite

from lite_core.builder import GraphBuilder
from lite_core.errors import BackendUnavailableError
from lite_core.ir import Graph
from lite_core.kernel_backend import KernelBackend
from lite_core.plugins import (
    PluginManager,
    allowed_backends,
    available_backends,
    installed_backends,
    left_out_backends,
    plugins_with,
)
from lite_core.session import load


@pytest.fixture
def two() -> PluginManager:
    """Two backends; what is not allowed is not even asked for devices unless it is ``x86``."""

    def never() -> NoReturn:
        raise AssertionError("a backend that is left out is not probed")

    x86 = KernelBackend("x86")
    x86.kernel("Relu")(lambda x: x.clip(0))
    return plugins_with(x86, KernelBackend("opencl", device=never))


def relu() -> Graph:
    b = GraphBuilder()
    b.output(b.add("Relu", [b.input("x", "float32", [2])]), "y")
    return b.build()


@pytest.mark.parametrize(
    ("value", "allowed"),
    [
        (None, ["host", "null", "opencl", "x86"]),
        ("", ["host"]),
        (" , ", ["host"]),
        ("x86", ["host", "x86"]),
        (" opencl , null,", ["host", "null", "opencl"]),
        ("x8", ["host"]),
    ],
)
def test_which_backends_are_allowed(
    two: PluginManager, monkeypatch: pytest.MonkeyPatch, value: str | None, allowed: list[str]
) -> None:
    monkeypatch.delenv("LITE_BACKENDS", raising=False)
    if value is None:
        assert allowed_backends() is None
    else:
        monkeypatch.setenv("LITE_BACKENDS", value)
    assert sorted(available_backends(two)) == allowed
    assert sorted(installed_backends(two)) == ["host", "null", "opencl", "x86"]
    assert sorted([*available_backends(two), *left_out_backends(two)]) == ["host", "null", "opencl", "x86"]


def test_automatic_choice_logs_what_is_left_out(two: PluginManager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITE_BACKENDS", "x86,x87")
    session = load(relu(), plugins=two)
    assert session.devices == ("x86",)
    assert "opencl: LITE_BACKENDS=x86,x87 leaves it out" in session.selection_log
    assert "x87: LITE_BACKENDS names it, but it is not installed" in session.selection_log
    monkeypatch.setenv("LITE_BACKENDS", "")
    assert load(relu(), plugins=two).devices == ("host",)


def test_asking_for_what_is_left_out(two: PluginManager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITE_BACKENDS", "x86")
    with pytest.raises(BackendUnavailableError, match="'opencl' is installed, but LITE_BACKENDS=x86 leaves it out"):
        load(relu(), backend="opencl:1", plugins=two)
    with pytest.raises(BackendUnavailableError, match="'arm' is not installed .*LITE_BACKENDS would have to name it"):
        load(relu(), backend="arm", plugins=two)
    monkeypatch.setenv("LITE_BACKENDS", "x86,arm")
    with pytest.raises(BackendUnavailableError, match="'arm' is not installed") as caught:
        load(relu(), backend="arm", plugins=two)
    assert "would have to" not in str(caught.value)


def test_the_command_line_shows_what_is_left_out(site: Path) -> None:
    install(site, "good", GOOD)
    install(site, "other", GOOD)
    for command in ("backends", "doctor"):
        shown = lite(site, command, "--json", LITE_BACKENDS="other")
        rows = {row["backend"]: row for row in json.loads(shown.stdout)["backends"]}
        assert (rows["good"]["state"], rows["good"]["about"]) == ("left out", "LITE_BACKENDS=other leaves it out")
        assert (rows["other"]["state"], rows["host"]["state"]) == ("ready", "ready")
        assert "LITE_BACKENDS=other leaves it out" in lite(site, command, LITE_BACKENDS="other").stdout
    assert json.loads(shown.stdout)["environment"]["LITE_BACKENDS"] == "other"


def test_tracing_shows_every_step(site: Path) -> None:
    install(site, "good", GOOD)
    shown = lite(site, "backends", LITE_TRACE_PLUGINS="1", LITE_LOG="", GLOG_v="").stderr
    steps = [
        r"plugin 'good' \(lite-good 1.0\) is found, it is the module lite_good_plugin",
        r"\d+ plugins found in \d+\.\d ms",
        r"plugin 'good' \(lite-good 1.0\): importing lite_good_plugin",
        r"plugin 'good' \(lite-good 1.0\): lite_good_plugin imported in \d+\.\d ms",
        r"plugin 'good' \(lite-good 1.0\) is registered",
        r"plugin 'good' \(lite-good 1.0\): asked for lite_backends",
        r"plugin 'good' \(lite-good 1.0\): lite_backends gave good in \d+\.\d ms",
    ]
    assert re.search(".*?".join(steps), shown, re.DOTALL), shown
    assert all(re.match(r"D +\d+ ms lite\.plugins: ", line) for line in shown.splitlines())


def test_tracing_names_what_takes_the_process_down(site: Path) -> None:
    install(site, "fatal", "import os; os._exit(3)\n")
    shown = lite(site, "backends", LITE_TRACE_PLUGINS="1")
    assert shown.returncode == 3
    assert shown.stderr.splitlines()[-1].endswith("plugin 'fatal' (lite-fatal 1.0): importing lite_fatal_plugin")


def test_without_tracing_there_is_silence(site: Path) -> None:
    install(site, "good", GOOD)
    assert lite(site, "backends", LITE_TRACE_PLUGINS="", LITE_LOG="", GLOG_v="").stderr == ""
