"""Plugins that fail after discovery: while loading, in hooks, as readers, as passes."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from lite_core.builder import GraphBuilder
from lite_core.errors import InputError, ModelFormatError, PassError, PluginError
from lite_core.formats import read_model
from lite_core.ir import Graph
from lite_core.kernel_backend import KernelBackend
from lite_core.passes import PassResult
from lite_core.plugins import PluginManager, available_backends, hookimpl
from lite_core.session import load


class EntryPoint:
    """An entry point that is loaded by calling a function."""

    def __init__(self, name: str, load: Any) -> None:
        self.name = name
        self.value = f"{name}_module"
        self.dist = SimpleNamespace(name=f"lite-{name}", version="1.0", requires=None)
        self.load = load


def plugins_of(**loaders: Any) -> PluginManager:
    entries: Any = [EntryPoint(name, load) for name, load in loaders.items()]
    return PluginManager(lambda: entries)


def plugin(**hooks: Any) -> Any:
    """Return a module with hooks, each given by its result or by a function that returns the result."""
    module = ModuleType("a_plugin")
    module.LITE_API_VERSION = 1  # type: ignore[attr-defined]
    for name, given in hooks.items():
        function = given if callable(given) else (lambda given=given: given)

        def bare(function: Any = function) -> Any:
            return function()

        bare.__name__ = name
        setattr(module, name, hookimpl(bare))
    return module


def good() -> Any:
    return plugin(lite_backends=[KernelBackend("good")])


class NoVersion:
    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("boom")


def raises(error: BaseException) -> Any:
    def function() -> Any:
        raise error

    return function


def half_a_list() -> Iterator[Any]:
    yield KernelBackend("half")
    raise RuntimeError("the rest is missing")


class NamelessBackend(KernelBackend):
    @property
    def name(self) -> str:
        raise RuntimeError("no name today")

    @name.setter
    def name(self, name: str) -> None:
        pass


@pytest.mark.parametrize(
    ("loader", "phase"),
    [
        (NoVersion, "version"),
        (raises(SystemExit(3)), "import"),
        (lambda: plugin(lite_backends=raises(SystemExit(3))), "lite_backends"),
        (lambda: plugin(lite_backends=half_a_list), "lite_backends"),
        (lambda: plugin(lite_backends=[NamelessBackend("x")]), "lite_backends"),
        (lambda: plugin(lite_backends=[SimpleNamespace(name=3, probe=0, supports=0, compile=0)]), "lite_backends"),
        (lambda: plugin(lite_backends=[KernelBackend("host")]), "lite_backends"),
    ],
)
def test_broken_plugin_does_not_affect_others(loader: Any, phase: str) -> None:
    plugins = plugins_of(a=loader, b=good)
    for _ in range(2):
        assert "good" in available_backends(plugins)
    record = plugins.records()[0]
    assert record.failed
    assert record.phase == phase


def test_strict_mode_keeps_the_other_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITE_STRICT_PLUGINS", "1")
    plugins = plugins_of(a=raises(ImportError("broken")), b=good)
    with pytest.raises(PluginError, match="broken"):
        available_backends(plugins)
    assert "good" in available_backends(plugins)


def test_plugin_may_query_backends_while_it_is_imported() -> None:
    plugins: PluginManager

    def curious() -> Any:
        available_backends(plugins)
        return plugin(lite_backends=[KernelBackend("curious")])

    plugins = plugins_of(a=curious, b=good)
    plugins.ask("lite_formats")
    assert {"curious", "good"} <= set(available_backends(plugins))


@pytest.mark.parametrize("order", [["lite_backends", "lite_formats"], ["lite_formats", "lite_backends"]])
def test_result_with_a_bad_item_does_not_depend_on_the_order_of_hooks(order: list[str]) -> None:
    plugins = plugins_of(a=lambda: plugin(lite_backends=[object()], lite_formats=[Reader()]))
    answers = {hook: plugins.ask(hook) for hook in order}
    assert not answers["lite_backends"]
    assert len(answers["lite_formats"]) == 1


# **** readers ****


def identity() -> Graph:
    b = GraphBuilder("identity")
    b.output(b.add("Neg", [b.input("x", "float32", [1])]), "y")
    return b.build()


class Reader:
    name = "test"
    suffixes = (".test",)

    def __init__(self, sniff: Any = lambda path: True, read: Any = lambda path: identity()) -> None:
        self.sniff = sniff
        self.read = read


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "model.test"
    path.write_text("a model")
    return path


def fail(*arguments: Any, **named: Any) -> Any:
    raise KeyError("oops")


def test_reader_whose_sniff_fails_is_skipped(file: Path) -> None:
    plugins = plugins_of(a=lambda: plugin(lite_formats=[Reader(sniff=fail)]), b=lambda: plugin(lite_formats=[Reader()]))
    assert read_model(file, plugins=plugins).name == "identity"
    assert plugins.records()[0].phase == "sniff"


@pytest.mark.parametrize(
    ("read", "message"),
    [(fail, r"'test'.*'a' \(lite-a 1\.0\).*KeyError"), (lambda path: None, "NoneType")],
)
def test_error_of_a_reader_names_the_reader(file: Path, read: Any, message: str) -> None:
    with pytest.raises(ModelFormatError, match=message):
        read_model(file, plugins=plugins_of(a=lambda: plugin(lite_formats=[Reader(read=read)])))


def test_unknown_reader_option_is_refused(file: Path) -> None:
    def read(path: Path, *, params: Any = None) -> Graph:
        return identity()

    plugins = plugins_of(a=lambda: plugin(lite_formats=[Reader(read=read)]))
    with pytest.raises(InputError, match=r"'test' .*thread .*params"):
        load(file, reader_options={"thread": 2}, plugins=plugins)


# **** passes ****


class PluginPass:
    name = "plugin-pass"

    def __init__(self, call: Any) -> None:
        self._call = call

    def __call__(self, graph: Graph) -> Any:
        return self._call(graph)


def drop_everything(graph: Graph) -> PassResult:
    graph.nodes.clear()
    return PassResult(graph, True)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (fail, "'plugin-pass' .*'identity'.*KeyError"),
        (lambda graph: None, "'plugin-pass' .*NoneType.*PassResult"),
        (drop_everything, "'plugin-pass' .*not valid"),
    ],
)
def test_error_of_a_pass_names_the_pass(call: Any, message: str) -> None:
    with pytest.raises(PassError, match=message):
        load(identity(), plugins=plugins_of(a=lambda: plugin(lite_passes=[PluginPass(call)])))


def test_stand_in_has_the_attributes_of_real_entry_points() -> None:
    real = metadata.EntryPoint("a", "a_module", "lite.plugins")
    assert all(hasattr(real, name) for name in ("name", "value", "dist", "load"))
