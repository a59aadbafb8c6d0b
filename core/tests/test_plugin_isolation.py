"""Plugins that misbehave after they were found: while loading, in hooks, as readers, as passes."""

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
    """An entry point whose loading is a function."""

    def __init__(self, name: str, load: Any) -> None:
        self.name = name
        self.value = f"{name}_module"
        self.dist = SimpleNamespace(name=f"lite-{name}", version="1.0", requires=None)
        self.load = load


def plugins_of(**loaders: Any) -> PluginManager:
    entries: Any = [EntryPoint(name, load) for name, load in loaders.items()]
    return PluginManager(lambda: entries)


def plugin(**hooks: Any) -> Any:
    """A module with hooks; a hook is what it returns, or a function that is called."""
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
    ("loader", "stage"),
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
def test_the_others_live_on(loader: Any, stage: str) -> None:
    plugins = plugins_of(a=loader, b=good)
    for _ in range(2):
        assert "good" in available_backends(plugins)
    record = plugins.records()[0]
    assert record.failed
    assert record.stage == stage


def test_strict_mode_loses_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITE_STRICT_PLUGINS", "1")
    plugins = plugins_of(a=raises(ImportError("broken")), b=good)
    with pytest.raises(PluginError, match="broken"):
        available_backends(plugins)
    assert "good" in available_backends(plugins)


def test_a_plugin_that_asks_while_it_is_imported() -> None:
    plugins: PluginManager

    def curious() -> Any:
        available_backends(plugins)
        return plugin(lite_backends=[KernelBackend("curious")])

    plugins = plugins_of(a=curious, b=good)
    plugins.ask("lite_formats")
    assert {"curious", "good"} <= set(available_backends(plugins))


@pytest.mark.parametrize("order", [["lite_backends", "lite_formats"], ["lite_formats", "lite_backends"]])
def test_one_bad_item_does_not_depend_on_who_asks_first(order: list[str]) -> None:
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


def test_a_reader_that_fails_to_look_is_passed_over(file: Path) -> None:
    plugins = plugins_of(a=lambda: plugin(lite_formats=[Reader(sniff=fail)]), b=lambda: plugin(lite_formats=[Reader()]))
    assert read_model(file, plugins=plugins).name == "identity"
    assert plugins.records()[0].stage == "sniff"


@pytest.mark.parametrize(
    ("read", "message"),
    [(fail, "reader 'test' of plugin 'a' .lite-a 1.0. failed with KeyError"), (lambda path: None, "gave NoneType")],
)
def test_a_reader_that_fails_is_named(file: Path, read: Any, message: str) -> None:
    with pytest.raises(ModelFormatError, match=message):
        read_model(file, plugins=plugins_of(a=lambda: plugin(lite_formats=[Reader(read=read)])))


def test_a_mistyped_option_is_named(file: Path) -> None:
    def read(path: Path, *, params: Any = None) -> Graph:
        return identity()

    plugins = plugins_of(a=lambda: plugin(lite_formats=[Reader(read=read)]))
    with pytest.raises(InputError, match=r"format 'test' has no option thread \(it has: params\)"):
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
        (fail, "pass 'plugin-pass' failed on graph 'identity' with KeyError"),
        (lambda graph: None, "pass 'plugin-pass' gave NoneType, not a PassResult"),
        (drop_everything, "pass 'plugin-pass' left a graph that is not valid"),
    ],
)
def test_a_pass_that_misbehaves_is_named(call: Any, message: str) -> None:
    with pytest.raises(PassError, match=message):
        load(identity(), plugins=plugins_of(a=lambda: plugin(lite_passes=[PluginPass(call)])))


def test_metadata_entry_points_have_what_the_host_uses() -> None:
    """The stand-in above has the attributes of the real thing."""
    real = metadata.EntryPoint("a", "a_module", "lite.plugins")
    assert all(hasattr(real, name) for name in ("name", "value", "dist", "load"))
