"""The command `lite plugins`: every failure of a plugin with a remedy that fits it, and what the others provide."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from installed_plugins import GOOD, install, lite, plugins_of

from lite_core.plugins import PluginRecord
from lite_core.plugins.record import PluginFailure
from lite_core.plugins.versions import api_problem
from lite_tools.cli import plugin_tables, plugins
from lite_tools.commands import printing
from lite_tools.examining.packages import of_package, plugin_rows
from lite_tools.examining.plugins import examine_plugins
from lite_tools.examining.remedies import remedies_of

SEVERAL = """
import click
from lite_core import KernelBackend, hookimpl

LITE_API_VERSION = 1

class Broken(KernelBackend):
    def probe(self):
        return {}["driver"]

class Format:
    name, suffixes = "several", (".several",)
    def sniff(self, path): return 1 / 0
    def read(self, path): ...

@hookimpl
def lite_backends():
    return [Broken("{name}"), 7]

@hookimpl
def lite_formats():
    return [Format()]

@hookimpl
def lite_commands():
    return [click.Command("{name}-now", callback=print)]
"""
BROKEN = {
    "absent": "import llvmlyte\n",
    "wrong": "def lite_backends(: pass\n",
    "raising": "raise RuntimeError('no licence')\n",
    "future": "LITE_API_VERSION = 7\n",
    "unversioned": "x = 1\n",
}


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, dict[str, Any]]]:
    """The rows of several broken plugins and a good one, by name; two packages claim the backend "chip"."""
    site = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(site))
        patch.setenv("LITE_CACHE_DIR", "off")
        for name in ("LITE_BACKENDS", "LITE_PLUGINS", "LITE_STRICT_PLUGINS"):
            patch.delenv(name, raising=False)
        yield examined(site)


def examined(site: Path) -> dict[str, dict[str, Any]]:
    install(site, "several", SEVERAL)
    for name, source in BROKEN.items():
        install(site, name, source, requires=["llvmlyte>=0.44", "lite-core>=0.1,<0.2"])
    install(site, "newer", "raise RuntimeError('imported')\n", requires=["lite-core>=9"])
    install(site, "chip", GOOD, distribution="a-chip")
    install(site, "chip", GOOD, distribution="lite-chip")
    install(site, "good", GOOD, requires=["lite-core>=0.1,<0.2", "numpy"])
    manager = plugins_of(site)
    hooks = ("lite_backends", "lite_formats", "lite_commands")
    found = plugin_rows(examine_plugins(*hooks, plugins=manager, first="lite-good"), manager.entry_points())
    return {row["name"] if row["name"] != "chip" else row["distribution"]: row for row in found}


def test_every_failure_is_listed_with_its_traceback_and_a_remedy_that_fits(rows: dict[str, dict[str, Any]]) -> None:
    several = rows["several"]
    assert [failure["phase"] for failure in several["failures"]] == ["lite_backends", "probe", "sniff"]
    assert "7 lacks" in several["failures"][0]["error"]
    assert "lite_several_plugin.py" in several["failures"][1]["traceback"]
    assert "ZeroDivisionError" in several["failures"][2]["traceback"]
    first = {name: [failure["remedies"][0] for failure in row["failures"]] for name, row in rows.items()}
    assert first["absent"] == ['pip install "llvmlyte>=0.44"']
    assert first["future"] == ["pip install --upgrade lite-core"]
    assert first["newer"] == ["pip install --upgrade lite-newer"]
    assert rows["newer"]["failures"][0]["remedies"][1] == 'pip install "lite-core>=9"'
    assert first["a-chip"] == ["export LITE_PLUGINS=chip=a-chip"]
    assert first["lite-chip"] == ["export LITE_PLUGINS=chip=lite-chip"]
    assert first["good"] == []
    for name in ("several", "wrong", "raising", "unversioned"):
        assert all(remedy.startswith(f"report it to the authors of lite-{name}") for remedy in first[name])
    assert "SyntaxError" in rows["wrong"]["failures"][0]["traceback"]


def test_rows_say_what_a_plugin_implements_and_needs(rows: dict[str, dict[str, Any]]) -> None:
    good, several = rows["good"], rows["several"]
    assert next(iter(rows)) == "good"  # it was to be the first
    assert (good["api_version"], good["requires"], good["hooks"]) == (1, "lite-core>=0.1,<0.2", ["lite_backends"])
    assert good["provides"] == {"lite_backends": ["good"]}
    assert good["seconds"].keys() == {"import", "lite_backends"}
    assert several["provides"]["lite_commands"] == ["several-now"]
    assert several["hooks"] == ["lite_backends", "lite_formats", "lite_commands"]
    assert several["requires"] == ""
    assert rows["raising"]["seconds"].keys() == {"import"}


def test_table_fits_a_terminal_of_80_columns(
    rows: dict[str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr(printing.console, "width", 80)
    plugin_tables.print_plugins([*rows.values()])
    for row in rows.values():
        plugin_tables.print_plugin(row)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()
    assert max(map(len, lines)) <= 80
    assert all(line == line.rstrip() for line in lines)
    assert any("several-now" in line for line in lines)


def test_package_is_found_by_its_name_or_that_of_its_plugin() -> None:
    records = [PluginRecord("chip", "Lite_Chip", "1.0", "lite_chip"), PluginRecord("other", "lite-other", "1.0", "x")]
    assert of_package(records, "lite-chip") == of_package(records, "chip") == records[:1]
    result = CliRunner().invoke(plugins.command, ["lite-toools"], standalone_mode=False)
    assert isinstance(result.exception, click.BadParameter)
    assert "did you mean lite-tools?" in str(result.exception)


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        ("ModuleNotFoundError: No module named 'yaml'", "pip install pyyaml"),
        ("ModuleNotFoundError: No module named 'lite_odd.kernels'", "report it to the authors of lite-odd"),
        ("ModuleNotFoundError: No module named 'lite_odd'", "pip install --force-reinstall lite-odd"),
        ("ModuleNotFoundError: No module named 'lite_core.gone'", "pip install --upgrade lite-odd lite-core"),
        ("ImportError: cannot import name 'Gone' from 'lite_core' (x)", "pip install --upgrade lite-odd lite-core"),
        (
            "it ended its process by SIGABRT (Aborted), while it was imported",
            "pip install --upgrade lite-odd lite-core",
        ),
        ("RuntimeError: no", "report it to the authors of lite-odd"),
    ],
)
def test_remedy_fits_the_error(error: str, remedy: str) -> None:
    record = PluginRecord("odd", "lite-odd", "1.0", "lite_odd.plugin")
    assert remedies_of(record, PluginFailure("import", error))[0].startswith(remedy)


@pytest.mark.full("reliability")
def test_command_lists_the_plugins_and_describes_one(site: Path) -> None:
    install(site, "raising", BROKEN["raising"])
    shown = lite(site, "plugins", "--json")
    listed = {row["name"]: row for row in json.loads(shown.stdout)["plugins"]}
    assert shown.returncode == 1
    assert listed["raising"]["failures"][0]["error"] == "RuntimeError: no licence"
    tools = listed["tools"]
    assert "plugins" in tools["provides"]["lite_commands"]
    assert tools["other_entry_points"]["lite.tools"].keys() >= {"main", "convert"}


@pytest.mark.full("reliability")
def test_command_shows_failures_and_one_package_with_its_tracebacks(site: Path) -> None:
    install(site, "raising", BROKEN["raising"])
    shown = lite(site, "plugins")
    assert shown.returncode == 1
    assert "failed at import: RuntimeError: no licence" in shown.stdout
    assert "next: pip uninstall lite-raising\n  or: report it to the authors of lite-raising" in shown.stdout
    assert "Traceback" not in shown.stdout
    assert "lite plugins lite-raising" in shown.stdout
    alone = lite(site, "plugins", "lite-raising")
    assert alone.returncode == 1
    assert "lite_raising_plugin.py" in alone.stdout
    assert "lite-x86" not in alone.stdout
    assert lite(site, "plugins", "lite-tools").returncode == 0


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        (None, "LITE_API_VERSION = 1 is missing"),
        ("one", "LITE_API_VERSION = 'one' must be LITE_API_VERSION = 1"),
        ((3, 1), "LITE_API_VERSION = (3, 1) must be LITE_API_VERSION = 1"),
    ],
)
def test_wrong_version_of_the_contract_is_not_called_missing(stated: object, said: str) -> None:
    record = PluginRecord("acme", "lite-acme", "1.0", "acme")
    first, *_ = remedies_of(record, PluginFailure("version", api_problem(stated)))
    assert first.endswith(said)
