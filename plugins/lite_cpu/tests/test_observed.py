"""Observed runs: the same results bit by bit, and values between kernels that can be read and replaced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from agreement import MACHINES, normal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from levels import backend_for
from observers import Recorder, assert_close, check_observed, references
from random_graphs import Example, elementwise_graphs, image_graphs
from saving import (
    Sketch,
    buffers,
    compiled,
    convolutions,
    narrow,
    quantized,
    recurrent,
    restored,
    run,
    saved,
    transformer,
    views,
)

from lite_core import Session, load
from lite_core.backend import Options
from lite_core.builder import GraphBuilder
from lite_core.errors import ExecutionError
from lite_core.ir import DType, Graph
from lite_core.observing import Observed
from lite_core.plugins.backends import plugins_with
from lite_cpu.executable import CpuExecutable, ForeignExecutable
from lite_cpu.lowering.compile import compile_graph
from lite_cpu.lowering.weights import WeightCache
from lite_cpu.machine import Machine
from lite_cpu.machine_code.library import KernelLibrary

Array = np.ndarray[Any, Any]

_RANDOM = settings(
    max_examples=40,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


#: One example for `make test`; the full tier has one of each kind of kernel.
EXAMPLES = pytest.mark.parametrize(
    "make",
    [
        convolutions,
        *[
            pytest.param(make, marks=pytest.mark.full("cpu"))
            for make in (transformer, recurrent, quantized, narrow, views)
        ],
    ],
)


def session_of(machine: Machine, graph: Graph, **options: Any) -> Session:
    plugins = plugins_with(backend_for(machine))
    return load(graph, backend="level", plugins=plugins, fallback="never", **options)


def drawn(arrays: Sequence[Array]) -> list[Array]:
    """Return other arrays of the same types."""
    random = np.random.default_rng(1)
    return [(random.standard_normal(a.shape) * (1 if a.dtype.kind == "f" else 9)).astype(a.dtype) for a in arrays]


def example_for(machine: Machine, make: Callable[[], Example]) -> Example:
    """Return an example; skip the test if the machine cannot compute it."""
    example = make()
    if any(v.dtype is DType.FLOAT16 for v in example.graph.defined()) and not machine.half:
        pytest.skip("the machine has no float16")
    return example


def observed(executable: CpuExecutable, example: Example, recorder: Recorder) -> list[Array]:
    inputs, outputs, scratch = buffers(executable, example.graph, example.inputs)
    executable.run_observed(inputs, outputs, scratch, recorder)
    return [buffer.data for buffer in outputs]


# **** all values, read and replaced ****


@MACHINES
@pytest.mark.full("cpu")
@pytest.mark.parametrize("graphs", [elementwise_graphs, image_graphs])
def test_random_graphs(machine: Machine, graphs: Callable[[], st.SearchStrategy[Example]]) -> None:
    @_RANDOM
    @given(example=graphs(), threads=st.sampled_from([1, 2]), optimize=st.booleans())
    def check(example: Example, threads: int, optimize: bool) -> None:
        session = session_of(machine, example.graph, threads=threads, optimize=optimize)
        arrays = [example.inputs[v.name] for v in session.graph.inputs]
        check_observed(session, arrays, drawn(arrays))

    check()


@MACHINES
@EXAMPLES
@pytest.mark.parametrize("threads", [pytest.param(1, marks=pytest.mark.full("cpu")), 2])
def test_values_are_those_of_the_references_and_can_be_replaced(
    machine: Machine, make: Callable[[], Example], threads: int
) -> None:
    example = example_for(machine, make)
    types = {v.dtype for v in example.graph.defined()}
    # A float16 has 11 bits; a step of quantization here is 1/200 of the largest number.
    tolerance = 2e-3 if DType.FLOAT16 in types else 6e-3 if DType.UINT8 in types else 2e-5
    session = session_of(machine, example.graph, threads=threads)
    arrays = [example.inputs[v.name] for v in session.graph.inputs]
    recorder = check_observed(session, arrays, drawn(arrays), tolerance)
    assert len(recorder.computed_by) == len(recorder.started)


@MACHINES
@pytest.mark.full("cpu")
@EXAMPLES
def test_a_value_is_what_it_would_be_as_an_output(machine: Machine, make: Callable[[], Example]) -> None:
    example = example_for(machine, make)
    recorder = Recorder()
    observed(compiled(machine, example.graph), example, recorder)
    for name, found in recorder.values.items():
        graph = example.graph.copy()
        value = next(v for v in graph.defined() if v.name == name)
        if value not in graph.outputs:
            graph.outputs.append(value)
            with_output, again = compiled(machine, graph), Recorder()
            *_, array = observed(with_output, Example(graph, example.inputs), again)
            if [nodes for _, nodes, _ in again.computed_by] == [nodes for _, nodes, _ in recorder.computed_by]:
                assert found.tobytes() == array.tobytes(), name
            else:
                assert_close(found, array, name)


@MACHINES
def test_a_replaced_value_is_what_later_kernels_read(machine: Machine) -> None:
    def graph(replaced: bool) -> tuple[Graph, Example]:
        g = Sketch()
        x = g.input(4, 8)
        y = g.add("MatMul", x, g.constant(8, 16))
        if replaced:
            y = g.b.constant(np.zeros((4, 16), np.float32))
        z = g.add("MatMul", y, g.constant(16, 8))
        example = g.done(g.add("Sub", g.add("Add", z, g.constant(8)), x))
        return example.graph, example

    plain, example = graph(False)
    first = plain.nodes[0].outputs[0]
    assert first is not None
    executable = compiled(machine, plain)
    recorder = Recorder({first.name: np.zeros((4, 16), np.float32)})
    (found,) = observed(executable, example, recorder)
    constant, other = graph(True)
    (expected,) = run(compiled(machine, constant), constant, other.inputs)
    assert_close(found, expected, "y0")
    assert run(executable, plain, example.inputs)[0].tobytes() != found.tobytes()


# **** what is shown ****


@MACHINES
def test_kernels_are_announced_with_their_nodes(machine: Machine) -> None:
    g = Sketch()
    y = g.add("Relu", g.add("MatMul", g.input(4, 8), g.constant(8, 16)))
    example = g.done(g.add("Softmax", g.add("Transpose", y, perm=(1, 0)), axis=-1))
    recorder = Recorder()
    observed(compiled(machine, example.graph), example, recorder)
    names = [node.name for node in example.graph.nodes]
    assert recorder.started == [("gemm", names[:3]), ("Softmax", names[3:]), ("transpose", names[3:])]
    assert recorder.computed_by[0][2] == [v.name for node in example.graph.nodes[1:3] for v in node.outputs if v]


@MACHINES
def test_an_output_that_shares_memory_with_an_input_is_shown_when_it_is_copied(machine: Machine) -> None:
    g = Sketch()
    x = g.input(2, 3)
    example = g.done(g.add("Transpose", x), g.add("Expand", g.add("Neg", g.input(1, 3)), g.b.ints(4, 3)))
    executable, before = compiled(machine, example.graph), {name: a.copy() for name, a in example.inputs.items()}
    recorder = Recorder({"y0": np.zeros((3, 2), np.float32), "y1": np.arange(12, dtype=np.float32).reshape(4, 3)})
    first, second = observed(executable, example, recorder)
    np.testing.assert_array_equal(recorder.values["y0"], example.inputs["x0"].T)
    assert not first.any()
    assert second.tolist() == np.arange(12).reshape(4, 3).tolist()
    assert all(example.inputs[name].tobytes() == array.tobytes() for name, array in before.items())


@MACHINES
def test_an_array_of_another_type_or_shape_is_refused(machine: Machine) -> None:
    class Writer(Recorder):
        def computed(self, results: Observed) -> None:
            results.write(results.values[0], np.zeros((3, 3), np.float64))

    example = convolutions()
    with pytest.raises(ExecutionError, match=r"float32\[.*float64\[3, 3\]"):
        observed(compiled(machine, example.graph), example, Writer())


@MACHINES
def test_a_fault_ends_an_observed_run_with_the_same_error(machine: Machine) -> None:
    b = GraphBuilder("faulty")
    rows = b.add("Relu", [b.input("x", "float32", (5, 3))])
    y = b.add("Gather", [rows, b.input("i", "int64", (2,))], name="look")
    b.output(b.add("MatMul", [y, b.constant(normal(3, 4))]), "y")
    graph = b.build()
    example = Example(graph, {"x": normal(5, 3), "i": np.array([1, 7])})
    executable = compiled(machine, graph)
    with pytest.raises(ExecutionError) as plain:
        run(executable, graph, example.inputs)
    recorder = Recorder()
    with pytest.raises(ExecutionError) as error:
        observed(executable, example, recorder)
    assert str(error.value) == str(plain.value)
    assert recorder.started[-1][1] == ["look"]
    assert "look" not in [node for _, nodes, _ in recorder.computed_by for node in nodes]


@MACHINES
def test_threads_observe_at_once(machine: Machine) -> None:
    example = convolutions()
    executable = compiled(machine, example.graph, threads=2)
    expected = run(executable, example.graph, example.inputs)

    def observe(number: int) -> list[Array]:
        recorder = Recorder()
        results = observed(executable, example, recorder)
        truth = references(example.graph, [*example.inputs.values()])
        for name, array in recorder.values.items():
            assert_close(array, truth[name], name)
        return results

    with ThreadPoolExecutor(3) as pool:
        for results in pool.map(observe, range(6)):
            assert [a.tobytes() for a in results] == [a.tobytes() for a in expected]


@MACHINES
def test_a_program_for_another_processor_shows_the_references(machine: Machine) -> None:
    example = convolutions()
    program = compile_graph(example.graph, Options(), KernelLibrary(machine), WeightCache())
    recorder = Recorder()
    results = observed(ForeignExecutable(program, 1, example.graph), example, recorder)
    truth = references(example.graph, [*example.inputs.values()])
    assert recorder.values.keys() == truth.keys()
    assert results[0].tobytes() == truth["y0"].tobytes()


# **** restored programs ****


@MACHINES
@EXAMPLES
def test_a_restored_program_shows_the_same(machine: Machine, make: Callable[[], Example]) -> None:
    example = example_for(machine, make)
    executable = compiled(machine, example.graph)
    again = restored(machine, saved(executable), example.graph)
    one, other = Recorder(), Recorder()
    expected, found = observed(executable, example, one), observed(again, example, other)
    assert [a.tobytes() for a in expected] == [a.tobytes() for a in found]
    assert (one.started, one.computed_by) == (other.started, other.computed_by)
    assert {n: a.tobytes() for n, a in one.values.items()} == {n: a.tobytes() for n, a in other.values.items()}
