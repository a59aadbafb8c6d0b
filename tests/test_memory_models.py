"""Memory of real models on x86: arenas are close to the lower bound."""

from __future__ import annotations

import platform
from functools import cache
from typing import Any

import catalog
import pytest

import lite_core as lite
from lite_tools.cli.memory import memory_report

pytestmark = [
    pytest.mark.full("models"),
    pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="this is not an x86 processor"),
]

MODELS = (*(f"{name}-legacy" for name in catalog.VISION), "pp_ocrv4_det", "pp_ocrv4_rec", "pp_ocrv4_cls")

#: Largest allowed ratio of an arena's size to its lower bound. Measured: 1.002.
MOST = 1.02


@cache
def arenas_of(name: str) -> list[dict[str, Any]]:
    """The report on every arena of a model's plan: of the memory space, and inside the partition."""
    try:
        files = catalog.ensure(name)
    except catalog.ModelUnavailableError as error:
        pytest.skip(str(error))
    session = lite.load(
        files.model, backend="x86", reader_options={"params": files.params}, fallback="never", threads=2
    )
    report = memory_report(session.plan({n: array.shape for n, array in catalog.example_input(name).items()}))
    (part,) = report["partitions"]
    assert part["weights"] > 0
    return [*report["arenas"], part["arena"]]


@pytest.mark.parametrize("name", MODELS)
def test_arenas_are_close_to_the_lower_bound(name: str) -> None:
    for arena in arenas_of(name):
        assert arena["lower_bound"] <= arena["size"] <= MOST * arena["lower_bound"]


@pytest.mark.parametrize("name", MODELS)
def test_tensors_inside_a_partition_share_memory(name: str) -> None:
    *_, arena = arenas_of(name)
    assert arena["without_reuse"] > 2 * arena["size"]
