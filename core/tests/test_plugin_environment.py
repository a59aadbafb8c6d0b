"""Environment variables for plugins: LITE_BACKENDS allows backends, LITE_TRACE_PLUGINS logs every step."""

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
def backends() -> PluginManager:
    """The backends ``x86`` and ``opencl``, of which ``opencl`` must not be probed."""

    def never() -> NoReturn:
        raise AssertionError("a backend that is left out must not be probed")

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
def test_environment_variable_limits_the_backends(
    backends: PluginManager, monkeypatch: pytest.MonkeyPatch, value: str | None, allowed: list[str]
) -> None:
    monkeypatch.delenv("LITE_BACKENDS", raising=False)
    if value is None:
        assert allowed_backends() is None
    else:
        monkeypatch.setenv("LITE_BACKENDS", value)
    assert sorted(available_backends(backends)) == allowed
    assert sorted(installed_backends(backends)) == ["host", "null", "opencl", "x86"]
    assert sorted([*available_backends(backends), *left_out_backends(backends)]) == [
        "host",
        "null",
        "opencl",
        "x86",
    ]


def test_automatic_choice_logs_omitted_backends(backends: PluginManager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITE_BACKENDS", "x86,x87")
    session = load(relu(), plugins=backends)
    assert session.devices == ("x86",)
    (left_out,) = (line for line in session.selection_log if line.startswith("opencl:"))
    assert "LITE_BACKENDS=x86,x87" in left_out
    (missing,) = (line for line in session.selection_log if line.startswith("x87:"))
    assert "not installed" in missing
    monkeypatch.setenv("LITE_BACKENDS", "")
    assert load(relu(), plugins=backends).devices == ("host",)


def test_requesting_a_backend_that_is_left_out_is_an_error(
    backends: PluginManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LITE_BACKENDS", "x86")
    with pytest.raises(BackendUnavailableError, match=r"'opencl'.*LITE_BACKENDS=x86"):
        load(relu(), backend="opencl:1", plugins=backends)
    with pytest.raises(BackendUnavailableError, match=r"'arm' is not installed.*LITE_BACKENDS"):
        load(relu(), backend="arm", plugins=backends)
    monkeypatch.setenv("LITE_BACKENDS", "x86,arm")
    with pytest.raises(BackendUnavailableError, match="'arm' is not installed") as caught:
        load(relu(), backend="arm", plugins=backends)
    assert "LITE_BACKENDS" not in str(caught.value)


def test_command_line_shows_backends_that_are_left_out(site: Path) -> None:
    install(site, "good", GOOD)
    install(site, "other", GOOD)
    shown = json.loads(lite(site, "doctor", "--json", LITE_BACKENDS="other").stdout)
    rows = {row["backend"]: row for row in shown["backends"]}
    assert rows["good"]["state"] == "left out"
    assert "LITE_BACKENDS=other" in rows["good"]["about"]
    assert (rows["other"]["state"], rows["host"]["state"]) == ("ready", "ready")
    assert shown["environment"]["LITE_BACKENDS"] == "other"
    assert "LITE_BACKENDS=other" in lite(site, "backends", LITE_BACKENDS="other").stdout


def test_tracing_logs_every_step(site: Path) -> None:
    install(site, "good", GOOD)
    shown = lite(site, "backends", LITE_TRACE_PLUGINS="1", LITE_LOG="", GLOG_v="").stderr
    steps = [
        r"\d+ plugins .*\d+\.\d ms.*'good' \(lite-good 1\.0\)",
        r"'good' \(lite-good 1\.0\): importing lite_good_plugin",
        r"'good' \(lite-good 1\.0\): lite_good_plugin .*\d+\.\d ms",
        r"'good' \(lite-good 1\.0\): .*lite_backends",
        r"'good' \(lite-good 1\.0\): lite_backends .*good .*\d+\.\d ms",
    ]
    assert re.search(r"[\s\S]*?".join(steps), shown), shown
    assert all(re.match(r"D +\d+ ms lite\.plugins: ", line) for line in shown.splitlines())


def test_tracing_names_the_plugin_that_ends_the_process(site: Path) -> None:
    install(site, "fatal", "import os; os.abort()\n")
    shown = lite(site, "demo", LITE_TRACE_PLUGINS="1")
    assert shown.returncode not in range(6)
    traced = shown.stderr.partition("Fatal Python error")[0].strip()
    assert re.search(r"'fatal' \(lite-fatal 1\.0\): .*lite_fatal_plugin$", traced.splitlines()[-1])


def test_without_tracing_nothing_is_logged(site: Path) -> None:
    install(site, "good", GOOD)
    assert lite(site, "backends", LITE_TRACE_PLUGINS="", LITE_LOG="", GLOG_v="").stderr == ""
