"""Plugins that fail after discovery: while loading, in hooks, as readers, as passes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from device_memory import Memory

from lite_core import ops
from lite_core.backend import Buffer, Stale
from lite_core.builder import GraphBuilder
from lite_core.errors import (
    BackendUnavailableError,
    ExecutionError,
    GraphError,
    InputError,
    LiteError,
    ModelFormatError,
    PluginError,
)
from lite_core.formats import read_model
from lite_core.ir import DType, Graph, Node, TensorType, Value
from lite_core.kernel_backend import KernelBackend
from lite_core.passes import PassResult
from lite_core.plugins import PluginManager, available_backends, hookimpl
from lite_core.schedule import compatibility_of, placement, select_devices
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
        (lambda: plugin(lite_backends=[KernelBackend("auto")]), "lite_backends"),
        (lambda: plugin(lite_backends=[KernelBackend("host,x86")]), "lite_backends"),
        (lambda: plugin(lite_backends=[KernelBackend("")]), "lite_backends"),
    ],
)
def test_broken_plugin_does_not_affect_others(loader: Any, phase: str) -> None:
    plugins = plugins_of(a=loader, b=good)
    for _ in range(2):
        assert "good" in available_backends(plugins)
    record = plugins.records()[0]
    assert record.failed
    assert record.phase == phase


@pytest.mark.parametrize(
    ("hook", "item", "message"),
    [
        ("lite_backends", KernelBackend("auto"), "the backend name 'auto' is taken by lite-core itself"),
        ("lite_backends", KernelBackend("a,b"), "the backend name 'a,b' is empty, or contains a space or one of , : ="),
        ("lite_backends", KernelBackend(""), "the backend name '' is empty, or contains a space or one of , : ="),
        ("lite_formats", SimpleNamespace(name="lite", suffixes=(".x",), sniff=0, read=0), "the format name 'lite' is"),
    ],
)
def test_item_with_a_name_that_cannot_be_used_says_why(hook: str, item: Any, message: str) -> None:
    plugins = plugins_of(a=lambda: plugin(**{hook: [item]}))
    assert not plugins.ask(hook)
    (failure,) = plugins.records()[0].failures
    assert failure.error.startswith(message)


@pytest.mark.parametrize(
    ("hook", "result", "message"),
    [
        ("lite_formats", None, "lite_formats returned None, not a list; return [] for none"),
        ("lite_ops", "HardSquash", "lite_ops returned the text 'HardSquash', expected a list of OpDef"),
        (
            "lite_format",
            [],
            "lite_format is marked with @hookimpl, but Lite has no such hook; did you mean lite_formats?",
        ),
    ],
)
def test_mistake_in_a_hook_is_named_once(hook: str, result: Any, message: str) -> None:
    plugins = plugins_of(a=lambda: plugin(**{hook: lambda: result}), b=good)
    plugins.ask(hook if hook != "lite_format" else "lite_formats")
    assert [failure.error for failure in plugins.records()[0].failures] == [message]


def test_strict_mode_keeps_the_other_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITE_STRICT_PLUGINS", "1")
    plugins = plugins_of(a=raises(ImportError("broken")), b=good)
    with pytest.raises(PluginError, match="at import: ImportError: broken"):
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
    def __init__(
        self, sniff: Any = lambda path: True, read: Any = lambda path: identity(), name: str = "test", suffix: str = ""
    ) -> None:
        self.name = name
        self.suffixes = (suffix or ".test",)
        self.sniff = sniff
        self.read = read


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "model.test"
    path.write_text("a model")
    return path


def fail(*arguments: Any, **named: Any) -> Any:
    raise KeyError("oops")


def leave(*arguments: Any, **named: Any) -> Any:
    sys.exit(3)


def many_values(path: Path) -> Any:
    return np.ones(2)  # neither true nor false


@pytest.mark.parametrize("sniff", [fail, leave, many_values])
def test_reader_whose_sniff_fails_is_skipped(file: Path, sniff: Any) -> None:
    first, second = Reader(sniff, name="first"), Reader(name="second")
    plugins = plugins_of(a=lambda: plugin(lite_formats=[first]), b=lambda: plugin(lite_formats=[second]))
    assert read_model(file, plugins=plugins).name == "identity"
    assert plugins.records()[0].phase == "sniff"


def damaged(path: Path) -> Any:
    raise ModelFormatError("it is damaged")


@pytest.mark.parametrize("read", [fail, leave, damaged, lambda path: 7])
@pytest.mark.parametrize("name", ["model.test", "model"])
def test_reader_that_recognises_everything_leaves_models_to_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, read: Any, name: str
) -> None:
    (tmp_path / name).write_text("a model")
    greedy = Reader(read=read, name="greedy", suffix=".greedy")
    plugins = plugins_of(a=lambda: plugin(lite_formats=[greedy]), b=lambda: plugin(lite_formats=[Reader()]))
    assert read_model(tmp_path / name, plugins=plugins).name == "identity"
    assert name == "model.test" or "'greedy'" in caplog.text


def test_reader_with_the_suffix_of_the_file_is_first(file: Path) -> None:
    greedy = Reader(read=lambda path: GraphBuilder("wrong").build(), name="greedy", suffix=".greedy")
    plugins = plugins_of(a=lambda: plugin(lite_formats=[greedy]), b=lambda: plugin(lite_formats=[Reader()]))
    assert read_model(file, plugins=plugins).name == "identity"


def test_error_of_the_first_reader_is_reported_if_all_fail(file: Path) -> None:
    first, second = Reader(read=fail, name="first"), Reader(read=damaged, name="second")
    plugins = plugins_of(a=lambda: plugin(lite_formats=[first]), b=lambda: plugin(lite_formats=[second]))
    with pytest.raises(ModelFormatError, match=r"'first'.*'a' \(lite-a 1\.0\).*KeyError"):
        read_model(file, plugins=plugins)


def test_graph_of_a_reader_that_is_not_valid_names_the_reader(file: Path) -> None:
    def undefined(path: Path) -> Graph:
        graph = identity()
        graph.nodes.clear()
        return graph

    with pytest.raises(ModelFormatError, match=r"'test'.*'a' \(lite-a 1\.0\).*not valid.*\n.*'y'"):
        load(file, plugins=plugins_of(a=lambda: plugin(lite_formats=[Reader(read=undefined)])))


@pytest.mark.parametrize("broken", [{"suffixes": None}, {"suffixes": [7]}, {"read": None}, {"name": 7}])
def test_invalid_reader_is_left_out(file: Path, broken: dict[str, Any]) -> None:
    reader = Reader(name="broken")
    for name, value in broken.items():
        setattr(reader, name, value)
    plugins = plugins_of(a=lambda: plugin(lite_formats=[reader]), b=lambda: plugin(lite_formats=[Reader()]))
    assert read_model(file.with_suffix(""), plugins=plugins).name == "identity"
    assert plugins.records()[0].phase == "lite_formats"


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


def edit_and_fail(graph: Graph) -> PassResult:
    graph.nodes.clear()
    raise KeyError("oops")


def edit_and_deny(graph: Graph) -> PassResult:
    graph.nodes.clear()
    return PassResult(graph, False)


def double_the_constants(graph: Graph) -> PassResult:
    for value in graph.constants:
        graph.constants[value] *= 2
    return PassResult(graph, True)


def rename_the_output(graph: Graph) -> PassResult:
    graph.outputs[0].name = "another"
    return PassResult(graph, True)


def halve_the_shape(graph: Graph) -> PassResult:
    b = GraphBuilder("another")
    b.output(b.add("Abs", [b.input("x", "float32", [1])]), "y")
    return PassResult(b.build(), True)


def spoil_the_metadata(graph: Graph) -> PassResult:
    graph.metadata = 5  # type: ignore[assignment]
    return PassResult(graph, True)


def spoil_the_name(graph: Graph) -> PassResult:
    graph.name = None  # type: ignore[assignment]
    return PassResult(graph, True)


def add_an_operator_that_does_not_fit(graph: Graph) -> PassResult:
    (node,) = graph.nodes
    node.op, node.attributes = "Concat", {"axis": 7}
    return PassResult(graph, True)


def doubled() -> Graph:
    b = GraphBuilder("doubled")
    b.output(b.add("Mul", [b.input("x", "float32", [2]), b.constant(np.full(2, 2, np.float32))]), "y")
    return b.build()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (fail, "KeyError"),
        (leave, "SystemExit"),
        (lambda graph: None, "NoneType"),
        (lambda graph: True, "bool, not a PassResult"),
        (lambda graph: PassResult(7, True), "int"),  # type: ignore[arg-type]
        (drop_everything, "not valid"),
        (edit_and_fail, "KeyError"),
        (double_the_constants, "read-only"),
        (rename_the_output, "another"),
        (halve_the_shape, "('y', float32[2])] to [('x', float32[1]), ('y', float32[1])]"),
        (spoil_the_metadata, "its metadata is 5, expected a dict"),
        (spoil_the_name, "its name is None, expected a str"),
        (add_an_operator_that_does_not_fit, "axis"),
    ],
)
def test_pass_that_fails_is_recorded_and_left_out(caplog: pytest.LogCaptureFixture, call: Any, message: str) -> None:
    calls = []

    def counted(graph: Graph) -> Any:
        calls.append(graph)
        return call(graph)

    plugins = plugins_of(a=lambda: plugin(lite_passes=[PluginPass(counted)]), b=good)
    graph = doubled()
    for _ in range(2):
        assert load(graph, plugins=plugins).run(x=[1, -3])["y"].tolist() == [2, -6]
    record = plugins.records()[0]
    assert record.phase == "lite_passes"
    assert "'plugin-pass'" in record.error
    assert message in record.error
    assert "'a' (lite-a 1.0)" in caplog.text
    (failure,) = record.failures
    assert failure.traceback
    before = len(calls)
    load(graph, plugins=plugins)
    assert len(calls) == before


def test_pass_may_find_out_a_size() -> None:
    """Its operator computes sizes from constants, where those of the model gave a symbol."""

    def reshape(graph: Graph) -> PassResult:
        b = GraphBuilder("another")
        b.output(b.add("Reshape", [b.input("x", "float32", ["n"]), b.constant(np.array([2, 1]))]), "y")
        return PassResult(b.build(), len(graph.nodes) > 1)

    b = GraphBuilder("open")
    x = b.input("x", "float32", ["n"])
    shape = b.add("Concat", [b.add("Shape", [x]), b.constant(np.ones(1, np.int64))], {"axis": 0})
    b.output(b.add("Reshape", [x, shape]), "y")
    plugins = plugins_of(a=lambda: plugin(lite_passes=[PluginPass(reshape)]))
    assert load(b.build(), plugins=plugins).run(x=[1, -3])["y"].tolist() == [[1], [-3]]
    assert not plugins.records()[0].failures


def test_pass_is_logged_before_it_runs(caplog: pytest.LogCaptureFixture) -> None:
    """If a pass ends the process, the last line of the log names it and its package."""
    last: list[str] = []

    def call(graph: Graph) -> PassResult:
        last.append([record.getMessage() for record in caplog.records if record.name == "lite.passes"][-1])
        return PassResult(graph, False)

    caplog.set_level("DEBUG", "lite")
    load(identity(), plugins=plugins_of(a=lambda: plugin(lite_passes=[PluginPass(call)])))
    assert last == ["round 1: running plugin-pass (lite-a 1.0)"]


def test_edits_of_a_pass_that_says_it_changed_nothing_are_dropped() -> None:
    plugins = plugins_of(a=lambda: plugin(lite_passes=[PluginPass(edit_and_deny)]))
    assert load(doubled(), plugins=plugins).run(x=[1, -3])["y"].tolist() == [2, -6]


def test_pass_that_works_is_used_beside_one_that_fails() -> None:
    def relu_instead(graph: Graph) -> PassResult:
        changed = [node for node in graph.nodes if node.op == "Neg"]
        for node in changed:
            node.op = "Abs"
        return PassResult(graph, bool(changed))

    passes = [PluginPass(edit_and_fail), PluginPass(relu_instead)]
    plugins = plugins_of(a=lambda: plugin(lite_passes=passes))
    assert load(identity(), plugins=plugins).run(x=[-3])["y"].tolist() == [3]


def test_strict_mode_raises_the_failure_of_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITE_STRICT_PLUGINS", "1")
    with pytest.raises(PluginError, match=r"'a' \(lite-a 1\.0\).*KeyError"):
        load(identity(), plugins=plugins_of(a=lambda: plugin(lite_passes=[PluginPass(fail)])))


def test_pass_that_never_ends_is_stopped_and_named(caplog: pytest.LogCaptureFixture) -> None:
    def swap(graph: Graph) -> PassResult:
        (node,) = graph.nodes
        node.op = "Abs" if node.op == "Neg" else "Neg"
        return PassResult(graph, True)

    load(identity(), plugins=plugins_of(a=lambda: plugin(lite_passes=[PluginPass(swap)])))
    assert "after 8 rounds: plugin-pass (lite-a 1.0)" in caplog.text


# **** operators ****


def operator(name: str, **details: Any) -> Any:
    known = {"infer": lambda inference: [inference.shape(0)], "domain": "test.isolation", **details}
    return ops.define(lambda x: x + x, name, "x: T -> y: T", types={"T": [DType.FLOAT32]}, **known)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (lambda: operator("Twice", domain=7), "domain"),
        (lambda: operator("Twice", domain=""), "own domain"),
        (lambda: operator("Relu", domain="lite"), "own domain"),
        (lambda: SimpleNamespace(name="Twice", domain="test", reference=0, infer=0), "OpDef"),
    ],
)
def test_invalid_operator_is_left_out(broken: Any, message: str) -> None:
    plugins = plugins_of(a=lambda: plugin(lite_ops=lambda: [broken(), 7]), b=good)
    assert load(identity(), plugins=plugins).run(x=[-3])["y"].tolist() == [3]
    record = plugins.records()[0]
    assert record.phase == "lite_ops"
    assert message in record.error


@pytest.mark.parametrize("infer", [fail, leave, lambda inference: None, lambda inference: [7]])
def test_operator_with_a_broken_inference_affects_only_its_models(infer: Any) -> None:
    name = f"Broken{id(infer)}"
    plugins = plugins_of(a=lambda: plugin(lite_ops=[operator(name, infer=infer)]))
    assert load(identity(), plugins=plugins).run(x=[-3])["y"].tolist() == [3]
    x, y = (Value(v, TensorType(DType.FLOAT32, (1,))) for v in "xy")
    graph = Graph("broken", inputs=[x], outputs=[y], nodes=[Node(name, [x], [y], domain="test.isolation")])
    with pytest.raises(GraphError, match=rf"inference of test\.isolation\.{name}, in the module {infer.__module__}"):
        load(graph, plugins=plugins)


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        (fail, "failed with KeyError"),
        (leave, "failed with SystemExit: 3"),
        (lambda x: True, "returned bool, expected an array of float32"),
        (lambda x: None, "returned NoneType"),
        (lambda x: np.zeros((3, 3), np.float32), r"returned float32\[3, 3\], but its inference promises"),
        (lambda x: (x, x), "returned 2 results, expected 1"),
    ],
)
def test_operator_with_a_broken_reference_is_named_with_its_package(reference: Any, message: str) -> None:
    name = f"Reference{id(reference)}"
    broken = ops.define(
        reference,
        name,
        "x: T -> y: T",
        types={"T": [DType.FLOAT32]},
        infer=lambda inference: [inference.shape(0)],
        domain="test.isolation",
    )
    x, y = (Value(v, TensorType(DType.FLOAT32, (1,))) for v in "xy")
    graph = Graph("broken", inputs=[x], outputs=[y], nodes=[Node(name, [x], [y], domain="test.isolation")])
    session = load(graph, plugins=plugins_of(a=lambda: plugin(lite_ops=[broken])))
    with pytest.raises(ExecutionError, match=rf"{name}.*lite-a 1\.0 {message}") as caught:
        session.run(x=[1])
    assert caught.value.source == "lite-a 1.0"


@pytest.mark.parametrize("infer", [lambda inference: [], lambda inference: [("a",)], lambda inference: "float32[1]"])
def test_inference_that_returns_no_types_is_not_blamed_on_a_pass(infer: Any) -> None:
    name = f"Untyped{id(infer)}"
    x, y = (Value(v, TensorType(DType.FLOAT32, (1,))) for v in "xy")
    graph = Graph("broken", inputs=[x], outputs=[y], nodes=[Node(name, [x], [y], domain="test.isolation")])
    with pytest.raises(GraphError, match=rf"inference of test\.isolation\.{name}.* of lite-a 1\.0"):
        load(graph, plugins=plugins_of(a=lambda: plugin(lite_ops=[operator(name, infer=infer)])))


# **** backends ****


class Faulty(KernelBackend):
    """A backend whose members are replaced by faulty ones."""

    def __init__(self, **members: Any) -> None:
        super().__init__("faulty")
        self.kernel("Neg")(np.negative)
        self.__dict__.update(members)


class FaultyMemory(Memory):
    """A memory whose members are replaced by faulty ones."""

    def __init__(self, **members: Any) -> None:
        super().__init__("device")
        self.__dict__.update(members)


class Negation:
    """An executable, with members added or replaced."""

    scratch_bytes = 0

    def run(self, inputs: list[Buffer], outputs: list[Buffer], scratch: Buffer | None) -> None:
        data = inputs[0].data
        outputs[0].store(-(data if isinstance(data, np.ndarray) else data.content))


def resize(inputs: list[Buffer], outputs: list[Buffer], scratch: Buffer | None) -> None:
    outputs[0].allocate((7,))


def faulty(**members: Any) -> PluginManager:
    return plugins_of(a=lambda: plugin(lite_backends=[Faulty(**members)]), b=good)


@pytest.mark.parametrize("supports", [fail, leave, lambda node, device: True, lambda node, device: None])
def test_backend_whose_supports_fails_is_warned_of_once_with_its_package(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, supports: Any
) -> None:
    monkeypatch.setattr(placement, "_warned", set())
    for _ in range(2):
        session = load(identity(), plugins=faulty(supports=supports))
        assert session.run(x=[-3])["y"].tolist() == [3]
    (warning,) = (record.getMessage() for record in caplog.records if record.levelname == "WARNING")
    assert "backend 'faulty' (lite-a 1.0): its supports()" in warning


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"compile": fail}, r"failed to compile .*KeyError"),
        ({"compile": lambda part, device, options: None}, "NoneType .*lacks scratch_bytes, run"),
        (
            {"compile": lambda *a: SimpleNamespace(scratch_bytes=-5, run=fail)},
            "the scratch_bytes of its SimpleNamespace are -5, expected an int >= 0",
        ),
        ({"compile": lambda *a: SimpleNamespace(scratch_bytes="few", run=fail)}, "scratch_bytes .* are 'few'"),
        ({"compile": lambda *a: SimpleNamespace(scratch_bytes=0, run=fail)}, "partition .*failed with KeyError"),
        ({"compile": lambda *a: SimpleNamespace(scratch_bytes=0, run=leave)}, "partition .*failed with SystemExit: 3"),
        (
            {"compile": lambda *a: SimpleNamespace(scratch_bytes=0, run=resize)},
            r"gave float32\[7\] for output 'y', expected",
        ),
        (
            {"compile": lambda *a: Negation(), "memory": lambda device: FaultyMemory(upload=leave)},
            "copying 'x' from host to .* with SystemExit: 3",
        ),
        (
            {"compile": lambda *a: Negation(), "memory": lambda device: FaultyMemory(upload=fail)},
            "copying 'x' from host to .* memory failed with KeyError",
        ),
        ({"compile": lambda *a: Negation(), "memory": lambda device: FaultyMemory(allocate=leave)}, "SystemExit: 3"),
        (
            {"compile": lambda *a: Negation(), "memory": lambda device: FaultyMemory(download=leave)},
            "copying 'y' from .* to host .* with SystemExit: 3",
        ),
        (
            {
                "compile": lambda *a: Negation(),
                "memory": lambda device: FaultyMemory(download=lambda data: np.zeros(3, np.float32)),
            },
            r"its memory gave float32\[3\] for output 'y', expected float32\[1\]",
        ),
        (
            {
                "compile": lambda *a: Negation(),
                "memory": lambda device: FaultyMemory(download=lambda data: data.content.astype(np.int32)),
            },
            r"its memory gave int32\[1\] for output 'y', expected float32\[1\]",
        ),
    ],
)
def test_error_of_a_backend_names_its_package(members: dict[str, Any], message: str) -> None:
    with pytest.raises(ExecutionError, match=rf"backend 'faulty' \(lite-a 1\.0\).*{message}"):
        load(identity(), backend="faulty", plugins=faulty(**members)).run(x=[1])


def test_failing_kernel_names_its_package() -> None:
    backend = KernelBackend("faulty")
    backend.kernel("Neg")(fail)
    plugins = plugins_of(a=lambda: plugin(lite_backends=[backend]))
    with pytest.raises(ExecutionError, match=r"kernel .*fail failed with KeyError: 'oops' \(lite-a 1\.0\)$") as caught:
        load(identity(), backend="faulty", plugins=plugins).run(x=[1])
    assert caught.value.source == "lite-a 1.0"
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize(
    ("members", "source"),
    [
        ({"compile": fail}, "lite-a 1.0"),
        ({"compile": lambda *a: SimpleNamespace(scratch_bytes=0, run=fail)}, "lite-a 1.0"),
        ({"compile": lambda *a: SimpleNamespace(scratch_bytes=0, run=lambda *a: damaged(Path()))}, ""),
        ({"compile": lambda *a: Negation(), "memory": lambda device: FaultyMemory(upload=fail)}, "lite-a 1.0"),
        ({"compile": lambda *a: Negation(), "memory": lambda device: FaultyMemory(download=fail)}, "lite-a 1.0"),
    ],
)
def test_error_has_the_package_at_fault(members: dict[str, Any], source: str) -> None:
    with pytest.raises(LiteError) as caught:
        load(identity(), backend="faulty", plugins=faulty(**members)).run(x=[1])
    assert caught.value.source == source


@pytest.mark.parametrize(("failing", "source"), [("upload", "lite-b 1.0"), ("download", "lite-a 1.0")])
def test_copy_between_two_devices_blames_the_one_that_failed(failing: str, source: str) -> None:
    """The tensor goes from ``first`` to ``second``, through main memory."""

    def backend(name: str, op: str, **members: Any) -> KernelBackend:
        made, memory = KernelBackend(name), FaultyMemory(**members)
        made.kernel(op)(np.negative)
        memory.space = name
        made.__dict__.update(compile=lambda *a: Negation(), memory=lambda device: memory)
        return made

    b = GraphBuilder("two")
    b.output(b.add("Abs", [b.add("Neg", [b.input("x", "float32", [1])])]), "y")
    first = backend("first", "Neg", **{failing: fail} if failing == "download" else {})
    second = backend("second", "Abs", **{failing: fail} if failing == "upload" else {})
    plugins = plugins_of(a=lambda: plugin(lite_backends=[first]), b=lambda: plugin(lite_backends=[second]))
    with pytest.raises(ExecutionError, match="from first to second memory failed") as caught:
        load(b.build(), backend=["first", "second"], plugins=plugins).run(x=[1])
    assert caught.value.source == source


@pytest.mark.parametrize("member", ["upload", "download", "allocate"])
def test_device_whose_memory_fails_is_left_out_of_auto(caplog: pytest.LogCaptureFixture, member: str) -> None:
    calls: list[int] = []

    def fail_once_more(*arguments: Any) -> Any:
        calls.append(1)
        raise KeyError("oops")

    memory = FaultyMemory(**{member: fail_once_more})
    memory.space = f"its {member} fails"
    plugins = faulty(compile=lambda *a: Negation(), memory=lambda device: memory)
    b = GraphBuilder("open")
    b.output(b.add("Neg", [b.input("x", "float32", ["n"])]), "y")
    session = load(b.build(), plugins=plugins)
    for size in (1, 2):
        assert session.run(x=np.ones(size, np.float32))["y"].tolist() == [-1] * size
    assert session.devices == ("host",)
    assert len(calls) == 1
    said = "backend 'faulty' (lite-a 1.0) failed to compile partition 'all its nodes'"
    assert f"{said} (1 nodes): copies to and from its memory fail: KeyError: 'oops', so this" in caplog.text
    assert any("so this session does not use it" in note for note in session.notes)
    with pytest.raises(ExecutionError, match=r"backend 'faulty' \(lite-a 1\.0\)"):
        load(identity(), backend="faulty", plugins=plugins).run(x=[1])


def test_backend_of_a_plugin_with_a_misspelt_hook_leads_to_the_plugin() -> None:
    plugins = plugins_of(a=lambda: plugin(lite_backend=[KernelBackend("bad")]), b=good)
    with pytest.raises(BackendUnavailableError) as caught:
        load(identity(), backend="bad", plugins=plugins)
    text = str(caught.value)
    assert "plugin 'a' (lite-a 1.0) may have it, but failed: lite_backend is marked with @hookimpl" in text
    assert "did you mean lite_backends? (`lite plugins lite-a`)" in text
    with pytest.raises(BackendUnavailableError, match="plugin 'a' .*; pip install lite-opencl; `lite backends`"):
        load(identity(), backend="opencl", plugins=plugins)


def test_plugin_that_failed_elsewhere_is_not_suspected_to_have_a_backend() -> None:
    plugins = plugins_of(a=lambda: plugin(lite_formats=[object()]), b=good)
    plugins.ask("lite_formats")
    with pytest.raises(BackendUnavailableError, match="none of Lite's packages brings it; `lite backends`"):
        load(identity(), backend="bad", plugins=plugins)


def test_misspelt_backend_is_told_with_the_similar_one() -> None:
    for given in ("HOST", "hots", "hosst:1"):
        with pytest.raises(BackendUnavailableError, match=r"\(installed: .*\): did you mean 'host'\? none of Lite's"):
            load(identity(), backend=given, plugins=plugins_of(b=good))


def test_reports_that_fail_do_not_fail_the_run(caplog: pytest.LogCaptureFixture) -> None:
    class Talkative(Negation):
        @property
        def notes(self) -> list[str]:
            raise KeyError("oops")

        computes = notes

    session = load(identity(), backend="faulty", plugins=faulty(compile=lambda *a: Talkative()))
    assert session.run({"x": np.ones(1, np.float32)}, profile=True)["y"].tolist() == [-1]
    assert session.computes == ()
    assert "backend 'faulty' (lite-a 1.0)" in caplog.text
    assert "has no notes: that failed with KeyError" in caplog.text


@pytest.mark.parametrize(
    ("compatibility", "fault"), [(fail, "failed with KeyError"), (leave, "SystemExit"), (lambda *a: 7, "returned int")]
)
def test_compatibility_that_fails_makes_saved_state_stale(compatibility: Any, fault: str) -> None:
    plugins = faulty(compatibility=compatibility)
    candidate = select_devices("faulty", plugins).candidates[0]
    answer = compatibility_of(candidate, load(identity(), plugins=plugins).planner.options)
    assert isinstance(answer, Stale)
    assert answer.reason.startswith("compatibility() of lite-a 1.0 ")
    assert fault in answer.reason


def test_host_that_is_listed_runs_what_another_device_fails_to_compile() -> None:
    session = load(identity(), backend=["faulty", "host"], plugins=faulty(compile=leave))
    assert session.run(x=[1])["y"].tolist() == [-1]
    assert "failed to compile" in session.notes[0]


def test_error_about_options_names_the_package() -> None:
    options = {"faulty": {"speed": 3}}
    with pytest.raises(InputError, match=r"'faulty' \(lite-a 1\.0\) refuses its options: KeyError"):
        load(identity(), plugins=faulty(check_options=fail), backend_options=options)


def test_stand_in_has_the_attributes_of_real_entry_points() -> None:
    real = metadata.EntryPoint("a", "a_module", "lite.plugins")
    assert all(hasattr(real, name) for name in ("name", "value", "dist", "load"))
