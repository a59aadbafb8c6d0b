"""Lowering of DecisionForest."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_compiler.fusion import Group
from lite_compiler.tracing.numbers import computed
from lite_core.ir import Node
from lite_core.ops import attributes_of
from lite_core.ops.lite_forest import LEAF, NAN_IS_TRUE
from lite_cpu.kernels.forest import TOGETHER, Forest, scratch_bytes
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.indices import check_bounds
from lite_cpu.lowering.products import with_contiguous_rows
from lite_cpu.lowering.registry import lowers
from lite_cpu.lowering.shape import input_of, required_input

Array = np.ndarray[Any, Any]

#: With fewer rows, walks at the same time are those of one row.
_MANY_ROWS = 32
#: The most rows of a work item.
_ITEM_ROWS = 128
#: One thread walks fewer steps in all before a second one could help it: 800 steps take 4.9 microseconds on one thread
#: and 5.2 on two, 1,600 steps 6.0 and 5.8 (Zen 4).
_SHARED_STEPS = 1600
#: Work items for each thread, so that a thread that was late has work to give away.
_ITEMS_OF_A_THREAD = 4


def _refuse(node: Node) -> str | None:
    return None if input_of(node, 6) is None else f"{node.op} with sets of members"


@lowers("lite.DecisionForest", refuse=_refuse)
def decision_forest(lowering: Lowering, group: Group) -> None:
    """Emit the walks of all rows. Indices in the tables are checked, because the kernel relies on them."""
    node = group.head
    attributes = attributes_of(node)
    x = with_contiguous_rows(lowering, lowering.tensor(required_input(node)))
    tables = [lowering.dense(lowering.tensor(required_input(node, i))) for i in (1, 2, 3, 4, 5)]
    (rows, features), count, trees = x.shape, tables[0].shape[0], tables[3].shape[0]
    leaves, targets = tables[4].shape
    message = lowering.text(lambda: f"{node.describe()}: index {{}} of the forest is out of range")
    check_bounds(lowering, required_input(node, 1), [(0, features), (0, count), (0, count), (0, leaves)], message)
    check_bounds(lowering, required_input(node, 4), [(0, count)], message)
    target = lowering.target(group.output)
    kinds, few_rows = _kinds(lowering.known(required_input(node, 3))), bool(rows < _MANY_ROWS)
    item_rows = _rows_of_item(rows, lowering.options.threads, few_rows)
    steps, items = rows * trees * attributes["depth"], -(-rows // item_rows)
    kernel = Forest(x.dtype, attributes["aggregate"], kinds, few_rows)
    lowering.step(
        kernel,
        [x, *tables, target],
        [rows, trees, targets, attributes["depth"], item_rows, x.strides[0], *target.strides],
        items,
        _grain(items, steps),
        flops=steps,
        scratch_bytes=scratch_bytes(_ITEM_ROWS, targets),
    )


@computed
def _grain(items: int, steps: int) -> int:
    return items if steps < _SHARED_STEPS else 1


@computed
def _rows_of_item(rows: int, threads: int, few_rows: bool) -> int:
    if few_rows:
        return max(1, -(-rows // threads))
    share = -(-rows // (_ITEMS_OF_A_THREAD * threads))
    return min(_ITEM_ROWS, -(-share // TOGETHER) * TOGETHER)


def _kinds(kinds: Array | None) -> tuple[int, ...]:
    """Return the kinds of inner nodes that occur; all of them if the table is not known."""
    if kinds is None:
        return tuple(mode + nan for nan in (0, NAN_IS_TRUE) for mode in range(LEAF - 1))
    inner = kinds[kinds % NAN_IS_TRUE < LEAF - 1]
    return tuple(sorted({int(kind) for kind in np.unique(inner)})) or (0,)
