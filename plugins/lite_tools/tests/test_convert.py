"""Converting models: what each target is asked, what goes into the file, and what is refused."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from installed_plugins import install, plugins_of

from lite_core import convert, load
from lite_core.backend import Buffer, Device, Executable, No, Options, Partition, Stale, Unavailable, Yes
from lite_core.builder import GraphBuilder
from lite_core.container import ModelFile
from lite_core.errors import BackendUnavailableError, ConversionError, InputError
from lite_core.ir import Graph, Node
from lite_core.ops.evaluate import evaluate_graph
from lite_core.plugins import plugins_with

F32 = np.float32


class Toy:
    """A backend that computes by the references, saves a few bytes, and goes wrong in the way it is told to."""

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
    """Compiles, and saves nothing."""

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        executable: Executable = Plain(part, options, 0.0, "")
        return executable


class Plain(ToyRun):
    def save(self) -> list[bytes]:
        return []


def network(*sizes: int | str) -> Graph:
    """relu(x) @ w, twice the negative of it."""
    b = GraphBuilder("net")
    x = b.input("x", "float32", sizes or (2, 3))
    weights = b.constant(np.arange(12, dtype=F32).reshape(3, 4) / 7, "w")
    hidden = b.add("MatMul", [b.add("Relu", [x]), weights])
    b.output(b.add("Exp", [b.add("Neg", [hidden])]), "y")
    return b.build()


def run(file: Path, *backends: Toy, **options: Any) -> tuple[Any, Any]:
    """The session and its outputs for one input."""
    session = load(file, plugins=plugins_with(*backends), **options)
    return session, session.run(x=np.linspace(-1, 2, 6, dtype=F32).reshape(2, 3))["y"]


EXPECTED = evaluate_graph(network(), [np.linspace(-1, 2, 6, dtype=F32).reshape(2, 3)])[0]


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "model.lite"


# **** what goes right ****


def test_what_a_target_saves_is_in_the_file_and_used(output: Path) -> None:
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


def test_what_several_plans_and_targets_save_is_in_the_file_once(output: Path) -> None:
    shapes: list[dict[str, Sequence[int]]] = [{"x": (2, 3)}, {"x": (5, 3)}]
    hosts = plugins_with(Toy("a"), Toy("b"))
    report = convert(network("n", 3), output, ["a", "b"], shapes=shapes, threads=[4, 1], plugins=hosts)
    file = ModelFile.open(output)
    saved = {s.name: bytes(file.section(s.name)) for s in file.sections if s.name.startswith("saved/")}
    assert saved == {
        f"saved/{number}": piece
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


def test_a_session_takes_the_plan_for_its_threads_else_the_next_larger_else_the_largest(output: Path) -> None:
    class Counting(Toy):
        def restore(
            self, pieces: Sequence[memoryview], part: Partition, device: Device, options: Options
        ) -> Executable | Stale:
            taken.append(bytes(pieces[2]).decode())
            return ToyRun(part, options, 0.0, "")

    taken: list[str] = []
    report = convert(network(), output, "toy", threads=[8, 1, 2, 2], plugins=plugins_with(Counting()))
    assert report.targets[0].threads == (1, 2, 8)
    assert [(c.target, c.threads) for c in report.checks] == [("references", None), ("toy", 1), ("toy", 2), ("toy", 8)]
    taken.clear()
    for threads in (1, 2, 3, 8, 9):
        run(output, Counting(), threads=threads)
    assert taken == [f"threads: {count}" for count in (1, 2, 8, 8, 8)]


def test_without_threads_it_is_for_one_and_for_all(output: Path) -> None:
    report = convert(network(), output, "toy", plugins=plugins_with(Toy()))
    assert report.targets[0].threads == tuple(sorted({1, os.cpu_count() or 1}))
    for threads in (1, None):
        fresh = Toy()
        np.testing.assert_array_equal(run(output, fresh, threads=threads)[1], EXPECTED)
        assert (len(fresh.compiled), fresh.restored) == (0, 1)


@pytest.mark.parametrize("saved", [b"state", [1], None, ["state"]])
def test_a_backend_that_does_not_save_pieces_is_named(output: Path, saved: Any) -> None:
    class Whole(Toy):
        def compile(self, part: Partition, device: Device, options: Options) -> Executable:
            executable: Any = ToyRun(part, options, 0.0, "")
            executable.save = lambda: saved
            return executable  # type: ignore[no-any-return]

    with pytest.raises(ConversionError, match=r"its save\(\) gave .*, not a sequence of bytes and memoryviews"):
        convert(network(), output, "toy", plugins=plugins_with(Whole()))


def test_one_file_for_two_targets(output: Path) -> None:
    hosts = plugins_with(Toy("a"), Toy("b"))
    report = convert(network(), output, ["a", "b", "a"], plugins=hosts)
    assert [target.name for target in report.targets] == ["a", "b"]
    assert [record.backend for record in ModelFile.open(output).targets] == ["a", "b"]
    for name in ("a", "b"):
        fresh = Toy(name)
        _, y = run(output, fresh)
        np.testing.assert_array_equal(y, EXPECTED)
        assert (len(fresh.compiled), fresh.restored) == (0, 1)


def test_without_targets_it_is_what_is_here(output: Path) -> None:
    report = convert(network(), output, plugins=plugins_with(Toy("far", absent=True), Toy("near")))
    assert [target.name for target in report.targets] == ["near"]
    report = convert(network(), output, plugins=plugins_with())
    assert [target.name for target in report.targets] == ["host"]
    assert "host saves nothing" in report.targets[0].notes[0]


def test_a_plan_for_each_shape(output: Path) -> None:
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


def test_an_open_batch_is_prepared_for_one_item_and_says_how_to_have_more(output: Path) -> None:
    report = convert(network("n", 3), output, "toy", plugins=plugins_with(Toy()))
    assert report.targets[0].plans == ({"x": (1, 3)},)
    assert "--input-shape x=?x3" in report.notes[0]


def test_other_open_dimensions_have_no_plan_until_shapes_are_given(output: Path) -> None:
    b = GraphBuilder("rows")
    b.output(b.add("Relu", [b.input("x", "float32", [2, "width"])]), "y")
    toy = Toy()
    report = convert(b.build(), output, "toy", plugins=plugins_with(toy))
    assert report.targets[0].plans == ()
    assert "the file has no plan" in report.notes[0]
    assert "--input-shape x=2x?" in report.notes[0]
    assert report.agrees
    _, y = run(output, Toy())
    assert y.shape == (2, 3)


def test_an_open_dimension_that_cannot_be_one_is_no_batch(output: Path) -> None:
    b = GraphBuilder("halves")
    halves = b.add("Reshape", [b.input("x", "float32", ["n"]), b.ints(2, -1)])
    b.output(b.add("Add", [halves, b.constant(np.ones((2, 3), F32))]), "y")
    report = convert(b.build(), output, "toy", data={"x": np.ones(6, F32)}, plugins=plugins_with(Toy()))
    assert report.targets[0].plans == ()
    assert report.agrees


def test_a_backend_that_saves_nothing_compiles_when_the_model_loads(output: Path) -> None:
    report = convert(network(), output, "plain", plugins=plugins_with(Unsaving("plain")))
    assert report.targets[0].plans == ()
    assert "plain saves nothing" in report.targets[0].notes[0]
    assert run(output, Unsaving("plain"))[0].devices == ("plain",)


# **** devices that are not here ****


def test_a_target_without_a_device_that_describes_one_is_compiled_for(output: Path) -> None:
    far = Toy(absent=True, describes=lambda: Device("toy", name="the usual chip"))
    report = convert(network(), output, "toy", threads=[1, 2], plugins=plugins_with(far))
    assert len(far.compiled) == 2
    assert report.targets[0].absent == "its chip is not here. plug it in"
    assert report.targets[0].plans
    assert {check.target for check in report.checks} == {"references"}
    there = Toy()
    run(output, there, threads=1)
    assert (len(there.compiled), there.restored) == (0, 1)


@pytest.mark.parametrize("describes", [None, lambda: 1 / 0, lambda: "chip"])
def test_a_target_without_a_device_to_ask_is_in_the_file_unprepared(output: Path, describes: Any) -> None:
    report = convert(network(), output, ["toy"], plugins=plugins_with(Toy(absent=True, describes=describes)))
    assert report.targets[0].nodes == {}
    assert "toy could not be asked: its chip is not here" in report.targets[0].notes[0]
    there = Toy()
    session, y = run(output, there)
    np.testing.assert_array_equal(y, EXPECTED)
    assert session.devices == ("toy",)
    assert len(there.compiled) == 1
    assert session.selection_log[-1] == "toy: no device was there to prepare the model's file for; it is compiled anew"


# **** what is in the way ****


def test_everything_in_the_way_is_one_error_and_nothing_is_written(output: Path) -> None:
    hosts = plugins_with(Toy("a", refuses="Relu"), Toy("b", refuses="Exp"))
    with pytest.raises(ConversionError) as caught:
        convert(network(), output, ["a", "opencl", "b"], plugins=hosts)
    text = str(caught.value)
    assert "'opencl'" in text
    assert "pip install lite-opencl" in text
    assert "target 'a' (this process -) cannot run 1 of 4 nodes" in text
    assert "a has no Relu" in text
    assert "b has no Exp" in text
    assert "--allow-fallback" in text
    assert list(output.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (["opencl", "arm"], "'arm': no plugin that is installed brings it"),
        ("kirin_npu", "none of Lite's packages brings it"),
        ("toy:1", "not for one of its devices: say 'toy'"),
        (["toy", "auto"], "'auto' stands alone"),
    ],
)
def test_a_target_that_is_not_installed(output: Path, targets: Any, message: str) -> None:
    with pytest.raises(BackendUnavailableError, match=message):
        convert(network(), output, targets, plugins=plugins_with(Toy()))
    assert not output.exists()


def test_a_target_that_lite_backends_leaves_out(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITE_BACKENDS", "other")
    with pytest.raises(BackendUnavailableError, match="LITE_BACKENDS=other leaves it out"):
        convert(network(), output, "toy", plugins=plugins_with(Toy()))


def test_a_target_whose_plugin_is_broken(output: Path, site: Path) -> None:
    install(site, "toy", "raise RuntimeError('its driver is too old')")
    with pytest.raises(
        BackendUnavailableError, match=r"'toy' \(lite-toy 1.0\) is installed and failed at import: .*old"
    ):
        convert(network(), output, "toy", plugins=plugins_of(site))


def test_nodes_that_a_target_refuses_may_be_allowed_elsewhere(output: Path) -> None:
    hosts = plugins_with(Toy("a", refuses="Relu"), Toy("b", refuses="Exp"))
    report = convert(network(), output, ["a", "b"], allow_fallback=True, plugins=hosts)
    assert report.targets[0].nodes == {"a": 3, "b": 1}
    assert report.targets[1].nodes == {"b": 3, "a": 1}
    assert report.agrees
    report = convert(network(), output, ["a"], allow_fallback=True, plugins=hosts)
    assert report.targets[0].nodes == {"a": 3, "host": 1}
    assert report.targets[0].refusals[0].reason == "a has no Relu"
    _, y = run(output, Toy("a", refuses="Relu"))
    np.testing.assert_array_equal(y, EXPECTED)


@pytest.mark.parametrize("fails", ["compile", "save"])
def test_a_target_that_fails_to_compile_or_save(output: Path, fails: str) -> None:
    hosts = plugins_with(Toy("a", fails=fails), Toy("b", fails="compile"))
    with pytest.raises(ConversionError) as caught:
        convert(network(), output, ["a", "b"], plugins=hosts)
    assert "target 'a': " in str(caught.value)
    assert "target 'b': " in str(caught.value)
    assert "RuntimeError" in str(caught.value)
    assert list(output.parent.iterdir()) == []


def test_what_fails_to_compile_goes_elsewhere_where_that_is_allowed(output: Path) -> None:
    hosts = plugins_with(Toy("a", fails="compile"), Toy("b"))
    report = convert(network(), output, ["a", "b"], allow_fallback=True, plugins=hosts)
    assert report.targets[0].nodes == {"b": 4}
    assert "run out of registers; other devices run those nodes" in report.targets[0].notes[0]


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


def test_the_report_says_whether_what_was_prepared_is_used_here(output: Path) -> None:
    report = convert(network(), output, "toy", plugins=plugins_with(Toy()))
    assert {check.target: check.prepared for check in report.checks} == {"references": None, "toy": True}
    assert report.warnings == ()
    shapes: list[dict[str, Sequence[int]]] = [{"x": (2, 3)}, {"x": (5, 3)}]
    failing = plugins_with(Toy(fails="restore"))
    report = convert(network("n", 3), output, "toy", shapes=shapes, threads=2, plugins=failing)
    assert report.agrees
    assert [check.prepared for check in report.checks if check.target == "toy"] == [False, False]
    (warning,) = report.warnings
    assert "prepared for toy is not used on this very machine" in warning
    assert "the chip has been replaced" in warning
    report = convert(network(), output, "toy", prepare=False, plugins=plugins_with(Toy()))
    assert [check.prepared for check in report.checks] == [None, None]
    assert report.targets[0].threads == ()


@pytest.mark.parametrize("backend", [Toy(offset=0.5), Toy(fails="run")])
def test_a_file_that_computes_something_else_is_not_written_unless_forced(output: Path, backend: Toy) -> None:
    output.write_text("the old file")
    with pytest.raises(ConversionError, match="force=True") as caught:
        convert(network(), output, "toy", plugins=plugins_with(backend))
    assert "toy (threads=1) with x=2x3 (random numbers, seed 0)" in str(caught.value)
    assert output.read_text() == "the old file"
    assert [p.name for p in output.parent.iterdir()] == ["model.lite"]
    report = convert(network(), output, "toy", force=True, plugins=plugins_with(backend))
    assert not report.agrees
    assert "computes something else" in report.notes[-1]
    assert ModelFile.open(output).targets


def test_the_limit_may_be_wider_and_verifying_left_out(output: Path) -> None:
    hosts = plugins_with(Toy(offset=1e-2))
    assert convert(network(), output, "toy", limit=1.0, plugins=hosts).agrees
    assert convert(network(), output, "toy", verify=False, plugins=hosts).checks == ()


def test_given_data_are_what_it_is_verified_with(output: Path) -> None:
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


def test_a_file_may_hold_nothing_that_backends_save(output: Path) -> None:
    toy = Toy()
    report = convert(network(), output, "toy", prepare=False, plugins=plugins_with(toy))
    assert report.targets[0].saved_bytes == 0
    there = Toy()
    np.testing.assert_array_equal(run(output, there)[1], EXPECTED)
    assert (len(there.compiled), there.restored) == (1, 0)


# **** arguments ****


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": "int4"}, "weights must be one of float32, float16, int8"),
        ({"precision": "int8"}, "precision must be one of float32, float16, bfloat16"),
        ({"reader_options": {"params": "p"}}, "a graph takes no reader_options, given: params"),
        ({"limit": -1}, "limit must be a share"),
        ({"threads": 0}, "threads must be a whole number, at least 1, or several of them, is 0"),
        ({"threads": [1, 0.5]}, r"threads must be .*is \[1, 0.5\]"),
        ({"threads": []}, r"threads must be .*is \[\]"),
        ({"targets": []}, "targets must be 'auto' or names"),
        ({"shapes": {"z": (1, 3)}}, "there is no input 'z'"),
        ({"shapes": {"x": (1, 4)}}, "must have shape"),
        ({"data": {"x": np.zeros((1, 4), F32)}}, "must have shape"),
    ],
)
def test_wrong_arguments(output: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        convert(network(), output, **{"targets": "toy", "plugins": plugins_with(Toy()), **options})
    assert list(output.parent.iterdir()) == []


def test_an_output_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no folder"):
        convert(network(), tmp_path / "nowhere/model.lite", plugins=plugins_with())
    with pytest.raises(InputError, match="is a folder; name a file"):
        convert(network(), tmp_path, plugins=plugins_with())


def test_lite_backend_would_verify_elsewhere(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITE_BACKEND", "host")
    with pytest.raises(InputError, match="LITE_BACKEND=host would decide"):
        convert(network(), output, "toy", plugins=plugins_with(Toy()))


def test_a_file_is_converted_again_for_more_targets(output: Path) -> None:
    convert(network(), output, "host", plugins=plugins_with())
    convert(output, output, ["toy", "host"], plugins=plugins_with(Toy()))
    assert [record.backend for record in ModelFile.open(output).targets] == ["toy", "host"]
    np.testing.assert_array_equal(run(output, Toy())[1], EXPECTED)
