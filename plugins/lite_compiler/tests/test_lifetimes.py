"""Where the tensors of an arena lie."""

from __future__ import annotations

from dataclasses import dataclass

from lite_compiler.lifetimes import Lifetime, lifetimes_of, place, take_over


@dataclass(eq=False)
class Storage:
    bytes: int
    offset: int = -1


def test_a_storage_lives_from_the_first_step_to_the_last_that_touches_it() -> None:
    x, y, z = Storage(10), Storage(10), Storage(10)
    lives = lifetimes_of([[x], [y, x], [y, z]])
    assert {life.storages[0]: (life.first, life.last) for life in lives.values()} == {x: (0, 1), y: (1, 2), z: (2, 2)}
    assert [life.interval.size for life in lives.values()] == [10, 10, 10]


def test_a_result_takes_over_the_place_of_what_nothing_needs_any_more() -> None:
    x, y = Storage(10), Storage(10)
    lives = lifetimes_of([[x], [y, x], [y]])
    assert take_over(lives, 1, y, x)
    assert lives[x] is lives[y]
    assert (lives[x].storages, lives[x].first, lives[x].last) == ([x, y], 0, 2)


def test_what_is_read_later_keeps_its_place() -> None:
    x, y = Storage(10), Storage(10)
    lives = lifetimes_of([[x], [y, x], [x]])
    assert not take_over(lives, 1, y, x)
    assert lives[x] is not lives[y]


def test_storages_that_take_turns_lie_at_one_place_and_others_beside_them() -> None:
    x, y, z = Storage(100), Storage(100), Storage(64)
    assert place([Lifetime([x, y], 0, 3), Lifetime([z], 2, 4)]) == 192
    assert x.offset == y.offset
    assert sorted([x.offset, z.offset]) in ([0, 64], [0, 128])
