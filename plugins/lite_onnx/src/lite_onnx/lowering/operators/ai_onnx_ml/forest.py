"""Decision trees as tables of nodes, and a walk through all of them at once.

All trees are in one table. Every row of the input is at one node of each tree; in each step it moves on to one of the
two nodes below. Leaves lead to themselves, so that after as many steps as the deepest tree has levels all are there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lite_core.ir import DType, Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.operators.ai_onnx.heads import length, places
from lite_onnx.lowering.operators.ai_onnx_ml.attributes import Array
from lite_onnx.lowering.unlowerable import Unlowerable

__all__ = ["COMPARISONS", "LEAF", "MEMBER", "Forest", "walk"]

#: Lite's operators for the modes of inner nodes, by their numbers in TreeEnsemble; there is none for the last one.
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
    at = context.add("Expand", [context.constant(2 * forest.roots), shape])
    for _ in range(forest.depth()):
        at = steps.next(at)
    return steps.gathered("leaves", at)


class _Steps:
    """From nodes to those below. Each node has two numbers, the even one and the next: where it leads by no and by yes.

    Tables hold everything twice, so that one lookup by the even number plus 0 or 1 gives the node that follows.
    """

    def __init__(self, forest: Forest, x: Value, context: Context) -> None:
        dtype = x.dtype.numpy
        members = None if forest.members is None else forest.members.astype(dtype)
        self._forest = replace(forest, values=forest.values.astype(dtype), members=members)
        self._context = context
        self._tables: dict[str, Value] = {}
        # NOTE: elements of one long row by one index each are what every backend is fastest at.
        self._elements = context.add("Reshape", [x, context.ints(-1)])
        width = context.constant(np.array(context.size(x, 1), np.int64))
        rows = context.add("Mul", [places(length(x, context, 0), context), width])
        self._rows = context.add("Unsqueeze", [rows, context.ints(1)])
        inner = forest.modes != LEAF
        self._modes = [int(m) for m in np.unique(forest.modes[inner])]
        self._following = context.constant(2 * np.stack([forest.no, forest.yes], axis=1).reshape(-1))
        self._has_missing = bool(forest.missing[inner].any())

    def gathered(self, name: str, at: Value) -> Value:
        """What one of the forest's tables has for nodes; the same for all where it does not differ."""
        table: Array = getattr(self._forest, name)
        if table.ndim == 1 and (table == table[0]).all():
            return self._context.constant(table[0])
        if name not in self._tables:  # every level looks into the same ones
            self._tables[name] = self._context.constant(np.repeat(table, 2, axis=0))
        return self._context.add("Gather", [self._tables[name], at])

    def next(self, at: Value) -> Value:
        """The nodes [N, trees] that follow."""
        context = self._context
        found = context.add("Gather", [self._elements, context.add("Add", [self._rows, self.gathered("features", at)])])
        values = self.gathered("values", at)
        holds = self._compared(self._modes[0], found, values, at)
        if len(self._modes) > 1:
            modes = self.gathered("modes", at)
            for mode in self._modes[1:]:
                is_it = context.add("Equal", [modes, context.scalar_like(mode, modes)])
                holds = context.add("Where", [is_it, self._compared(mode, found, values, at), holds])
        if self._has_missing:
            tracks = context.add("And", [context.add("IsNaN", [found]), self.gathered("missing", at)])
            holds = context.add("Or", [holds, tracks])
        branch = context.add("Cast", [holds], {"to": DType.INT64})
        return context.add("Gather", [self._following, context.add("Add", [at, branch])])

    def _compared(self, mode: int, found: Value, values: Value, at: Value) -> Value:
        context = self._context
        if mode == MEMBER:
            sets = self.gathered("members", at)
            same = context.add("Equal", [context.add("Unsqueeze", [found, context.ints(-1)]), sets])
            hits = context.add("Cast", [same], {"to": DType.INT32})
            return context.add(
                "Cast", [context.add("ReduceMax", [hits, context.ints(-1)], {"keepdims": 0})], {"to": DType.BOOL}
            )
        name = COMPARISONS[mode]
        if name == "NotEqual":
            return context.add("Not", [context.add("Equal", [found, values])])
        return context.add(name, [found, values])
