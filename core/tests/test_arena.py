"""The arena planner: tensors that are live together do not overlap, and arenas are close to the smallest possible."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations, permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lite_core.backend import Interval
from lite_core.memory import arena
from lite_core.memory.arena import ArenaPlan, plan_arena

GIB = 2**30
SIZES = (64, 128, 256, 1000, 5000, 6400)


@st.composite
def intervals(draw: st.DrawFn, most: int = 40, largest: int = 1000) -> list[Interval]:
    """Lifetimes and sizes like those of a graph's tensors: mostly short, with repeated sizes, some of them empty."""
    sizes = draw(st.lists(st.integers(0, largest), min_size=1, max_size=6))
    one = st.tuples(st.sampled_from(sizes), st.integers(0, 30), st.sampled_from([0, 1, 1, 1, 2, 5, 30]))
    return [Interval(size, first, first + more) for size, first, more in draw(st.lists(one, max_size=most))]


def rounded(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment


def assert_valid(pieces: Sequence[Interval], plan: ArenaPlan, alignment: int) -> None:
    """Check the properties that every plan must have."""
    ends = [offset + rounded(piece.size, alignment) for offset, piece in zip(plan.offsets, pieces, strict=True)]
    assert all(offset >= 0 and offset % alignment == 0 for offset in plan.offsets)
    assert plan.size == max(ends, default=0)
    assert plan.size >= plan.lower_bound
    for i, j in combinations(range(len(pieces)), 2):
        apart_in_time = pieces[i].last < pieces[j].first or pieces[j].last < pieces[i].first
        apart_in_space = ends[i] <= plan.offsets[j] or ends[j] <= plan.offsets[i]
        assert apart_in_time or apart_in_space, (pieces[i], plan.offsets[i], pieces[j], plan.offsets[j])


def alive_at(pieces: Sequence[Interval], step: int, alignment: int) -> int:
    """Return the number of bytes that are live at one step, by definition."""
    return sum(rounded(piece.size, alignment) for piece in pieces if piece.first <= step <= piece.last)


# **** properties of every plan ****


@settings(max_examples=300, deadline=None)
@given(intervals(), st.sampled_from([1, 64, 4096]))
def test_plans_are_valid_and_deterministic_and_have_the_right_lower_bound(
    pieces: list[Interval], alignment: int
) -> None:
    plan = plan_arena(pieces, alignment)
    assert_valid(pieces, plan, alignment)
    assert plan.lower_bound == max((alive_at(pieces, step, alignment) for step in range(70)), default=0)
    assert plan == plan_arena(tuple(pieces), alignment)


@settings(max_examples=50)
@given(intervals(), st.integers(1, 10**9))
def test_scaled_and_shifted_steps_give_a_valid_plan(pieces: list[Interval], scale: int) -> None:
    later = [Interval(size, first * scale - 5, last * scale - 5) for size, first, last in pieces]
    assert plan_arena(later).lower_bound == plan_arena(pieces).lower_bound
    assert_valid(later, plan_arena(later), 64)


# **** particular plans ****


def test_plan_without_tensors_is_empty() -> None:
    plan = plan_arena([])
    assert (plan.offsets, plan.size, plan.lower_bound) == ((), 0, 0)


def test_single_tensor_is_at_offset_zero() -> None:
    assert plan_arena([Interval(65, 3, 9)]) == ArenaPlan((0,), 128, 128)


def test_empty_tensors_need_no_memory() -> None:
    plan = plan_arena([Interval(0, 0, 9), Interval(100, 0, 4), Interval(0, 2, 3)])
    assert plan.size == plan.lower_bound == 128


def test_memory_is_reused_after_the_last_use() -> None:
    assert plan_arena([Interval(64, 0, 1), Interval(64, 2, 3)]).offsets == (0, 0)


def test_tensor_is_not_overwritten_in_the_step_that_reads_it() -> None:
    assert sorted(plan_arena([Interval(64, 0, 1), Interval(64, 1, 2)]).offsets) == [0, 64]


def test_sizes_of_several_gibibytes() -> None:
    pieces = [Interval(3 * GIB + 1, 0, 1), Interval(5 * GIB, 1, 2), Interval(2 * GIB, 2, 3)]
    plan = plan_arena(pieces)
    assert_valid(pieces, plan, 64)
    assert plan.size == 8 * GIB + 64


def test_hundreds_of_tensors_with_one_lifetime_leave_no_gaps() -> None:
    pieces = [Interval(1000 + number, 0, 5) for number in range(300)]
    assert plan_arena(pieces).size == plan_arena(pieces).lower_bound


@pytest.mark.parametrize("impossible", [Interval(-1, 0, 0), Interval(64, 3, 2)], ids=["size", "end"])
def test_impossible_intervals_are_refused(impossible: Interval) -> None:
    with pytest.raises(ValueError, match=r"interval.*(-1 bytes|step 3 to step 2)"):
        plan_arena([Interval(64, 0, 1), impossible])


# **** distance from the smallest arena ****


#: Two long-lived tensors that are both live at step 3, each also with a larger one: greedily stacked, one leaves a gap.
MEETING = [Interval(192, 4, 7), Interval(64, 0, 3), Interval(192, 1, 2), Interval(64, 3, 7)]


def test_repairs_close_the_gaps_of_the_greedy_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    repaired = plan_arena(MEETING)
    monkeypatch.setattr(arena, "MOST_REPAIRS", 0)
    assert repaired.size == repaired.lower_bound == 256
    assert plan_arena(MEETING).size == 320


def test_plans_for_many_tensors_are_close_to_the_lower_bound() -> None:
    draw = random.Random(1)
    ratios = []
    for _ in range(100):
        firsts = [draw.randint(0, 60) for _ in range(draw.randint(20, 120))]
        pieces = [Interval(draw.choice(SIZES), first, first + draw.choice((0, 1, 1, 1, 2, 5, 30))) for first in firsts]
        plan = plan_arena(pieces)
        ratios.append(plan.size / plan.lower_bound)
    assert max(ratios) <= 1.1
    assert sum(ratios) / len(ratios) <= 1.01


def smallest_arena(pieces: Sequence[Interval]) -> int:
    """Return the smallest possible size: the best of first fit in all orders, one of which is optimal."""
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
