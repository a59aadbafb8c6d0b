"""Operators that read and write elements at indices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from moving import agree, drawn, lowered, single_node

from lite_core.builder import GraphBuilder
from lite_core.errors import ExecutionError

Array = np.ndarray[Any, Any]

RANDOM = np.random.default_rng(1)


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["uint8", "float16", "int64"])
@pytest.mark.parametrize(
    ("op", "sizes", "attributes"),
    [
        ("Gather", (6, (3, 2)), {"axis": 1}),
        ("Gather", (7, (4,)), {"axis": 2}),
        ("Gather", (5, ()), {"axis": 0}),
        ("Gather", (5, (0, 3)), {"axis": 0}),
        ("GatherElements", (6, (5, 9, 7)), {"axis": 1}),
        ("GatherElements", (7, (5, 4, 40)), {"axis": -1}),
        ("GatherND", (5, (4, 2)), {}),
        ("GatherND", (6, (5, 3, 1)), {"batch_dims": 1}),
    ],
)
def test_gathers(
    op: str, sizes: tuple[int, tuple[int, ...]], attributes: dict[str, Any], dtype: str, index: str
) -> None:
    size, shape = sizes
    indices = np.asarray(RANDOM.integers(-size, size, shape), "int64" if op == "GatherND" else index)
    for constants in (0, 1):
        agree(op, [drawn((5, 6, 7), dtype), indices], attributes, constants=constants)


def test_long_rows_are_gathered() -> None:
    agree("Gather", [drawn((9, 300)), np.array([3, 3, -9, 8])], {"axis": 0})


def test_a_gather_at_evenly_spaced_constants_is_a_view() -> None:
    builder = GraphBuilder("views")
    x = builder.input("x", "float32", (2, 8, 3))
    even = builder.add("Gather", [x, builder.constant(np.array([6, 4, 2]))], {"axis": 1})
    builder.output(builder.add("Relu", [even]), "y")
    assert lowered(builder.build()) == ["elementwise"]


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
@pytest.mark.parametrize("dtype", ["int8", "int64", "float16", "float32"])
def test_scatters_update_in_order(reduction: str, dtype: str) -> None:
    """Several updates of one element, with and without constant indices."""

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


def test_scatters_of_nothing() -> None:
    agree("ScatterND", [drawn((3, 4)), np.zeros((0, 1), np.int64), drawn((0, 4))])
    agree("ScatterElements", [drawn((3, 4)), np.zeros((0, 4), np.int64), drawn((0, 4))])


@pytest.mark.parametrize("op", ["Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND"])
@pytest.mark.parametrize("index", [5, -6])
def test_a_known_index_out_of_range_is_an_error(op: str, index: int) -> None:
    arrays = [drawn((5, 5)), np.array([[index]])]
    if op.startswith("Scatter"):
        arrays.append(drawn((1, 1) if op == "ScatterElements" else (1, 5)))
    with pytest.raises(ExecutionError, match=rf"index {index} is out of range for a dimension of 5"):
        lowered(single_node(op, arrays, constants=len(arrays) - 1))


@pytest.mark.parametrize("axes", [(0, 1), (1, 0)])
@pytest.mark.parametrize("rest", [(), (3,), (40,)])
def test_reverse_sequence(axes: tuple[int, int], rest: tuple[int, ...]) -> None:
    time, batch = axes
    shape = (5, 4) if time == 0 else (4, 5)
    lengths = np.array([0, 5, 1, 3])
    agree("ReverseSequence", [drawn((*shape, *rest)), lengths], {"time_axis": time, "batch_axis": batch})
