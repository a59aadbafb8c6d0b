"""Pausing the garbage collector: what is built for life becomes old, what the program has frozen stays frozen."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from lite_core.collector import collector_paused


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    yield
    gc.unfreeze()
    gc.enable()


def is_young(item: object) -> bool:
    return any(other is item for generation in (0, 1) for other in gc.get_objects(generation))


@pytest.mark.parametrize("for_life", [False, True])
def test_what_is_built_for_life_becomes_old(for_life: bool) -> None:
    of_python = gc.get_freeze_count()  # not 0 in CPython 3.12
    with collector_paused(for_life=for_life):
        assert not gc.isenabled()
        built: list[object] = [[]]
    gc.disable()  # a collection would make it older
    assert is_young(built) == (not for_life)
    assert gc.get_freeze_count() == (0 if for_life else of_python)


def test_what_the_program_has_frozen_stays_frozen() -> None:
    gc.freeze()
    frozen = gc.get_freeze_count()
    with collector_paused(for_life=True):
        pass
    assert gc.get_freeze_count() >= frozen > 0


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    with collector_paused(for_life=True):
        pass
    assert not gc.isenabled()
