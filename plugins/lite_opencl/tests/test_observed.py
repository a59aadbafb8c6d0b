"""Observed runs: the same results bit by bit, and values in device memory that can be read and replaced."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from observers import ObservedExecutable, Recorder, assert_close, check_observed, references
from opencl_agreement import normal
from opencl_device import first_device, run_executable, saved_pieces

import lite_core as lite
from lite_core.backend import Executable, Options, Partition, Stale
from lite_core.builder import GraphBuilder
from lite_core.errors import ExecutionError
from lite_core.ir import Graph
from lite_opencl.compiled import saved
from lite_opencl.device.devices import FoundDevice

Array = np.ndarray[Any, Any]


def network() -> Graph:
    """Return convolutions whose results are concatenated, shuffled and split, a product, and an output with readers."""
    b = GraphBuilder("observed")
    x = b.input("x", "float32", (1, 8, 6, 6))
    parts = [b.add("Relu", [b.add("Conv", [x, b.constant(normal(8, 8, 1, 1, seed=i))])]) for i in (1, 2)]
    y = b.add("Concat", parts, {"axis": 1})
    y = b.add("Transpose", [b.add("Reshape", [y, b.ints(1, 2, 8, 36)])], {"perm": (0, 2, 1, 3)})
    y = b.add("Reshape", [y, b.ints(1, 16, 6, 6)])
    left, right = b.add_node("Split", [y], {"axis": 1, "num_outputs": 2}, outputs=2)
    assert left is not None
    assert right is not None
    y = b.add("Conv", [left, b.constant(normal(8, 1, 3, 3, seed=3))], {"group": 8, "pads": (1, 1, 1, 1)})
    b.output(y, "y")
    z = b.add("Reshape", [b.add("Add", [b.add("Sigmoid", [y]), right]), b.ints(8, 36)])
    b.output(b.add("MatMul", [z, b.constant(normal(36, 5, seed=4))]), "z")
    b.output(b.add("Transpose", [z], {"perm": (1, 0)}), "t")
    return b.build()


def compiled(graph: Graph) -> Executable:
    backend, device = first_device()
    return backend.compile(Partition("test", graph), device, Options())


def restored(pieces: list[bytes], graph: Graph) -> Executable:
    backend, device = first_device()
    found = backend.restore([memoryview(p) for p in pieces], Partition("test", graph), device, Options())
    assert not isinstance(found, Stale), found.reason
    return found


def test_values_are_those_of_the_references_and_can_be_replaced() -> None:
    first_device()
    session = lite.load(network(), backend="opencl", fallback="never", optimize=False)
    recorder = check_observed(session, [normal(1, 8, 6, 6)], [normal(1, 8, 6, 6, seed=9)])
    assert {"relu", "concat", "y", "z", "t"} < recorder.values.keys()


@pytest.mark.full("opencl")
def test_values_stored_as_halves_are_shown_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    first_device()
    monkeypatch.setattr(FoundDevice, "half", True)
    session = lite.load(network(), backend="opencl", fallback="never", optimize=False, precision="float16")
    recorder = Recorder()
    x = normal(1, 8, 6, 6)
    plain = session.run({"x": x})
    found = session.plan().run([x], observer=recorder)
    assert [a.tobytes() for a in found] == [a.tobytes() for a in plain.values()]
    relu, truth = recorder.values["relu"], references(session.graph, [x])["relu"]
    assert relu.tobytes() == relu.astype(np.float16).astype(np.float32).tobytes()
    assert_close(relu, truth, "relu", 2e-3)
    again = Recorder({"relu": truth + 1})
    session.plan().run([x], observer=again)
    assert_close(again.values["concat"][:, :8], truth + 1, "concat", 2e-3)


@pytest.mark.full("opencl")
def test_a_fault_ends_an_observed_run_with_the_same_error() -> None:
    b = GraphBuilder("faulty")
    rows = b.add("Relu", [b.input("x", "float32", (5, 3))])
    y = b.add("Gather", [rows, b.input("i", "int64", (2,))], name="look")
    b.output(b.add("MatMul", [y, b.constant(normal(3, 4))]), "y")
    graph = b.build()
    executable, inputs, recorder = compiled(graph), [normal(5, 3), np.array([1, 7])], Recorder()
    with pytest.raises(ExecutionError) as plain:
        run_executable(executable, graph, inputs)
    with pytest.raises(ExecutionError) as error:
        run_executable(ObservedExecutable(executable, recorder), graph, inputs)
    assert str(error.value) == str(plain.value)
    assert recorder.started[-1][1] == ["look"]
    assert "look" not in [node for _, nodes, _ in recorder.computed_by for node in nodes]
    run_executable(ObservedExecutable(executable, Recorder()), graph, [inputs[0], np.array([1, 4])])


def test_threads_observe_at_once() -> None:
    graph = network()
    executable = compiled(graph)

    def observe(number: int) -> None:
        x, recorder = normal(1, 8, 6, 6, seed=number), Recorder()
        run_executable(ObservedExecutable(executable, recorder), graph, [x])
        for name, truth in references(graph, [x]).items():
            if name in recorder.values:
                assert_close(recorder.values[name], truth, name)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(observe, range(9)))


def test_a_restored_partition_shows_the_same() -> None:
    graph, x = network(), normal(1, 8, 6, 6)
    executable, one, other = compiled(graph), Recorder(), Recorder()
    expected = run_executable(ObservedExecutable(executable, one), graph, [x])
    again = restored([bytes(piece) for piece in saved_pieces(executable)], graph)
    found = run_executable(ObservedExecutable(again, other), graph, [x])
    assert [a.tobytes() for a in expected] == [a.tobytes() for a in found]
    assert (one.started, one.computed_by) == (other.started, other.computed_by)
    assert {n: a.tobytes() for n, a in one.values.items()} == {n: a.tobytes() for n, a in other.values.items()}


@pytest.mark.parametrize("change", [lambda text: "[]", lambda text: text[:-2], lambda text: None])
def test_a_damaged_description_of_values_is_an_error_of_observed_runs_only(change: Callable[[str], object]) -> None:
    graph, x = network(), normal(1, 8, 6, 6)
    executable = compiled(graph)
    first, *others = [bytes(piece) for piece in saved_pieces(executable)]
    header = json.loads(first[saved._FRAME.size :])
    header["segments"] = change(header["segments"])
    again = restored([saved._framed(json.dumps(header).encode()), *others], graph)
    expected = run_executable(executable, graph, [x])
    assert [a.tobytes() for a in run_executable(again, graph, [x])] == [a.tobytes() for a in expected]
    with pytest.raises(ExecutionError, match="damaged.*\n.*convert"):
        run_executable(ObservedExecutable(again, Recorder()), graph, [x])
