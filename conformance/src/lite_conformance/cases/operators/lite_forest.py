"""Cases of lite.DecisionForest."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, table
from lite_conformance.cases.tensors import Array, Tensor, as_type, t, values
from lite_conformance.judge.tolerances import SUM, epsilon
from lite_core.ir import DType

_LEAF, _MEMBER, _NAN_IS_TRUE = 7, 6, 8


def forest(
    seed: int,
    features: int,
    trees: int,
    depth: int,
    targets: int,
    *,
    kinds: tuple[int, ...] = (0,),
    sets: int = 0,
    digits: bool = False,
) -> list[Tensor | None]:
    """Return nodes, splits, kinds, roots, weights and members of random trees.

    ``sets`` is the size of the sets; weights are eighths, or have all ``digits`` of their type.
    """
    random = np.random.default_rng(seed)
    nodes: list[list[int]] = []
    chosen: list[int] = []
    leaves = 0

    def grow(levels: int) -> int:
        nonlocal leaves
        own = len(nodes)
        nodes.append([0, own, own, 0])
        chosen.append(_LEAF)
        if levels and random.random() < 0.9:
            chosen[own] = int(random.choice(kinds))
            nodes[own][0] = int(random.integers(features))
            nodes[own][1:3] = [grow(levels - 1), grow(levels - 1)]
        else:
            nodes[own][3] = leaves
            leaves += 1
        return own

    roots = [grow(depth) for _ in range(trees)]
    # Halves: features that are compared for equality have some of them.
    splits = random.integers(-3, 4, len(nodes)) / 2
    members = random.integers(-3, 4, (len(nodes), sets)) / 2
    return [
        values(np.array(nodes), "int32", constant=True),
        values(splits, constant=True),
        values(np.array(chosen), "uint8", constant=True),
        values(np.array(roots), "int32", constant=True),
        values((random.standard_normal if digits else _eighths(random))((leaves, targets)), constant=True),
        values(members, constant=True) if sets else None,
    ]


def _eighths(random: np.random.Generator) -> Callable[[tuple[int, int]], Array]:
    return lambda shape: random.integers(-40, 41, shape) / 8


def above_halves(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return the numbers that come next to positive multiples of one half."""
    return as_type(random.integers(1, 5, shape) / 2 * (1 + epsilon(dtype)), dtype)


def halves(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> np.ndarray[tuple[int, ...], np.dtype]:
    """Return multiples of one half, some of which are the numbers that they are compared with."""
    return (random.integers(-4, 5, shape) / 2).astype(dtype.numpy)


def with_nan(
    random: np.random.Generator, shape: tuple[int, ...], dtype: DType
) -> np.ndarray[tuple[int, ...], np.dtype]:
    """Return multiples of one half, and NaN."""
    found = halves(random, shape, dtype)
    found[random.random(shape) < 0.2] = np.nan
    return found


trees = table("DecisionForest", SUM, domain="lite")
trees("13x5,trees3", t(13, 5, init=halves), *forest(1, 5, 3, 4, 1), depth=4)
trees("200x4,trees9,targets3", t(200, 4, init=halves), *forest(2, 4, 9, 5, 3), depth=5)
trees("1x4,one-row", t(1, 4, init=halves), *forest(3, 4, 7, 6, 2), depth=6)
trees("9x4,all-comparisons", t(9, 4, init=halves), *forest(4, 4, 6, 5, 1, kinds=(0, 1, 2, 3, 4, 5)), depth=5)
trees("20x4,nan", t(20, 4, init=with_nan), *forest(5, 4, 6, 5, 1, kinds=(0, 8, 5, 10)), depth=5)
trees("9x4,sets", t(9, 4, init=with_nan), *forest(6, 4, 5, 4, 2, kinds=(0, 6, 14), sets=3), depth=4)
trees("17x4,min", t(17, 4, init=halves), *forest(7, 4, 5, 4, 2), aggregate="min", depth=4)
trees("17x4,max", t(17, 4, init=halves), *forest(8, 4, 5, 4, 2), aggregate="max", depth=4)
trees("5x3,leaves-only", t(5, 3, init=halves), *forest(9, 3, 4, 0, 2), depth=0)
trees("16400x4,targets5,large", t(16400, 4, init=halves), *forest(11, 4, 2, 3, 5), depth=3)
trees("40x3,above-splits", t(40, 3, init=above_halves), *forest(12, 3, 5, 4, 2, digits=True), depth=4)
trees("0x3,empty", t(0, 3, init=halves), *forest(10, 3, 2, 3, 1), depth=3)


@trees.drawn
def draw_trees(draw: Draw, dtype: DType) -> OpCase:
    rows, features, count = draw(st.integers(1, 40)), draw(st.integers(1, 6)), draw(st.integers(1, 6))
    depth, targets = draw(st.integers(1, 6)), draw(st.integers(1, 3))
    kinds = tuple(draw(st.lists(st.sampled_from([0, 1, 2, 3, 4, 5, 8, 13]), min_size=1, max_size=3)))
    parts = forest(draw(st.integers(0, 999)), features, count, depth, targets, kinds=kinds)
    aggregate = draw(st.sampled_from(["sum", "min", "max"]))
    return trees.case(t(rows, features, init=with_nan), *parts, aggregate=aggregate, depth=depth)
