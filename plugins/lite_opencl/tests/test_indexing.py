"""Operators that load and store elements at indices."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from moving import agree, drawn, lowered, single_node
from opencl_device import first_device, run, run_executable, saved_pieces

import lite_core as lite
from lite_compiler.staging import StagedExecutable
from lite_core.backend import Executable, Options, Partition, Stale
from lite_core.builder import GraphBuilder
from lite_core.errors import ExecutionError, LiteError
from lite_core.ir import Graph
from lite_core.ops.evaluate import evaluate_graph
from lite_opencl.compiled.executable import OpenClExecutable

Array = np.ndarray[Any, Any]

RANDOM = np.random.default_rng(1)


@pytest.mark.full("opencl")
def test_long_rows_are_gathered() -> None:
    agree("Gather", [drawn((9, 300)), np.array([3, 3, -9, 8])], {"axis": 0})


def test_gather_at_evenly_spaced_constants_is_a_view() -> None:
    builder = GraphBuilder("views")
    x = builder.input("x", "float32", (2, 8, 3))
    even = builder.add("Gather", [x, builder.constant(np.array([6, 4, 2]))], {"axis": 1})
    builder.output(builder.add("Relu", [even]), "y")
    assert lowered(builder.build()) == ["elementwise"]


@pytest.mark.full("opencl")
@pytest.mark.parametrize(
    ("reduction", "dtype"), [("none", "int8"), ("none", "float32"), ("add", "float16"), ("max", "int64")]
)
def test_scatter_updates_are_applied_in_order(reduction: str, dtype: str) -> None:
    """Several updates have the same destination, with and without constant indices."""

    def numbers(*shape: int) -> Array:
        return RANDOM.integers(-9, 9, shape).astype(dtype)

    rows = np.array([[0, 3], [5, -1], [0, 3]])
    arrays = [numbers(6, 7, 50), rows, numbers(3, 50)]
    agree("ScatterND", arrays, {"reduction": reduction})
    agree("ScatterND", arrays, {"reduction": reduction}, constants=2)
    arrays = [numbers(40), RANDOM.integers(-40, 40, (500, 1)), numbers(500)]
    agree("ScatterND", arrays, {"reduction": reduction})
    for axis, shape in ((1, (6, 9, 4)), (0, (20, 7, 5)), (-1, (1, 2, 80))):
        lines = RANDOM.integers(-5, 5, shape)
        agree("ScatterElements", [numbers(6, 7, 5), lines, numbers(*shape)], {"reduction": reduction, "axis": axis})


@pytest.mark.parametrize("op", ["Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND"])
@pytest.mark.parametrize("index", [5, -6])
def test_known_index_out_of_range_is_an_error(op: str, index: int) -> None:
    arrays = [drawn((5, 5)), np.array([[index]])]
    if op.startswith("Scatter"):
        arrays.append(drawn((1, 1) if op == "ScatterElements" else (1, 5)))
    with pytest.raises(ExecutionError, match=rf" {index} .* -5 .*4"):
        lowered(single_node(op, arrays, constants=len(arrays) - 1))


# **** indices in data that are out of range ****

#: Operators with data, valid indices, further inputs, attributes, and the smallest and the largest valid index.
OUT_OF_RANGE: list[tuple[str, list[Array], dict[str, Any], int, int]] = [
    ("Gather", [drawn((4, 5)), np.zeros((2, 3), np.int64)], {"axis": 1}, -5, 4),
    ("Gather", [drawn((4, 5)), np.zeros((2, 3), np.int32)], {"axis": 0}, -4, 3),
    ("GatherElements", [drawn((4, 5)), np.zeros((4, 2), np.int64)], {"axis": 1}, -5, 4),
    ("GatherND", [drawn((4, 5)), np.zeros((3, 2), np.int64)], {}, -5, 4),
    ("ScatterND", [drawn((4, 5)), np.zeros((3, 2), np.int64), drawn((3,))], {}, -5, 4),
    ("ScatterND", [np.ones((4, 5)), np.zeros((3, 2), np.int64), np.ones(3)], {"reduction": "add"}, -5, 4),
    ("ScatterElements", [drawn((4, 5)), np.zeros((2, 2), np.int64), drawn((2, 2))], {"axis": 0}, -4, 3),
    ("ScatterElements", [np.ones((4, 5)), np.zeros((1, 2), np.int32), np.ones((1, 2))], {"reduction": "max"}, -4, 3),
    ("ReverseSequence", [drawn((4, 5)), np.zeros(5, np.int64)], {}, 0, 4),
    (
        "MaxUnpool",
        [np.ones((1, 1, 2, 2), np.float32), np.zeros((1, 1, 2, 2), np.int64)],
        {"kernel_shape": (2, 2), "strides": (2, 2)},
        0,
        15,
    ),
]


def with_last(indices: Array, number: int) -> Array:
    """Return a copy whose last index is replaced."""
    changed = indices.copy()
    changed.reshape(-1)[-1] = number
    return changed


@pytest.mark.full("opencl")
@pytest.mark.parametrize(("op", "arrays", "attributes", "lowest", "highest"), OUT_OF_RANGE)
def test_index_out_of_range_in_data_is_an_error(
    op: str, arrays: list[Array], attributes: dict[str, Any], lowest: int, highest: int
) -> None:
    graph = single_node(op, arrays, attributes)
    for index in (lowest, highest):
        inputs = [arrays[0], with_last(arrays[1], index), *arrays[2:]]
        assert run(graph, inputs)[0].tobytes() == evaluate_graph(graph, inputs)[0].tobytes()
    far = [] if arrays[1].dtype == np.int32 else [2**40, -(2**63), 2**63 - 1]
    for index in (lowest - 1, highest + 1, *far):
        inputs = [arrays[0], with_last(arrays[1], index), *arrays[2:]]
        with pytest.raises(LiteError):
            evaluate_graph(graph, inputs)
        expected = rf"{op}.* {index} .* {lowest} .*{highest}$"
        with pytest.raises(ExecutionError, match=expected):
            run(graph, inputs)


def two_gathers() -> Graph:
    """Return a graph that gathers rows at computed indices, then columns.

    With inputs of zero, as in the warm-up after compiling, the computed indices are out of range.
    """
    builder = GraphBuilder("two gathers")
    x, rows = builder.input("x", "float32", (7, 4)), builder.input("rows", "int64", (2, 3))
    columns = builder.input("columns", "int64", (2,))
    below = builder.add("Transpose", [builder.add("Sub", [rows, builder.constant(np.int64(50))])])
    some = builder.add("Gather", [x, below], {"axis": 0}, name="{rows}")
    some = builder.add("Gather", [builder.add("Exp", [some]), columns], {"axis": 2}, name="columns")
    builder.output(builder.add("Neg", [some]), "y")
    return builder.build()


def chosen_columns() -> Graph:
    """Return a graph that gathers columns whose number and indices depend on data."""
    builder = GraphBuilder("chosen columns")
    x, rows = builder.input("x", "float32", (7, 4)), builder.input("rows", "int64", (2, 3))
    columns = builder.input("columns", "int64", (2,))
    below = builder.add("Sub", [rows, builder.constant(np.int64(50))])
    some = builder.add("Gather", [x, below], {"axis": 0}, name="{rows}")
    count = builder.add("Squeeze", [builder.add("Shape", [builder.add("NonZero", [x])])], name="count")
    first = builder.add("Slice", [columns, builder.ints(0), builder.add("Slice", [count, *map(builder.ints, (1, 2))])])
    builder.output(builder.add("Gather", [builder.add("Exp", [some]), first], {"axis": 2}, name="columns"), "y")
    return builder.build()


Execute = Callable[[list[Array]], Array]


def check_faults(graph: Graph, execute: Execute, seed: int = 0) -> None:
    """Assert that errors name the first node with a wrong index, and do not affect the next run."""
    random = np.random.default_rng(seed)
    for _ in range(3):
        x = random.random((7, 4)).astype(np.float32)
        rows, columns = random.integers(43, 57, (2, 3)), random.integers(-4, 4, 2)
        right = evaluate_graph(graph, [x, rows, columns])[0]
        np.testing.assert_allclose(execute([x, rows, columns]), right, rtol=1e-5)
        row, column = random.integers(60, 10**9), random.integers(4, 10**9)
        wrong_rows, wrong_columns = with_last(rows, row), with_last(columns, column)
        with pytest.raises(ExecutionError, match=rf"'columns'.* {column} "):
            execute([x, rows, wrong_columns])
        for after in (columns, wrong_columns):
            with pytest.raises(ExecutionError, match=rf"'\{{rows\}}'.* {row - 50} "):
                execute([x, wrong_rows, after])


def compiled(graph: Graph) -> Executable:
    backend, device = first_device()
    return backend.compile(Partition("test", graph), device, Options())


@pytest.mark.parametrize("make", [two_gathers, chosen_columns])
def test_error_names_the_first_node_with_index_out_of_range(make: Callable[[], Graph]) -> None:
    graph = make()
    executable = compiled(graph)
    assert isinstance(executable, StagedExecutable) == (make is chosen_columns)
    check_faults(graph, lambda inputs: run_executable(executable, graph, inputs)[0])


@pytest.mark.full("opencl")
def test_restored_partition_checks_indices() -> None:
    graph = two_gathers()
    backend, device = first_device()
    again = backend.restore(saved_pieces(compiled(graph)), Partition("test", graph), device, Options())
    assert not isinstance(again, Stale)
    check_faults(graph, lambda inputs: run_executable(again, graph, inputs)[0])


def in_threads(graph: Graph, execute: Execute) -> None:
    """Assert that an error is raised in the thread whose index was wrong."""
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda seed: check_faults(graph, execute, seed), range(32)))


@pytest.mark.full("opencl")
@pytest.mark.parametrize("make", [two_gathers, chosen_columns])
def test_index_errors_of_threads_on_one_executable(make: Callable[[], Graph]) -> None:
    graph = make()
    executable = compiled(graph)
    in_threads(graph, lambda inputs: run_executable(executable, graph, inputs)[0])


@pytest.mark.full("opencl")
@pytest.mark.parametrize("is_profiled", [False, True])
def test_index_errors_of_threads_on_one_session(is_profiled: bool) -> None:
    graph = two_gathers()
    session = lite.load(graph, first_device()[1].label, fallback="never")

    def execute(inputs: list[Array]) -> Array:
        profile = lite.RunProfile() if is_profiled else None
        return session.run(dict(zip(("x", "rows", "columns"), inputs)), profile=profile)["y"]

    in_threads(graph, execute)


def test_only_programs_with_indices_as_data_have_a_fault_record() -> None:
    arrays = [drawn((4, 5)), np.array([0, 3, 1])]
    for constants in (0, 1):
        executable = compiled(single_node("Gather", arrays, constants=constants))
        assert isinstance(executable, OpenClExecutable)
        assert (executable.compiled.faults is None) == bool(constants)
