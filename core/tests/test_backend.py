"""KernelBackend, the built-in backends, and sessions that use several backends."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import numpy as np
import pytest

from lite_core.backend import Device, Executable, No, Options, Partition, Unavailable, Yes
from lite_core.builder import GraphBuilder
from lite_core.errors import (
    BackendUnavailableError,
    ExecutionError,
    InputError,
    LiteError,
    UnsupportedOperatorError,
)
from lite_core.ir import Graph, Node
from lite_core.kernel_backend import KernelBackend
from lite_core.plugins import PluginManager, plugins_with
from lite_core.session import RunProfile, load

Array = np.ndarray[Any, Any]
X = np.array([[-1.0, 2.0], [3.0, -4.0]], dtype=np.float32)


def toy_backend(name: str = "toy") -> KernelBackend:
    backend = KernelBackend(name)

    @backend.kernel("Relu", dtypes=["float32"])
    def relu(x: Array, *, out: Array) -> None:
        np.maximum(x, 0, out=out)

    @backend.kernel("Split", when=lambda node: No("only in half") if len(node.outputs) != 2 else Yes())
    def split(x: Array, sizes: Array | None = None, *, axis: int, num_outputs: int | None, out: Any) -> None:
        for target, part in zip(out, np.split(x, 2, axis)):
            target[...] = part

    @backend.kernel("NonZero")
    def nonzero(x: Array) -> Array:
        return np.array(np.nonzero(x))

    return backend


def relu_exp_relu() -> Graph:
    b = GraphBuilder("sandwich")
    x = b.input("x", "float32", ["n", 2])
    y = b.add("Relu", [x], name="first")
    z = b.add("Exp", [y], name="middle")
    b.output(b.add("Relu", [b.add("Sub", [z, y], name="difference")], name="last"), "y")
    return b.build()


def expected(x: Array) -> Array:
    y = np.maximum(x, 0)
    result: Array = np.maximum(np.exp(y) - y, 0)
    return result


def test_nodes_without_a_kernel_run_on_host() -> None:
    session = load(relu_exp_relu(), backend="toy", plugins=plugins_with(toy_backend()))
    np.testing.assert_allclose(session.run({"x": X})["y"], expected(X), rtol=1e-6)
    where = {a.node: a.device for a in session.assignment()}
    assert where == {"first": "toy", "middle": "host", "difference": "host", "last": "toy"}
    ((device, reason),) = next(a for a in session.assignment() if a.node == "middle").refusals
    assert device == "toy"
    assert "no kernel for Exp" in reason


def test_partitions_are_convex_and_profiled() -> None:
    session = load(relu_exp_relu(), backend="toy", plugins=plugins_with(toy_backend()))
    profile = RunProfile()
    session.run({"x": X}, profile=profile)
    assert [(p.device, p.nodes) for p in profile.partitions] == [("toy", 1), ("host", 2), ("toy", 1)]
    assert profile.seconds >= sum(p.seconds for p in profile.partitions) > 0


def test_auto_prefers_the_higher_score() -> None:
    slow = toy_backend("slow")
    fast = KernelBackend("fast", Device("fast", score=9))
    fast.kernel("Exp")(lambda x: np.exp(x))
    session = load(relu_exp_relu(), plugins=plugins_with(slow, fast))
    assert {a.node: a.device for a in session.assignment()}["first"] == "slow"
    assert {a.node: a.device for a in session.assignment()}["middle"] == "fast"
    assert any(line.startswith("fast:") for line in session.selection_log)


def test_fallback_never_names_all_unsupported_nodes() -> None:
    with pytest.raises(UnsupportedOperatorError) as caught:
        load(relu_exp_relu(), backend="toy", fallback="never", plugins=plugins_with(toy_backend()))
    assert {p.op for p in caught.value.problems} == {"Exp", "Sub"}
    assert "no kernel for Exp" in str(caught.value)


def test_kernel_with_several_outputs_and_a_condition() -> None:
    b = GraphBuilder("halves")
    x = b.input("x", "float32", ["n", 4])
    for index, part in enumerate(b.add_node("Split", [x], {"axis": 1, "num_outputs": 2}, outputs=2)):
        b.output(part, f"part{index}")
    session = load(b.build(), backend="toy", plugins=plugins_with(toy_backend()), fallback="never")
    outputs = session.run({"x": np.arange(8, dtype=np.float32).reshape(2, 4)})
    assert outputs["part1"].tolist() == [[2, 3], [6, 7]]


def test_kernel_with_data_dependent_shapes_returns_its_result() -> None:
    b = GraphBuilder("where")
    b.output(b.add("NonZero", [b.input("x", "float32", ["n"])]), "y")
    session = load(b.build(), backend="toy", plugins=plugins_with(toy_backend()), fallback="never")
    assert session.run({"x": np.array([0, 1, 0, 2], np.float32)})["y"].tolist() == [[1, 3]]
    assert session.run({"x": np.array([0, 0, 0, 2], np.float32)})["y"].tolist() == [[3]]


def test_kernel_refuses_other_dtypes() -> None:
    b = GraphBuilder("double")
    b.output(b.add("Relu", [b.input("x", "float64", [2])]), "y")
    with pytest.raises(UnsupportedOperatorError, match=r"Relu.*float32.*float64"):
        load(b.build(), backend="toy", fallback="never", plugins=plugins_with(toy_backend()))


def test_registering_an_invalid_kernel_fails() -> None:
    backend = KernelBackend("toy")
    with pytest.raises(ValueError, match="Nonsense"):
        backend.kernel("Nonsense")
    with pytest.raises(ValueError, match=r"attribute.*axis"):
        backend.kernel("Softmax")(lambda x, *, out: None)


def test_error_of_a_kernel_names_backend_and_node() -> None:
    backend = KernelBackend("bad")

    @backend.kernel("Relu")
    def relu(x: Array, *, out: Array) -> None:
        raise RuntimeError("the chip caught fire")

    session = load(relu_exp_relu(), backend="bad", plugins=plugins_with(backend))
    with pytest.raises(ExecutionError, match=r"'bad'.*'first' \(Relu\).*the chip caught fire"):
        session.run({"x": X})


# **** choosing devices ****


class Absent:
    name = "absent"

    def probe(self) -> Unavailable:
        return Unavailable("libabsent.so was not found in 3 folders", "install libabsent")

    def supports(self, node: Node, device: Device) -> Yes:
        return Yes()

    def compile(self, *arguments: Any) -> Any:
        raise AssertionError("compile() of an unavailable backend must not be called")


class RaisesInProbe(Absent):
    name = "rude"

    def probe(self) -> Any:
        raise OSError("driver is broken")


def test_unavailable_backend_that_is_requested_is_an_error_with_the_reason() -> None:
    with pytest.raises(BackendUnavailableError, match=r"libabsent.so.*install libabsent"):
        load(relu_exp_relu(), backend="absent", plugins=plugins_with(Absent()))


def test_kernel_backend_probes_devices_with_a_function() -> None:
    found: list[Device] = []
    backend = KernelBackend("late", device=lambda: found or Unavailable("nothing is plugged in", "plug it in"))
    backend.kernel("Relu")(lambda x: np.maximum(x, 0))
    with pytest.raises(BackendUnavailableError, match=r"'late'.*nothing is plugged in.*plug it in"):
        load(relu_exp_relu(), backend="late", plugins=plugins_with(backend))
    found += [Device("late", 0, "left"), Device("late", 1, "right")]
    session = load(relu_exp_relu(), backend="late:1", plugins=plugins_with(backend))
    assert set(session.devices) == {"late:1", "host"}


def test_auto_logs_why_backends_are_unavailable() -> None:
    session = load(relu_exp_relu(), plugins=plugins_with(Absent(), RaisesInProbe(), toy_backend()))
    assert set(session.devices) == {"toy", "host"}
    log = "\n".join(session.selection_log)
    assert re.search("absent: .*libabsent.so was not found", log)
    assert re.search(r"rude: .*probe.*OSError: driver is broken", log)


def test_missing_backend_names_its_distribution() -> None:
    with pytest.raises(BackendUnavailableError, match=r"'opencl'.*pip install lite-opencl"):
        load(relu_exp_relu(), backend="opencl", plugins=plugins_with())


def test_unknown_device_index_lists_the_devices() -> None:
    with pytest.raises(BackendUnavailableError, match=r"device '3'.*: toy"):
        load(relu_exp_relu(), backend="toy:3", plugins=plugins_with(toy_backend()))


def test_environment_variable_overrides_the_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITE_BACKEND", "host")
    session = load(relu_exp_relu(), backend="toy", plugins=plugins_with(toy_backend()))
    assert session.devices == ("host",)
    assert "LITE_BACKEND=host" in session.selection_log[0]


def test_pinned_nodes_run_on_their_device() -> None:
    session = load(relu_exp_relu(), backend="toy", placement={"la*": "host"}, plugins=plugins_with(toy_backend()))
    assert {a.node: a.device for a in session.assignment()}["last"] == "host"
    with pytest.raises(BackendUnavailableError, match=r"'x'.*'opencl'"):
        load(relu_exp_relu(), backend="host", placement={"x": "opencl"}, plugins=plugins_with())


def test_invalid_arguments_are_refused() -> None:
    with pytest.raises(InputError, match="fallback"):
        load(relu_exp_relu(), fallback="sometimes", plugins=plugins_with())
    with pytest.raises(InputError, match="precision"):
        load(relu_exp_relu(), precision="int3", plugins=plugins_with())
    with pytest.raises(InputError, match=r"threads.*at least 1"):
        load(relu_exp_relu(), threads=0, plugins=plugins_with())
    with pytest.raises(InputError, match='"auto"'):
        load(relu_exp_relu(), backend=["host", "auto"], plugins=plugins_with())


def test_options_reach_the_backend() -> None:
    seen: list[Options] = []

    class Curious(KernelBackend):
        def compile(self, part: Partition, device: Device, options: Options) -> Executable:
            seen.append(options)
            return super().compile(part, device, options)

    backend = Curious("curious")
    backend.kernel("Relu")(lambda x: np.maximum(x, 0))
    options = {"threads": 3, "precision": "float16", "exact": True, "tune": True}
    load(relu_exp_relu(), backend="curious", plugins=plugins_with(backend), **options).run(x=X)
    assert seen[0] == Options(3, "float16", exact=True, tune=True)


# **** built-in ****


def test_null_plans_everything_and_computes_nothing() -> None:
    session = load(relu_exp_relu(), backend="null", plugins=plugins_with())
    assert session.devices == ("null",)
    assert session.run({"x": X})["y"].tolist() == [[0, 0], [0, 0]]


def test_null_is_never_chosen_automatically() -> None:
    assert load(relu_exp_relu(), plugins=plugins_with()).devices == ("host",)


# **** mistakes in backends ****


def one_node(op: str, *shapes: tuple[int, ...], dtype: str = "float32", outputs: int = 1, **attributes: Any) -> Graph:
    b = GraphBuilder(op)
    inputs = [b.input(f"x{i}", dtype, list(shape)) for i, shape in enumerate(shapes)]
    for index, value in enumerate(b.add_node(op, inputs, attributes, outputs=outputs)):
        b.output(value, f"y{index}")
    return b.build()


def backend_with(op: str, kernel: Any, name: str = "mine", **options: Any) -> PluginManager:
    backend = KernelBackend(name)
    backend.kernel(op, **options)(kernel)
    return plugins_with(backend)


def run_one(graph: Graph, plugins: PluginManager, *arrays: Array) -> dict[str, Array]:
    session = load(graph, backend="mine", fallback="never", plugins=plugins)
    return session.run({f"x{i}": a for i, a in enumerate(arrays)})


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (lambda x: np.float64(x), "float64.*float32"),
        (lambda x: x[:1, :1], r"\[1, 1\]"),
        (lambda x: None, "NoneType"),
    ],
)
def test_kernel_result_of_the_wrong_type_or_shape_is_an_error(kernel: Any, message: str) -> None:
    with pytest.raises(ExecutionError, match=message):
        run_one(one_node("Relu", (2, 2)), backend_with("Relu", kernel), X)


def test_a_kernel_cannot_write_its_inputs() -> None:
    def relu(x: Array) -> Array:
        x[x < 0] = 0
        return x

    given = X.copy()
    with pytest.raises(ExecutionError, match="read-only"):
        run_one(one_node("Relu", (2, 2)), backend_with("Relu", relu), given)
    np.testing.assert_array_equal(given, X)


def test_optional_inputs_that_are_left_out_are_none() -> None:
    def clip(x: Array, low: Array | None, high: Array | None, *, out: Array) -> None:
        assert low is None
        assert high is None
        out[...] = x

    np.testing.assert_array_equal(run_one(one_node("Clip", (2, 2)), backend_with("Clip", clip), X)["y0"], X)


def test_outputs_that_are_left_out_are_none() -> None:
    def top_k(x: Array, k: Array, *, axis: int, largest: int, sorted: int, out: Any) -> None:
        values, indices = out
        assert values is None
        indices[...] = np.argsort(-x, axis, kind="stable")[..., : int(k[0])]

    b = GraphBuilder("indices")
    _, indices = b.add_node("TopK", [b.input("x", "float32", [2, 2]), b.ints(1)], outputs=2)
    b.output(indices, "y")
    b.graph.nodes[0].outputs = (None, indices)
    session = load(b.build(), backend="mine", fallback="never", plugins=backend_with("TopK", top_k))
    assert session.run(x=X)["y"].tolist() == [[1], [0]]


def test_dtypes_apply_to_the_first_input_if_the_output_type_is_fixed() -> None:
    """NonMaxSuppression returns int64 and takes an int64 limit, but works on float32 boxes."""
    b = GraphBuilder("suppression")
    boxes, scores = b.input("boxes", "float32", [1, 2, 4]), b.input("scores", "float32", [1, 1, 2])
    b.output(b.add("NonMaxSuppression", [boxes, scores, b.ints(5)]), "kept")
    (node,) = b.build().nodes
    backend = KernelBackend("boxes")
    backend.kernel("NonMaxSuppression", dtypes=["float32"])(lambda *inputs, **attributes: None)
    (device,) = backend.probe()  # type: ignore[misc]
    assert backend.supports(node, device) == Yes()


def test_dtypes_apply_to_inputs_of_the_output_type() -> None:
    b = GraphBuilder("where")
    c, x, y = b.input("c", "bool", [2]), b.input("x", "float32", [2]), b.input("y", "float32", [2])
    b.output(b.add("Where", [c, x, y]), "z")
    plugins = backend_with("Where", lambda c, x, y: np.where(c, x, y), dtypes=["float32"])
    session = load(b.build(), backend="mine", fallback="never", plugins=plugins)
    assert session.run(c=[True, False], x=[1.0, 2.0], y=[3.0, 4.0])["z"].tolist() == [1, 4]


class Strange:
    """A backend whose methods can be replaced by wrong ones."""

    name = "mine"

    def __init__(self, **parts: Any) -> None:
        self.__dict__.update(parts)

    def probe(self) -> Any:
        return [Device("mine")]

    def supports(self, node: Node, device: Device) -> Any:
        return Yes()

    def compile(self, part: Any, device: Device, options: Any) -> Any:
        return WritesNothing(part)


class WritesNothing:
    """An executable that does not write its outputs."""

    scratch_bytes = 0

    def __init__(self, part: Any) -> None:
        pass

    def run(self, inputs: Any, outputs: Any, scratch: Any) -> None:
        pass


class ReplacesStorage(WritesNothing):
    """An executable that sets its output's storage to that of its input."""

    def run(self, inputs: Any, outputs: Any, scratch: Any) -> None:
        outputs[0].data = inputs[0].data


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"probe": lambda: ["gpu0"]}, "probe.*'gpu0'.*Device"),
        ({"probe": lambda: Device("mine")}, "probe.*Device\\(.*list of"),
        ({"probe": list}, "no device"),
        ({"supports": lambda node, device: True}, "True.*Yes or No"),
        ({"compile": lambda part, device, options: None}, "NoneType.*scratch_bytes, run"),
        ({"memory": lambda device: 1 / 0}, "compile.*ZeroDivisionError"),
        ({"compile": lambda part, device, options: GraphBuilder().add("No", [])}, "compile.*'No'"),
    ],
)
def test_wrong_results_of_a_backend_name_the_backend(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(LiteError, match=message) as caught:
        run_one(one_node("Relu", (2, 2)), plugins_with(Strange(**parts)), X)
    assert "mine" in str(caught.value)
    assert not isinstance(caught.value, InputError)


def test_probe_may_return_a_generator() -> None:
    plugins = plugins_with(Strange(probe=lambda: (Device("mine", i) for i in range(2))))
    with pytest.raises(BackendUnavailableError, match="mine .*mine:1"):
        load(one_node("Relu", (2, 2)), backend="mine:3", plugins=plugins)


def test_output_that_is_never_allocated_is_an_error() -> None:
    with pytest.raises(ExecutionError, match="output 'y0'"):
        run_one(one_node("NonZero", (2, 2)), plugins_with(Strange()), X)


def test_storage_that_a_backend_sets_is_copied() -> None:
    given = X.copy()
    plugins = plugins_with(Strange(compile=lambda part, device, options: ReplacesStorage(part)))
    result = run_one(one_node("Relu", (2, 2)), plugins, given)["y0"]
    assert not np.shares_memory(result, given)
    assert result.flags.writeable


def test_pin_that_matches_no_node_suggests_similar_names() -> None:
    with pytest.raises(InputError, match="'frist'.*first"):
        load(relu_exp_relu(), placement={"frist": "host"}, plugins=plugins_with())


def test_a_slow_compile_does_not_stop_runs_whose_plan_is_ready() -> None:
    started, release = Event(), Event()

    def compile_(part: Any, device: Device, options: Any) -> Any:
        if part.graph.inputs[0].shape[0] == 9:
            started.set()
            assert release.wait(30)
        return ReplacesStorage(part)

    session = load(relu_exp_relu(), backend="mine", plugins=plugins_with(Strange(compile=compile_)))
    session.run({"x": X})
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(session.run, {"x": np.zeros((9, 2), np.float32)})
        assert started.wait(30)
        session.run({"x": X})  # would deadlock if one lock guarded both
        release.set()
        slow.result()


def test_second_kernel_of_an_operator_runs_where_the_first_refuses() -> None:
    backend = KernelBackend("toy")
    used: list[str] = []

    def add(kind: str, dtype: str) -> None:
        @backend.kernel("Relu", dtypes=[dtype])
        def relu(x: Array, *, out: Array) -> None:
            used.append(kind)
            np.maximum(x, 0, out=out)

    add("single", "float32")
    add("double", "float64")
    b = GraphBuilder("relu")
    b.output(b.add("Relu", [b.input("x", "float64", [2])]), "y")
    load(b.build(), backend="toy", fallback="never", plugins=plugins_with(backend)).run(x=np.array([-1.0, 1.0]))
    assert used == ["double"]
