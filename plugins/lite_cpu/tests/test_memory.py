"""Memory of results: slices of concatenations, memory of operands after their last use, and a small arena."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from levels import backend_for, machine_params, run_on, runnable_machines
from saving import compiled, restored, saved

from lite_compiler.chains import Apply
from lite_core.backend import Options
from lite_core.builder import GraphBuilder
from lite_core.ir import DType, Graph, Value
from lite_core.memory import read_only
from lite_core.memory.arena import plan_arena
from lite_core.ops.evaluate import evaluate_graph
from lite_cpu.addresses import address_of
from lite_cpu.chains import Chain, Operand
from lite_cpu.lowering.compile import lower_graph
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.memory import lifetimes_of
from lite_cpu.lowering.weights import WeightCache
from lite_cpu.machine import Machine
from lite_cpu.machine_code.library import KernelLibrary
from lite_cpu.tensors import Tensor

Array = np.ndarray[Any, Any]

machines = pytest.mark.parametrize("machine", machine_params())


def lowered(graph: Graph) -> Lowering:
    """Lower a graph."""
    shared = backend_for(runnable_machines()[-1])._share()
    return lower_graph(graph, Options(threads=1), shared.library, shared.weights)


def tensor(lowering: Lowering, value: Value) -> Tensor:
    """Return the tensor of a value of the original graph."""
    return next(lowering.tensor(v) for v in lowering.graph.defined() if v.name == value.name)


def labels(lowering: Lowering) -> list[str]:
    return [step.label for step in lowering.steps]


def convolved(b: GraphBuilder, x: Value, channels: int) -> Value:
    """Add a pointwise convolution with small integral weights, whose sums are exact in any order."""
    weights = np.random.default_rng(channels).integers(-1, 2, (channels, x.shape[1], 1, 1)).astype(np.float32)
    return b.add("Conv", [x, b.constant(weights)])


# **** concatenations ****


def test_convolutions_write_into_the_concatenation() -> None:
    b = GraphBuilder("inception")
    x = b.input("x", "float32", (1, 8, 6, 6))
    first, second = convolved(b, x, 16), b.add("Relu", [convolved(b, x, 24)])
    joined = b.add("Concat", [first, second], {"axis": 1})
    b.output(convolved(b, joined, 4), "y")
    lowering = lowered(b.build())
    assert tensor(lowering, joined).is_channels_last
    assert tensor(lowering, first).storage is tensor(lowering, second).storage is tensor(lowering, joined).storage


def test_concatenation_is_written_through_views() -> None:
    b = GraphBuilder("detector")
    x = b.input("x", "float32", (1, 8, 6, 6))
    heads = []
    for channels in (12, 20):
        pixels = b.add("Transpose", [convolved(b, x, channels)], {"perm": (0, 2, 3, 1)})
        heads.append(b.add("Reshape", [pixels, b.constant(np.array([1, -1, 4]))]))
    b.output(b.add("Concat", heads, {"axis": 1}), "y")
    lowering = lowered(b.build())
    assert all(tensor(lowering, v).storage is lowering.outputs[lowering.graph.outputs[0]].storage for v in heads)


def test_nested_concatenations_and_other_readers_share_one_storage() -> None:
    b = GraphBuilder("nested")
    x = b.input("x", "float32", (2, 4, 3))
    parts = [b.add(op, [x]) for op in ("Relu", "Neg", "Abs")]
    inner = b.add("Concat", parts[:2], {"axis": 1})
    outer = b.add("Concat", [inner, parts[2]], {"axis": 1})
    b.output(b.add("Sqrt", [b.add("Abs", [outer])]), "y")
    b.output(b.add("Sin", [parts[0]]), "z")
    lowering = lowered(b.build())
    assert "copy" not in labels(lowering)
    assert len({id(tensor(lowering, v).storage) for v in (*parts, inner, outer)}) == 1


def test_value_concatenated_twice_is_copied_the_second_time() -> None:
    b = GraphBuilder("twice")
    x = b.input("x", "float32", (2, 4))
    y = b.add("Neg", [x])
    b.output(b.add("Concat", [y, y, x], {"axis": 1}), "y")
    assert labels(lowered(b.build())) == ["elementwise", "copy", "copy"]


# **** operands overwritten by results ****


RELU = Chain(Operand(DType.FLOAT32), (), (Apply("Relu", (0,), DType.FLOAT32),))
ADD = Chain(Operand(DType.FLOAT32), (Operand(DType.FLOAT32),), (Apply("Add", (0, 1), DType.FLOAT32),))


def empty_lowering() -> Lowering:
    b = GraphBuilder("nothing")
    b.output(b.input("x", "float32", (1,)), "y")
    return Lowering(KernelLibrary(runnable_machines()[-1]), b.build(), Options(threads=1), WeightCache())


def test_result_reuses_the_memory_of_an_operand_after_its_last_use() -> None:
    lowering = empty_lowering()
    x, y, z = (lowering.allocate((8, 32), DType.FLOAT32) for _ in range(3))
    lowering.elementwise(RELU, [x], y)
    lowering.elementwise(ADD, [y, y], z)
    (life,) = lifetimes_of(lowering.steps)
    assert life.storages == [x.storage, y.storage, z.storage]
    assert (life.first, life.last) == (0, 1)


@pytest.mark.parametrize("view", [(32, 8), (256,)])
def test_operand_with_later_reader_through_a_view_is_not_overwritten(view: tuple[int, ...]) -> None:
    lowering = empty_lowering()
    x, y = (lowering.allocate((8, 32), DType.FLOAT32) for _ in range(2))
    seen = x.reshape(view)
    assert seen is not None
    lowering.elementwise(RELU, [x], y)
    lowering.elementwise(RELU, [seen], lowering.allocate(view, DType.FLOAT32))
    assert any(life.storages == [y.storage] for life in lifetimes_of(lowering.steps))


def test_operands_of_another_layout_are_not_overwritten() -> None:
    lowering = empty_lowering()
    square, row = lowering.allocate((8, 8), DType.FLOAT32), lowering.allocate((8,), DType.FLOAT32)
    wide = lowering.allocate((8, 16), DType.FLOAT32)
    for sources in ([square.permute((1, 0))], [row], [wide.slice(1, 0, 8)], [square, square.permute((1, 0))]):
        lowering.steps.clear()
        lowering.elementwise(ADD if len(sources) == 2 else RELU, sources, lowering.allocate((8, 8), DType.FLOAT32))
        assert all(len(life.storages) == 1 for life in lifetimes_of(lowering.steps))


# **** the arena ****


def test_addresses_of_arrays_that_share_memory() -> None:
    block = np.zeros((4, 6), np.float32)
    writable = [
        block,
        block[1:3],
        block.reshape(-1)[5:9],
        block[:0],
        np.zeros((), np.float32),
        np.asfortranarray(block).T,
    ]
    narrow = np.zeros(3, "V2")
    assert [address_of(array) for array in writable] == [array.ctypes.data for array in writable]
    for array in (read_only(array) for array in [*writable, narrow, np.frombuffer(b"12345678", np.int32)]):
        assert address_of(array) == array.ctypes.data


@machines
def test_memory_use_of_compiled_and_restored_executables(machine: Machine) -> None:
    b = GraphBuilder("chain")
    x = b.input("x", "float32", (1, 8, 6, 6))
    b.output(convolved(b, convolved(b, convolved(b, x, 16), 32), 4), "y")
    graph = b.build()
    executable = compiled(machine, graph, threads=2)
    use = executable.memory_use()
    assert use.arena_bytes == plan_arena(use.intervals).size == 4 * 36 * (16 + 32)
    assert use.arena_bytes + use.scratch_bytes <= executable.scratch_bytes
    assert use.weight_bytes >= 4 * (8 * 16 + 16 * 32 + 32 * 4)
    assert restored(machine, saved(executable), graph, threads=2).memory_use() == use


# **** random graphs ****


class RandomGraph:
    """A random graph under construction; all values are images of small integers, so results are exact."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.b = GraphBuilder("drawn")
        self.values: list[Value] = []
        for i in range(draw(st.integers(1, 2))):
            sizes = (st.integers(1, 2), st.sampled_from([2, 4, 6, 16]), st.integers(1, 4), st.integers(1, 5))
            shape = draw(st.tuples(*sizes))
            self.values.append(self.b.input(f"x{i}", "float32", shape))

    def pick(self) -> Value:
        # Recent values are preferred, which gives deeper graphs.
        back = self.draw(st.integers(1, min(4, len(self.values))))
        return self.values[-back]

    def alike(self, x: Value, axis: int | None = None) -> Value:
        """Draw a value of the same shape, except for one axis if given."""

        def fits(v: Value) -> bool:
            return all(n == m or i == axis for i, (n, m) in enumerate(zip(v.shape, x.shape)))

        return self.draw(st.sampled_from([v for v in self.values if fits(v)]))

    def grow(self) -> None:
        x = self.pick()
        kind = self.draw(st.sampled_from(["unary", "binary", "scale", "concat", "split", "permute", "reshape", "slice",
                                          "conv", "pool", "resize", "pad", "gather"]))  # fmt: skip
        self.values += getattr(self, f"add_{kind}")(x)

    def add_unary(self, x: Value) -> list[Value]:
        return [self.b.add(self.draw(st.sampled_from(["Relu", "Neg", "Abs", "Identity"])), [x])]

    def add_binary(self, x: Value) -> list[Value]:
        return [self.b.add(self.draw(st.sampled_from(["Add", "Max", "Sub"])), [x, self.alike(x)])]

    def add_scale(self, x: Value) -> list[Value]:
        factors = np.arange(x.shape[1], dtype=np.float32).reshape(-1, 1, 1) % 3 - 1
        return [self.b.add("Mul", [x, self.b.constant(factors)])]

    def add_concat(self, x: Value) -> list[Value]:
        axis = self.draw(st.sampled_from([0, 1, 1, 1, 2, 3]))
        others = [self.alike(x, axis) for _ in range(self.draw(st.integers(0, 2)))]
        return [self.b.add("Concat", [x, *others], {"axis": axis})]

    def add_split(self, x: Value) -> list[Value]:
        if x.shape[1] < 2:
            return []
        first = self.draw(st.integers(1, x.shape[1] - 1))
        sizes = self.b.constant(np.array([first, x.shape[1] - first]))
        return self.b.add_node("Split", [x, sizes], {"axis": 1}, outputs=2)

    def add_permute(self, x: Value) -> list[Value]:
        return [self.b.add("Transpose", [x], {"perm": tuple(self.draw(st.permutations(range(4))))})]

    def add_reshape(self, x: Value) -> list[Value]:
        n, c, h, w = x.shape
        shape = self.draw(st.sampled_from([(n, c, h * w, 1), (n * c, 1, h, w), (n, h, c, w), (1, n * c * h, w, 1)]))
        return [self.b.add("Reshape", [x, self.b.constant(np.array(shape))])]

    def add_slice(self, x: Value) -> list[Value]:
        axis, step = self.draw(st.integers(0, 3)), self.draw(st.sampled_from([1, 2, -1, -2]))
        bounds = (0, 2**31) if step > 0 else (-1, -(2**31))
        arguments = [self.b.constant(np.array([n])) for n in (*bounds, axis, step)]
        return [self.b.add("Slice", [x, *arguments])]

    def add_conv(self, x: Value) -> list[Value]:
        return [convolved(self.b, x, self.draw(st.sampled_from([3, 8, 20])))]

    def add_pool(self, x: Value) -> list[Value]:
        return [self.b.add("MaxPool", [x], {"kernel_shape": (3, 3), "pads": (1, 1, 1, 1)})]

    def add_resize(self, x: Value) -> list[Value]:
        scales = self.b.constant(np.array([1, 1, 2, 2], np.float32))
        return [self.b.add("Resize", [x, None, scales], {"coordinate_transformation_mode": "asymmetric"})]

    def add_pad(self, x: Value) -> list[Value]:
        return [self.b.add("Pad", [x, self.b.constant(np.array([0, 0, 1, 0, 0, 1, 0, 2]))], {"mode": "edge"})]

    def add_gather(self, x: Value) -> list[Value]:
        indices = self.draw(st.lists(st.integers(0, x.shape[1] - 1), min_size=1, max_size=4))
        return [self.b.add("Gather", [x, self.b.constant(np.array(indices))], {"axis": 1})]

    def finish(self) -> Graph:
        inputs = [v for v in self.values if v.name.startswith("x")]
        made = [v for v in self.values if v not in inputs]
        some = self.draw(st.sets(st.integers(0, len(made) - 1), max_size=2)) if made else set()
        for i, value in enumerate({*made[-2:], *(made[i] for i in some)}):
            self.b.output(value, f"y{i}")
        return self.b.build()


@st.composite
def graphs(draw: Any) -> Graph:
    random_graph = RandomGraph(draw)
    for _ in range(draw(st.integers(2, 9))):
        if random_graph.pick().type.size < 20_000:
            random_graph.grow()
    if not any(not v.name.startswith("x") for v in random_graph.values):
        random_graph.values += random_graph.add_unary(random_graph.values[0])
    return random_graph.finish()


@settings(max_examples=60, deadline=None)
@given(graphs(), st.integers(0, 9))
def test_random_graphs_agree_exactly_with_the_reference(graph: Graph, seed: int) -> None:
    draw = np.random.default_rng(seed)
    inputs = {v.name: draw.integers(-3, 4, v.shape).astype(np.float32) for v in graph.inputs}
    expected = evaluate_graph(graph, list(inputs.values()))
    actual = run_on(runnable_machines()[-1], graph, inputs, threads=2)
    for value, array in zip(graph.outputs, expected):
        np.testing.assert_array_equal(actual[value.name], array, err_msg=str(graph))
