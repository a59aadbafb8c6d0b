"""Programs and plans for other sizes that are made from templates equal those that are compiled."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from levels import LevelBackend, backend_for, machine_params, runnable_machines

from lite_core import GraphBuilder, Session, load
from lite_core.backend import Options
from lite_core.errors import ExecutionError
from lite_core.ir import DType, Graph, Value
from lite_core.ops.infer import infer_graph
from lite_core.plugins.backends import plugins_with
from lite_cpu.lowering.compile import compile_graph, lower_graph
from lite_cpu.lowering.partition_analysis import PartitionAnalysis
from lite_cpu.lowering.weights import WeightCache
from lite_cpu.machine_code.library import KernelLibrary
from lite_cpu.templates import program_template
from lite_cpu.templates.partition_sizes import PartitionSizes, graph_of_shapes
from lite_cpu.tensors import ABSOLUTE

Array = np.ndarray[Any, Any]

_MACHINE = runnable_machines()[-1]
_LIBRARY = KernelLibrary(_MACHINE)


def numbers(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def recognizer() -> Graph:
    """Return a network for images of any width: convolutions of all kinds, pooling, attention over the columns."""
    b = GraphBuilder("recognizer")
    x = b.input("x", "float32", ["batch", 3, 16, "width"])
    x = b.add("Conv", [x, b.constant(numbers(16, 3, 3, 3))], {"strides": (2, 2), "pads": (1, 1, 1, 1)})
    for stride in (1, 2):
        y = b.add("Conv", [x, b.constant(numbers(16, 1, 3, 3))], {"group": 16, "auto_pad": "SAME_UPPER"})
        y = b.add("HardSwish", [y])
        scale = b.add("Sigmoid", [b.add("Conv", [b.add("GlobalAveragePool", [y]), b.constant(numbers(16, 16, 1, 1))])])
        x = b.add("Add", [x, b.add("Mul", [y, scale])])
        x = b.add("Conv", [x, b.constant(numbers(16, 16, 3, 3))], {"strides": (stride, stride), "pads": (1, 1, 1, 1)})
    x = b.add("AveragePool", [x], {"kernel_shape": (4, 3), "strides": (4, 1), "pads": (0, 1, 0, 1)})
    resized = b.add("Resize", [x, None, b.constant(np.array([1, 1, 1, 2], np.float32))], {"mode": "linear"})
    x = b.add("Concat", [resized, resized], {"axis": 1})
    rows = b.add("Transpose", [b.add("Squeeze", [x, b.constant(np.array([2]))])], {"perm": (0, 2, 1)})
    rows = b.add("LayerNormalization", [rows, b.constant(numbers(32)), b.constant(numbers(32))])
    heads = [attention_head(b, rows) for _ in range(2)]
    x = b.add("Concat", heads, {"axis": 2})
    b.output(b.add("Softmax", [b.add("MatMul", [x, b.constant(numbers(32, 21))])], {"axis": -1}), "y")
    b.output(b.add("ArgMax", [x], {"axis": 2, "keepdims": 0}), "best")
    return b.build()


def attention_head(b: GraphBuilder, rows: Value) -> Value:
    q, k, v = (b.add("MatMul", [rows, b.constant(numbers(32, 16))]) for _ in range(3))
    scores = b.add("MatMul", [q, b.add("Transpose", [k], {"perm": (0, 2, 1)})])
    return b.add("MatMul", [b.add("Softmax", [b.add("Mul", [scores, b.constant(np.float32(0.25))])]), v])


def tagger() -> Graph:
    """Return a network for texts of any length, which computes with the length and with positions."""
    b = GraphBuilder("tagger")
    tokens = b.input("tokens", "int64", ["batch", "length"])
    words = b.add("Gather", [b.constant(numbers(50, 24)), tokens])
    length = b.add("Gather", [b.add("Shape", [tokens]), b.constant(np.int64(1))])
    positions = b.add("Range", [b.constant(np.int64(0)), length, b.constant(np.int64(1))])
    x = b.add("Add", [words, b.add("Gather", [b.constant(numbers(400, 24)), positions])])
    share = b.add("Div", [x, b.add("Cast", [length], {"to": DType.FLOAT32})])
    shape = b.add("Concat", [b.constant(np.array([0])), b.add("Unsqueeze", [length, b.constant(np.array([0]))]),
                             b.constant(np.array([3, 8]))], {"axis": 0})  # fmt: skip
    x = b.add("Transpose", [b.add("Reshape", [share, shape])], {"perm": (0, 2, 1, 3)})
    b.output(b.add("ReduceMean", [x, b.constant(np.array([2]))], {"keepdims": 0}), "mean")
    b.output(b.add("CumSum", [x, b.constant(np.int64(2))]), "sums")
    return b.build()


def decoder() -> Graph:
    """Return a step of a decoder with a cache that grows: the past is joined with the present."""
    b = GraphBuilder("decoder")
    x, past = b.input("x", "float32", [1, 2, "new", 16]), b.input("past", "float32", [1, 2, "past", 16])
    mask = b.input("mask", "float32", [1, 1, "new", "total"])
    present = b.add("Concat", [past, b.add("MatMul", [x, b.constant(numbers(16, 16))])], {"axis": 2})
    b.output(b.add("Attention", [x, present, present, mask]), "y")
    b.output(present, "present")
    return b.build()


def of_width(graph: Graph, batch: int, size: int) -> dict[str, Array]:
    """Return inputs of a graph for a batch and a size; a decoder has ``batch`` new positions."""
    random = np.random.default_rng([batch, size])
    if graph.name == "tagger":
        return {"tokens": random.integers(0, 50, (batch, size))}
    if graph.name == "recognizer":
        return {"x": random.standard_normal((batch, 3, 16, size)).astype(np.float32)}
    shapes = {"x": (1, 2, batch, 16), "past": (1, 2, size, 16), "mask": (1, 1, batch, batch + size)}
    return {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


# The recognizer's kernels take seconds to compile.
graphs = pytest.mark.parametrize(
    "make",
    [pytest.param(recognizer, marks=pytest.mark.full("cpu")), tagger, decoder],
    ids=["recognizer", "tagger", "decoder"],
)


def session_of(graph: Graph, threads: int = 1, machine: Any = _MACHINE, **options: Any) -> Session:
    return load(graph, backend="level", plugins=plugins_with(backend_for(machine)), threads=threads, **options)


def is_compiled(session: Session) -> bool:
    """Return True if the latest plan was compiled, and not made from a template."""
    return type(session._latest_plan).__name__ == "Plan"


def shapes_of(inputs: dict[str, Array]) -> tuple[tuple[int, ...], ...]:
    return tuple([array.shape for array in inputs.values()])


@graphs
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("machine", machine_params())
def test_every_size_gives_what_a_new_session_gives(machine: Any, make: Callable[[], Graph], threads: int) -> None:
    graph, generator = make(), random.Random(make.__name__)
    shared = session_of(graph, threads, machine)
    shared.run(of_width(graph, 1, 64))
    sizes = [
        (1, 65),
        (1, 1),
        (2, 37),
        (1, 399),
        *((generator.randint(1, 3), generator.randint(1, 300)) for _ in range(6)),
    ]
    served = 0
    for batch, size in sizes:
        inputs = of_width(graph, batch, size)
        found, expected = shared.run(inputs), session_of(graph, threads, machine).run(inputs)
        for name, array in expected.items():
            np.testing.assert_array_equal(found[name], array, err_msg=f"{name} for {batch} x {size}")
        served += not is_compiled(shared)
    assert served > len(sizes) // 2


@graphs
@pytest.mark.parametrize("uses_in_python", [0, 100], ids=["native", "python"])
def test_a_template_gives_the_tables_that_compiling_gives(
    make: Callable[[], Graph], uses_in_python: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program_template, "_USES_IN_PYTHON", uses_in_python)
    graph = make()
    graph = session_of(graph).graph.copy()
    first = of_width(graph, 1, 64)
    infer_graph(graph, {v.name: v.type.with_shape(first[v.name].shape) for v in graph.inputs})
    weights, analysis, options = WeightCache(), PartitionAnalysis(), Options(threads=1)
    sizes = PartitionSizes(graph, lambda g: lower_graph(g, options, _LIBRARY, weights, analysis=analysis), 1, lambda: 0)
    for size in (65, 66, 67, 130, 255, 64):
        shapes = shapes_of(of_width(graph, 1, size))
        found = sizes.program(shapes)
        other = graph_of_shapes(graph, shapes)
        expected = compile_graph(other, options, _LIBRARY, weights, analysis=analysis).program
        assert found is not None
        assert found.outputs == tuple([tuple(value.shape) for value in other.outputs])
        assert found.program.scratch_bytes(1) == expected.scratch_bytes(1)
        own, others = found.program.tables, expected.tables
        np.testing.assert_array_equal(own.steps, others.steps)
        np.testing.assert_array_equal(own.params, others.params)
        np.testing.assert_array_equal(own.pointers[:, 0], others.pointers[:, 0])
        is_relative = own.pointers[:, 0] != ABSOLUTE  # arrays made from sizes are elsewhere each time
        np.testing.assert_array_equal(own.pointers[is_relative], others.pointers[is_relative])


def test_one_template_serves_many_sizes_and_compiles_nothing() -> None:
    session = session_of(tagger())
    for length in (200, 201):
        session.prepare({"tokens": (1, length)})
    library = backend_for(_MACHINE)._share().library
    compiled = library.cache.statistics
    session.prepare({"tokens": (1, 207)})
    assert not is_compiled(session)
    assert library.cache.statistics == compiled


def test_an_evicted_plan_is_made_from_the_template_again() -> None:
    graph = tagger()
    session = session_of(graph, plans=1)
    for length in (96, 97, 98, 97):
        inputs = of_width(graph, 1, length)
        found = session.run(inputs)
        np.testing.assert_array_equal(found["sums"], session_of(graph).run(inputs)["sums"])
    assert session.plan_statistics.evictions == 3
    assert not is_compiled(session)


def test_tools_see_a_plan_with_all_its_types() -> None:
    graph = tagger()
    resized, new = session_of(graph), session_of(graph)
    resized.prepare({"tokens": (1, 90)})
    plans = [session.plan({"tokens": (2, 101)}) for session in (resized, new)]
    assert not is_compiled(resized)
    assert len({str(plan) for plan in plans}) == 1
    assert len({str(plan.graph) for plan in plans}) == 1
    (part, _), (other, _) = (plan.partitions[0] for plan in plans)
    assert str(part.graph) == str(other.graph)
    assert set(part.graph.nodes) <= set(plans[0].graph.nodes)
    uses = [plan.compiled[0].executable.memory_use() for plan in plans]  # type: ignore[attr-defined]
    assert uses[0] == uses[1]
    assert resized.computes == new.computes


def test_profiles_and_observers_see_the_same_kernels() -> None:
    graph = tagger()
    resized, new = session_of(graph), session_of(graph)
    inputs = of_width(graph, 1, 90)
    resized.run(of_width(graph, 1, 89))
    for session in (resized, new):
        session.run(inputs, profile=True)
    assert not is_compiled(resized)
    kernels = [[(k.kernel, k.nodes, k.flops, k.bytes) for k in s.last_profile.kernels] for s in (resized, new)]  # type: ignore[union-attr]
    assert kernels[0] == kernels[1]
    found = [session.run(inputs, outputs=["*"]) for session in (resized, new)]
    assert found[0].keys() == found[1].keys()
    for name, array in found[0].items():
        np.testing.assert_array_equal(array, found[1][name])


def test_a_wrong_index_is_reported_with_the_sizes_of_the_run() -> None:
    graph = tagger()
    session = session_of(graph)
    session.run(of_width(graph, 1, 7))
    with pytest.raises(ExecutionError, match=r"int64\[1, 8\].* 50 is out of range for a dimension of 50"):
        session.run({"tokens": np.full((1, 8), 50)})
    assert not is_compiled(session)


def test_caches_that_grow_are_updated_in_their_memory() -> None:
    graph = decoder()
    session, memory = session_of(graph), np.zeros((1, 2, 40, 16), np.float32)
    memory[:, :, :20] = numbers(1, 2, 20, 16)
    kept = memory.copy()
    for past in range(20, 30):
        inputs = of_width(graph, 1, past) | {"past": memory[:, :, :past]}
        session.run(inputs, out={"present": memory[:, :, : past + 1]})
        plain = session_of(graph).run({**of_width(graph, 1, past), "past": kept[:, :, :past]})["present"]
        kept[:, :, : past + 1] = plain
    assert not is_compiled(session)
    np.testing.assert_array_equal(memory, kept)


def test_a_size_in_the_code_of_a_kernel_is_that_of_the_run() -> None:
    b = GraphBuilder("interleaved")  # few channels are interleaved in registers, by a kernel for their number
    b.output(b.add("Transpose", [b.input("x", "float32", [1, "channels", 50, 40])], {"perm": (0, 2, 3, 1)}), "y")
    session = session_of(b.build())
    for channels in (5, 3, 4, 2, 3, 7):
        x = numbers(1, channels, 50, 40)
        np.testing.assert_array_equal(session.run({"x": x})["y"], x.transpose(0, 2, 3, 1))


def test_sizes_that_give_other_kernels_are_compiled() -> None:
    b = GraphBuilder("other kernels")
    x = b.input("x", "float32", ["n"])
    bound = b.add("Cast", [b.add("Size", [x])], {"to": DType.FLOAT32})  # part of the kernel
    b.output(b.add("Clip", [x, b.constant(np.float32(-1)), bound]), "y")
    session = session_of(b.build())
    for size in (*range(3, 12), 4):
        values = np.arange(-size, 3 * size, 4, dtype=np.float32)
        np.testing.assert_array_equal(session.run({"x": values})["y"], values.clip(-1, len(values)))


def test_a_model_that_is_tuned_is_compiled_for_every_size(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITE_CACHE_DIR", str(tmp_path))
    b = GraphBuilder("tuned")
    b.output(b.add("Relu", [b.input("x", "float32", ["n"])]), "y")
    session = load(b.build(), backend="level", plugins=plugins_with(LevelBackend(_MACHINE)), tune=True)
    for size in (3, 4, 5):
        session.run({"x": numbers(size)})
        assert is_compiled(session)
