"""Backends whose memory has no views: what the suite checks there instead of guard zones."""

from __future__ import annotations

import re

import pytest
from immutable_backends import (
    ArenaMemory,
    CellMemory,
    ForgetsToStore,
    Immutable,
    NextCell,
    OneElementEarlier,
    OneElementMore,
    OverItsInput,
    ReplacesStorage,
)

from lite_conformance import Status, check_backend
from lite_core.builtin import HostBackend

CASES = (
    "probe[*",
    *(f"contract[{name}]" for name in ("memory", "memory-view", "runs", "storage-reused", "outputs-stay", "session")),
    "Add[f32,2x3x4x5,3x1x1,channel]",
    "TopK[f32,*axis0*",
    "graph[f32,*branch*",
    "Relu[i8,1*",
)


@pytest.mark.parametrize("memory", [CellMemory, ArenaMemory])
def test_right_backend_raises_no_alarm(memory: type) -> None:
    records = check_backend(Immutable(memory()), cases=CASES)
    assert [(r.case, r.reason) for r in records if r.status.is_bad] == []
    assert sum(r.status is Status.PASSED for r in records) > 12


@pytest.mark.parametrize(
    ("backend", "reason"),
    [
        (
            NextCell(CellMemory()),
            r"wrote outside output 'output_0': .* directly after it now holds float32\[2, 3, 4, 5\]",
        ),
        (OneElementMore(ArenaMemory()), "directly after it now holds 4 other byte"),
        (OneElementEarlier(ArenaMemory()), "directly before it now holds 4 other byte"),
        (OverItsInput(CellMemory()), "run.. changed its input"),
        (ReplacesStorage(CellMemory()), "replaced the storage of output"),
        (ForgetsToStore(CellMemory()), ""),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, HostBackend) else "",
)
def test_result_in_the_wrong_place_is_found(backend: HostBackend, reason: str) -> None:
    (record,) = check_backend(backend, cases="Add[f32,2x3x4x5,3x1x1,channel]")
    assert record.status is Status.FAILED
    assert re.search(reason, record.reason), record.reason
