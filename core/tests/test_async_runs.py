"""Runs that are awaited: several at once, errors, the context, cancellation."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from typing import Any

import numpy as np
import pytest

from lite_core.builder import GraphBuilder
from lite_core.errors import InputError, RunTimeoutError
from lite_core.ir import Graph
from lite_core.kernel_backend import KernelBackend
from lite_core.plugins import plugins_with
from lite_core.session import Session, load

X = np.ones(2, np.float32)
PATIENCE = 30.0
caller = contextvars.ContextVar("caller", default="nobody")


def chain(*ops: str) -> Graph:
    b = GraphBuilder("chain")
    value = b.input("x", "float32", [2])
    for op in ops:
        value = b.add(op, [value])
    b.output(value, "y")
    return b.build()


def session_of(backend: KernelBackend, *ops: str) -> Session:
    return load(chain(*ops), backend=[backend.name, "host"], plugins=plugins_with(backend))


def test_several_runs_at_once_leave_the_loop_free() -> None:
    backend, together = KernelBackend("toy"), threading.Barrier(3)

    @backend.kernel("Exp")
    def exp(x: Any) -> Any:
        together.wait(PATIENCE)  # passes only if two runs are inside it, and the loop goes on
        return x + 1

    async def main() -> list[dict[str, Any]]:
        session = session_of(backend, "Exp")
        runs = [asyncio.create_task(session.run_async({"x": X * n})) for n in (1, 2)]
        await asyncio.to_thread(together.wait, PATIENCE)
        return [await run for run in runs]

    assert [found["y"].tolist() for found in asyncio.run(main())] == [[2, 2], [3, 3]]


def test_arguments_errors_and_context() -> None:
    backend = KernelBackend("toy")
    seen = []

    @backend.kernel("Exp")
    def exp(x: Any) -> Any:
        seen.append(caller.get())
        return x

    async def main() -> None:
        session, out = session_of(backend, "Exp"), np.empty(2, np.float32)
        caller.set("main")
        found = await session.run_async({"x": X}, out={"y": out}, profile=True, timeout=PATIENCE)
        assert found["y"] is out
        assert session.last_profile is not None
        assert (await session.run_async(x=X))["y"].tolist() == [1, 1]
        with pytest.raises(InputError, match="input 'x' is missing"):
            await session.run_async({})

    asyncio.run(main())
    assert seen == ["main", "main"]


def test_a_cancelled_run_ends_before_its_next_step() -> None:
    backend = KernelBackend("toy")
    started, go_on, ran = threading.Event(), threading.Event(), []

    @backend.kernel("Exp")
    def exp(x: Any) -> Any:
        started.set()
        assert go_on.wait(PATIENCE)
        return x

    @backend.kernel("Neg")
    def neg(x: Any) -> Any:
        ran.append("the step after the cancellation")
        return -x

    async def main() -> None:
        # Sqrt runs on host, so that Exp and Neg are steps of their own.
        session = session_of(backend, "Exp", "Sqrt", "Neg")
        task = asyncio.create_task(session.run_async({"x": X}))
        assert await asyncio.to_thread(started.wait, PATIENCE)
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=0.05)
        assert not done, "the task is resumed while the run may still read its inputs"
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not ran
        assert (await session.run_async({"x": X}))["y"].tolist() == [-1, -1]
        assert session.run({"x": X})["y"].tolist() == [-1, -1]

    asyncio.run(main())


def test_a_timeout_inside_a_task() -> None:
    backend, go_on = KernelBackend("toy"), threading.Event()

    @backend.kernel("Exp")
    def exp(x: Any) -> Any:
        go_on.wait(0.05)
        return x

    async def main() -> None:
        with pytest.raises(RunTimeoutError, match="timeout"):
            await session_of(backend, "Exp", "Sqrt").run_async({"x": X}, timeout=0.01)

    asyncio.run(main())
