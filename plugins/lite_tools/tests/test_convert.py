"""Conversion of models: questions to targets, contents of the file, verification and errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from installed_plugins import install, plugins_of

from lite_core import convert, load
from lite_core.backend import Buffer, Device, Executable, No, Options, Partition, Stale, Unavailable, Yes
from lite_core.builder import GraphBuilder
from lite_core.container import ModelFile
from lite_core.errors import BackendUnavailableError, ConversionError, InputError
from lite_core.ir import Graph, Node, Value
from lite_core.kernel_backend import KernelBackend
from lite_core.ops import define
from lite_core.ops.dtypes import FLOATS
from lite_core.ops.evaluate import evaluate_graph
from lite_core.ops.inference import same_as_first
from lite_core.passes import PassResult
from lite_core.plugins import hookimpl, plugins_with
from lite_core.processors import useful_threads

F32 = np.float32


class Toy:
    """A backend that computes by the references, saves a few bytes, and fails in a configurable way."""

    def __init__(
        self,
        name: str = "toy",
        *,
        refuses: str = "",
        absent: bool = False,
        describes: Any = None,
        offset: float = 0.0,
        fails: str = "",
    ) -> None:
        self.name = name
        self._refuses = refuses
        self._absent = absent
        self._offset = offset
        self._fails = fails
        self.compiled: list[Partition] = []
        self.restored = 0
        if describes is not None:
            self.target = describes

    def probe(self) -> list[Device] | Unavailable:
        return Unavailable("its chip is not here", "plug it in") if self._absent else [Device(self.name)]

    def supports(self, node: Node, device: Device) -> Yes | No:
        return No(f"{self.name} has no {node.op}") if node.op == self._refuses else Yes()

    def compatibility(self, device: Device, options: Options) -> str:
        return f"{self.name} 1"

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        if self._fails == "compile":
            raise RuntimeError("the compiler has run out of registers")
        self.compiled.append(part)
        return ToyRun(part, options, self._offset, self._fails)

    def restore(
        self, pieces: Sequence[memoryview], part: Partition, device: Device, options: Options
    ) -> Executable | Stale:
        self.restored += 1
        if self._fails == "restore":
            return Stale("the chip has been replaced")
        if [*map(bytes, pieces)] != [b"state of ", part.name.encode(), b"threads: %d" % options.threads]:
            return Stale("it is something else")
        return ToyRun(part, options, self._offset, self._fails)


class ToyRun:
    scratch_bytes = 0

    def __init__(self, part: Partition, options: Options, offset: float, fails: str) -> None:
        self._part = part
        self._options = options
        self._offset = offset
        self._fails = fails

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        if self._fails == "run":
            raise RuntimeError("the chip is too hot")
        for buffer, result in zip(outputs, evaluate_graph(self._part.graph, [b.data for b in inputs])):
            buffer.store(result + result.dtype.type(self._offset))

    def save(self) -> list[bytes]:
        if self._fails == "save":
            raise RuntimeError("the disk of the chip is full")
        return [b"state of ", self._part.name.encode(), b"threads: %d" % self._options.threads]


class Unsaving(Toy):
    """A backend that saves no state."""

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        executable: Executable = Plain(part, options, 0.0, "")
        return executable


class Plain(ToyRun):
    def save(self) -> list[bytes]:
        return []


def network(*sizes: int | str) -> Graph:
    """Build ``exp(-(relu(x) @ w))``."""
    b = GraphBuilder("net")
    x = b.input("x", "float32", sizes or (2, 3))
    weights = b.constant(np.arange(12, dtype=F32).reshape(3, 4) / 7, "w")
    hidden = b.add("MatMul", [b.add("Relu", [x]), weights])
    b.output(b.add("Exp", [b.add("Neg", [hidden])]), "y")
    return b.build()


def run(file: Path, *backends: Toy, **options: Any) -> tuple[Any, Any]:
    """Load a file and run it on one input; return the session and the output."""
    session = load(file, plugins=plugins_with(*backends), **options)
    return session, session.run(x=np.linspace(-1, 2, 6, dtype=F32).reshape(2, 3))["y"]


EXPECTED = evaluate_graph(network(), [np.linspace(-1, 2, 6, dtype=F32).reshape(2, 3)])[0]


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "model.lite"


# **** successful conversions ****


def test_saved_state_is_in_the_file_and_used(output: Path) -> None:
    toy = Toy()
    report = convert(network(), output, "toy", threads=2, plugins=plugins_with(toy))
    (target,) = report.targets
    assert (target.name, target.nodes, target.plans) == ("toy", {"toy": 4}, ({"x": (2, 3)},))
    assert target.threads == (2,)
    assert target.saved_bytes == len(b"state of toy/0threads: 2")
    assert {check.target for check in report.checks} == {"references", "toy"}
    assert report.agrees
    assert report.size == output.stat().st_size
    assert [p.name for p in output.parent.iterdir()] == ["model.lite"]
    fresh = Toy()
    session, y = run(output, fresh, threads=2)
    np.testing.assert_array_equal(y, EXPECTED)
    assert (len(fresh.compiled), fresh.restored) == (0, 1)
    assert session.devices == ("toy",)


def test_state_that_plans_and_targets_share_is_stored_once(output: Path) -> None:
    shapes: list[dict[str, Sequence[int]]] = [{"x": (2, 3)}, {"x": (5, 3)}]
    plugins = plugins_with(Toy("a"), Toy("b"))
    report = convert(network("n", 3), output, ["a", "b"], shapes=shapes, threads=[4, 1], plugins=plugins)
    file = ModelFile.open(output)
    saved = {s.name: bytes(file.section(s.name)) for s in file.sections if s.name.startswith("code/")}
    assert saved == {
        f"code/{number}": piece
        for number, piece in enumerate([b"state of ", b"a/0", b"threads: 1", b"threads: 4", b"b/0"])
    }
    for record in file.targets:
        assert [(dict(plan.shapes), plan.threads) for plan in record.plans] == [
            ({"x": (2, 3)}, 1),
            ({"x": (2, 3)}, 4),
            ({"x": (5, 3)}, 1),
            ({"x": (5, 3)}, 4),
        ]
    assert [target.saved_bytes for target in report.targets] == [len(b"state of a/0threads: 1threads: 4")] * 2


def test_session_uses_the_plan_for_its_threads_or_the_next_larger_or_the_largest(output: Path) -> None:
    class Counting(Toy):
        def restore(
            self, pieces: Sequence[memoryview], part: Partition, device: Device, options: Options
        ) -> Executable | Stale:
            used.append(bytes(pieces[2]).decode())
            return ToyRun(part, options, 0.0, "")

    used: list[str] = []
    report = convert(network(), output, "toy", threads=[8, 1, 2, 2], plugins=plugins_with(Counting()))
    assert report.targets[0].threads == (1, 2, 8)
    assert [(c.target, c.threads) for c in report.checks] == [("references", None), ("toy", 1), ("toy", 2), ("toy", 8)]
    used.clear()
    for threads in (1, 2, 3, 8, 9):
        run(output, Counting(), threads=threads)
    assert used == [f"threads: {count}" for count in (1, 2, 8, 8, 8)]


def test_file_keeps_the_precision_of_each_node(output: Path) -> None:
    class Curious(Toy):
        def __init__(self) -> None:
            super().__init__()
            self.used: list[tuple[str, str]] = []

        def compatibility(self, device: Device, options: Options) -> str:
            return options.precision

        def restore(
            self, pieces: Sequence[memoryview], part: Partition, device: Device, options: Options
        ) -> Executable | Stale:
            self.used.append((part.name, options.precision))
            return super().restore(pieces, part, device, options)

    precision = {"exp": "float32", "*": "float16"}
    assert convert(network(), output, "toy", precision, plugins=plugins_with(Curious())).agrees
    (record,) = ModelFile.open(output).targets
    assert [part.compatibility for part in record.plans[0].partitions] == ["float16", "float32"]
    kept = [("toy/0", "float16"), ("toy/1 precision=float32", "float32")]
    for asked in (None, precision, record.precision):
        fresh = Curious()
        session, y = run(output, fresh, precision=asked)
        np.testing.assert_array_equal(y, EXPECTED)
        assert (fresh.used, fresh.compiled) == (kept, [])
    fresh = Curious()
    session, _ = run(output, fresh, precision="float32")
    assert (fresh.used, len(fresh.compiled)) == ([], 1)
    assert any("precision='float32'" in note for note in session.notes)
    with pytest.raises(InputError, match="'softmax'"):
        convert(network(), output, "toy", {"softmax": "float16"}, plugins=plugins_with(Curious()))


def test_default_plans_are_for_one_and_all_threads(output: Path) -> None:
    report = convert(network(), output, "toy", plugins=plugins_with(Toy()))
    assert report.targets[0].threads == tuple(sorted({1, useful_threads()}))
    for threads in (1, None):
        fresh = Toy()
        np.testing.assert_array_equal(run(output, fresh, threads=threads)[1], EXPECTED)
        assert (len(fresh.compiled), fresh.restored) == (0, 1)


@pytest.mark.parametrize("saved", [b"state", [1], None, ["state"]])
def test_backend_that_saves_something_else_is_named(output: Path, saved: Any) -> None:
    class Whole(Toy):
        def compile(self, part: Partition, device: Device, options: Options) -> Executable:
            executable: Any = ToyRun(part, options, 0.0, "")
            executable.save = lambda: saved
            return executable  # type: ignore[no-any-return]

    with pytest.raises(ConversionError, match=r"save\(\)"):
        convert(network(), output, "toy", plugins=plugins_with(Whole()))


@pytest.mark.parametrize(
    ("answer", "fault"),
    [(lambda: {}["oops"], "failed with KeyError: 'oops'"), (lambda: 7, "returned int, expected a text")],
)
def test_state_without_a_compatibility_is_left_out_with_a_note(
    output: Path, answer: Callable[[], Any], fault: str
) -> None:
    class Mute(Toy):
        def compatibility(self, device: Device, options: Options) -> Any:
            return answer()

    report = convert(network(), output, "toy", plugins=plugins_with(Mute()))
    (target,) = report.targets
    assert target.saved_bytes == 0
    (note,) = (note for note in target.notes if "compatibility()" in note)
    assert note == f"compatibility() of this process {fault}, so that the file has no state for toy/0"
    fresh = Toy()
    np.testing.assert_array_equal(run(output, fresh)[1], EXPECTED)
    assert (len(fresh.compiled), fresh.restored) == (1, 0)


def test_one_file_for_two_targets(output: Path) -> None:
    plugins = plugins_with(Toy("a"), Toy("b"))
    report = convert(network(), output, ["a", "b", "a"], plugins=plugins)
    assert [target.name for target in report.targets] == ["a", "b"]
    assert [record.backend for record in ModelFile.open(output).targets] == ["a", "b"]
    for name in ("a", "b"):
        fresh = Toy(name)
        _, y = run(output, fresh)
        np.testing.assert_array_equal(y, EXPECTED)
        assert (len(fresh.compiled), fresh.restored) == (0, 1)


def test_default_targets_are_the_available_backends(output: Path) -> None:
    report = convert(network(), output, plugins=plugins_with(Toy("far", absent=True), Toy("near")))
    assert [target.name for target in report.targets] == ["near"]
    report = convert(network(), output, plugins=plugins_with())
    assert [target.name for target in report.targets] == ["host"]
    assert report.targets[0].notes


def test_plan_for_each_shape(output: Path) -> None:
    shapes: list[dict[str, Sequence[int]]] = [{"x": (2, 3)}, {"x": (5, 3)}, {"x": [2, 3]}]
    report = convert(network("n", 3), output, "toy", shapes=shapes, threads=2, plugins=plugins_with(Toy()))
    assert report.targets[0].plans == ({"x": (2, 3)}, {"x": (5, 3)})
    assert len(report.checks) == 4
    fresh = Toy()
    session, y = run(output, fresh, threads=2)
    np.testing.assert_array_equal(y, EXPECTED)
    session.run(x=np.zeros((5, 3), F32))
    assert (len(fresh.compiled), fresh.restored) == (0, 2)
    session.run(x=np.zeros((4, 3), F32))
    assert len(fresh.compiled) == 1


def test_open_batch_is_prepared_for_one_item(output: Path) -> None:
    report = convert(network("n", 3), output, "toy", plugins=plugins_with(Toy()))
    assert report.targets[0].plans == ({"x": (1, 3)},)
    assert "--input-shape x=?x3" in report.notes[0]
    assert "for other shapes" in report.notes[0]


def test_other_open_dimensions_have_no_plan_without_shapes(output: Path) -> None:
    b = GraphBuilder("rows")
    b.output(b.add("Relu", [b.input("x", "float32", [2, "width"])]), "y")
    toy = Toy()
    report = convert(b.build(), output, "toy", plugins=plugins_with(toy))
    assert report.targets[0].plans == ()
    assert "--input-shape x=2x?" in report.notes[0]
    assert "the file has no plan, and sessions compile for each shape" in report.notes[0]
    assert report.agrees
    _, y = run(output, Toy())
    assert y.shape == (2, 3)


def test_open_dimension_that_cannot_be_one_is_not_a_batch(output: Path) -> None:
    b = GraphBuilder("halves")
    halves = b.add("Reshape", [b.input("x", "float32", ["n"]), b.ints(2, -1)])
    b.output(b.add("Add", [halves, b.constant(np.ones((2, 3), F32))]), "y")
    report = convert(b.build(), output, "toy", data={"x": np.ones(6, F32)}, plugins=plugins_with(Toy()))
    assert report.targets[0].plans == ()
    assert report.agrees


def test_backend_that_saves_nothing_compiles_at_load(output: Path) -> None:
    report = convert(network(), output, "plain", plugins=plugins_with(Unsaving("plain")))
    assert report.targets[0].plans == ()
    assert "plain" in report.targets[0].notes[0]
    assert run(output, Unsaving("plain"))[0].devices == ("plain",)


# **** missing devices ****


def test_model_is_compiled_for_a_target_that_describes_a_missing_device(output: Path) -> None:
    far = Toy(absent=True, describes=lambda: Device("toy", name="the usual chip"))
    report = convert(network(), output, "toy", threads=[1, 2], plugins=plugins_with(far))
    assert len(far.compiled) == 2
    assert report.targets[0].absent == "its chip is not here. plug it in"
    assert report.targets[0].plans
    assert {check.target for check in report.checks} == {"references"}
    fresh = Toy()
    run(output, fresh, threads=1)
    assert (len(fresh.compiled), fresh.restored) == (0, 1)


@pytest.mark.parametrize("describes", [None, lambda: 1 / 0, lambda: "chip"])
def test_target_without_a_device_to_ask_is_in_the_file_unprepared(output: Path, describes: Any) -> None:
    report = convert(network(), output, ["toy"], plugins=plugins_with(Toy(absent=True, describes=describes)))
    assert report.targets[0].nodes == {}
    assert "its chip is not here" in report.targets[0].notes[0]
    fresh = Toy()
    session, y = run(output, fresh)
    np.testing.assert_array_equal(y, EXPECTED)
    assert session.devices == ("toy",)
    assert len(fresh.compiled) == 1
    assert session.selection_log[-1].startswith("toy: ")


# **** problems ****


def test_all_problems_are_one_error_and_nothing_is_written(output: Path) -> None:
    plugins = plugins_with(Toy("a", refuses="Relu"), Toy("b", refuses="Exp"))
    with pytest.raises(ConversionError) as caught:
        convert(network(), output, ["a", "opencl", "b"], plugins=plugins)
    text = str(caught.value)
    assert "'opencl'" in text
    assert "pip install lite-opencl" in text
    assert "target 'a'" in text
    assert "a has no Relu" in text
    assert "b has no Exp" in text
    assert "--allow-fallback" in text
    assert list(output.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (["opencl", "metal"], "target 'metal'"),
        ("kirin_npu", "target 'kirin_npu'"),
        ("toy:1", "target 'toy:1'"),
        (["toy", "auto"], "target 'auto'"),
    ],
)
def test_names_that_are_not_targets(output: Path, targets: Any, message: str) -> None:
    with pytest.raises(BackendUnavailableError, match=message):
        convert(network(), output, targets, plugins=plugins_with(Toy()))
    assert not output.exists()


def test_target_that_lite_backends_excludes(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITE_BACKENDS", "other")
    with pytest.raises(BackendUnavailableError, match="LITE_BACKENDS=other"):
        convert(network(), output, "toy", plugins=plugins_with(Toy()))


def test_target_with_a_broken_plugin(output: Path, site: Path) -> None:
    install(site, "toy", "raise RuntimeError('its driver is too old')")
    with pytest.raises(BackendUnavailableError, match=r"'toy' \(lite-toy 1.0\) .*its driver is too old"):
        convert(network(), output, "toy", plugins=plugins_of(site))


def test_refused_nodes_run_on_other_targets_with_allow_fallback(output: Path) -> None:
    plugins = plugins_with(Toy("a", refuses="Relu"), Toy("b", refuses="Exp"))
    report = convert(network(), output, ["a", "b"], allow_fallback=True, plugins=plugins)
    assert report.targets[0].nodes == {"a": 3, "b": 1}
    assert report.targets[1].nodes == {"b": 3, "a": 1}
    assert report.agrees
    report = convert(network(), output, ["a"], allow_fallback=True, plugins=plugins)
    assert report.targets[0].nodes == {"a": 3, "host": 1}
    assert report.targets[0].refusals[0].reason == "a has no Relu"
    _, y = run(output, Toy("a", refuses="Relu"))
    np.testing.assert_array_equal(y, EXPECTED)


@pytest.mark.parametrize("fails", ["compile", "save"])
def test_target_that_fails_to_compile_or_save(output: Path, fails: str) -> None:
    plugins = plugins_with(Toy("a", fails=fails), Toy("b", fails="compile"))
    with pytest.raises(ConversionError) as caught:
        convert(network(), output, ["a", "b"], plugins=plugins)
    assert "target 'a': " in str(caught.value)
    assert "target 'b': " in str(caught.value)
    assert "RuntimeError" in str(caught.value)
    assert list(output.parent.iterdir()) == []


def test_nodes_that_fail_to_compile_move_with_allow_fallback(output: Path) -> None:
    plugins = plugins_with(Toy("a", fails="compile"), Toy("b"))
    report = convert(network(), output, ["a", "b"], allow_fallback=True, plugins=plugins)
    assert report.targets[0].nodes == {"b": 4}
    assert "run out of registers" in report.targets[0].notes[0]


def test_if_and_loop_may_be_driven_by_host(output: Path) -> None:
    b = GraphBuilder("choice")
    x = b.input("x", "float32", [2, 3])
    branches: dict[str, Any] = {}
    for name, op in (("then_branch", "Relu"), ("else_branch", "Neg")):
        inner = GraphBuilder(name, outer=b)
        inner.output(inner.add(op, [x]))
        branches[name] = inner.build()
    condition = b.add("Greater", [b.add("ReduceMax", [x], {"keepdims": 0}), b.constant(np.float32(0), "zero")])
    b.output(b.add("If", [condition], branches), "y")
    graph = b.build()
    report = convert(graph, output, "toy", plugins=plugins_with(Toy(refuses="If")))
    assert report.targets[0].nodes["host"] == 1
    assert report.agrees
    with pytest.raises(ConversionError, match="toy has no Neg"):
        convert(graph, output, "toy", plugins=plugins_with(Both("toy")))


class Both(Toy):
    def supports(self, node: Node, device: Device) -> Yes | No:
        return No(f"toy has no {node.op}") if node.op in ("If", "Neg") else Yes()


# **** verifying ****


def test_report_warns_about_unused_plans(output: Path) -> None:
    report = convert(network(), output, "toy", plugins=plugins_with(Toy()))
    assert {check.target: check.prepared for check in report.checks} == {"references": None, "toy": True}
    assert report.warnings == ()
    shapes: list[dict[str, Sequence[int]]] = [{"x": (2, 3)}, {"x": (5, 3)}]
    failing = plugins_with(Toy(fails="restore"))
    report = convert(network("n", 3), output, "toy", shapes=shapes, threads=2, plugins=failing)
    assert report.agrees
    assert [check.prepared for check in report.checks if check.target == "toy"] == [False, False]
    (warning,) = report.warnings
    assert "toy" in warning
    assert "the chip has been replaced" in warning
    report = convert(network(), output, "toy", prepare=False, plugins=plugins_with(Toy()))
    assert [check.prepared for check in report.checks] == [None, None]
    assert report.targets[0].threads == ()


@pytest.mark.parametrize("backend", [Toy(offset=0.5), Toy(fails="run")])
def test_file_with_different_results_is_not_written_unless_forced(output: Path, backend: Toy) -> None:
    output.write_text("the old file")
    with pytest.raises(ConversionError, match="force=True") as caught:
        convert(network(), output, "toy", plugins=plugins_with(backend))
    assert "toy (threads=1) with x=2x3" in str(caught.value)
    assert output.read_text() == "the old file"
    assert [p.name for p in output.parent.iterdir()] == ["model.lite"]
    report = convert(network(), output, "toy", force=True, plugins=plugins_with(backend))
    assert not report.agrees
    assert ModelFile.open(output).targets


class Doubles:
    """A pass that changes results."""

    name = "doubles"

    def __call__(self, graph: Graph) -> PassResult:
        nodes = [node for node in graph.nodes if node.op == "Sub"]
        for node in nodes:
            node.op = "Add"
        return PassResult(graph, bool(nodes))


def test_pass_of_a_plugin_that_changes_the_results_is_named_with_its_package(output: Path) -> None:
    b = GraphBuilder("difference")
    b.output(b.add("Sub", [b.input("x", "float32", [2]), b.input("y", "float32", [2])]), "z")
    plugins, module = plugins_with(Toy()), ModuleType("doubling")
    module.__dict__.update(LITE_API_VERSION=1, lite_passes=hookimpl(lambda: [Doubles()]))
    plugins.register(module, "doubling", "lite-doubling")
    with pytest.raises(ConversionError, match=r"passes of plugins: doubles \(lite-doubling\).*lite bisect"):
        convert(b.build(), output, "toy", plugins=plugins)


class Inserts:
    """A pass that replaces an operator of ONNX by one of its package, and leaves a node that nothing reads."""

    name = "inserts"

    def __call__(self, graph: Graph) -> PassResult:
        nodes = [node for node in graph.nodes if node.op == "Relu"]
        for node in nodes:
            node.op, node.domain = "Rectify", "converting.test"
            graph.nodes.append(Node("Neg", [node.inputs[0]], [Value("unread", node.outputs[0].type)]))
        return PassResult(graph, bool(nodes))


def test_passes_of_plugins_that_insert_what_a_target_refuses_are_left_out(output: Path) -> None:
    b = GraphBuilder("relu")
    b.output(b.add("Relu", [b.input("x", "float32", [2])]), "y")
    rectify = define(
        lambda x: np.maximum(x, 0), "Rectify", "X: T -> Y: T", types={"T": FLOATS}, infer=same_as_first,
        domain="converting.test",
    )  # fmt: skip
    backend = KernelBackend("toy")
    backend.kernel("Relu")(lambda x: np.maximum(x, 0))
    plugins, module = plugins_with(backend), ModuleType("inserting")
    module.__dict__.update(
        LITE_API_VERSION=1, lite_ops=hookimpl(lambda: [rectify]), lite_passes=hookimpl(lambda: [Inserts()])
    )
    plugins.register(module, "inserting", "lite-inserting")
    report = convert(b.build(), output, "toy", plugins=plugins)
    (note,) = [note for note in report.notes if "left out" in note]
    assert "(inserts (lite-inserting)): they insert" in note
    assert "converting.test.Rectify, which toy refuses" in note
    assert [node.op for node in ModelFile.open(output).graph().nodes] == ["Relu"]


def test_reference_of_a_plugin_that_fails_is_named_with_its_package(output: Path) -> None:
    def fails(x: Any) -> Any:
        raise ArithmeticError("nope")

    broken = define(fails, "Broken", "X: T -> Y: T", types={"T": FLOATS}, infer=same_as_first, domain="broken.test")
    plugins, module = plugins_with(Toy()), ModuleType("broken")
    module.__dict__.update(LITE_API_VERSION=1, lite_ops=hookimpl(lambda: [broken]))
    plugins.register(module, "broken", "lite-broken")
    b = GraphBuilder("broken")
    b.output(b.add("Broken", [b.input("x", "float32", [2])], domain="broken.test"), "y")
    with pytest.raises(ConversionError, match=r"an operator of lite-broken failed with all random inputs") as caught:
        convert(b.build(), output, "toy", plugins=plugins)
    assert "ArithmeticError: nope" in str(caught.value)
    assert caught.value.source == "lite-broken"
    assert not output.exists()


def test_wider_limit_and_no_verification(output: Path) -> None:
    plugins = plugins_with(Toy(offset=1e-2))
    assert convert(network(), output, "toy", limit=1.0, plugins=plugins).agrees
    assert convert(network(), output, "toy", verify=False, plugins=plugins).checks == ()


def test_file_is_verified_with_the_given_data(output: Path) -> None:
    data = {"x": np.full((7, 3), 2, F32)}
    report = convert(network("n", 3), output, "toy", data=data, shapes={"x": (2, 3)}, plugins=plugins_with(Toy()))
    assert {(check.data, check.shapes["x"]) for check in report.checks} == {
        ("given data", (7, 3)),
        ("random numbers, seed 0", (2, 3)),
    }


# **** weights in fewer bits ****


@pytest.mark.parametrize("stored", ["float16", "int8"])
def test_weights_in_fewer_bits(output: Path, stored: str) -> None:
    b = GraphBuilder("dense")
    weights = b.constant(np.random.default_rng(0).standard_normal((64, 32)).astype(F32), "w")
    b.output(b.add("MatMul", [b.input("x", "float32", [4, 64]), weights]), "y")
    report = convert(b.build(), output, "toy", weights=stored, plugins=plugins_with(Toy()))
    assert (report.stored_as, report.precision) == (stored, "float32")
    assert report.after.weight_bytes < 0.6 * report.before.weight_bytes
    assert [weight.name for weight in report.weights] == ["w"]
    assert 0 < report.accuracy[0].max_difference < 0.02
    assert report.agrees
    assert report.targets[0].plans == ()
    assert "prepare=True" in report.notes[0]
    report = convert(b.build(), output, "toy", weights=stored, prepare=True, plugins=plugins_with(Toy()))
    assert report.targets[0].plans == ({"x": (4, 64)},)


def test_file_without_saved_state(output: Path) -> None:
    toy = Toy()
    report = convert(network(), output, "toy", prepare=False, plugins=plugins_with(toy))
    assert report.targets[0].saved_bytes == 0
    fresh = Toy()
    np.testing.assert_array_equal(run(output, fresh)[1], EXPECTED)
    assert (len(fresh.compiled), fresh.restored) == (1, 0)


# **** arguments ****


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": "int3"}, "weights .*float32, float16, int8, int4"),
        ({"precision": "int8"}, "precision .*float32, float16, bfloat16"),
        ({"reader_options": {"params": "p"}}, "reader_options.*params"),
        ({"limit": -1}, "limit"),
        ({"threads": 0}, "threads .*0"),
        ({"threads": [1, 0.5]}, r"threads .*\[1, 0.5\]"),
        ({"threads": []}, r"threads .*\[\]"),
        ({"targets": []}, "targets"),
        ({"shapes": {"z": (1, 3)}}, "input 'z'"),
        ({"shapes": {"x": (1, 4)}}, "shape"),
        ({"data": {"x": np.zeros((1, 4), F32)}}, "shape"),
    ],
)
def test_wrong_arguments(output: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        convert(network(), output, **{"targets": "toy", "plugins": plugins_with(Toy()), **options})
    assert list(output.parent.iterdir()) == []


def test_output_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere"):
        convert(network(), tmp_path / "nowhere/model.lite", plugins=plugins_with())
    with pytest.raises(InputError, match="folder"):
        convert(network(), tmp_path, plugins=plugins_with())


def test_lite_backend_conflicts_with_verification(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITE_BACKEND", "host")
    with pytest.raises(InputError, match="LITE_BACKEND=host"):
        convert(network(), output, "toy", plugins=plugins_with(Toy()))


def test_converting_a_file_again_for_more_targets(output: Path) -> None:
    convert(network(), output, "host", plugins=plugins_with())
    convert(output, output, ["toy", "host"], plugins=plugins_with(Toy()))
    assert [record.backend for record in ModelFile.open(output).targets] == ["toy", "host"]
    np.testing.assert_array_equal(run(output, Toy())[1], EXPECTED)
