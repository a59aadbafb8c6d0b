"""Tests of partitions compiled stage by stage because shapes depend on data, in main memory and in device memory."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from device_memory import Memory, Storage
from observers import ObservedExecutable, Recorder, references

from lite_compiler.staging import HostExecutable, StagedExecutable, can_compile_whole
from lite_core.backend import Buffer, Device, Executable, Interval, KernelTime, MemoryUse, No, Options, Partition, Yes
from lite_core.builder import GraphBuilder
from lite_core.errors import ExecutionError, LiteError
from lite_core.ir import Graph, Node, TensorType
from lite_core.kernel_backend import KernelBackend
from lite_core.memory import HostMemory
from lite_core.ops.evaluate import evaluate_graph
from lite_core.plugins import plugins_with
from lite_core.session import load

Array = np.ndarray[Any, Any]

RANDOM = np.random.default_rng(0)


def content(buffer: Buffer) -> Array:
    """Return the elements of a tensor in main or device memory."""
    data = buffer.data
    return data.content if isinstance(data, Storage) else data


class Compiled:
    """An executable that accepts static shapes only and computes in the memory of its tensors."""

    def __init__(self, graph: Graph) -> None:
        assert can_compile_whole(graph)
        self.graph = graph
        self.scratch_bytes = 64 * len(graph.nodes)
        self.notes = ("compiled for a test",)
        self.scratches: list[Array] = []  # keeps scratch memory alive, so that its addresses are not reused

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        assert scratch is not None
        memory = content(scratch)
        assert memory.nbytes == self.scratch_bytes
        assert isinstance(scratch.data, Storage) or memory.ctypes.data % 64 == 0
        memory[...] = 255
        self.scratches.append(memory)
        assert all(content(b).flags.c_contiguous and b.type.is_static for b in inputs)
        results = evaluate_graph(self.graph, [content(b) for b in inputs])
        for value, buffer, result in zip(self.graph.outputs, outputs, results):
            assert content(buffer).shape == value.shape
            content(buffer)[...] = result

    def run_profiled(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None
    ) -> Sequence[KernelTime]:
        self.run(inputs, outputs, scratch)
        return [KernelTime(f"kernel of {n.op}", (n.name,), 1e-6) for n in self.graph.nodes]

    def memory_use(self) -> MemoryUse:
        size = len(self.graph.nodes)
        return MemoryUse(100 * size, (Interval(100 * size, 0, 0),), 10 * size, size)


class Compiler:
    """Compiles graphs and records the executables."""

    def __init__(self) -> None:
        self.compiled: list[Compiled] = []

    def __call__(self, graph: Graph) -> Compiled:
        self.compiled.append(Compiled(graph))
        return self.compiled[-1]

    @property
    def operators(self) -> list[list[str]]:
        return [[n.op for n in compiled.graph.nodes] for compiled in self.compiled]


def device_memory() -> Memory:
    """Return a memory space that is not main memory."""
    return Memory("device")


MEMORIES = pytest.mark.parametrize("make_memory", [HostMemory, device_memory])
MakeMemory = Callable[[], Any]


# **** graphs ****


def chosen_rows() -> Graph:
    """Rows of x with a positive sum are selected, scaled and summed; both stages read the same constant."""
    b = GraphBuilder("chosen_rows")
    x = b.input("x", "float32", [6, 5])
    three = b.constant(np.float32(3))
    above = b.add("Greater", [b.add("ReduceSum", [x, b.ints(1)], {"keepdims": 0}), b.constant(np.float32(0))])
    indices = b.add("NonZero", [above])
    rows = b.add("Mul", [b.add("Gather", [x, b.add("Squeeze", [indices, b.ints(0)])]), three])
    b.output(b.add("Exp", [b.add("Neg", [rows])]), "rows")
    b.output(b.add("ReduceSum", [rows, b.ints(0)], {"keepdims": 0}), "sum")
    b.output(indices, "indices")
    b.output(b.add("Mul", [x, three]), "scaled")
    return b.build()


def rows_for(count: int) -> Array:
    """Return an input of which ``count`` rows are selected."""
    x = np.abs(RANDOM.standard_normal((6, 5))).astype(np.float32)
    x[count:] *= -1
    return RANDOM.permutation(x)


def twice_chosen() -> Graph:
    """Selected elements are filtered again, which needs two stages after the first."""
    b = GraphBuilder("twice_chosen")
    x = b.input("x", "float32", [8])
    y = x
    for _ in range(2):
        y = b.add("Compress", [y, b.add("Greater", [b.add("Abs", [y]), b.add("ReduceMean", [y], {"keepdims": 0})])])
    b.output(b.add("Neg", [y]), "y")
    return b.build()


def any_length() -> Graph:
    """The size of the input depends on data; all other shapes follow from it."""
    b = GraphBuilder("any_length")
    b.output(b.add("Relu", [b.add("Neg", [b.input("x", "float32", ["n", 2])])]), "y")
    return b.build()


def summed() -> Graph:
    """All shapes are known, but the axis of the sum is an input."""
    b = GraphBuilder("summed")
    x, axis = b.input("x", "float32", [3, 3]), b.input("axis", "int64", [1])
    b.output(b.add("Neg", [b.add("CumSum", [b.add("Abs", [x]), b.add("Squeeze", [axis])])]), "y")
    return b.build()


def with_branches() -> Graph:
    """An If whose sub-graphs use a value of the outer graph and return results of different sizes."""
    b = GraphBuilder("with_branches")
    x = b.input("x", "float32", [4])
    doubled = b.add("Add", [x, x])
    branches = []
    for name, count in (("then", 1), ("else", 3)):
        inner = GraphBuilder(name, outer=b)
        inner.output(inner.add("Slice", [doubled, inner.ints(0), inner.ints(count)]), name)
        branches.append(inner.build())
    condition = b.add("Greater", [b.add("ReduceSum", [x], {"keepdims": 0}), b.constant(np.float32(0))])
    y = b.add("If", [condition], {"then_branch": branches[0], "else_branch": branches[1]})
    b.output(b.add("Neg", [y]), "y")
    return b.build()


# **** running ****


def run(executable: Executable, graph: Graph, memory: Any, inputs: Sequence[Array], profiled: bool = False) -> Any:
    """Run once, as a plan does; return the results, or with ``profiled`` the times."""
    buffers = []
    for array in inputs:
        buffers.append(Buffer(TensorType.of_array(array), memory))
        buffers[-1].store(array)
    outputs = [Buffer(v.type, memory, memory.allocate(v.type) if v.type.is_static else None) for v in graph.outputs]
    if profiled:
        return executable.run_profiled(buffers, outputs, None)  # type: ignore[attr-defined]
    executable.run(buffers, outputs, None)
    return [content(b) for b in outputs]


def check(executable: Executable, graph: Graph, memory: Any, *inputs: Array) -> None:
    for actual, expected in zip(run(executable, graph, memory, inputs), evaluate_graph(graph, inputs), strict=True):
        assert actual.dtype == expected.dtype
        np.testing.assert_array_equal(actual, expected)


@MEMORIES
def test_data_dependent_sizes(make_memory: MakeMemory) -> None:
    graph, memory, compiler = chosen_rows(), make_memory(), Compiler()
    executable = StagedExecutable(graph, memory, compiler)
    for count in (3, 0, 6, 1, 3, 0):
        check(executable, graph, memory, rows_for(count))
    first, *others = compiler.operators
    assert first == ["ReduceSum", "Greater", "Mul"]
    assert others == [["Squeeze", "Gather", "Mul", "Neg", "Exp", "ReduceSum"]] * 4  # four different numbers of rows


@MEMORIES
def test_two_data_dependent_nodes_in_sequence(make_memory: MakeMemory) -> None:
    graph, memory, compiler = twice_chosen(), make_memory(), Compiler()
    executable = StagedExecutable(graph, memory, compiler)
    for _ in range(8):
        check(executable, graph, memory, RANDOM.standard_normal(8).astype(np.float32))
    assert ["Neg"] in compiler.operators


@MEMORIES
def test_data_dependent_node_with_sub_graphs(make_memory: MakeMemory) -> None:
    graph, memory = with_branches(), make_memory()
    executable = StagedExecutable(graph, memory, Compiler(), lambda graph: [n for n in graph.nodes if n.subgraphs])
    for sign in (1, -1, 1):
        check(executable, graph, memory, np.full(4, sign, np.float32))


def test_one_stage_is_compiled_for_each_input_size() -> None:
    graph, memory, compiler = any_length(), device_memory(), Compiler()
    executable = StagedExecutable(graph, memory, compiler)
    assert not compiler.compiled
    for rows in (2, 5, 2, 0, 5):
        check(executable, graph, memory, RANDOM.standard_normal((rows, 2)).astype(np.float32))
    assert [c.graph.inputs[0].shape for c in compiler.compiled] == [(2, 2), (5, 2), (0, 2)]


def test_the_first_stage_is_compiled_before_the_first_run() -> None:
    compiler = Compiler()
    StagedExecutable(chosen_rows(), HostMemory(), compiler)
    assert compiler.operators == [["ReduceSum", "Greater", "Mul"]]


def test_only_inputs_and_outputs_of_host_nodes_are_copied() -> None:
    graph, memory = chosen_rows(), device_memory()
    executable = StagedExecutable(graph, memory, Compiler())
    x = Buffer(graph.inputs[0].type, memory, Storage(rows_for(3)))
    outputs = [Buffer(v.type, memory, memory.allocate(v.type) if v.type.is_static else None) for v in graph.outputs]
    executable.run([x], outputs, None)
    assert (memory.downloads, memory.uploads) == (1, 1)  # the input and the result of NonZero


def test_outputs_are_written_into_the_callers_buffers() -> None:
    graph, memory = chosen_rows(), HostMemory()
    executable = StagedExecutable(graph, memory, Compiler())
    x = rows_for(2)
    storages = [memory.allocate(v.type) if v.type.is_static else None for v in graph.outputs]
    outputs = [Buffer(v.type, memory, storage) for v, storage in zip(graph.outputs, storages)]
    executable.run([Buffer(graph.inputs[0].type, memory, x)], outputs, None)
    for buffer, storage, expected in zip(outputs, storages, evaluate_graph(graph, [x])):
        assert buffer.holds_its_own
        assert storage is None or buffer.data is storage
        np.testing.assert_array_equal(buffer.data, expected)


def test_output_computed_on_the_host_shares_no_memory_with_the_input() -> None:
    """The reference of Reshape returns a view of its input, and the result is an output of the partition."""
    b = GraphBuilder("reshaped")
    x, shape = b.input("x", "float32", [2, 6]), b.input("shape", "int64", [2])
    b.output(b.add("Reshape", [x, shape]), "y")
    graph, memory, array = b.build(), HostMemory(), np.ones((2, 6), np.float32)
    (y,) = run(StagedExecutable(graph, memory, Compiler()), graph, memory, [array, np.array([3, 4])])
    assert y.shape == (3, 4)
    assert not np.shares_memory(y, array)


def test_scratch_memory_is_reused_by_later_runs() -> None:
    graph, compiler = any_length(), Compiler()
    executable = StagedExecutable(graph, HostMemory(), compiler)
    for _ in range(4):
        check(executable, graph, HostMemory(), np.ones((3, 2), np.float32))
    assert len({memory.ctypes.data for memory in compiler.compiled[0].scratches}) == 1


def test_concurrent_runs_with_different_data() -> None:
    graph, memory, compiler = chosen_rows(), device_memory(), Compiler()
    executable = StagedExecutable(graph, memory, compiler)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda count: check(executable, graph, memory, rows_for(count % 7)), range(48)))
    assert len(compiler.compiled) == 1 + 7  # no stage was compiled twice


# **** observed runs ****


@MEMORIES
def test_an_observer_sees_all_stages_and_replaces_values(make_memory: MakeMemory) -> None:
    graph, memory, x = chosen_rows(), make_memory(), rows_for(3)
    executable, recorder = StagedExecutable(graph, memory, Compiler()), Recorder()
    found = run(ObservedExecutable(executable, recorder), graph, memory, [x])
    for array, expected in zip(found, evaluate_graph(graph, [x])):
        np.testing.assert_array_equal(array, expected)
    truth = references(graph, [x])
    assert {"rows", "sum", "indices", "scaled"} <= recorder.values.keys()
    for name, array in recorder.values.items():
        np.testing.assert_array_equal(array, truth[name], err_msg=name)
    assert [kernel for kernel, _ in recorder.started] == ["chosen_rows", "host reference", "chosen_rows"]
    assert {node.name for node in graph.nodes} == {name for _, nodes in recorder.started for name in nodes}
    # Other rows are chosen: the stage after the replaced value is compiled for their number.
    replaced = Recorder({"indices": np.array([[5]])})
    rows, _, indices, _ = run(ObservedExecutable(executable, replaced), graph, memory, [x])
    assert indices.tolist() == [[5]]
    np.testing.assert_array_equal(rows, np.exp(-3 * x[5:]))


def test_profiles_time_each_node_on_the_host() -> None:
    graph = chosen_rows()
    times = run(HostExecutable(graph), graph, HostMemory(), [rows_for(2)], profiled=True)
    assert [time.nodes for time in times] == [(node.name,) for node in graph.nodes]
    assert all(time.seconds >= 0 for time in times)


# **** cached stages ****


def test_the_sixteen_most_recently_used_stages_are_cached() -> None:
    graph, memory, compiler = any_length(), HostMemory(), Compiler()
    executable = StagedExecutable(graph, memory, compiler)

    def compiles(rows: int) -> bool:
        before = len(compiler.compiled)
        check(executable, graph, memory, np.ones((rows, 2), np.float32))
        return len(compiler.compiled) > before

    assert all(compiles(rows) for rows in range(16))
    assert not compiles(0)
    assert compiles(16)  # replaces 1, the least recently used
    assert not compiles(0)
    assert compiles(1)


def test_stages_are_freed_with_the_executable() -> None:
    graph, memory, compiler = chosen_rows(), device_memory(), Compiler()
    executable = StagedExecutable(graph, memory, compiler)
    check(executable, graph, memory, rows_for(3))
    compiled = [weakref.ref(one) for one in compiler.compiled]
    gc.disable()
    try:
        compiler.compiled.clear()
        del executable
        assert [one() for one in compiled] == [None, None]
    finally:
        gc.enable()


def test_failed_stage_is_compiled_again_by_the_next_run() -> None:
    graph, calls = any_length(), []

    def fail(graph: Graph) -> Executable:
        calls.append(graph)
        raise ExecutionError("no compiler today")

    executable = StagedExecutable(graph, HostMemory(), fail)
    for _ in range(2):
        with pytest.raises(ExecutionError, match="no compiler today"):
            run(executable, graph, HostMemory(), [np.ones((1, 2), np.float32)])
    assert len(calls) == 2


# **** elements that must be known ****


def needs_axis(graph: Graph) -> list[Node]:
    """Return the CumSum nodes whose axis is not a constant."""
    return [n for n in graph.nodes if n.op == "CumSum" and n.inputs[1] not in graph.constants]


@MEMORIES
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_nodes_that_need_elements_run_on_the_host(make_memory: MakeMemory, axis: int) -> None:
    graph, memory, compiler = summed(), make_memory(), Compiler()
    assert can_compile_whole(graph)
    assert not can_compile_whole(graph, needs_axis)
    executable = StagedExecutable(graph, memory, compiler, needs_axis)
    check(executable, graph, memory, RANDOM.integers(-9, 9, (3, 3)).astype(np.float32), np.array([axis]))
    assert compiler.operators == [["Abs", "Squeeze"], ["Neg"]]


def test_graph_with_unknown_shapes_cannot_be_compiled_whole() -> None:
    assert not can_compile_whole(any_length())
    assert not can_compile_whole(chosen_rows())


# **** profiles ****


@MEMORIES
def test_profile_has_every_node_once_and_in_order(make_memory: MakeMemory) -> None:
    graph, memory = chosen_rows(), make_memory()
    executable = StagedExecutable(graph, memory, Compiler())
    times = run(executable, graph, memory, [rows_for(2)], profiled=True)
    assert sorted(name for t in times for name in t.nodes) == sorted(node.name for node in graph.nodes)
    assert [t.name for t in times].index("host reference") == 3
    assert [t.nodes for t in times if t.name == "host reference"] == [
        (node.name,) for node in graph.nodes if node.op == "NonZero"
    ]
    assert all(t.seconds > 0 for t in times)


def test_profile_lacks_kernels_of_executables_that_do_not_profile() -> None:
    class UnprofiledExecutable:
        scratch_bytes = 0

        def __init__(self, graph: Graph) -> None:
            self._graph = graph

        def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
            assert scratch is None
            for buffer, result in zip(outputs, evaluate_graph(self._graph, [b.data for b in inputs])):
                buffer.store(result)

    graph, memory = chosen_rows(), HostMemory()
    executable = StagedExecutable(graph, memory, UnprofiledExecutable)
    check(executable, graph, memory, rows_for(4))
    assert [t.name for t in run(executable, graph, memory, [rows_for(4)], profiled=True)] == ["host reference"]
    assert executable.notes == ("compiled in stages: shapes depend on data",)
    assert executable.memory_use() == MemoryUse(0, (), 0, 0)


def test_notes_and_memory_use_cover_the_stages_that_ran_last() -> None:
    graph, memory = chosen_rows(), HostMemory()
    executable = StagedExecutable(graph, memory, Compiler())
    assert executable.memory_use() == MemoryUse(300, (Interval(300, 0, 0),), 30, 3)
    check(executable, graph, memory, rows_for(4))
    assert executable.memory_use() == MemoryUse(300 + 600, (), 30 + 60, 3 + 6)
    assert executable.notes == ("compiled in stages: shapes depend on data", "compiled for a test")


# **** as part of a backend ****


class Staging:
    """A backend with its own memory space and a compiler that requires static shapes."""

    name = "staging"

    def __init__(self, fails: bool = False) -> None:
        self.tensors = device_memory()
        self.compiler = Compiler()
        self._fails = fails

    def probe(self) -> list[Device]:
        return [Device(self.name, score=5)]

    def supports(self, node: Node, device: Device) -> Yes | No:
        return No("the operator is not supported") if node.op in ("NonZero", "Unique") else Yes()

    def memory(self, device: Device) -> Memory:
        return self.tensors

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        if self._fails:
            return StagedExecutable(part.graph, self.tensors, self._fail)
        return StagedExecutable(part.graph, self.tensors, self.compiler)

    def _fail(self, graph: Graph) -> Executable:
        raise ExecutionError("no compiler today")


@pytest.mark.parametrize("make", [chosen_rows, twice_chosen])
def test_session_runs_partitions_before_and_after_a_node_on_another_device(make: Callable[[], Graph]) -> None:
    backend, graph = Staging(), make()
    session = load(graph, backend="staging", plugins=plugins_with(backend))
    for _ in range(6):
        x = RANDOM.standard_normal(graph.inputs[0].type.shape).astype(np.float32)  # type: ignore[call-overload]
        outputs = session.run({"x": x}, profile=True)
        for name, expected in zip(session.outputs, evaluate_graph(session.graph, [x])):
            np.testing.assert_array_equal(outputs[name], expected)
    assert {a.device for a in session.assignment()} >= {"staging"}
    profiled = {name for kernel in session.last_profile.kernels for name in kernel.nodes}
    assert profiled >= {a.node for a in session.assignment() if a.device == "staging"}
    assert "compiled in stages" in str(session.last_profile)


def test_failing_first_stage_moves_its_nodes_to_the_next_backend() -> None:
    graph = twice_chosen()
    session = load(graph, plugins=plugins_with(Staging(fails=True)))
    x = RANDOM.standard_normal(8).astype(np.float32)
    np.testing.assert_array_equal(session.run({"x": x})["y"], evaluate_graph(graph, [x])[0])
    assert {a.device for a in session.assignment()} == {"host"}


def test_invalid_data_raises_an_error_that_names_the_node() -> None:
    b = GraphBuilder("reshaped")
    shape = b.input("shape", "int64", [2])
    b.output(b.add("Relu", [b.add("Reshape", [b.input("x", "float32", [4, 6]), shape])]), "y")
    session = load(b.build(), backend="staging", plugins=plugins_with(Staging()))
    x = np.ones((4, 6), np.float32)
    with pytest.raises(LiteError, match="Reshape"):
        session.run({"x": x, "shape": np.array([5, 5])})
    assert session.run({"x": x, "shape": np.array([3, 8])})["y"].shape == (3, 8)


def test_kernel_backend_compiles_stages() -> None:
    kernels = KernelBackend("kernels")
    kernels.kernel("Neg")(lambda x, *, out: np.negative(x, out=out))
    kernels.kernel("Relu")(lambda x, *, out: np.maximum(x, 0, out=out))
    (device,) = kernels.probe()
    graph, memory = any_length(), HostMemory()
    executable = StagedExecutable(
        graph, memory, lambda graph: kernels.compile(Partition("stage", graph), device, Options())
    )
    check(executable, graph, memory, RANDOM.standard_normal((3, 2)).astype(np.float32))
    times = run(executable, graph, memory, [np.ones((3, 2), np.float32)], profiled=True)
    assert [t.nodes for t in times] == [(node.name,) for node in graph.nodes]
