"""Examining plugins in separate processes; the commands `lite backends`, `lite doctor` and `lite ops`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from installed_plugins import GOOD, install, lite, plugins_of

from lite_core.errors import InputError
from lite_core.plugins import PluginManager
from lite_tools.examining.plugins import ExaminedPlugin, examine_plugins
from lite_tools.examining.remedies import remedies_of

#: A backend whose search for devices executes ACTION.
DRIVER = """
import ctypes, os, signal, sys, time
from lite_core import KernelBackend, hookimpl

LITE_API_VERSION = 1

def find():
    ACTION

@hookimpl
def lite_backends():
    return [KernelBackend("{name}", device=find)]
"""

#: Imports all plugins while it is asked if it supports a node.
CURIOUS = """
from lite_core import Device, KernelBackend, hookimpl
from lite_core.plugins import default_plugins

LITE_API_VERSION = 1

class Curious(KernelBackend):
    def supports(self, node, device):
        default_plugins().records()
        return super().supports(node, device)

@hookimpl
def lite_backends():
    return [Curious("{name}")]
"""


@pytest.fixture
def driver_site(site: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder to install plugins into, with a cache of its own."""
    monkeypatch.setenv("LITE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
    for name in ("LITE_BACKENDS", "LITE_PLUGINS", "LITE_PROBE_TIMEOUT", "LITE_LOG", "GLOG_v", "LITE_TRACE_PLUGINS"):
        monkeypatch.delenv(name, raising=False)
    return site


def examined(site: Path, *hooks: str) -> dict[str, ExaminedPlugin]:
    """Examine the plugins in a folder; return them by their names."""
    found = examine_plugins(*(hooks or ("lite_backends",)), plugins=plugins_of(site))
    return {plugin.record.name: plugin for plugin in found}


def states(plugins: dict[str, ExaminedPlugin]) -> dict[str, str]:
    return {row["backend"]: row["state"] for plugin in plugins.values() for row in plugin.backends}


CRASHES = [
    ("os.abort()", "SIGABRT"),
    ("ctypes.string_at(0)", "SIGSEGV"),
    ("os._exit(3)", "exit code 3"),
    ("os._exit(0)", "exit code 0"),
    ("os.kill(os.getpid(), signal.SIGKILL)", "SIGKILL"),
    ("time.sleep(1000)", "no answer within 3 s (LITE_PROBE_TIMEOUT)"),
]
rarely = pytest.mark.full("reliability")


@pytest.mark.parametrize(
    ("action", "end"),
    [crash if not number else pytest.param(*crash, marks=rarely) for number, crash in enumerate(CRASHES)],
)
@pytest.mark.parametrize("at_import", [False, pytest.param(True, marks=rarely)])
def test_plugin_that_ends_its_process_is_named_and_the_others_are_shown(
    driver_site: Path, monkeypatch: pytest.MonkeyPatch, action: str, end: str, at_import: bool
) -> None:
    monkeypatch.setenv("LITE_PROBE_TIMEOUT", "3" if "sleep" in action else "60")
    install(driver_site, "first", GOOD)
    source = DRIVER.replace("ACTION", action if not at_import else "return []")
    install(driver_site, "middle", source + (f"\n{action}\n" if at_import else ""))
    install(driver_site, "third", GOOD)
    plugins = examined(driver_site)
    bad = plugins["middle"]
    assert bad.record.label == "'middle' (lite-middle 1.0)"
    assert bad.record.phase == ("import" if at_import else "probe")
    assert end in bad.record.error
    assert any("lite-middle" in remedy for remedy in remedies_of(bad.record, bad.record.failures[0]))
    assert not plugins["first"].record.failed
    assert not plugins["third"].record.failed
    expected = {"first": "ready", "third": "ready"}
    assert states(plugins) == (expected if at_import else {**expected, "middle": bad.backends[0]["state"]})
    if not at_import:
        assert bad.backends[0]["state"] == ("no answer" if "sleep" in action else "died")
        assert end in bad.backends[0]["about"]
    if end.startswith(("SIGABRT", "SIGSEGV", "no answer")):
        assert "lite_middle_plugin.py" in bad.record.failures[0].traceback


@rarely
def test_several_plugins_that_end_their_process(driver_site: Path) -> None:
    install(driver_site, "a", "import os; os._exit(3)\n")
    install(driver_site, "b", DRIVER.replace("ACTION", "os.abort()"))
    install(driver_site, "curious", CURIOUS)
    install(driver_site, "d", "import os; os._exit(4)\n")
    plugins = examined(driver_site)
    assert {name: plugin.record.phase for name, plugin in plugins.items()} == {
        "a": "import",
        "b": "probe",
        "curious": "ready",
        "d": "import",
    }
    assert [plugins[name].record.error.partition(",")[0].split()[-1] for name in "ad"] == ["3", "4"]


@rarely
def test_what_fails_in_the_presence_of_another_plugin_only_is_a_warning(driver_site: Path) -> None:
    install(driver_site, "before", "import os\nos.environ['A_PLUGIN_WAS_HERE'] = 'yes'\n" + GOOD)
    fragile = DRIVER.replace("ACTION", "if 'A_PLUGIN_WAS_HERE' in os.environ: os._exit(3)\n    return []")
    install(driver_site, "fragile", fragile)
    plugins = examined(driver_site)
    assert not plugins["fragile"].record.failed
    (warning,) = plugins["fragile"].record.warnings
    assert "exit code 3" in warning
    assert "lite-before 1.0" in warning


def test_nothing_is_imported_from_the_working_folder(driver_site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = driver_site / "working_folder"
    folder.mkdir()
    for name in (
        "json",
        "lite_core",
        "lite_tools",
        "numpy",
        "sitecustomize",
        "usercustomize",
        "encodings_",
        "re",
        "os",
    ):
        (folder / f"{name}.py").write_text(f"open({str(folder / 'executed')!r}, 'a').write({name!r})\n")
    install(driver_site, "good", GOOD)
    install(folder, "local", GOOD)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [str(folder), "", *sys.path])  # as `python -m` and an interactive Python begin it
    found = [e for site in (driver_site, folder) for e in plugins_of(site).entry_points()]
    plugins = {p.record.name: p for p in examine_plugins("lite_backends", plugins=PluginManager(lambda: found))}
    assert states(plugins) == {"good": "ready"}
    assert "working folder" in plugins["local"].record.error
    assert not (folder / "executed").exists()


@rarely
def test_process_that_a_plugin_has_started_is_ended(driver_site: Path) -> None:
    child = driver_site / "child"
    start = f"open({str(child)!r}, 'w').write(str(os.fork() or time.sleep(1000)))"
    install(driver_site, "parent", DRIVER.replace("ACTION", f"{start}; os._exit(3)"))
    assert examined(driver_site)["parent"].record.error.startswith("it ended its process with exit code 3")
    deadline = time.monotonic() + 60
    while is_alive(int(child.read_text())) and time.monotonic() < deadline:
        os.sched_yield()
    assert not is_alive(int(child.read_text()))


def is_alive(process: int) -> bool:
    """Return True if a process runs: it exists, and is no zombie that waits for its parent to notice its end."""
    try:
        return Path(f"/proc/{process}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("setting", ["0", "-1", "soon", "nan", "inf"])
def test_invalid_timeout_is_an_error(driver_site: Path, monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
    install(driver_site, "good", GOOD)
    monkeypatch.setenv("LITE_PROBE_TIMEOUT", setting)
    with pytest.raises(InputError, match=r"LITE_PROBE_TIMEOUT.*20.*" + setting):
        examined(driver_site)


def test_without_plugins_no_process_is_started(driver_site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", None)
    assert examine_plugins("lite_backends", plugins=PluginManager(list)) == []


# **** what the other hooks provide ****

BROKEN = """
import click, sys
from lite_core import ops
from lite_core.plugins import hookimpl

LITE_API_VERSION = 1

class Item:
    name = "broken"
    suffixes = (".broken",)

    def sniff(self, path):
        raise KeyError("sniffing")

    def read(self, path): ...

    def __call__(self, graph):
        return True

class Helpless(click.Command):
    def get_short_help_str(self, limit=45):
        sys.exit(3)

@hookimpl
def HOOK():
    return [ITEM]
"""


def test_faults_are_found_by_trying_what_plugins_provide(
    driver_site: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """One process examines them all: none of these faults ends it."""
    monkeypatch.setenv("LITE_BACKENDS", "none,leaves,absent,chatty,raises,says-true,exits,misspelt")
    driver = {
        "none": "return None",
        "leaves": "sys.exit(3)",
        "absent": "from lite_core import Unavailable; return Unavailable('unplugged')",
        "chatty": """print('{"end": true}', flush=True); os.write(1, b"written\\n"); return sys.stdin.read() or []""",
        "unwanted": "os.abort()",  # not asked, because it is not in LITE_BACKENDS
    }
    for name, action in driver.items():
        install(driver_site, name, DRIVER.replace("ACTION", action))
    for name, answer in {"raises": "1 / 0", "says-true": "return True", "exits": "raise SystemExit(3)"}.items():
        install(driver_site, name, CURIOUS.replace("default_plugins().records()", answer))
    install(driver_site, "misspelt", CURIOUS.replace("def supports", "def reprot"))
    items = {
        "pass": ("lite_passes", "Item()"),
        "sniff": ("lite_formats", "Item()"),
        "help": ("lite_commands", "Helpless('broken', callback=print)"),
        "seven": ("lite_commands", "7"),
        "odd": ("lite_ops", "ops.define(print, 'Odd', 'x: T -> y: T', infer=len, types={'T': [7]}, domain='test.odd')"),
    }
    for name, (hook, item) in items.items():
        install(driver_site, name, BROKEN.replace("HOOK", hook).replace("ITEM", item))
    greedy = BROKEN.replace('raise KeyError("sniffing")', "return True").replace('"broken"', '"greedy"')
    install(driver_site, "greedy", greedy.replace("HOOK", "lite_formats").replace("ITEM", "Item()"))
    plugins = examined(
        driver_site, "lite_backends", "report", "lite_formats", "lite_ops", "lite_passes", "lite_commands"
    )
    assert states(plugins) == {
        **dict.fromkeys(("none", "leaves", "absent", "chatty"), "unavailable"),
        **dict.fromkeys(("raises", "says-true", "exits", "misspelt"), "ready"),
        "unwanted": "left out",
    }
    faults = {
        "none": ("probe", "returned None"),
        "leaves": ("probe", "SystemExit: 3"),
        "raises": ("supports", "ZeroDivisionError"),
        "says-true": ("supports", "True"),
        "exits": ("supports", "SystemExit: 3"),
        "pass": ("lite_passes", "bool, not a PassResult"),
        "sniff": ("sniff", "KeyError: 'sniffing'"),
        "help": ("lite_commands", "SystemExit: 3"),
        "seven": ("lite_commands", "7 lacks name"),
        "odd": ("lite_ops", "TypeError"),
    }
    assert {name for name, plugin in plugins.items() if plugin.record.failed} == {*faults}
    for name, (phase, message) in faults.items():
        assert plugins[name].record.phase == phase
        assert message in plugins[name].record.error
    warnings = {name: " ".join(plugin.record.warnings) for name, plugin in plugins.items() if plugin.record.warnings}
    assert {*warnings} == {"misspelt", "greedy"}
    assert all(word in warnings["misspelt"] for word in ("'misspelt'", "'reprot'", "'report'"))
    assert "'greedy'" in warnings["greedy"]
    shown = capfd.readouterr()
    assert "written" in shown.err
    assert shown.out == ""


COMMANDS = """
import click
from lite_core.plugins import hookimpl

LITE_API_VERSION = 1

@hookimpl
def lite_commands():
    return [click.Command("greet", callback=print), click.Command("{name}", callback=print, help="Do something")]
"""


@rarely
def test_help_shows_commands_and_plugins_that_failed(driver_site: Path) -> None:
    install(driver_site, "first", COMMANDS)
    install(driver_site, "second", COMMANDS)
    install(driver_site, "fatal", "import os; os._exit(3)\n")
    shown = lite(driver_site, "--help")
    assert shown.returncode == 0
    commands, _, failed = shown.stdout.partition("Plugins that failed")
    assert {"first", "second", "run", "doctor"} <= {*commands.split()}
    assert "greet" not in commands
    for name in ("first", "second", "fatal"):
        assert f"lite-{name} 1.0" in " ".join(failed.split())
    doctor = lite(driver_site, "doctor", "--json")
    errors = {plugin["name"]: plugin["error"] for plugin in json.loads(doctor.stdout)["plugins"]}
    assert "lite-first 1.0" in errors["second"]
    assert "'greet'" in errors["first"]


def test_names_that_two_packages_claim_are_found(driver_site: Path) -> None:
    install(driver_site, "chip", GOOD, distribution="a-chip")
    install(driver_site, "chip", GOOD, distribution="lite-chip")
    install(driver_site, "good", GOOD)
    plugins = examine_plugins("lite_backends", plugins=plugins_of(driver_site))
    assert [(plugin.record.failed, plugin.backends[0]["state"]) for plugin in plugins] == [
        (True, "left out"),
        (True, "left out"),
        (False, "ready"),
    ]
    for plugin in plugins[:2]:
        assert "a-chip 1.0" in plugin.record.error
        assert "lite-chip 1.0" in plugin.record.error
        (failure,) = plugin.record.failures
        assert remedies_of(plugin.record, failure)[0] == f"export LITE_PLUGINS=chip={plugin.record.distribution}"


# **** commands ****


@rarely
def test_commands_show_a_plugin_that_crashes(driver_site: Path) -> None:
    install(driver_site, "fatal", DRIVER.replace("ACTION", "os.abort()"))
    install(driver_site, "worse", "import os; os._exit(3)\n")
    shown = lite(driver_site, "backends")
    assert shown.returncode == 0, shown.stderr
    for part in (
        "x86",
        "'fatal' (lite-fatal 1.0)",
        "SIGABRT",
        "'worse' (lite-worse 1.0)",
        "exit code 3",
        "lite doctor",
    ):
        assert part in shown.stdout
    data = json.loads(lite(driver_site, "backends", "--json").stdout)
    assert {row["backend"]: row["state"] for row in data["backends"]}["fatal"] == "died"
    assert {plugin["name"] for plugin in data["failed_plugins"]} == {"fatal", "worse"}


@rarely
def test_doctor_shows_plugins_that_crash(driver_site: Path) -> None:
    install(driver_site, "fatal", DRIVER.replace("ACTION", "os.abort()"))
    install(driver_site, "worse", "import os; os._exit(3)\n")
    shown = lite(driver_site, "doctor")
    assert shown.returncode == 1
    for part in (
        "SIGABRT",
        "lite_fatal_plugin.py",
        "exit code 3",
        "pip uninstall lite-fatal",
        "pip uninstall lite-worse",
    ):
        assert part in shown.stdout
    assert "x86" in shown.stdout


@rarely
def test_operators_are_listed_without_those_of_a_plugin_that_crashes(driver_site: Path) -> None:
    install(driver_site, "worse", "import os; os._exit(3)\n")
    shown = lite(driver_site, "ops")
    assert shown.returncode == 0
    assert "Conv" in shown.stdout
    assert "'worse' (lite-worse 1.0)" in shown.stdout
    assert lite(driver_site, "ops", "Conv").returncode == 0


@rarely
def test_plugin_that_crashed_while_it_was_examined_is_left_out_by_sessions(driver_site: Path) -> None:
    install(driver_site, "fatal", DRIVER.replace("ACTION", "os.abort()"))
    examined(driver_site)
    program = """
from lite_core import GraphBuilder, load
b = GraphBuilder()
b.output(b.add("Relu", [b.input("x", "float32", [1])]), "y")
print(*load(b.build()).selection_log, sep="\\n")
"""
    path = os.pathsep.join([str(driver_site), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert shown.returncode == 0, shown.stderr
    (line,) = (line for line in shown.stdout.splitlines() if line.startswith("fatal:"))
    assert "lite-fatal 1.0" in line
    assert "'fatal'" in shown.stderr


def test_failure_of_a_command_names_its_plugin(driver_site: Path) -> None:
    install(
        driver_site,
        "odd",
        BROKEN.replace("HOOK", "lite_commands").replace("ITEM", "click.Command('odd', callback=fail)")
        + "\ndef fail(): return {}['x']\n",
    )
    shown = lite(driver_site, "odd")
    assert shown.returncode == 5
    assert "the command 'odd' of plugin 'odd' (lite-odd 1.0) failed with KeyError: 'x'" in shown.stderr
    assert "next: lite plugins lite-odd" in shown.stderr
