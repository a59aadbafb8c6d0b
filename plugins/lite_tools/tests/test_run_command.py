"""``lite run``: output of profiles."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from measuring import Measuring, network

from lite_core.plugins import plugins_with
from lite_core.session import Session, load
from lite_tools.cli.run import command


@pytest.fixture
def measured() -> Session:
    return load(network(), backend="measuring", fallback="never", plugins=plugins_with(Measuring()))


def test_profile_is_shown(measured: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lite_tools.cli.run.load", lambda *_, **__: measured)
    plain = CliRunner().invoke(command, ["model", "--shape", "2x3"])
    shown = CliRunner().invoke(command, ["model", "--shape", "2x3", "--profile"])
    assert plain.exit_code == shown.exit_code == 0, shown.output
    assert "exp_relu" not in plain.output
    assert "exp_relu" in shown.output
    assert "Exp+Relu" in shown.output
    as_json = CliRunner().invoke(command, ["model", "--shape", "2x3", "--json"])
    assert json.loads(as_json.output)["kernels"][0]["peak_share"] == 0.25


def test_an_open_batch_is_one(measured: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lite_tools.cli.run.load", lambda *_, **__: measured)
    shown = CliRunner().invoke(command, ["model"])
    assert shown.exit_code == 0, shown.output
    assert "float32[1, 3]" in shown.output
