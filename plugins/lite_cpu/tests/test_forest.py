"""DecisionForest: blocks of rows, scores that are parts of tensors, and tables that lead outside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from agreement import MACHINES
from graph_agreement import SeededGraph, agree_graph
from levels import run_on, runnable_machines

from lite_core.errors import LiteError
from lite_core.ir import Value
from lite_cpu.machine import Machine

Array = np.ndarray[Any, Any]
DEPTH, FEATURES = 3, 4


def tables(targets: int, trees: int = 5) -> list[Array]:
    """Return nodes, splits, kinds, roots and weights of complete trees."""
    random = np.random.default_rng(targets)
    size = 2 ** (DEPTH + 1) - 1
    inner = size // 2
    nodes = np.zeros((trees, size, 4), np.int32)
    own = np.arange(size)
    nodes[:, :, 0] = random.integers(FEATURES, size=(trees, size))
    nodes[:, :, 1] = np.where(own < inner, 2 * own + 1, own)
    nodes[:, :, 2] = np.where(own < inner, 2 * own + 2, own)
    nodes[:, :, 1:3] += (np.arange(trees) * size)[:, None, None]
    nodes[:, inner:, 3] = np.arange(trees * (size - inner)).reshape(trees, -1)
    kinds = np.tile(np.where(own < inner, 0, 7), trees).astype(np.uint8)
    return [
        nodes.reshape(-1, 4),
        random.standard_normal(trees * size).astype(np.float32),
        kinds,
        (np.arange(trees) * size).astype(np.int32),
        random.standard_normal((trees * (size - inner), targets)).astype(np.float32),
    ]


def scores(g: SeededGraph, rows: int, targets: int, **changed: Any) -> Value:
    arrays = tables(targets)
    for index, change in changed.items():
        arrays[int(index[1:])][change[0]] = change[1]
    x = g.input(rows, FEATURES)
    constants = [g.b.constant(a.astype(x.dtype.numpy) if a.dtype.kind == "f" else a) for a in arrays]
    return g.b.add(
        "DecisionForest",
        [x, *constants],
        {"aggregate": "sum", "depth": DEPTH},
        domain="lite",
    )


@MACHINES
@pytest.mark.parametrize("rows", [1, 9, 33, 300])
def test_blocks_of_rows(machine: Machine, rows: int) -> None:
    agree_graph(machine, lambda g: (scores(g, rows, 2),), threads=2)


@MACHINES
def test_scores_that_are_parts_of_tensors(machine: Machine) -> None:
    def build(g: SeededGraph) -> tuple[Value, ...]:
        found = scores(g, 40, 1)
        return (g.b.add("Concat", [g.add("Neg", found), found], {"axis": 1}),)

    agree_graph(machine, build)


@pytest.mark.parametrize(
    ("changed", "number"),
    [
        ({"t0": ((3, 0), FEATURES)}, FEATURES),
        ({"t0": ((3, 1), 10**6)}, 10**6),
        ({"t0": ((3, 3), -1)}, -1),
        ({"t3": ((1,), 5 * 15)}, 75),
    ],
)
def test_tables_that_lead_outside_are_refused(changed: dict[str, Any], number: int) -> None:
    g = SeededGraph("float32")
    graph = g.built(scores(g, 9, 1, **changed))
    with pytest.raises(LiteError, match=f"index {number} of the forest is out of range"):
        run_on(runnable_machines()[-1], graph, g.inputs)
