"""Tests of lifetimes and arena offsets of storages."""

from __future__ import annotations

from dataclasses import dataclass

from lite_compiler.lifetimes import Lifetime, assign_offsets, lifetimes_of, try_reuse_operand


@dataclass(eq=False)
class Storage:
    bytes: int
    offset: int = -1


def test_lifetime_spans_the_first_to_the_last_step_that_uses_a_storage() -> None:
    x, y, z = Storage(10), Storage(10), Storage(10)
    lives = lifetimes_of([[x], [y, x], [y, z]])
    assert {life.storages[0]: (life.first, life.last) for life in lives.values()} == {x: (0, 1), y: (1, 2), z: (2, 2)}
    assert [life.interval.size for life in lives.values()] == [10, 10, 10]


def test_result_reuses_the_memory_of_an_operand_after_its_last_use() -> None:
    x, y = Storage(10), Storage(10)
    lives = lifetimes_of([[x], [y, x], [y]])
    assert try_reuse_operand(lives, 1, y, x)
    assert lives[x] is lives[y]
    assert (lives[x].storages, lives[x].first, lives[x].last) == ([x, y], 0, 2)


def test_operand_with_a_later_reader_keeps_its_memory() -> None:
    x, y = Storage(10), Storage(10)
    lives = lifetimes_of([[x], [y, x], [x]])
    assert not try_reuse_operand(lives, 1, y, x)
    assert lives[x] is not lives[y]


def test_storages_of_one_lifetime_share_an_offset() -> None:
    x, y, z = Storage(100), Storage(100), Storage(64)
    assert assign_offsets([Lifetime([x, y], 0, 3), Lifetime([z], 2, 4)]) == 192
    assert x.offset == y.offset
    assert sorted([x.offset, z.offset]) in ([0, 64], [0, 128])
