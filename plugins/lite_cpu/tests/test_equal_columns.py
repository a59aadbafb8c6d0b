"""Columns that are computed from equal numbers are bitwise equal, wherever tiles and vectors end.

A model can depend on it: Softmax of large numbers that are equal up to rounding favours those that were rounded up.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from agreement import MACHINES, normal
from levels import run_on

from lite_core.builder import GraphBuilder
from lite_cpu.machine import Machine

Array = np.ndarray[Any, Any]

#: Widths below, at and above one vector, one panel and several panels of every machine.
WIDTHS = (3, 21, 32, 100, 136)


def run(machine: Machine, op: str, arrays: list[Array], attributes: dict[str, Any], *, constants: int) -> Array:
    """Run a node whose last inputs are constants. An input image is transposed to channels-last by the model."""
    b = GraphBuilder(op)
    given, fixed = arrays[: len(arrays) - constants], arrays[len(arrays) - constants :]
    inputs = [b.input(f"x{i}", "float32", a.shape) for i, a in enumerate(given)]
    values = [b.add("Transpose", [v], {"perm": (0, 3, 1, 2)}) if len(v.shape) == 4 else v for v in inputs]
    b.output(b.add(op, [*values, *map(b.constant, fixed)], attributes), "y")
    return run_on(machine, b.build(), {f"x{i}": a for i, a in enumerate(given)}, threads=2)["y"]


def equal(column: Array, width: int, axis: int) -> Array:
    """Return as many equal columns along a new axis."""
    return np.ascontiguousarray(np.repeat(np.expand_dims(column, axis), width, axis))


def assert_equal_along(result: Array, axis: int) -> None:
    columns = np.moveaxis(result, axis, 0).reshape(result.shape[axis], -1)
    differing = [i for i, column in enumerate(columns) if column.tobytes() != columns[0].tobytes()]
    assert not differing, f"of {len(columns)} equal columns these differ from the first: {differing}"


@MACHINES
@pytest.mark.parametrize("constants", [0, 1], ids=["run-time", "constant"])
@pytest.mark.parametrize("rows", [1, 50])
def test_products(machine: Machine, rows: int, constants: int) -> None:
    for width in WIDTHS:
        arrays = [normal(rows, 203), equal(normal(203, seed=1), width, 1)]
        assert_equal_along(run(machine, "MatMul", arrays, {}, constants=constants), 1)


@MACHINES
@pytest.mark.parametrize(
    ("kernel", "strides", "groups"),
    [((1, 1), (1, 1), 1), ((3, 3), (2, 2), 1), ((3, 3), (1, 1), 1), ((3, 3), (1, 1), 0)],
    ids=["pointwise", "direct", "winograd", "depthwise"],
)
def test_convolutions(machine: Machine, kernel: tuple[int, int], strides: tuple[int, int], groups: int) -> None:
    pads = tuple(n // 2 for n in (*kernel, *kernel))
    for width in WIDTHS:
        image, window = normal(1, 9, 13, 19), normal(19, *kernel, seed=1)
        if groups == 0:
            image, window = equal(image[..., 0], width, 3), window[:1]
        attributes = {"strides": strides, "pads": pads, "group": groups or width, "kernel_shape": kernel}
        weights = [equal(window, width, 0), np.full(width, 0.25, np.float32)]
        assert_equal_along(run(machine, "Conv", [image, *weights], attributes, constants=2), 1)


@MACHINES
@pytest.mark.parametrize(
    ("op", "attributes"),
    [("GlobalAveragePool", {}), ("AveragePool", {"kernel_shape": (5, 4)}), ("Softmax", {"axis": 2})],
)
def test_sums_of_channels_last_images(machine: Machine, op: str, attributes: dict[str, Any]) -> None:
    for width in WIDTHS:
        image = equal(normal(8, 31, 19), width, 3)
        assert_equal_along(run(machine, op, [image], attributes, constants=0), 1)
