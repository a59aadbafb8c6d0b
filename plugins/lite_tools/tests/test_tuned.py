"""``lite tune`` and conversions with a backend that measures its machine."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from test_convert import Toy, network

from lite_core import convert
from lite_core.plugins import PluginManager, plugins_with
from lite_tools.cli import lite, tune
from lite_tools.tuned import HasTuning, backends_with_tuning, measure_missing


class TunedToy(Toy):
    """A backend whose machine takes a moment to measure."""

    measured = 0

    def tuning(self) -> Mapping[str, Any]:
        return {"speed": 3.0 * self.measured, "source": "measured" if self.measured else "defaults"}

    def tuning_lines(self) -> Sequence[str]:
        return [f"speed: {self.tuning()['speed']}"]

    def measure_tuning(self, *, again: bool = True) -> None:
        self.measured += again or not self.measured

    def forget_tuning(self) -> bool:
        existed, self.measured = bool(self.measured), 0
        return existed


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> TunedToy:
    """The only backend with a tuning that the command finds."""
    backend = TunedToy()
    use(plugins_with(backend), monkeypatch)
    return backend


def use(plugins: PluginManager, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the command find these plugins."""
    monkeypatch.setattr(tune, "default_plugins", lambda: plugins)


def run(*arguments: str) -> str:
    result = CliRunner().invoke(lite, ["tune", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_command(backend: TunedToy) -> None:
    assert isinstance(backend, HasTuning)
    assert not isinstance(Toy(), HasTuning)
    assert "speed: 0.0" in run("--show")
    assert backend.measured == 0
    assert "speed: 3.0" in run()
    assert json.loads(run("--json"))["backends"]["toy"] == {"speed": 6.0, "source": "measured", "removed": False}
    assert "(removed)" in run("--clear")
    assert "(nothing was stored)" in run("--clear")


@pytest.mark.parametrize(("backend", "reason"), [(Toy(), "no installed backend"), (TunedToy(absent=True), "its chip")])
def test_machine_that_cannot_be_measured(backend: Toy, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use(plugins_with(backend), monkeypatch)
    result = CliRunner().invoke(lite, ["tune"])
    assert result.exit_code == 3
    assert reason in result.output


@pytest.mark.parametrize(("targets", "measured"), [(["toy"], 1), (["auto"], 1), (["other"], 0)])
def test_only_targets_are_measured(targets: list[str], measured: int) -> None:
    backend = TunedToy()
    plugins = plugins_with(backend)
    measure_missing(targets, plugins)
    measure_missing(targets, plugins)
    assert backend.measured == measured
    assert backends_with_tuning(plugins) == ({"toy": backend}, {})


@pytest.mark.parametrize(("prepare", "measured"), [(True, 1), (False, 0)])
def test_conversion_measures_what_was_never_measured(prepare: bool, measured: int, tmp_path: Path) -> None:
    backend = TunedToy()
    for name in ("one.lite", "two.lite"):
        convert(network(), tmp_path / name, "toy", plugins=plugins_with(backend), prepare=prepare)
    assert backend.measured == measured
