"""Decision trees as tables of nodes, and a walk through all of them at once.

All trees are in one table. Every row of the input is at one node of each tree; in each step it moves on to one of the
two nodes below. Leaves lead to themselves, so that after as many steps as the deepest tree has levels all are there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lite_core.ir import DType, Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.machine_learning.attributes import Array
from lite_onnx.lowering.registry import Unlowerable

__all__ = ["COMPARISONS", "LEAF", "MEMBER", "Forest", "walk"]

#: Lite's operators for the modes of inner nodes, by their numbers in TreeEnsemble; BRANCH_NEQ is the last one's opposite.
COMPARISONS = ("LessOrEqual", "Less", "GreaterOrEqual", "Greater", "Equal", "NotEqual")
MEMBER, LEAF = 6, 7

#: Deeper trees come from a damaged file: scikit-learn's own limit is about 1,000, and each level is a dozen nodes.
_DEEPEST = 2000


@dataclass(frozen=True)
class Forest:
    """All nodes of some trees.

    Attributes:
        features: which column each node looks at.
        values: what it is compared with.
        modes: how: a number of :data:`COMPARISONS`, MEMBER or LEAF.
        yes: the node that follows where the comparison holds.
        no: the node that follows elsewhere.
        missing: whether it holds for NaN in any case.
        roots: the first node of each tree.
        weights: of leaves, [leaves, targets]; NaN where a leaf says nothing of a target.
        leaves: the row of ``weights`` of each node; 0 for those that are no leaves.
        members: [nodes, largest set], padded with NaN: of MEMBER nodes; None where there are none.
    """

    features: Array
    values: Array
    modes: Array
    yes: Array
    no: Array
    missing: Array
    roots: Array
    weights: Array
    leaves: Array
    members: Array | None = None

    def __post_init__(self) -> None:
        count = len(self.features)
        if not count or not len(self.roots):
            raise Unlowerable("it has no nodes")
        for next_ in (self.yes, self.no, self.roots):
            if next_.min() < 0 or next_.max() >= count:
                raise Unlowerable(f"one of its branches leads to a node outside of its {count} nodes")

    def depth(self) -> int:
        """How many steps lead from a root to the furthest leaf.

        Raises:
            Unlowerable: there is no end of it.
        """
        steps, at = 0, np.unique(self.roots)
        while (inner := at[self.modes[at] != LEAF]).size:
            at = np.unique(np.concatenate([self.yes[inner], self.no[inner]]))
            steps += 1
            if steps > _DEEPEST:
                raise Unlowerable(f"its trees have cycles, or more than {_DEEPEST} levels")
        return steps


def walk(forest: Forest, x: Value, context: Context) -> Value:
    """The leaf [N, trees] that each row of x [N, features] ends at, as a row of the forest's weights."""
    width = context.size(x, 1)
    if forest.features.min() < 0 or forest.features.max() >= width:
        raise Unlowerable(f"its nodes look at feature {int(forest.features.max())}, and its input has {width}")
    steps = _Steps(forest, x, context)
    batch = context.add("Shape", [x], {"start": 0, "end": 1})
    shape = context.add("Concat", [batch, context.ints(len(forest.roots))], {"axis": 0})
    at = context.add("Expand", [context.constant(forest.roots), shape])
    for _ in range(forest.depth()):
        at = steps.next(at)
    return steps.gathered(forest.leaves, at)


class _Steps:
    """From nodes to those below."""

    def __init__(self, forest: Forest, x: Value, context: Context) -> None:
        self._forest, self._x, self._context = forest, x, context
        inner = forest.modes != LEAF
        self._modes = [int(m) for m in np.unique(forest.modes[inner])]
        self._has_missing = bool(forest.missing[inner].any())

    def gathered(self, table: Array, at: Value) -> Value:
        """Elements of a table, the same for all where they do not differ."""
        if (table == table[0]).all():
            return self._context.constant(table[0])
        return self._context.add("Gather", [self._context.constant(table), at])

    def next(self, at: Value) -> Value:
        """The nodes [N, trees] that follow."""
        forest, context = self._forest, self._context
        found = context.add("GatherElements", [self._x, self._columns(at)], {"axis": 1})
        values = self.gathered(forest.values.astype(self._x.dtype.numpy), at)
        holds = self._compared(self._modes[0], found, values, at)
        if len(self._modes) > 1:
            modes = self.gathered(forest.modes, at)
            for mode in self._modes[1:]:
                is_it = context.add("Equal", [modes, context.scalar_like(mode, modes)])
                holds = context.add("Where", [is_it, self._compared(mode, found, values, at), holds])
        if self._has_missing:
            tracks = context.add("And", [context.add("IsNaN", [found]), self.gathered(forest.missing, at)])
            holds = context.add("Or", [holds, tracks])
        return context.add("Where", [holds, self.gathered(forest.yes, at), self.gathered(forest.no, at)])

    def _columns(self, at: Value) -> Value:
        features = self.gathered(self._forest.features, at)
        if self._context.rank(features):
            return features
        return self._context.add("Expand", [features, self._context.add("Shape", [at])])

    def _compared(self, mode: int, found: Value, values: Value, at: Value) -> Value:
        context, members = self._context, self._forest.members
        if mode == MEMBER:
            assert members is not None
            sets = context.add("Gather", [context.constant(members.astype(found.dtype.numpy)), at])
            same = context.add("Equal", [context.add("Unsqueeze", [found, context.ints(-1)]), sets])
            hits = context.add("Cast", [same], {"to": DType.INT32})
            return context.add(
                "Cast", [context.add("ReduceMax", [hits, context.ints(-1)], {"keepdims": 0})], {"to": DType.BOOL}
            )
        name = COMPARISONS[mode]
        if name == "NotEqual":
            return context.add("Not", [context.add("Equal", [found, values])])
        return context.add(name, [found, values])
