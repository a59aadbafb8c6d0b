"""Attention: ``softmax(scores(Q * K')) * V``, with scores that never leave the caches of a core.

A work item is a head, or some rows of it. It packs the head's keys and values, then processes a few rows at a time: it
computes their scores, the exponentials of the scores, and the product with the values divided by the sum of the
exponentials.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lite_compiler.chains import Apply
from lite_compiler.tracing.numbers import computed
from lite_core.ir import DType
from lite_cpu.chains import Chain, Operand
from lite_cpu.emitter import Emitter, Params, Pointer, Pointers, Val
from lite_cpu.kernels.base import Kernel, Products
from lite_cpu.kernels.bfloat16_pairs import PAIR, add_pairs
from lite_cpu.kernels.depth_loops import AddProducts, multiply_add
from lite_cpu.kernels.packing import Contiguous, Matrix, emit_panels
from lite_cpu.kernels.packing_pairs import emit_pair_panels
from lite_cpu.kernels.tiles import BlockEmitter, BlockTensors, Rows, Window, gemm_tile
from lite_cpu.machine import Machine
from lite_cpu.vector_math import exp_of_nonpositive

__all__ = ["Attention", "AttentionShape"]

F32 = DType.FLOAT32

#: Order of the parameters; then follow the (batch, head, row) strides of each operand of the scores, then of C.
PARAMETERS = (
    "batches", "heads", "rows", "tokens", "depth", "columns",
    "q_batch", "q_head", "q_row",
    "k_batch", "k_head", "k_depth", "k_token",
    "v_batch", "v_head", "v_token", "v_column",
    "c_batch", "c_head", "c_row",
    "item_rows", "score_rows",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class AttentionShape:
    """Sizes and strides in elements; see :data:`PARAMETERS`.

    Q is [batches, heads, rows, depth], K is [..., tokens, depth], V is [..., tokens, columns], C is
    [..., rows, columns]. A work item computes ``item_rows`` rows of a head, ``score_rows`` at a time.
    """

    batches: int
    heads: int
    rows: int
    tokens: int
    depth: int
    columns: int
    q_batch: int
    q_head: int
    q_row: int
    k_batch: int
    k_head: int
    k_depth: int
    k_token: int
    v_batch: int
    v_head: int
    v_token: int
    v_column: int
    c_batch: int
    c_head: int
    c_row: int

    @property
    def flops(self) -> int:
        return 2 * self.batches * self.heads * self.rows * self.tokens * (self.depth + self.columns)

    def blocks(self, machine: Machine, threads: int) -> tuple[int, int]:
        """Return the rows of a work item, and the rows whose scores fit into the first-level cache at once."""
        return _blocks(self.batches * self.heads, self.rows, self.tokens, machine, threads)

    def items(self, item_rows: int) -> int:
        return self.batches * self.heads * -(-self.rows // item_rows)

    def scratch_bytes(self, machine: Machine, score_rows: int, kernel: Attention) -> int:
        """Return the size of packed keys, packed values, scores, one number for each row of scores, and wide queries.

        Queries are copied only if the kernel widens them.
        """
        lanes = machine.lanes()
        tokens, columns = (-(-n // lanes) * lanes for n in (self.tokens, self.columns))
        row = tokens + 1 + (self.depth if kernel.widens_queries else 0)
        keys, values = (-(-n // kernel.group) for n in (self.depth, self.tokens))
        return 4 * (keys * tokens + values * columns + score_rows * row)

    def reads_pairs(self, keys: Contiguous) -> bool:
        """Return True if neighbours along the depth of Q and K are pairs; ``keys`` is the contiguous side of K'."""
        even = [self.depth, self.q_batch, self.q_head, self.q_row]
        even += [self.k_batch, self.k_head, self.k_token] if keys is Contiguous.DEPTH else []
        return not any(n % 2 for n in even)

    def params(self, item_rows: int, score_rows: int, operands: Sequence[tuple[int, int, int]]) -> list[int]:
        blocks = {"item_rows": item_rows, "score_rows": score_rows}
        listed = [blocks[n] if n in blocks else getattr(self, n) for n in PARAMETERS]
        return listed + [stride for strides in operands for stride in strides]


@computed
def _blocks(heads: int, rows: int, tokens: int, machine: Machine, threads: int) -> tuple[int, int]:
    """Return what :meth:`AttentionShape.blocks` does, for a number of heads of all batches."""
    tile_rows = gemm_tile(machine)[0]
    item_rows = -(-rows // tile_rows) * tile_rows
    while threads > 1 and heads * -(-rows // item_rows) < 2 * threads and item_rows >= 8 * tile_rows:
        item_rows = -(-item_rows // 2 // tile_rows) * tile_rows
    score_rows = max(1, machine.l1_bytes // (4 * max(1, tokens)) // tile_rows) * tile_rows
    return item_rows, min(score_rows, item_rows)


@dataclass(frozen=True)
class Attention(Kernel):
    """Attention of all heads.

    Pointers: Q, K, V, C, operands of the scores, operands of C. All is computed in float32, or with ``pairs`` from
    bfloat16 with float32 sums: the exponentials are then rounded to bfloat16, but not their sum.

    Attributes:
        scores: chain applied to each element of ``Q * K'`` before the softmax.
        tail: chain applied to each element of the result.
        keys: the contiguous dimension of K' [depth, tokens].
        values: the contiguous dimension of V [tokens, columns].
        dtypes: element types of Q, K and V, floats of 32 or 16 bits.
        pairs: Q, K and V are bfloat16 and multiplied in pairs; see :meth:`AttentionShape.reads_pairs`.
    """

    scores: Chain
    tail: Chain
    keys: Contiguous
    values: Contiguous
    dtypes: tuple[DType, DType, DType] = (F32, F32, F32)
    pairs: bool = False

    @property
    def computes(self) -> Products:
        return Products("bfloat16" if self.pairs else "float32")

    @property
    def group(self) -> int:
        """Number of elements along the depth that are multiplied together."""
        return 2 if self.pairs else 1

    @property
    def widens_queries(self) -> bool:
        """True if queries are converted to float32 before they are multiplied."""
        return self.dtypes[0] is not F32 and not self.pairs

    @property
    def products(self) -> AddProducts:
        """The products of two elements, or of two pairs."""
        return add_pairs if self.pairs else multiply_add

    def emit(self, k: Emitter) -> None:
        lanes = k.machine.lanes()
        with k.kernel(self.symbol) as (pointers, params, begin, end, scratch):
            p = {name: params[i] for i, name in enumerate(PARAMETERS)}
            tokens, columns = ((p[n] + (lanes - 1)) / lanes * lanes for n in ("tokens", "columns"))
            element = PAIR if self.pairs else F32
            key_steps, value_steps = ((p[n] + (self.group - 1)) / self.group for n in ("depth", "tokens"))
            keys = scratch.cast(element)
            values = keys[key_steps * tokens]
            scores = values[value_steps * columns].cast(F32)
            inverse = scores[p["score_rows"] * tokens]
            item_blocks = (p["rows"] + p["item_rows"] - 1) / p["item_rows"]
            with k.loop(begin, end) as item:
                first, rest = item % item_blocks * p["item_rows"], item / item_blocks
                head, batch = rest % p["heads"], rest / p["heads"]
                at = _Head(k, pointers, params, p, batch, head)
                k_start, v_start = at.start(1, "k", self.dtypes[1]), at.start(2, "v", self.dtypes[2])
                k_matrix = Matrix(k_start, p["depth"], p["tokens"], p["k_depth"], p["k_token"], self.keys)
                v_matrix = Matrix(v_start, p["tokens"], p["columns"], p["v_token"], p["v_column"], self.values)
                if self.pairs:
                    emit_pair_panels(k, k_matrix, keys)
                    emit_pair_panels(k, v_matrix, values)
                else:
                    emit_panels(k, k_matrix, keys, 0, p["tokens"])
                    emit_panels(k, v_matrix, values, 0, p["columns"])
                stop = k.minimum(first + p["item_rows"], p["rows"])
                with k.loop(first, stop, p["score_rows"]) as row:
                    rows = k.minimum(p["score_rows"], stop - row)
                    held = Rows(scores, tokens, tokens)
                    self._emit_scores(k, at, row, rows, keys, held, inverse)
                    with k.loop(0, rows) as r:
                        row_of_scores = scores[r * tokens]
                        stored = row_of_scores.cast(DType.BFLOAT16) if self.pairs else row_of_scores
                        inverse[r].store(_exponentials(k, row_of_scores, stored, p["tokens"]))
                    self._emit_result(k, at, row, rows, held, inverse, values)

    def _emit_scores(
        self, k: Emitter, at: _Head, row: Val, rows: Val, keys: Pointer, held: Rows, inverse: Pointer
    ) -> None:
        """Emit the scores of some rows; behind ``inverse`` is memory for their queries in float32."""
        depth = at.p["depth"]
        q = Rows(at.start(0, "q", self.dtypes[0]), at.p["q_row"], at.p["q_row"]).at(0, row)
        if self.pairs:
            q = Rows(q.start.cast(PAIR), q.row / 2, q.group / 2)
            depth = depth / 2
        elif self.widens_queries:
            wide = inverse[at.p["score_rows"]]
            with k.loop(0, rows) as r:
                source, target = q.at(0, r).start, wide[r * depth]
                k.span(depth, k.machine.lanes(), lambda i, n: target[i].store(source[i].load(n)))
            q = Rows(wide, depth, depth)
        operands = at.operands(self.scores.operands, 0, row)
        block = BlockEmitter(k, self.scores, _single_run(k, depth), self.products)
        block.block(BlockTensors(q, held, operands), 1, rows, at.p["tokens"], keys, None)

    def _emit_result(
        self, k: Emitter, at: _Head, row: Val, rows: Val, held: Rows, inverse: Pointer, values: Pointer
    ) -> None:
        normalize = Chain(Operand(F32), (Operand(F32, spread=True),), (Apply("Mul", (0, 1), F32),))
        one = k.index(1)
        c = Rows(at.start(3, "c", self.tail.output), at.p["c_row"], at.p["c_row"]).at(0, row)
        others = at.operands(self.tail.operands, len(self.scores.operands), row)
        operands = (Rows(inverse, one, one, spread=True), *others)
        depth = (at.p["tokens"] + (self.group - 1)) / self.group
        held = Rows(held.start.cast(values.dtype), held.row, held.group)
        block = BlockEmitter(k, normalize.then(self.tail), _single_run(k, depth), self.products)
        block.block(BlockTensors(held, c, operands), 1, rows, at.p["columns"], values, None)


@dataclass(frozen=True, slots=True)
class _Head:
    """The tensors of one head."""

    k: Emitter
    pointers: Pointers
    params: Params
    p: Mapping[str, Val]
    batch: Val
    head: Val

    def start(self, tensor: int, name: str, dtype: DType) -> Pointer:
        offset = self.batch * self.p[f"{name}_batch"] + self.head * self.p[f"{name}_head"]
        return self.pointers.tensor(tensor, dtype)[offset]

    def operands(self, operands: Sequence[Operand], first: int, row: Val) -> tuple[Rows, ...]:
        """Return the operands of a chain from row ``row`` on; ``first`` is the number of the first operand."""
        found = []
        for i, operand in enumerate(operands, start=first):
            batch, head, step = (self.params[len(PARAMETERS) + 3 * i + n] for n in range(3))
            start = self.pointers.tensor(4 + i, operand.dtype)[self.batch * batch + self.head * head]
            found.append(Rows(start, step, step, operand.spread).at(0, row))
        return tuple(found)


def _single_run(k: Emitter, depth: Val) -> Window:
    one = k.index(1)
    return Window(segments=one, taps=one, depth=depth, a_segment=one, a_tap=one)


def _exponentials(k: Emitter, row: Pointer, stored: Pointer, count: Val) -> Val:
    """Store ``exp(element - largest element)`` for each element of a row; return the reciprocal of their sum.

    ``stored`` is the row's own memory, in which elements of 16 bits move towards its beginning. The last vector is
    filled with zeros.
    """
    lanes = k.machine.lanes()

    def each_vector(body: Callable[[Val, Val, Val | None], None]) -> None:
        whole = count / lanes * lanes
        with k.loop(0, whole, lanes) as i:
            body(i, row[i].load(lanes), None)
        with k.if_(whole < count):
            inside = k.first_lanes(count - whole, lanes)
            body(whole, inside.select(row[whole].load(lanes), float("-inf")), inside)

    most = k.variable(k.constant(float("-inf"), F32, lanes))
    each_vector(lambda at, x, inside: most.set(k.maximum(most.get(), x)))
    peak = k.max_lanes(most.get()).splat(lanes)
    total = k.variable(k.constant(0.0, F32, lanes))

    def exponentiate(at: Val, x: Val, inside: Val | None) -> None:
        y = exp_of_nonpositive(x - peak)
        y = y if inside is None else inside.select(y, 0.0)
        stored[at].store(y)
        total.set(total.get() + y)

    each_vector(exponentiate)
    return 1.0 / k.sum_lanes(total.get())
