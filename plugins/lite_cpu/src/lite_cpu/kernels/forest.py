"""Walks through decision trees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Pointer, Val
from lite_cpu.kernels.base import Kernel

__all__ = ["PARAMETERS", "TOGETHER", "Forest", "scratch_bytes"]

F64, I32, I64, U8 = DType.FLOAT64, DType.INT32, DType.INT64, DType.UINT8

#: Order of the parameters: sizes, the rows of a work item, and strides in elements: of rows of x, and of scores.
PARAMETERS = ("rows", "trees", "targets", "depth", "item_rows", "row_stride", "score_row", "score_target")

#: Walks at the same time.
TOGETHER = 8

#: The comparisons of kinds 0 to 5, of a feature with a number.
_COMPARISONS: tuple[Callable[[Val, Val], Val], ...] = (
    lambda a, b: a <= b,
    lambda a, b: a < b,
    lambda a, b: a >= b,
    lambda a, b: a > b,
    lambda a, b: a.eq(b),
    lambda a, b: a.ne(b),
)
_NAN_IS_TRUE = 8


def scratch_bytes(rows: int, targets: int) -> int:
    """Return the size of the scores of a work item of so many rows, in float64."""
    return 8 * (rows + TOGETHER) * targets


@dataclass(frozen=True)
class Forest(Kernel):
    """Aggregated weights of the leaves that rows reach; a work item is a block of rows.

    Pointers: x, nodes [n, 4] (int32), splits, kinds (uint8), roots (int32), weights, scores; see lite.DecisionForest.
    Scratch: :func:`scratch_bytes`.

    Each step waits for a load of the last one, so there are :data:`TOGETHER` walks at the same time: of as many rows
    through one tree, or of one row through as many trees. They stop when all are at leaves, whose children are the
    leaves themselves. All rows of a block walk through a tree before the next, so that it stays in the nearest cache.

    Attributes:
        dtype: of features, numbers to compare with, weights and scores.
        aggregate: sum, min or max.
        kinds: all kinds of inner nodes, sorted.
        few_rows: walks at the same time are those of one row.
    """

    dtype: DType
    aggregate: str
    kinds: tuple[int, ...]
    few_rows: bool

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, scratch):
            p = {name: params[i] for i, name in enumerate(PARAMETERS)}
            x, splits, weights, scores = (pointers.tensor(i, self.dtype) for i in (0, 2, 5, 6))
            nodes, roots = pointers.tensor(1, I32), pointers.tensor(4, I32)
            kinds, sums = pointers.tensor(3, U8), scratch.cast(F64)
            initial = {"sum": 0.0, "min": float("inf"), "max": float("-inf")}[self.aggregate]
            with k.loop(begin, end) as item:
                first = item * p["item_rows"]
                count = k.minimum(p["item_rows"], p["rows"] - first)
                with k.loop(0, (count + TOGETHER) * p["targets"]) as i:
                    sums[i].store(initial)
                rows, trees = (1, TOGETHER) if self.few_rows else (TOGETHER, 1)
                with k.loop(0, p["trees"], trees) as tree, k.loop(0, count, rows) as row:
                    # Rows and trees behind the last one are the last one again; their sums are not used.
                    lines = [x[k.minimum(first + row + j, p["rows"] - 1) * p["row_stride"]] for j in range(rows)]
                    starts = [roots[k.minimum(tree + j, p["trees"] - 1)].load().to(I64) for j in range(trees)]
                    walks = [(line, start) for line in lines for start in starts]
                    leaves = self._walk(k, walks, nodes, splits, kinds, p["depth"])
                    for j, leaf in enumerate(leaves):
                        reached = nodes[leaf * 4 + 3].load().to(I64)
                        position = (tree + j < p["trees"]).select(row, count) if self.few_rows else row + j
                        self._add(k, sums[position * p["targets"]], weights[reached * p["targets"]], p["targets"])
                with k.loop(0, count) as row, k.loop(0, p["targets"]) as t:
                    target = scores[(first + row) * p["score_row"] + t * p["score_target"]]
                    target.store(sums[row * p["targets"] + t].load().to(self.dtype))

    def _walk(
        self,
        k: Emitter,
        walks: list[tuple[Pointer, Val]],
        nodes: Pointer,
        splits: Pointer,
        kinds: Pointer,
        depth: Val,
    ) -> list[Val]:
        """Return the leaf that each row reaches from a root."""
        positions = [k.variable(root) for _, root in walks]
        left, moves = k.variable(depth), k.variable(k.constant(1, I64))
        with k.while_(lambda: (left.get() > 0) & (moves.get() > 0)):
            moved = k.constant(0, I64)
            for (line, _), position in zip(walks, positions):
                node = position.get()
                record = nodes[node * 4]
                value = line[record.load().to(I64)].load()
                is_true = self._is_true(value, splits[node], kinds[node])
                child = is_true.select(record[2].load(), record[1].load()).to(I64)
                moved = moved | (child ^ node)
                position.set(child)
            moves.set(moved)
            left.set(left.get() - 1)
        return [position.get() for position in positions]

    def _is_true(self, value: Val, split: Pointer, kind: Pointer) -> Val:
        number = split.load()
        found: Val | None = None
        for code in self.kinds:
            result = _COMPARISONS[code % _NAN_IS_TRUE](value, number)
            if code >= _NAN_IS_TRUE:
                result = result | value.is_nan()
            found = result if found is None else kind.load().eq(code).select(result, found)
        assert found is not None
        return found

    def _add(self, k: Emitter, sums: Pointer, weights: Pointer, targets: Val) -> None:
        with k.loop(0, targets) as t:
            new, old = weights[t].load().to(F64), sums[t].load()
            sums[t].store(
                old + new if self.aggregate == "sum"
                else k.minimum(old, new) if self.aggregate == "min" else k.maximum(old, new)
            )  # fmt: skip
