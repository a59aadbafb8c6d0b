"""Decision trees as tables of nodes, which are traversed all at once.

All trees are in one table. Every row of the input is at one node of each tree; in each step it moves to one of the two
children. The children of a leaf are the leaf itself: after as many steps as the deepest tree has levels, all rows are
at leaves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lite_core.ir import DType, Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.operators.ai_onnx.heads import length, position_range
from lite_onnx.lowering.operators.ai_onnx_ml.attributes import Array
from lite_onnx.lowering.unlowerable import Unlowerable

__all__ = ["COMPARISONS", "LEAF", "MEMBER", "Forest", "walk"]

#: Lite's operators for the modes of inner nodes, by their numbers in TreeEnsemble. NotEqual stands for Not and Equal.
COMPARISONS = ("LessOrEqual", "Less", "GreaterOrEqual", "Greater", "Equal", "NotEqual")
MEMBER, LEAF = 6, 7

#: Deeper trees are a sign of a damaged file: scikit-learn's limit is about 1,000. Each level adds a dozen nodes.
_MAX_DEPTH = 2000


@dataclass(frozen=True)
class Forest:
    """All nodes of a set of trees.

    Attributes:
        features: the column that each node compares.
        values: the value it is compared with.
        modes: the comparison: an index in :data:`COMPARISONS`, MEMBER or LEAF.
        if_true: the child to go to if the comparison is true.
        if_false: the child to go to if it is false.
        nan_is_true: True if the comparison is true for NaN.
        roots: the root of each tree.
        weights: the weights of leaves, [leaves, targets]; NaN if a leaf has no weight for a target.
        leaves: the row of ``weights`` of each node; 0 for inner nodes.
        members: the sets of MEMBER nodes, [nodes, largest set], padded with NaN; None if there are no such nodes.
    """

    features: Array
    values: Array
    modes: Array
    if_true: Array
    if_false: Array
    nan_is_true: Array
    roots: Array
    weights: Array
    leaves: Array
    members: Array | None = None

    def __post_init__(self) -> None:
        count = len(self.features)
        if not count or not len(self.roots):
            raise Unlowerable("it has no nodes")
        for next_ in (self.if_true, self.if_false, self.roots):
            if next_.min() < 0 or next_.max() >= count:
                raise Unlowerable(f"one of its branches leads to none of its {count} nodes")

    def depth(self) -> int:
        """Return the number of steps from a root to the deepest leaf.

        Raises:
            Unlowerable: the trees have cycles or too many levels.
        """
        steps, nodes = 0, np.unique(self.roots)
        while (inner := nodes[self.modes[nodes] != LEAF]).size:
            nodes = np.unique(np.concatenate([self.if_true[inner], self.if_false[inner]]))
            steps += 1
            if steps > _MAX_DEPTH:
                raise Unlowerable(f"its trees have cycles, or more than {_MAX_DEPTH} levels")
        return steps


def walk(forest: Forest, x: Value, context: Context) -> Value:
    """Return the leaf [N, trees] that each row of x [N, features] reaches, as a row index of the forest's weights."""
    width = context.size(x, 1)
    if forest.features.min() < 0 or forest.features.max() >= width:
        raise Unlowerable(f"its nodes compare feature {int(forest.features.max())}, but its input has {width} features")
    steps = _WalkSteps(forest, x, context)
    batch = context.add("Shape", [x], {"start": 0, "end": 1})
    shape = context.add("Concat", [batch, context.ints(len(forest.roots))], {"axis": 0})
    nodes = context.add("Expand", [context.constant(2 * forest.roots), shape])
    for _ in range(forest.depth()):
        nodes = steps.next(nodes)
    return steps.lookup("leaves", nodes)


class _WalkSteps:
    """Steps from nodes to their children.

    Node i is represented by the even number 2 i. The table of children is indexed by that number plus the result of the
    comparison, 0 or 1. The other tables contain each entry twice, to be indexed by the same numbers.
    """

    def __init__(self, forest: Forest, x: Value, context: Context) -> None:
        dtype = x.dtype.numpy
        members = None if forest.members is None else forest.members.astype(dtype)
        self._forest = replace(forest, values=forest.values.astype(dtype), members=members)
        self._context = context
        self._tables: dict[str, Value] = {}
        # NOTE: a Gather from one long row is fastest on every backend.
        self._elements = context.add("Reshape", [x, context.ints(-1)])
        width = context.constant(np.array(context.size(x, 1), np.int64))
        rows = context.add("Mul", [position_range(length(x, context, 0), context), width])
        self._rows = context.add("Unsqueeze", [rows, context.ints(1)])
        inner = forest.modes != LEAF
        self._modes = [int(m) for m in np.unique(forest.modes[inner])]
        self._children = context.constant(2 * np.stack([forest.if_false, forest.if_true], axis=1).reshape(-1))
        self._handles_nan = bool(forest.nan_is_true[inner].any())

    def lookup(self, name: str, nodes: Value) -> Value:
        """Look up nodes in one of the forest's tables; a scalar if all entries are equal."""
        table: Array = getattr(self._forest, name)
        if table.ndim == 1 and (table == table[0]).all():
            return self._context.constant(table[0])
        if name not in self._tables:  # all levels share one constant
            self._tables[name] = self._context.constant(np.repeat(table, 2, axis=0))
        return self._context.add("Gather", [self._tables[name], nodes])

    def next(self, nodes: Value) -> Value:
        """Return the children [N, trees] to go to."""
        context = self._context
        x = context.add("Gather", [self._elements, context.add("Add", [self._rows, self.lookup("features", nodes)])])
        values = self.lookup("values", nodes)
        is_true = self._compare(self._modes[0], x, values, nodes)
        if len(self._modes) > 1:
            modes = self.lookup("modes", nodes)
            for mode in self._modes[1:]:
                has_mode = context.add("Equal", [modes, context.scalar_like(mode, modes)])
                is_true = context.add("Where", [has_mode, self._compare(mode, x, values, nodes), is_true])
        if self._handles_nan:
            true_by_nan = context.add("And", [context.add("IsNaN", [x]), self.lookup("nan_is_true", nodes)])
            is_true = context.add("Or", [is_true, true_by_nan])
        branch = context.add("Cast", [is_true], {"to": DType.INT64})
        return context.add("Gather", [self._children, context.add("Add", [nodes, branch])])

    def _compare(self, mode: int, x: Value, values: Value, nodes: Value) -> Value:
        context = self._context
        if mode == MEMBER:
            sets = self.lookup("members", nodes)
            same = context.add("Equal", [context.add("Unsqueeze", [x, context.ints(-1)]), sets])
            hits = context.add("Cast", [same], {"to": DType.INT32})
            return context.add(
                "Cast", [context.add("ReduceMax", [hits, context.ints(-1)], {"keepdims": 0})], {"to": DType.BOOL}
            )
        name = COMPARISONS[mode]
        if name == "NotEqual":
            return context.add("Not", [context.add("Equal", [x, values])])
        return context.add(name, [x, values])
