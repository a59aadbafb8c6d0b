"""Attention to cached keys and values, which are read once, in the layout of the cache.

A step of a decoder has few queries, so that reading the cache takes the time. A work item belongs to one head of keys
and values, and has rows: the queries of the heads that share it. It takes some positions of the cache at a time, which
stay in the first-level cache: scores, then their exponentials relative to the largest score so far, then the sum of
the values with these weights (https://arxiv.org/abs/1805.02867). How many positions the cache holds is known only when
the program runs. With few heads, items divide the positions among them, and a second kernel combines their results.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Pointer, Pointers, Val
from lite_cpu.kernels.base import Kernel, Products
from lite_cpu.vector_math import exp_of_nonpositive, tanh

__all__ = ["BLOCK", "PARAMETERS", "CachedAttention", "CombineParts", "scratch_bytes"]

F32, I64 = DType.FLOAT32, DType.INT64
_INFINITY, _LOWEST = float("inf"), -3.4028234663852886e38

#: Positions of the cache whose scores are computed together: a multiple of the lanes of every machine.
BLOCK = 64

#: Order of the parameters; sizes and strides in elements. ``times`` is the number of query heads of a key head.
PARAMETERS = (
    "batches", "groups", "times", "queries", "tokens", "depth", "columns",
    "q_batch", "q_head", "q_row",
    "k_batch", "k_head", "k_token",
    "v_batch", "v_head", "v_token",
    "c_batch", "c_head", "c_row",
    "m_batch", "m_head", "m_row", "m_tokens",
    "item_rows", "parts", "scale", "cap",
)  # fmt: skip


def scratch_bytes(item_rows: int, columns: int) -> int:
    """Return the bytes of an item: scores of its rows; and for each row the result, its sum and its peak."""
    return 4 * item_rows * (BLOCK + columns + 2)


class _Item(NamedTuple):
    """A work item: its batch row, key head, first row and number of rows, and its positions [start, stop)."""

    batch: Val
    group: Val
    first: Val
    rows: Val
    start: Val
    stop: Val


class _State(NamedTuple):
    """The memory of an item's rows: scores [rows, BLOCK], results [rows, columns], sums and peaks [rows]."""

    scores: Pointer
    result: Pointer
    sums: Pointer
    peaks: Pointer


@dataclass(frozen=True)
class CachedAttention(Kernel):
    """Attention of all heads; row ``r`` of a key head is query ``r / times`` of its query head ``r % times``.

    Pointers: Q, K, V, C; then, as far as present, the lengths of the batch rows (int64), the mask, and the strides
    (int64) of the first two dimensions of K and of V, which replace those of the parameters. With parts, C is
    [item, item_rows, columns + 2]: the sum of the weighted values, the sum of the weights, and the largest score.

    Attributes:
        tile: rows whose products are computed together; it divides the rows of each item.
        causal: a query sees no later positions; the last one is at the end of the length, or of the queries without.
        lengths: the number of positions to read differs from row to row of the batch.
        mask: the element type of the mask, or None; a bool hides positions, a float is added to the scores.
        capped: the scores have a soft limit.
        in_parts: several items share the positions of a head.
        strided_keys: the strides of K are given when the program runs.
        strided_values: the same of V.
    """

    tile: int
    causal: bool = False
    lengths: bool = False
    mask: DType | None = None
    capped: bool = False
    in_parts: bool = False
    strided_keys: bool = False
    strided_values: bool = False

    @property
    def computes(self) -> Products:
        return Products("float32")

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, scratch):
            p = {name: params[i] for i, name in enumerate(PARAMETERS)}
            first = 4 + self.lengths + (self.mask is not None)
            if self.strided_keys:
                p["k_batch"], p["k_head"] = _strides(pointers, first)
            if self.strided_values:
                p["v_batch"], p["v_head"] = _strides(pointers, first + self.strided_keys)
            scale, cap = (params.number(PARAMETERS.index(name), F32) for name in ("scale", "cap"))
            scores = scratch.cast(F32)
            result = scores[p["item_rows"] * BLOCK]
            sums = result[p["item_rows"] * p["columns"]]
            state = _State(scores, result, sums, sums[p["item_rows"]])
            with k.loop(begin, end) as number:
                item = self._item(k, pointers, p, number)
                with k.loop(0, item.rows) as row:
                    state.sums[row].store(0.0)
                    state.peaks[row].store(-_INFINITY)
                k.span(
                    item.rows * p["columns"],
                    k.machine.lanes(),
                    lambda i, n: state.result[i].store(k.constant(0.0, F32, n)),
                )
                with k.loop(item.start, item.stop, BLOCK) as token:
                    count = k.minimum(BLOCK, item.stop - token)
                    with k.loop(0, item.rows, self.tile) as row:
                        self._emit_products(k, pointers, p, item, state, row, token, count)
                        for turn in range(self.tile):
                            self._emit_weights(k, pointers, p, item, state, row + turn, token, count, scale, cap)
                        self._emit_values(k, pointers, p, item, state, row, token, count)
                self._emit_result(k, pointers, p, item, state, number)

    # **** the parts of an item ****

    def _item(self, k: Emitter, pointers: Pointers, p: Mapping[str, Val], number: Val) -> _Item:
        rows = p["times"] * p["queries"]
        chunks = (rows + p["item_rows"] - 1) / p["item_rows"]
        part, rest = number % p["parts"], number / p["parts"]
        first, rest = rest % chunks * p["item_rows"], rest / chunks
        group, batch = rest % p["groups"], rest / p["groups"]
        count = k.minimum(p["item_rows"], rows - first)
        stop = self._end(k, pointers, p, batch)
        if self.causal:
            last = (first + count - 1) / p["times"]
            stop = k.minimum(stop, self._first(k, pointers, p, batch) + last + 1)
        stop = k.maximum(stop, 0)
        length = (stop + p["parts"] * BLOCK - 1) / (p["parts"] * BLOCK) * BLOCK
        start = part * length
        return _Item(batch, group, first, count, start, k.minimum(stop, start + length))

    def _end(self, k: Emitter, pointers: Pointers, p: Mapping[str, Val], batch: Val) -> Val:
        """Return the number of positions that a batch row has, at most those of the mask."""
        end = p["tokens"]
        if self.lengths:
            end = k.minimum(end, pointers.tensor(4, I64)[batch].load())
        return k.minimum(end, p["m_tokens"]) if self.mask is not None else end

    def _first(self, k: Emitter, pointers: Pointers, p: Mapping[str, Val], batch: Val) -> Val:
        """Return the position of a batch row's first query."""
        return pointers.tensor(4, I64)[batch].load() - p["queries"] if self.lengths else k.index(0)

    def _emit_products(
        self, k: Emitter, pointers: Pointers, p: Mapping[str, Val], item: _Item, state: _State, row: Val, token: Val,
        count: Val,
    ) -> None:  # fmt: skip
        """Write the products of the rows of a tile and the keys of a block."""
        lanes = k.machine.lanes()
        depth, step = p["depth"], p["k_token"]
        queries = [_row(pointers, 0, "q", p, item, row + turn) for turn in range(self.tile)]
        keys = pointers.tensor(1, F32)[item.batch * p["k_batch"] + item.group * p["k_head"] + token * step]
        whole = depth / lanes * lanes

        def block(index: Val, tokens: int) -> None:
            at = [keys[(index + turn) * step] for turn in range(tokens)]
            zero = k.constant(0.0, F32, lanes)
            totals = [[k.variable(zero) for _ in at] for _ in queries]

            def add(here: Val, inside: Val | None) -> None:
                loaded = [k.load_first(key[here], inside, lanes) for key in at]
                for query, row_totals in zip(queries, totals):
                    x = k.load_first(query[here], inside, lanes)
                    for key, total in zip(loaded, row_totals):
                        total.set(k.fma(x, key, total.get()))

            with k.loop(0, whole, lanes) as here:
                add(here, None)
            with k.if_(whole < depth):
                add(whole, depth - whole)
            for turn, row_totals in enumerate(totals):
                for number, total in enumerate(row_totals):
                    state.scores[(row + turn) * BLOCK + index + number].store(k.sum_lanes(total.get()))

        _in_groups(k, count, 4 if k.machine.vector_registers >= 32 else 2, block)

    def _emit_weights(
        self, k: Emitter, pointers: Pointers, p: Mapping[str, Val], item: _Item, state: _State, row: Val, token: Val,
        count: Val, scale: Val, cap: Val,
    ) -> None:  # fmt: skip
        """Replace a row's products by weights relative to the new peak; scale its result and its sum to that peak."""
        lanes = k.machine.lanes()
        scores = state.scores[row * BLOCK]
        number = item.first + row
        query, head = number / p["times"], item.group * p["times"] + number % p["times"]
        visible = count
        if self.causal:
            visible = k.minimum(visible, self._first(k, pointers, p, item.batch) + query + 1 - token)
        mask = None
        if self.mask is not None:
            offset = item.batch * p["m_batch"] + head * p["m_head"] + query * p["m_row"] + token
            mask = pointers.tensor(4 + self.lengths, self.mask)[offset]
        most = k.variable(k.constant(-_INFINITY, F32, lanes))
        with k.loop(0, count, lanes) as i:
            x = scores[i].load(lanes) * scale
            if self.capped:
                x = tanh(x / cap) * cap
            if mask is not None and self.mask is DType.BOOL:
                x = k.load_first(mask[i], k.minimum(count - i, lanes), lanes).select(x, -_INFINITY)
            elif mask is not None:
                x = x + k.load_first(mask[i], k.minimum(count - i, lanes), lanes)
            x = k.first_lanes(visible - i, lanes).select(x, -_INFINITY)
            scores[i].store(x)
            most.set(k.maximum(most.get(), x))
        old = state.peaks[row].load()
        peak = k.maximum(k.maximum(old, k.max_lanes(most.get())), _LOWEST)
        factor = exp_of_nonpositive(old - peak)
        total = k.variable(k.constant(0.0, F32, lanes))
        with k.loop(0, count, lanes) as i:
            x = scores[i].load(lanes)
            y = x.eq(-_INFINITY).select(0.0, exp_of_nonpositive(x - peak.splat(lanes)))
            scores[i].store(y)
            total.set(total.get() + y)
        state.peaks[row].store(peak)
        state.sums[row].store(state.sums[row].load() * factor + k.sum_lanes(total.get()))
        result = state.result[row * p["columns"]]

        def rescale(i: Val, n: int) -> None:
            result[i].store(result[i].load(n) * factor)

        with k.if_(old < peak):
            k.span(p["columns"], lanes, rescale)

    def _emit_values(
        self, k: Emitter, pointers: Pointers, p: Mapping[str, Val], item: _Item, state: _State, row: Val, token: Val,
        count: Val,
    ) -> None:  # fmt: skip
        """Add the values of a block, with the weights of the rows of a tile, to their results."""
        lanes = k.machine.lanes()
        columns, step = p["columns"], p["v_token"]
        values = pointers.tensor(2, F32)[item.batch * p["v_batch"] + item.group * p["v_head"] + token * step]

        def block(column: Val, vectors: int, inside: Val | None = None) -> None:
            at = [[state.result[(row + t) * columns + column + v * lanes] for v in range(vectors)]
                  for t in range(self.tile)]  # fmt: skip
            totals = [[k.variable(k.load_first(x, inside, lanes)) for x in line] for line in at]
            with k.loop(0, count) as i:
                loaded = [k.load_first(values[i * step + column + v * lanes], inside, lanes) for v in range(vectors)]
                for turn, line in enumerate(totals):
                    weight = state.scores[(row + turn) * BLOCK + i].load().splat(lanes)
                    for value, total in zip(loaded, line):
                        total.set(k.fma(weight, value, total.get()))
            for line, addresses in zip(totals, at):
                for total, address in zip(line, addresses):
                    k.store_first(address, total.get(), inside)

        most = 4 if k.machine.vector_registers >= 32 else 2
        wide = columns / (most * lanes) * (most * lanes)
        with k.loop(0, wide, most * lanes) as column:
            block(column, most)
        whole = columns / lanes * lanes
        with k.loop(wide, whole, lanes) as column:
            block(column, 1)
        with k.if_(whole < columns):
            block(whole, 1, columns - whole)

    def _emit_result(
        self, k: Emitter, pointers: Pointers, p: Mapping[str, Val], item: _Item, state: _State, number: Val
    ) -> None:
        lanes = k.machine.lanes()
        with k.loop(0, item.rows) as row:
            result, total = state.result[row * p["columns"]], state.sums[row].load()
            if self.in_parts:
                c = pointers.tensor(3, F32)[(number * p["item_rows"] + row) * (p["columns"] + 2)]
                c[p["columns"]].store(total)
                c[p["columns"] + 1].store(state.peaks[row].load())
                k.span(p["columns"], lanes, lambda i, n, c=c, r=result: c[i].store(r[i].load(n)))  # type: ignore[misc]
            else:
                c, inverse = _row(pointers, 3, "c", p, item, row), _inverse(total)
                k.span(p["columns"], lanes,
                       lambda i, n, c=c, r=result, f=inverse: c[i].store(r[i].load(n) * f))  # type: ignore[misc]  # fmt: skip


@dataclass(frozen=True)
class CombineParts(Kernel):
    """The results of :class:`CachedAttention` in parts, combined. A work item is a row.

    Pointers: the parts, C. Parameters: those of :data:`PARAMETERS`.
    """

    def emit(self, k: Emitter) -> None:
        lanes = k.machine.lanes()
        with k.kernel(self.symbol) as (pointers, params, begin, end, _):
            p = {name: params[i] for i, name in enumerate(PARAMETERS)}
            rows, columns = p["times"] * p["queries"], p["columns"]
            chunks = (rows + p["item_rows"] - 1) / p["item_rows"]
            step = p["item_rows"] * (columns + 2)
            with k.loop(begin, end) as number:
                row, rest = number % rows, number / rows
                group, batch = rest % p["groups"], rest / p["groups"]
                item = ((batch * p["groups"] + group) * chunks + row / p["item_rows"]) * p["parts"]
                start = pointers.tensor(0, F32)[item * step + row % p["item_rows"] * (columns + 2)]
                peak, total = k.variable(k.constant(_LOWEST, F32)), k.variable(k.constant(0.0, F32))
                with k.loop(0, p["parts"]) as part:
                    peak.set(k.maximum(peak.get(), start[part * step + columns + 1].load()))
                with k.loop(0, p["parts"]) as part:
                    here = start[part * step + columns]
                    total.set(total.get() + here.load() * exp_of_nonpositive(here[1].load() - peak.get()))
                zero = k.index(0)
                c = _row(pointers, 1, "c", p, _Item(batch, group, zero, zero, zero, zero), row)
                inverse = _inverse(total.get())

                def column(i: Val, n: int, start: Pointer = start, c: Pointer = c, inverse: Val = inverse) -> None:
                    added = k.variable(k.constant(0.0, F32, n))
                    with k.loop(0, p["parts"]) as part:
                        here = start[part * step]
                        factor = exp_of_nonpositive(here[columns + 1].load() - peak.get())
                        added.set(added.get() + here[i].load(n) * factor)
                    c[i].store(added.get() * inverse)

                k.span(columns, lanes, column)


def _row(pointers: Pointers, tensor: int, name: str, p: Mapping[str, Val], item: _Item, row: Val) -> Pointer:
    """Return the address of a row of the item in Q or C."""
    number = item.first + row
    query, head = number / p["times"], item.group * p["times"] + number % p["times"]
    offset = item.batch * p[f"{name}_batch"] + head * p[f"{name}_head"] + query * p[f"{name}_row"]
    return pointers.tensor(tensor, F32)[offset]


def _strides(pointers: Pointers, tensor: int) -> tuple[Val, Val]:
    strides = pointers.tensor(tensor, I64)
    return strides.load(), strides[1].load()


def _inverse(total: Val) -> Val:
    """Return the reciprocal of a sum of weights, 0 if no position is visible."""
    return total.eq(0.0).select(0.0, 1.0 / total)


def _in_groups(k: Emitter, count: Val, size: int, body: object) -> None:
    """Emit ``body(index, size)`` for whole groups below ``count``, then ``body(index, 1)``."""
    whole = count / size * size
    with k.loop(0, whole, size) as index:
        body(index, size)  # type: ignore[operator]
    with k.loop(whole, count) as index:
        body(index, 1)  # type: ignore[operator]
