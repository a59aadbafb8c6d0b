"""The loops along the depth of a register tile, which multiply rows of A by a panel of B.

Each step along the depth multiplies vectors of B by one element of every row of A. There are two ways to have that
element in all lanes of an operand: to broadcast it as it is loaded, or, on machines that multiply by lane, to load the
next elements of the row as one vector, which serves several steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Number, Pointer, Val, Variable

__all__ = [
    "AddProducts",
    "Fetch",
    "Sums",
    "add_in_chains",
    "by_lane",
    "multiply_add",
    "multiply_by_broadcast",
    "multiply_by_lane",
    "totals_of_chains",
]

#: Sums of a register tile, by rows and vectors.
Sums = Sequence[Sequence[Variable]]

#: ``multiply(x, number, weights, total)`` returns the total plus the products of a vector of B and lane ``number`` of
#: ``x``, whose lanes are adjacent elements of A, or groups as int32; or it is a scalar.
MultiplyByLane = Callable[[Val, int, Val, Val], Val]


@dataclass(frozen=True, slots=True)
class Fetch:
    """Memory that is prefetched during a loop: ``step`` elements for each step of the depth, from ``start[at]`` on.

    Attributes:
        start: an address.
        step: elements for each step.
        at: elements from ``start`` on that come first.
        level: the cache, 1 the nearest one.
        every: number of steps that :func:`multiply_by_lane` prefetches one line for.
    """

    start: Pointer
    step: Number
    at: Number = 0
    level: int = 1
    every: int = 1


#: ``products(x, weights, total)`` returns the total plus the products of each lane of two vectors: of elements of
#: 32 bits, or of float16 with sums in float16.
AddProducts = Callable[[Val, Val, Val], Val]


def multiply_add(x: Val, weights: Val, total: Val) -> Val:
    """Return ``total + x * weights``, all of one type of floats."""
    return x.k.fma(x, weights, total)


def by_lane(products: AddProducts) -> MultiplyByLane:
    """Return a function for :func:`multiply_by_lane` that adds ``products``; weights get the type of the sums."""

    def multiply(x: Val, number: int, weights: Val, total: Val) -> Val:
        return products(x.repeat_lane(number, weights.lanes), _as_factor(weights, total.dtype), total)

    return multiply


def _as_factor(weights: Val, sums: DType) -> Val:
    return weights.to(sums) if weights.dtype.is_half else weights


def multiply_by_broadcast(
    k: Emitter,
    rows: Sequence[Pointer],
    panel: Pointer,
    depth: Val,
    chains: Sequence[Sums],
    fetches: Sequence[Fetch],
    products: AddProducts,
) -> None:
    """Emit ``sums += rows * panel``.

    Args:
        k: the emitter.
        rows: the first element of each row of A.
        panel: the first vector of B, see :func:`~lite_cpu.kernels.tiles.pack_panels`.
        depth: number of elements of a row.
        chains: independent sums, which the steps add to in turns.
        fetches: memory to prefetch.
        products: adds products to a sum.
    """
    lanes, vectors, dtype = k.machine.lanes(), len(chains[0][0]), chains[0][0][0].dtype
    # Offsets that move with the depth: multiplied by it, they would be computed anew at every step.
    b_at = k.variable(k.index(0))
    fetched = [(k.variable(k.index(fetch.at)), fetch) for fetch in fetches]

    def multiply(d: Val, sums: Sums) -> None:
        loaded = [panel[b_at.get() + v * lanes].load(lanes) for v in range(vectors)]
        weights = [_as_factor(weight, dtype) for weight in loaded]
        for at, fetch in fetched:
            fetch.start[at.get()].prefetch(level=fetch.level)
        for row, totals in zip(rows, sums):
            x = row[d].load().splat(lanes)
            for total, weight in zip(totals, weights):
                total.set(products(x, weight, total.get()))
        for at, step in ((b_at, vectors * lanes), *((at, fetch.step) for at, fetch in fetched)):
            at.set(at.get() + step)

    whole = depth / len(chains) * len(chains)
    with k.loop(0, whole, len(chains)) as d:
        for i, sums in enumerate(chains):
            multiply(d + i, sums)
    if len(chains) > 1:
        with k.loop(whole, depth) as d:
            multiply(d, chains[0])


def multiply_by_lane(
    k: Emitter,
    rows: Sequence[Pointer],
    panel: Pointer,
    steps: Val,
    chains: Sequence[Sums],
    fetches: Sequence[Fetch],
    multiply: MultiplyByLane,
    *,
    group: int = 1,
) -> None:
    """Emit ``sums += rows * panel``, where a lane has an element, or a group of them that has 32 bits together.

    Args:
        k: the emitter.
        rows: the first element of each row of A.
        panel: the first vector of B.
        steps: number of groups of a row.
        chains: independent sums, which the steps add to in turns.
        fetches: memory to prefetch.
        multiply: adds products to a sum.
        group: elements of a group.
    """
    lanes, dtype, vectors = k.machine.lanes(), rows[0].dtype, len(chains[0][0])
    width, step_bytes = lanes * group, dtype.itemsize * group
    element = dtype if group == 1 else DType.INT32
    whole = steps / lanes * lanes
    # Offsets from the end of the last whole vector: that they are still negative takes no comparison.
    ends = [row.cast(DType.UINT8)[whole * step_bytes] for row in rows]
    # Pointers that move: the sum of an address and an offset would take another instruction and another register.
    b = k.cursor(panel)
    fetched = [(k.cursor(fetch.start[fetch.at]), fetch) for fetch in fetches]

    def multiply_groups(first: Number, stop: Number, count: int) -> None:
        with k.loop(first, stop, count * step_bytes) as at:
            loaded = [end[at].cast(element).load(count, alignment=dtype.itemsize) for end in ends]
            for step in range(count):
                weights = [b.get()[(step * vectors + v) * width].load(width) for v in range(vectors)]
                for cursor, fetch in fetched:
                    if step % fetch.every == 0:
                        cursor.get()[k.index(fetch.step) * step].prefetch(level=fetch.level)
                for v, weight in enumerate(weights):
                    for x, totals in zip(loaded, chains[step % len(chains)]):
                        totals[v].set(multiply(x, step, weight, totals[v].get()))
            b.advance(count * vectors * width)
            for cursor, fetch in fetched:
                cursor.advance(k.index(fetch.step) * count)

    multiply_groups(-whole * step_bytes, 0, lanes)
    multiply_groups(0, (steps - whole) * step_bytes, 1)


def add_in_chains(k: Emitter, depth: Val, chains: int, add: Callable[[Val, int], None]) -> None:
    """Emit ``add(step, chain)`` for each step of the depth. The chains take turns: none waits for another's sum.

    Args:
        k: the emitter.
        depth: number of steps.
        chains: number of sums that do not depend on each other.
        add: emits a step of a chain.
    """
    whole = depth / chains * chains
    with k.loop(0, whole, chains) as step:
        for chain in range(chains):
            add(step + chain, chain)
    if chains > 1:
        with k.loop(whole, depth) as step:
            add(step, 0)


def totals_of_chains(sums: Sequence[Sums]) -> list[list[Val]]:
    """Return the sum of all chains, added in their order."""
    totals = [[s.get() for s in row] for row in sums[0]]
    for others in sums[1:]:
        totals = [[t + s.get() for t, s in zip(row, other)] for row, other in zip(totals, others)]
    return totals
