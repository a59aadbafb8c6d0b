"""Partitions whose shapes depend on data, compiled stage by stage: in main memory, and for a device with its own."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from device_memory import Memory, Storage

from lite_compiler.staging import StagedExecutable, is_static
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
    """The elements of a tensor, wherever it lies."""
    data = buffer.data
    return data.content if isinstance(data, Storage) else data


class Compiled:
    """An executable as a compiler makes it: of static shapes only, in the memory that its tensors are in."""

    def __init__(self, graph: Graph) -> None:
        assert is_static(graph)
        self.graph = graph
        self.scratch_bytes = 64 * len(graph.nodes)
        self.notes = ("compiled for a test",)
        self.scratches: list[Array] = []  # kept, so that no other gets their place

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
    """Compiles graphs, and remembers which."""

    def __init__(self) -> None:
        self.made: list[Compiled] = []

    def __call__(self, graph: Graph) -> Compiled:
        self.made.append(Compiled(graph))
        return self.made[-1]

    @property
    def operators(self) -> list[list[str]]:
        return [[n.op for n in compiled.graph.nodes] for compiled in self.made]


def device_memory() -> Memory:
    """A memory space that is not the host's."""
    return Memory("device")


MEMORIES = pytest.mark.parametrize("make_memory", [HostMemory, device_memory])
MakeMemory = Callable[[], Any]


# **** graphs ****


def chosen_rows() -> Graph:
    """Scores pick rows of x, which are scaled and summed; a constant is read before the cut and after it."""
    b = GraphBuilder("chosen_rows")
    x = b.input("x", "float32", [6, 5])
    three = b.constant(np.float32(3))
    above = b.add("Greater", [b.add("ReduceSum", [x, b.ints(1)], {"keepdims": 0}), b.constant(np.float32(0))])
    places = b.add("NonZero", [above])
    rows = b.add("Mul", [b.add("Gather", [x, b.add("Squeeze", [places, b.ints(0)])]), three])
    b.output(b.add("Exp", [b.add("Neg", [rows])]), "rows")
    b.output(b.add("ReduceSum", [rows, b.ints(0)], {"keepdims": 0}), "sum")
    b.output(places, "places")
    b.output(b.add("Mul", [x, three]), "scaled")
    return b.build()


def rows_for(count: int) -> Array:
    """Data of which so many rows are chosen."""
    x = np.abs(RANDOM.standard_normal((6, 5))).astype(np.float32)
    x[count:] *= -1
    return RANDOM.permutation(x)


def twice_chosen() -> Graph:
    """What is chosen is chosen from again: two cuts, one behind the other."""
    b = GraphBuilder("twice_chosen")
    x = b.input("x", "float32", [8])
    y = x
    for _ in range(2):
        y = b.add("Compress", [y, b.add("Greater", [b.add("Abs", [y]), b.add("ReduceMean", [y], {"keepdims": 0})])])
    b.output(b.add("Neg", [y]), "y")
    return b.build()


def any_length() -> Graph:
    """The input's own size depends on data, and nothing inside decides another."""
    b = GraphBuilder("any_length")
    b.output(b.add("Relu", [b.add("Neg", [b.input("x", "float32", ["n", 2])])]), "y")
    return b.build()


def summed() -> Graph:
    """The shapes are known, but not the axis: an input."""
    b = GraphBuilder("summed")
    x, axis = b.input("x", "float32", [3, 3]), b.input("axis", "int64", [1])
    b.output(b.add("Neg", [b.add("CumSum", [b.add("Abs", [x]), b.add("Squeeze", [axis])])]), "y")
    return b.build()


def with_branches() -> Graph:
    """A node with sub-graphs that use a value from around them, and results of unlike sizes."""
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
    """Run once, as a plan does; the results, or with ``profiled`` the times."""
    given = []
    for array in inputs:
        given.append(Buffer(TensorType.of_array(array), memory))
        given[-1].store(array)
    outputs = [Buffer(v.type, memory, memory.allocate(v.type) if v.type.is_static else None) for v in graph.outputs]
    if profiled:
        return executable.run_profiled(given, outputs, None)  # type: ignore[attr-defined]
    executable.run(given, outputs, None)
    return [content(b) for b in outputs]


def check(executable: Executable, graph: Graph, memory: Any, *inputs: Array) -> None:
    for found, right in zip(run(executable, graph, memory, inputs), evaluate_graph(graph, inputs), strict=True):
        assert found.dtype == right.dtype
        np.testing.assert_array_equal(found, right)


@MEMORIES
def test_whatever_the_data_decides(make_memory: MakeMemory) -> None:
    graph, memory, compiler = chosen_rows(), make_memory(), Compiler()
    executable = StagedExecutable(graph, memory, compiler)
    for count in (3, 0, 6, 1, 3, 0):
        check(executable, graph, memory, rows_for(count))
    first, *others = compiler.operators
    assert first == ["ReduceSum", "Greater", "Mul"]
    assert others == [["Squeeze", "Gather", "Mul", "Neg", "Exp", "ReduceSum"]] * 4  # of four numbers of rows


@MEMORIES
def test_two_decisions_one_behind_the_other(make_memory: MakeMemory) -> None:
    graph, memory, compiler = twice_chosen(), make_memory(), Compiler()
    executable = StagedExecutable(graph, memory, compiler)
    for _ in range(8):
        check(executable, graph, memory, RANDOM.standard_normal(8).astype(np.float32))
    assert ["Neg"] in compiler.operators


@MEMORIES
def test_a_node_with_sub_graphs_decides(make_memory: MakeMemory) -> None:
    graph, memory = with_branches(), make_memory()
    executable = StagedExecutable(graph, memory, Compiler(), lambda graph: [n for n in graph.nodes if n.subgraphs])
    for sign in (1, -1, 1):
        check(executable, graph, memory, np.full(4, sign, np.float32))


def test_inputs_whose_sizes_depend_on_data_are_one_stage_for_each_size() -> None:
    graph, memory, compiler = any_length(), device_memory(), Compiler()
    executable = StagedExecutable(graph, memory, compiler)
    assert not compiler.made
    for rows in (2, 5, 2, 0, 5):
        check(executable, graph, memory, RANDOM.standard_normal((rows, 2)).astype(np.float32))
    assert [c.graph.inputs[0].shape for c in compiler.made] == [(2, 2), (5, 2), (0, 2)]


def test_the_first_stage_is_compiled_before_the_first_run() -> None:
    compiler = Compiler()
    StagedExecutable(chosen_rows(), HostMemory(), compiler)
    assert compiler.operators == [["ReduceSum", "Greater", "Mul"]]


def test_only_what_the_host_reads_or_makes_is_copied() -> None:
    graph, memory = chosen_rows(), device_memory()
    executable = StagedExecutable(graph, memory, Compiler())
    x = Buffer(graph.inputs[0].type, memory, Storage(rows_for(3)))
    outputs = [Buffer(v.type, memory, memory.allocate(v.type) if v.type.is_static else None) for v in graph.outputs]
    executable.run([x], outputs, None)
    assert (memory.downloads, memory.uploads) == (1, 1)  # what NonZero reads, and its result


def test_results_are_made_where_the_caller_wants_them() -> None:
    graph, memory = chosen_rows(), HostMemory()
    executable = StagedExecutable(graph, memory, Compiler())
    x = rows_for(2)
    places = [memory.allocate(v.type) if v.type.is_static else None for v in graph.outputs]
    outputs = [Buffer(v.type, memory, place) for v, place in zip(graph.outputs, places)]
    executable.run([Buffer(graph.inputs[0].type, memory, x)], outputs, None)
    for buffer, place, right in zip(outputs, places, evaluate_graph(graph, [x])):
        assert buffer.holds_its_own
        assert place is None or buffer.data is place
        np.testing.assert_array_equal(buffer.data, right)


def test_what_is_made_on_the_host_is_not_an_input_in_disguise() -> None:
    """A Reshape on the host is a view of the input, and a result of the partition."""
    b = GraphBuilder("reshaped")
    x, shape = b.input("x", "float32", [2, 6]), b.input("shape", "int64", [2])
    b.output(b.add("Reshape", [x, shape]), "y")
    graph, memory, given = b.build(), HostMemory(), np.ones((2, 6), np.float32)
    (y,) = run(StagedExecutable(graph, memory, Compiler()), graph, memory, [given, np.array([3, 4])])
    assert y.shape == (3, 4)
    assert not np.shares_memory(y, given)


def test_scratch_memory_goes_from_run_to_run() -> None:
    graph, compiler = any_length(), Compiler()
    executable = StagedExecutable(graph, HostMemory(), compiler)
    for _ in range(4):
        check(executable, graph, HostMemory(), np.ones((3, 2), np.float32))
    assert len({memory.ctypes.data for memory in compiler.made[0].scratches}) == 1


def test_threads_with_data_of_their_own() -> None:
    graph, memory, compiler = chosen_rows(), device_memory(), Compiler()
    executable = StagedExecutable(graph, memory, compiler)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda count: check(executable, graph, memory, rows_for(count % 7)), range(48)))
    assert len(compiler.made) == 1 + 7  # nothing was compiled twice


# **** what is kept ****


def test_the_sixteen_sizes_used_last_are_kept() -> None:
    graph, memory, compiler = any_length(), HostMemory(), Compiler()
    executable = StagedExecutable(graph, memory, compiler)

    def compiles(rows: int) -> bool:
        before = len(compiler.made)
        check(executable, graph, memory, np.ones((rows, 2), np.float32))
        return len(compiler.made) > before

    assert all(compiles(rows) for rows in range(16))
    assert not compiles(0)
    assert compiles(16)  # in the place of 1, which was not used for longest
    assert not compiles(0)
    assert compiles(1)


def test_what_was_compiled_is_freed_with_the_executable() -> None:
    graph, memory, compiler = chosen_rows(), device_memory(), Compiler()
    executable = StagedExecutable(graph, memory, compiler)
    check(executable, graph, memory, rows_for(3))
    compiled = [weakref.ref(one) for one in compiler.made]
    gc.disable()
    try:
        compiler.made.clear()
        del executable
        assert [one() for one in compiled] == [None, None]
    finally:
        gc.enable()


def test_a_stage_that_cannot_be_compiled_fails_each_time_it_is_asked_for() -> None:
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
    """CumSum is compiled for an axis, which has to be a constant."""
    return [n for n in graph.nodes if n.op == "CumSum" and n.inputs[1] not in graph.constants]


@MEMORIES
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_nodes_that_need_elements_run_on_the_host(make_memory: MakeMemory, axis: int) -> None:
    graph, memory, compiler = summed(), make_memory(), Compiler()
    assert is_static(graph)
    assert not is_static(graph, needs_axis)
    executable = StagedExecutable(graph, memory, compiler, needs_axis)
    check(executable, graph, memory, RANDOM.integers(-9, 9, (3, 3)).astype(np.float32), np.array([axis]))
    assert compiler.operators == [["Abs", "Squeeze"], ["Neg"]]


def test_a_graph_is_static_when_every_shape_is() -> None:
    assert not is_static(any_length())
    assert not is_static(chosen_rows())


# **** profiles ****


@MEMORIES
def test_a_profile_has_every_node_once_and_in_order(make_memory: MakeMemory) -> None:
    graph, memory = chosen_rows(), make_memory()
    executable = StagedExecutable(graph, memory, Compiler())
    times = run(executable, graph, memory, [rows_for(2)], profiled=True)
    assert sorted(name for t in times for name in t.nodes) == sorted(node.name for node in graph.nodes)
    assert [t.name for t in times].index("host reference") == 3
    assert [t.nodes for t in times if t.name == "host reference"] == [
        (node.name,) for node in graph.nodes if node.op == "NonZero"
    ]
    assert all(t.seconds > 0 for t in times)


def test_stages_that_measure_nothing_have_no_kernels_in_a_profile() -> None:
    class Plain:
        scratch_bytes = 0

        def __init__(self, graph: Graph) -> None:
            self._graph = graph

        def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
            assert scratch is None
            for buffer, result in zip(outputs, evaluate_graph(self._graph, [b.data for b in inputs])):
                buffer.store(result)

    graph, memory = chosen_rows(), HostMemory()
    executable = StagedExecutable(graph, memory, Plain)
    check(executable, graph, memory, rows_for(4))
    assert [t.name for t in run(executable, graph, memory, [rows_for(4)], profiled=True)] == ["host reference"]
    assert executable.notes == ("compiled in stages: shapes depend on data",)
    assert executable.memory_use() == MemoryUse(0, (), 0, 0)


def test_notes_and_memory_are_those_of_the_stages_used_last() -> None:
    graph, memory = chosen_rows(), HostMemory()
    executable = StagedExecutable(graph, memory, Compiler())
    assert executable.memory_use() == MemoryUse(300, (Interval(300, 0, 0),), 30, 3)
    check(executable, graph, memory, rows_for(4))
    assert executable.memory_use() == MemoryUse(300 + 600, (), 30 + 60, 3 + 6)
    assert executable.notes == ("compiled in stages: shapes depend on data", "compiled for a test")


# **** as part of a backend ****


class Staging:
    """A backend whose compiler wants static shapes, in a memory of its own."""

    name = "staging"

    def __init__(self, fails: bool = False) -> None:
        self.tensors = device_memory()
        self.compiler = Compiler()
        self._fails = fails

    def probe(self) -> list[Device]:
        return [Device(self.name, score=5)]

    def supports(self, node: Node, device: Device) -> Yes | No:
        return No("it is left to others") if node.op in ("NonZero", "Unique") else Yes()

    def memory(self, device: Device) -> Memory:
        return self.tensors

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        if self._fails:
            return StagedExecutable(part.graph, self.tensors, self._fail)
        return StagedExecutable(part.graph, self.tensors, self.compiler)

    def _fail(self, graph: Graph) -> Executable:
        raise ExecutionError("no compiler today")


@pytest.mark.parametrize("make", [chosen_rows, twice_chosen])
def test_a_session_runs_partitions_before_and_behind_a_node_elsewhere(make: Callable[[], Graph]) -> None:
    backend, graph = Staging(), make()
    session = load(graph, backend="staging", plugins=plugins_with(backend))
    for _ in range(6):
        x = RANDOM.standard_normal(graph.inputs[0].type.shape).astype(np.float32)  # type: ignore[call-overload]
        outputs = session.run({"x": x}, profile=True)
        for name, right in zip(session.outputs, evaluate_graph(session.graph, [x])):
            np.testing.assert_array_equal(outputs[name], right)
    assert {a.device for a in session.assignment()} >= {"staging"}
    profiled = {name for kernel in session.last_profile.kernels for name in kernel.nodes}
    assert profiled >= {a.node for a in session.assignment() if a.device == "staging"}
    assert "compiled in stages" in str(session.last_profile)


def test_a_first_stage_that_fails_leaves_its_nodes_to_the_next_backend() -> None:
    graph = twice_chosen()
    session = load(graph, plugins=plugins_with(Staging(fails=True)))
    x = RANDOM.standard_normal(8).astype(np.float32)
    np.testing.assert_array_equal(session.run({"x": x})["y"], evaluate_graph(graph, [x])[0])
    assert {a.device for a in session.assignment()} == {"host"}


def test_a_fault_in_the_data_is_an_error_that_names_the_node() -> None:
    b = GraphBuilder("reshaped")
    shape = b.input("shape", "int64", [2])
    b.output(b.add("Relu", [b.add("Reshape", [b.input("x", "float32", [4, 6]), shape])]), "y")
    session = load(b.build(), backend="staging", plugins=plugins_with(Staging()))
    x = np.ones((4, 6), np.float32)
    with pytest.raises(LiteError, match="Reshape"):
        session.run({"x": x, "shape": np.array([5, 5])})
    assert session.run({"x": x, "shape": np.array([3, 8])})["y"].shape == (3, 8)


def test_kernels_can_be_what_is_compiled() -> None:
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
