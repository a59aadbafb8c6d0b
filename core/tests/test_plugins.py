"""Discovery, loading, isolation and versions of installed plugins.

Each plugin is a module and the metadata of a distribution in a folder on ``sys.path``, see
:mod:`installed_plugins`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from installed_plugins import GOOD, install, lite, plugins_of

from lite_core.errors import PluginError
from lite_core.kernel_backend import KernelBackend
from lite_core.plugins import PluginManager, available_backends, plugins_with

BROKEN = {
    "import_error": "import a_module_that_does_not_exist\n",
    "exit_on_import": "raise SystemExit(3)\n",
    "wrong_version": GOOD.replace("LITE_API_VERSION = 1", "LITE_API_VERSION = 99"),
    "no_version": GOOD.replace("LITE_API_VERSION = 1", ""),
    "raising_hook": GOOD.replace("return [backend]", "raise RuntimeError('no driver today')"),
    "wrong_hook": GOOD.replace("def lite_backends():", "def lite_backends(an_unknown_argument):"),
    "unknown_hook": GOOD.replace("def lite_backends():", "def lite_bakcends():"),
    "returns_none": GOOD.replace("return [backend]", "return 7"),
    "not_a_backend": GOOD.replace("return [backend]", "return [object()]"),
    "builtin_name": GOOD.replace('KernelBackend("{name}")', 'KernelBackend("host")'),
    "plugin_error": GOOD.replace(
        "return [backend]", "from lite_core.errors import PluginError; raise PluginError('no')"
    ),
}


def test_working_plugin_is_ready(site: Path) -> None:
    install(site, "good", GOOD)
    plugins = plugins_of(site)
    assert {"host", "null", "good"} == set(available_backends(plugins))
    (record,) = plugins.records()
    assert (record.name, record.distribution, record.version, record.phase) == (
        "good",
        "lite-good",
        "1.0",
        "ready",
    )
    assert record.provides == {"lite_backends": ["good"]}


def test_discovery_imports_nothing(site: Path) -> None:
    install(site, "good", GOOD)
    plugins = plugins_of(site)
    assert [r.phase for r in plugins.discover()] == ["discovered"]
    assert "lite_good_plugin" not in sys.modules


@pytest.mark.parametrize(
    ("name", "phase", "message"),
    [
        ("import_error", "import", "a_module_that_does_not_exist"),
        ("exit_on_import", "import", "SystemExit"),
        ("wrong_version", "version", "API 99"),
        ("no_version", "version", "LITE_API_VERSION"),
        ("raising_hook", "lite_backends", "RuntimeError: no driver today"),
        ("wrong_hook", "register", "an_unknown_argument"),
        ("unknown_hook", "register", "lite_bakcends"),
        ("returns_none", "lite_backends", "TypeError"),
        ("not_a_backend", "lite_backends", "name, probe, supports, compile"),
        ("builtin_name", "lite_backends", "'host' is taken by lite-core"),
        ("plugin_error", "lite_backends", "PluginError: no"),
    ],
)
def test_broken_plugin_is_recorded_and_does_not_affect_others(site: Path, name: str, phase: str, message: str) -> None:
    install(site, "good", GOOD)
    install(site, name, BROKEN[name], distribution=f"lite-z-{name.replace('_', '-')}")
    plugins = plugins_of(site)
    assert "good" in available_backends(plugins)
    broken = next(r for r in plugins.records() if r.name == name)
    assert broken.failed
    assert broken.phase == phase
    assert message in broken.error
    good = next(r for r in plugins.records() if r.name == "good")
    assert not good.failed


def test_many_broken_plugins_at_once(site: Path) -> None:
    install(site, "good", GOOD)
    for name, source in BROKEN.items():
        install(site, name, source, distribution=f"lite-z-{name.replace('_', '-')}")
    plugins = plugins_of(site)
    assert set(available_backends(plugins)) == {"host", "null", "good"}
    assert sorted(r.name for r in plugins.records() if r.failed) == sorted(BROKEN)


def test_tracebacks_are_kept(site: Path) -> None:
    install(site, "import_error", BROKEN["import_error"])
    (record,) = plugins_of(site).records()
    (failure,) = record.failures
    assert failure.phase == "import"
    assert "ModuleNotFoundError" in failure.traceback
    assert "lite_import_error_plugin.py" in failure.traceback


def test_failures_of_a_plugin_are_listed(site: Path) -> None:
    install(site, "twice", GOOD.replace("return [backend]", "return [object(), backend, 7]"))
    plugins = plugins_of(site)
    assert "twice" in available_backends(plugins)
    (record,) = plugins.records()
    assert [failure.phase for failure in record.failures] == ["lite_backends"] * 2
    assert "<object object" in record.failures[0].error
    assert "7 lacks name" in record.failures[1].error
    assert all(failure.error in record.error for failure in record.failures)


@pytest.mark.parametrize("name", [n for n in BROKEN if n != "not_a_backend"])
def test_strict_plugins_raise(site: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("LITE_STRICT_PLUGINS", "1")
    install(site, name, BROKEN[name])
    plugins = plugins_of(site)
    with pytest.raises(PluginError, match=name):
        available_backends(plugins)
    if name == "raising_hook":  # it is called again, and fails again
        with pytest.raises(PluginError, match=name):
            available_backends(plugins)


def test_plugin_can_be_registered_explicitly() -> None:
    class Plugin:
        LITE_API_VERSION = 1

    plugins = PluginManager(list)
    assert plugins.register(Plugin(), "mine").phase == "ready"
    assert [r.name for r in plugins.records()] == ["mine"]


def test_plugins_with_has_exactly_the_given_backends() -> None:
    first, second = KernelBackend("first"), KernelBackend("second")
    found = available_backends(plugins_with(first, second))
    assert list(found) == ["host", "null", "first", "second"]
    assert found["first"] is first
    assert list(available_backends(plugins_with())) == ["host", "null"]


@pytest.mark.parametrize(
    ("backends", "message"),
    [
        ([object()], "name, probe, supports, compile"),
        ([KernelBackend("host")], "'host' .*lite-core"),
        ([KernelBackend("twin"), KernelBackend("twin")], "'twin'"),
    ],
)
def test_plugins_with_refuses_invalid_backends(backends: list[Any], message: str) -> None:
    with pytest.raises(PluginError, match=message):
        plugins_with(*backends)


OPS = """
from lite_core import ops
from lite_core.plugins import hookimpl

LITE_API_VERSION = 1


def twice(x):
    return x + x


@hookimpl
def lite_ops():
    return [ops.define(twice, "Twice", "x: T -> y: T", types={"T": ops.find("Relu").types["T"]},
                       infer=lambda inference: [inference.shape(0)], domain="DOMAIN")]
"""


def test_a_plugin_extends_the_opset(site: Path) -> None:
    from lite_core.builder import GraphBuilder
    from lite_core.session import load

    install(site, "extra_ops", OPS.replace("DOMAIN", "example.extra"))
    plugins = plugins_of(site)
    assert not any(r.failed for r in plugins.records())
    b = GraphBuilder()
    b.output(b.add("Twice", [b.input("x", "float32", [1])], domain="example.extra"), "y")
    assert load(b.build(), plugins=plugins).run(x=[3.0])["y"].tolist() == [6]


def test_plugin_may_not_change_operators_of_lite(site: Path) -> None:
    install(site, "bad_ops", OPS.replace("DOMAIN", ""))
    (record,) = plugins_of(site).records()
    assert record.phase == "lite_ops"
    assert "Twice" in record.error


def test_command_line_with_broken_plugins(site: Path) -> None:
    install(site, "good", GOOD)
    install(site, "import_error", BROKEN["import_error"])
    shown = lite(site, "backends", "--json")
    data = json.loads(shown.stdout)
    assert {"host", "null", "good"} <= {row["backend"] for row in data["backends"]}
    assert [p["name"] for p in data["failed_plugins"]] == ["import_error"]
    doctor = lite(site, "doctor")
    assert doctor.returncode == 1
    assert "a_module_that_does_not_exist" in doctor.stdout
    assert "next: pip install a-module-that-does-not-exist" in doctor.stdout


REPORTING = """
from lite_core.kernel_backend import KernelBackend
from lite_core.plugins import hookimpl

LITE_API_VERSION = 1

class Reporting(KernelBackend):
    def report(self):
        yield "library: looked in [/opt]"
        ANSWER

@hookimpl
def lite_backends():
    return [Reporting("{name}")]
"""


def test_doctor_shows_what_backends_report(site: Path) -> None:
    install(site, "good", GOOD)
    install(site, "chatty", REPORTING.replace("ANSWER", "yield 7"))
    install(site, "broken", REPORTING.replace("ANSWER", "raise RuntimeError('no driver today')"))
    shown = lite(site, "doctor", "--json")
    assert shown.returncode == 0, shown.stderr
    reports = json.loads(shown.stdout)["reports"]
    assert reports["chatty"] == ["library: looked in [/opt]", "7"]
    (failure,) = reports["broken"]
    assert "RuntimeError: no driver today" in failure
    assert "good" not in reports
    assert "\nchatty\n  library: looked in [/opt]\n  7\n" in lite(site, "doctor").stdout


def test_fifty_plugins_are_discovered_without_importing_one(site: Path) -> None:
    for number in range(50):
        install(site, f"p{number}", "raise RuntimeError('imported')\n")
    records = plugins_of(site).discover()
    assert len(records) == 50
    assert not any(r.failed for r in records)
