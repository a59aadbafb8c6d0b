"""The cache of plans: reuse, eviction, statistics, and failures."""

from __future__ import annotations

import pytest

from lite_core.schedule.plan_cache import PlanCache, Signature


def signature(size: int) -> Signature:
    return ((size,),)


def make(wanted: Signature) -> Signature:
    return wanted


def never(wanted: Signature) -> Signature:
    pytest.fail(f"a plan is made again for {wanted}")


def test_least_recently_used_plan_is_evicted() -> None:
    cache = PlanCache[Signature](2)
    cache.get(signature(1), make)
    cache.get(signature(2), make)
    cache.get(signature(1), never)
    cache.get(signature(3), make)
    assert cache.find(signature(2)) is None
    assert cache.get(signature(1), never) == signature(1)
    assert cache.find(signature(3)) == signature(3)


def test_finding_a_plan_counts_as_use() -> None:
    cache = PlanCache[Signature](2)
    cache.get(signature(1), make)
    cache.get(signature(2), make)
    assert cache.find(signature(1)) == signature(1)
    cache.get(signature(3), make)
    assert cache.find(signature(2)) is None


def test_statistics() -> None:
    cache = PlanCache[Signature](2)
    for size in (1, 1, 2, 3, 1):
        cache.get(signature(size), make)
    assert cache.statistics == (1, 4, 2, 2, 2)


def test_failure_of_make_is_passed_on_and_tried_again() -> None:
    cache = PlanCache[Signature](2)
    with pytest.raises(ZeroDivisionError):
        cache.get(signature(1), lambda wanted: 1 // 0)  # type: ignore[arg-type, return-value]
    assert cache.find(signature(1)) is None
    assert cache.get(signature(1), make) == signature(1)
