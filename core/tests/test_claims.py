"""Names that two installed packages claim, and the user's choice between them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from installed_plugins import GOOD, install, plugins_of
from test_plugin_isolation import EntryPoint, operator, plugin

from lite_core import ops
from lite_core.builder import GraphBuilder
from lite_core.errors import BackendUnavailableError, GraphError, ModelFormatError, PluginError
from lite_core.formats import read_model
from lite_core.ir import DType, Graph, Node, TensorType, Value
from lite_core.plugins import PluginManager, available_backends
from lite_core.session import load

#: A backend whose device has a higher score than that of GOOD.
BETTER = (
    GOOD.replace('KernelBackend("{name}")', 'KernelBackend("{name}", device=find)')
    .replace("backend =", "find = lambda: [Device('{name}', name='better', score=100)]\nbackend =")
    .replace("import hookimpl", "import hookimpl\nfrom lite_core.backend import Device")
)

FORMAT = """
from lite_core.builder import GraphBuilder
from lite_core.plugins import hookimpl

LITE_API_VERSION = 1

class Format:
    name = "toy"
    suffixes = (".toy",)

    def sniff(self, path):
        return path.suffix == ".toy"

    def read(self, path):
        b = GraphBuilder("{name}")
        b.output(b.add("Neg", [b.input("x", "float32", [1])]), "y")
        return b.build()

@hookimpl
def lite_formats():
    return [Format()]
"""

OPERATOR = """
from lite_core import ops
from lite_core.plugins import hookimpl

LITE_API_VERSION = 1

TWICE = ops.define(lambda x: x + x, "Twice", "x: T -> y: T", types={"T": ops.find("Relu").types["T"]},
                   infer=lambda inference: [inference.shape(0)], domain="DOMAIN")

@hookimpl
def lite_ops():
    return [TWICE]
"""


def relu() -> Graph:
    b = GraphBuilder("relu")
    b.output(b.add("Relu", [b.input("x", "float32", [2])]), "y")
    return b.build()


@pytest.fixture
def rivals(site: Path, monkeypatch: pytest.MonkeyPatch) -> PluginManager:
    """Two packages that claim the backend "chip", in alphabetical order, and one with another backend."""
    for name in ("LITE_BACKEND", "LITE_BACKENDS", "LITE_PLUGINS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LITE_CONFIG_DIR", str(site / "configuration"))
    monkeypatch.setenv("LITE_CACHE_DIR", "off")
    install(site, "chip", GOOD, distribution="a-chip")
    install(site, "chip", BETTER, distribution="lite-chip")
    install(site, "good", GOOD)
    return plugins_of(site)


def test_backend_that_two_packages_claim_is_an_error_that_lists_both(
    rivals: PluginManager, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(BackendUnavailableError) as caught:
        load(relu(), backend="chip", plugins=rivals)
    for part in ("'chip'", "a-chip 1.0", "lite-chip 1.0", "LITE_PLUGINS=chip=lite-chip"):
        assert part in str(caught.value)
    assert "a-chip 1.0" in caplog.text
    failed = {record.distribution: record.error for record in rivals.records() if record.failed}
    assert {*failed} == {"a-chip", "lite-chip"}
    assert all("a-chip 1.0" in error and "lite-chip 1.0" in error for error in failed.values())


def test_automatic_choice_uses_neither(rivals: PluginManager) -> None:
    session = load(relu(), plugins=rivals)
    assert session.devices == ("good",)
    (line,) = (line for line in session.selection_log if line.startswith("chip:"))
    assert "a-chip 1.0" in line
    assert "lite-chip 1.0" in line


@pytest.mark.parametrize("chosen", ["a-chip", "lite-chip"])
@pytest.mark.parametrize("by", ["LITE_PLUGINS", "configuration"])
def test_user_chooses_the_package(
    rivals: PluginManager, site: Path, monkeypatch: pytest.MonkeyPatch, chosen: str, by: str
) -> None:
    if by == "LITE_PLUGINS":
        monkeypatch.setenv("LITE_PLUGINS", f"other=lite-other, chip={chosen}")
    else:
        (site / "configuration").mkdir(mode=0o700)
        (site / "configuration/config.json").write_text(json.dumps({"plugins": {"chip": chosen}}))
    session = load(relu(), backend="chip", plugins=rivals)
    assert session.devices == ("chip",)
    assert any("better" in line for line in load(relu(), plugins=rivals).selection_log) == (chosen == "lite-chip")
    assert not any(record.failed for record in rivals.records())
    (other,) = (record for record in rivals.records() if record.distribution not in (chosen, "lite-good"))
    assert chosen in " ".join(other.warnings)


def test_name_given_to_a_package_is_not_for_another(rivals: PluginManager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITE_PLUGINS", "good=lite-better,chip=lite-chip")
    with pytest.raises(BackendUnavailableError, match="'good' is installed, but .*lite-better.*lite-good 1.0"):
        load(relu(), backend="good", plugins=rivals)
    assert "good" not in available_backends(rivals)


@pytest.mark.parametrize("setting", ["nonsense", "=", ",,", "chip=", "chip==lite-chip"])
def test_invalid_setting_chooses_nothing(rivals: PluginManager, monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
    monkeypatch.setenv("LITE_PLUGINS", setting)
    with pytest.raises(BackendUnavailableError, match="'chip'"):
        load(relu(), backend="chip", plugins=rivals)


def test_strict_plugins_raise(rivals: PluginManager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITE_STRICT_PLUGINS", "1")
    with pytest.raises(PluginError, match=r"chip.*a-chip 1\.0.*lite-chip 1\.0"):
        available_backends(rivals)


def test_format_that_two_packages_claim(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(site, "toy", FORMAT, distribution="a-toy")
    install(site, "toy", FORMAT.replace("{name}", "right"), distribution="lite-toy")
    model = site / "model.toy"
    model.write_text("a model")
    with pytest.raises(ModelFormatError, match=r"a-toy 1\.0.*lite-toy 1\.0"):
        read_model(model, plugins=plugins_of(site))
    monkeypatch.setenv("LITE_PLUGINS", "toy=lite-toy")
    assert read_model(model, plugins=plugins_of(site)).name == "right"


def test_operator_that_two_packages_claim(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    domain = "test.claims"
    install(site, "twice", OPERATOR.replace("DOMAIN", domain), distribution="a-twice")
    install(site, "twice", OPERATOR.replace("DOMAIN", domain), distribution="lite-twice")
    plugins = plugins_of(site)
    x, y = (Value(name, TensorType(DType.FLOAT32, (1,))) for name in "xy")
    graph = Graph("twice", inputs=[x], outputs=[y], nodes=[Node("Twice", [x], [y], domain=domain)])
    assert len(plugins.records()) == 2
    with pytest.raises(GraphError, match=r"'test\.claims\.Twice'.*a-twice 1\.0.*lite-twice 1\.0"):
        load(graph, plugins=plugins)
    monkeypatch.setenv("LITE_PLUGINS", f"{domain}.Twice=lite-twice")
    try:
        assert load(graph, plugins=plugins_of(site)).run(x=[2])["y"].tolist() == [4]
    finally:
        ops.registry.REGISTRY.pop((domain, "Twice"), None)


def test_equal_names_of_plugins_are_no_conflict(site: Path) -> None:
    install(site, "twin", GOOD.replace("{name}", "first"), distribution="lite-a-twin")
    install(site, "twin", GOOD.replace("{name}", "second"), distribution="lite-b-twin")
    plugins = plugins_of(site)
    assert {"first", "second"} < {*available_backends(plugins)}
    assert not any(record.failed for record in plugins.records())


@pytest.mark.parametrize("names", ["a", "ab"])
def test_operator_that_a_package_has_twice_is_not_a_choice_between_packages(names: str) -> None:
    """By one entry point, or by two to the same module."""
    given = plugin(lite_ops=[operator("Doubled"), *([operator("Doubled")] if names == "a" else [])])
    entries = [EntryPoint(name, lambda: given) for name in names]
    for entry in entries:
        entry.dist.name = "lite-a"
    plugins = PluginManager(lambda: entries)  # type: ignore[arg-type,return-value]
    assert not plugins.ask("lite_ops")
    labels = " and ".join(f"'{name}' (lite-a 1.0)" for name in names)
    message = f"operator 'test.isolation.Doubled': its package provides it 2 times, by {labels}: remove all but one"
    assert {record.error for record in plugins.records()} == {message}
