"""Small models, and a repository of them in an event loop: what the tests of lite_serve.models share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np

import lite_core as lite
from lite_serve.models.metrics import Metrics
from lite_serve.models.repository import Repository
from lite_serve.models.settings import ModelSettings
from lite_serve.protocol.messages import InferRequest, InferResponse
from lite_tools.writing.model_file import write_model

__all__ = ["SLOW", "ask", "serving", "sleeper", "state_of", "times", "until", "written"]

Array = np.ndarray[Any, Any]
#: The input of :func:`sleeper` for a run that does not end before its time is over.
SLOW = np.array([1 << 40])


def written(path: Path, build: Callable[[lite.GraphBuilder], None]) -> Path:
    """Write the model that a function adds to a builder, and return its path."""
    builder = lite.GraphBuilder(path.stem)
    build(builder)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_model(path, builder.build())
    return path


def times(path: Path, factor: float = 2.0, rows: int | str = "n") -> Path:
    """Write a model that multiplies ``x`` [rows, 3] by a number: ``y``."""

    def build(b: lite.GraphBuilder) -> None:
        b.output(b.add("Mul", [b.input("x", "float32", [rows, 3]), b.constant(np.float32(factor))]), "y")

    return written(path, build)


def sleeper(path: Path) -> Path:
    """Write a model that counts to ``n`` [1], one iteration of a loop for each number: ``count``."""

    def build(b: lite.GraphBuilder) -> None:
        n = b.input("n", "int64", [1])
        inner = lite.GraphBuilder("body", outer=b)
        inner.input("iteration", "int64", [])
        inner.input("condition", "bool", [])
        count = inner.input("before", "int64", [])
        inner.output(inner.constant(np.array(True)), "goes_on")
        inner.output(inner.add("Add", [count, inner.constant(np.int64(1))]), "after")
        trips = b.add("Reshape", [n, b.constant(np.zeros(0, np.int64))])
        body = {"body": inner.build()}
        b.output(b.add("Loop", [trips, None, b.constant(np.int64(0))], body), "count")

    return written(path, build)


@asynccontextmanager
async def serving(source: Path, metrics: Metrics | None = None, **settings: Any) -> AsyncIterator[Repository]:
    """Load a repository, and close it after the block."""
    repository = await asyncio.to_thread(Repository, source, ModelSettings(**settings), metrics or Metrics())
    try:
        yield repository
    finally:
        await repository.close()


def ask(
    repository: Repository, model: str, *, version: str = "", timeout: float | None = 60, **inputs: Array
) -> Awaitable[InferResponse]:
    """Return the coroutine of a request."""
    return repository.infer(InferRequest(model, version, inputs=dict(inputs)), timeout)


def state_of(metrics: Metrics, name: str) -> float:
    """Return the sum of the samples of a metric over all labels."""
    return sum(s.value for family in metrics.registry.collect() for s in family.samples if s.name == name)


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition, at most a minute."""
    async with asyncio.timeout(60) if hasattr(asyncio, "timeout") else _no_limit():
        while not condition():
            await asyncio.sleep(0.005)


@asynccontextmanager
async def _no_limit() -> AsyncIterator[None]:  # before Python 3.11
    yield
