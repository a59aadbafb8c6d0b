"""Systems on which lite-x86 is not tested: nothing runs there without a request, and every place says why.

The system is simulated at the one place where the backend asks for it; everything else is Linux.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lite_core import load
from lite_core.backend import Unavailable
from lite_core.builder import GraphBuilder
from lite_core.errors import BackendUnavailableError
from lite_core.ir import Graph
from lite_core.plugins import plugins_with
from lite_x86 import detect, systems
from lite_x86.backend import X86Backend

pytestmark = pytest.mark.skipif(not detect.is_x86_64(), reason="not an x86-64 processor")

UNTESTED = ["win32", "darwin", "freebsd14"]


def negation() -> Graph:
    b = GraphBuilder("negation")
    b.output(b.add("Neg", [b.input("x", "float32", [3])]), "y")
    return b.build()


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Function that lets this be another system."""
    monkeypatch.delenv(systems.VARIABLE, raising=False)
    return lambda name: monkeypatch.setattr(systems, "system", lambda: name)


@pytest.mark.parametrize("name", UNTESTED)
def test_a_session_on_an_untested_system_notes_why_host_runs_it(name: str, on: Any) -> None:
    on(name)
    session = load(negation(), plugins=plugins_with(X86Backend()))
    assert session.devices == ("host",)
    (note,) = session.notes
    for expected in ("x86", "Linux only", systems.VARIABLE, "lite-onnxruntime"):
        assert expected in note
    assert session.selection_log.count(note) == 1
    np.testing.assert_array_equal(session.run({"x": np.arange(3, dtype=np.float32)})["y"], [0, -1, -2])


@pytest.mark.parametrize("name", UNTESTED)
def test_naming_the_backend_on_an_untested_system_is_an_error_with_the_remedy(name: str, on: Any) -> None:
    on(name)
    with pytest.raises(BackendUnavailableError, match=rf"Linux only.*{systems.VARIABLE}=1"):
        load(negation(), backend="x86", plugins=plugins_with(X86Backend()))
    with pytest.raises(BackendUnavailableError, match=systems.VARIABLE):
        X86Backend().machine()
    assert X86Backend().report() == []


@pytest.mark.parametrize(("name", "title"), [("win32", "Windows"), ("darwin", "macOS")])
def test_what_is_known_of_a_system_is_said(name: str, title: str) -> None:
    answer = systems.untested(name, {})
    assert isinstance(answer, Unavailable)
    assert f"never ran on {title}; " in answer.reason
    assert systems.untested(name, {systems.VARIABLE: "0"}) == answer


def test_the_variable_makes_the_backend_experimental(on: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    on("darwin")
    monkeypatch.setenv(systems.VARIABLE, "1")
    session = load(negation(), backend="x86", plugins=plugins_with(backend := X86Backend()))
    assert session.devices == ("x86",)
    assert session.notes == ()
    np.testing.assert_array_equal(session.run({"x": np.ones(3, np.float32)})["y"], [-1, -1, -1])
    assert any(line.startswith("system: experimental: ") and "macOS" in line for line in backend.report())


def test_linux_is_tested() -> None:
    assert systems.untested("linux", {}) is None
    assert systems.experimental("linux") == ""


def test_the_command_line_shows_the_reason(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("from lite_x86 import systems\nsystems.system = lambda: 'win32'\n")
    path = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path, "LITE_BACKENDS": "x86"}
    for command in ("backends", "doctor"):
        arguments = [sys.executable, "-m", "lite_core", command, "--json"]
        shown = subprocess.run(arguments, capture_output=True, text=True, env=environment, check=True)
        (row,) = (row for row in json.loads(shown.stdout)["backends"] if row["backend"] == "x86")
        assert "Windows" in row["about"]
        assert systems.VARIABLE in row["about"]
