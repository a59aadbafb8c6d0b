"""The memory planner: nothing that lives at once overlaps, and arenas are near the least possible."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations, permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lite_core.backend import Interval
from lite_core.memory.arena import STRATEGIES, ArenaPlan, plan_arena, strategy_sizes

GIB = 2**30


@st.composite
def intervals(draw: st.DrawFn, most: int = 40, largest: int = 1000) -> list[Interval]:
    """Tensors of a graph: mostly short-lived, sizes that repeat, some of them empty."""
    sizes = draw(st.lists(st.integers(0, largest), min_size=1, max_size=6))
    one = st.tuples(st.sampled_from(sizes), st.integers(0, 30), st.sampled_from([0, 1, 1, 1, 2, 5, 30]))
    return [Interval(size, first, first + more) for size, first, more in draw(st.lists(one, max_size=most))]


def rounded(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment


def assert_valid(pieces: Sequence[Interval], plan: ArenaPlan, alignment: int) -> None:
    """Hold a plan to what every plan must be."""
    ends = [offset + rounded(piece.size, alignment) for offset, piece in zip(plan.offsets, pieces, strict=True)]
    assert all(offset >= 0 and offset % alignment == 0 for offset in plan.offsets)
    assert plan.size == max(ends, default=0)
    assert plan.size >= plan.lower_bound
    for i, j in combinations(range(len(pieces)), 2):
        apart_in_time = pieces[i].last < pieces[j].first or pieces[j].last < pieces[i].first
        apart_in_space = ends[i] <= plan.offsets[j] or ends[j] <= plan.offsets[i]
        assert apart_in_time or apart_in_space, (pieces[i], plan.offsets[i], pieces[j], plan.offsets[j])


def alive_at(pieces: Sequence[Interval], step: int, alignment: int) -> int:
    """Bytes needed at one step, by definition."""
    return sum(rounded(piece.size, alignment) for piece in pieces if piece.first <= step <= piece.last)


# **** every plan ****


@settings(max_examples=300, deadline=None)
@given(intervals(), st.sampled_from([1, 64, 4096]))
def test_what_lives_at_once_does_not_overlap(pieces: list[Interval], alignment: int) -> None:
    assert_valid(pieces, plan_arena(pieces, alignment), alignment)


@given(intervals(), st.sampled_from([1, 64]))
def test_the_lower_bound_is_what_the_widest_step_needs(pieces: list[Interval], alignment: int) -> None:
    widest = max((alive_at(pieces, step, alignment) for step in range(70)), default=0)
    assert plan_arena(pieces, alignment).lower_bound == widest


@given(intervals(most=15))
def test_a_plan_is_at_most_a_hundredth_above_the_best_known_strategy(pieces: list[Interval]) -> None:
    assert plan_arena(pieces).size <= 1.01 * min(strategy_sizes(pieces).values())


@given(intervals(most=100))
def test_a_plan_for_many_is_at_most_a_tenth_above_the_best_known_strategy(pieces: list[Interval]) -> None:
    assert plan_arena(pieces).size <= 1.1 * min(strategy_sizes(pieces).values())


@given(intervals())
def test_the_same_intervals_get_the_same_plan(pieces: list[Interval]) -> None:
    assert plan_arena(pieces) == plan_arena(tuple(pieces))


@given(intervals(), st.integers(1, 10**9))
def test_only_the_order_of_steps_counts(pieces: list[Interval], scale: int) -> None:
    later = [Interval(size, first * scale - 5, last * scale - 5) for size, first, last in pieces]
    assert plan_arena(later).lower_bound == plan_arena(pieces).lower_bound
    assert_valid(later, plan_arena(later), 64)


# **** particular ones ****


def test_nothing_to_place() -> None:
    plan = plan_arena([])
    assert (plan.offsets, plan.size, plan.lower_bound) == ((), 0, 0)
    assert set(strategy_sizes([]).values()) == {0}


def test_one_interval_lies_at_the_start() -> None:
    assert plan_arena([Interval(65, 3, 9)]) == ArenaPlan((0,), 128, 128, "size")


def test_empty_tensors_need_no_memory() -> None:
    plan = plan_arena([Interval(0, 0, 9), Interval(100, 0, 4), Interval(0, 2, 3)])
    assert plan.size == plan.lower_bound == 128


def test_what_follows_takes_the_place_of_what_is_no_longer_read() -> None:
    assert plan_arena([Interval(64, 0, 1), Interval(64, 2, 3)]).offsets == (0, 0)


def test_what_is_read_where_another_is_written_keeps_its_place() -> None:
    assert sorted(plan_arena([Interval(64, 0, 1), Interval(64, 1, 2)]).offsets) == [0, 64]


def test_sizes_of_gibibytes() -> None:
    pieces = [Interval(3 * GIB + 1, 0, 1), Interval(5 * GIB, 1, 2), Interval(2 * GIB, 2, 3)]
    plan = plan_arena(pieces)
    assert_valid(pieces, plan, 64)
    assert plan.size == 8 * GIB + 64


def test_hundreds_of_tensors_that_all_live_together_lie_side_by_side() -> None:
    pieces = [Interval(1000 + number, 0, 5) for number in range(300)]
    assert plan_arena(pieces).size == plan_arena(pieces).lower_bound


@pytest.mark.parametrize("impossible", [Interval(-1, 0, 0), Interval(64, 3, 2)], ids=["size", "end"])
def test_impossible_intervals_are_refused(impossible: Interval) -> None:
    with pytest.raises(ValueError, match=r"an interval cannot have -?\d+ bytes and last from step \d to step \d"):
        plan_arena([Interval(64, 0, 1), impossible])


# **** how near they are to the best ****


#: Two long-lived tensors that meet at step 3, each beside a larger one: every strategy puts one of them on the larger.
MEETING = [Interval(192, 4, 7), Interval(64, 0, 3), Interval(192, 1, 2), Interval(64, 3, 7)]


def test_the_known_strategies_are_compared() -> None:
    assert strategy_sizes(MEETING) == dict.fromkeys(STRATEGIES, 320)
    assert plan_arena(MEETING[:2]).strategy == STRATEGIES[0]


def test_a_plan_is_repaired_where_every_strategy_leaves_a_gap() -> None:
    plan = plan_arena(MEETING)
    assert plan.size == plan.lower_bound == 256
    assert plan.strategy == "size, repaired"


def smallest_arena(pieces: Sequence[Interval]) -> int:
    """The least size there is: some order in which tensors go to the lowest gap gives it."""
    least = sum(piece.size for piece in pieces)
    for order in permutations(pieces):
        ends: list[tuple[int, int, Interval]] = []
        for piece in order:
            start = 0
            for low, high, other in sorted(ends):
                if other.last < piece.first or piece.last < other.first:
                    continue
                if start + piece.size <= low:
                    break
                start = max(start, high)
            ends.append((start, start + piece.size, piece))
        least = min(least, max(end for _, end, _ in ends))
    return least


def test_few_tensors_nearly_always_get_the_smallest_arena() -> None:
    draw = random.Random(0)
    ratios = []
    for _ in range(150):
        firsts = [draw.randint(0, 5) for _ in range(draw.randint(3, 6))]
        pieces = [Interval(draw.randint(1, 9), first, first + draw.randint(0, 4)) for first in firsts]
        ratios.append(plan_arena(pieces, alignment=1).size / smallest_arena(pieces))
    assert max(ratios) <= 1.1
    assert ratios.count(1.0) >= 147
