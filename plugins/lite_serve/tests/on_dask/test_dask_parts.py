"""Tests of parts on the workers of Dask: real processes on the loopback interface, and what happens when they die."""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="needs lite-serve[dask]")

from dask_processes import dask_process, importable
from recorded_parts import Recorder, begun, kill_busiest

from lite_core.errors import LiteError
from lite_serve.mapping.dask_cluster import connected
from lite_serve.mapping.dask_parts import Failure, done_on_workers


def test_every_part_is_done_once_and_failures_are_told(tmp_path: Path) -> None:
    parts = [*range(40), -7]
    with connected("", 2, print) as client:
        done = list(done_on_workers(client, Recorder(str(tmp_path)), parts))
    assert sorted(part for part, _ in done) == sorted(parts)
    assert {result for part, result in done if part >= 0} == {part * part for part in range(40)}
    assert dict(done)[-7] == Failure("ValueError: the part is negative")
    assert set(begun(tmp_path).values()) == {1}


@pytest.mark.full("serving")
def test_parts_of_a_killed_worker_are_done_again(tmp_path: Path) -> None:
    done: list[int] = []
    interrupted = -1
    with connected("", 2, print) as client:
        for part, result in done_on_workers(client, Recorder(str(tmp_path), 0.02), range(300)):
            assert result == part * part
            done.append(part)
            if len(done) == 100:
                interrupted = kill_busiest(tmp_path)
    assert sorted(done) == list(range(300))
    assert begun(tmp_path)[interrupted] > 1
    assert len(list(tmp_path.iterdir())) == 3, "the killed worker was replaced by another"


@pytest.mark.full("serving")
def test_part_that_kills_its_workers_is_given_up(tmp_path: Path) -> None:
    with connected("", 2, print) as client:
        done = dict(done_on_workers(client, Recorder(str(tmp_path), deadly=13), range(30)))
    assert isinstance(done[13], Failure)
    assert "4 workers died while doing it" in done[13].message
    assert {part: result for part, result in done.items() if part != 13} == {
        part: part * part for part in range(30) if part != 13
    }
    assert begun(tmp_path)[13] == 4


@pytest.mark.full("serving")
def test_few_parts_are_taken_in_advance(tmp_path: Path) -> None:
    taken: list[int] = []

    def parts() -> Iterator[int]:  # without an end
        for part in itertools.count():
            taken.append(part)
            yield part

    with connected("", 2, print) as client:
        results = done_on_workers(client, Recorder(str(tmp_path), 0.01), parts())
        for number, _ in enumerate(itertools.islice(results, 200)):
            assert len(taken) - number <= 4, "two for each of two threads"
        results.close()
        time.sleep(0.5)  # for parts that had begun
        before = sum(begun(tmp_path).values())
        time.sleep(0.5)
        assert sum(begun(tmp_path).values()) == before, "parts are begun after the end"
    assert before <= 204


@pytest.mark.full("serving")
def test_end_of_the_scheduler_is_told(tmp_path: Path) -> None:
    scheduler = ("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    with (
        dask_process(*scheduler, line=r"Scheduler at: +(\S+)", **importable()) as (address, process),
        dask_process("worker", address, "--no-dashboard", line=r"(Registered to)", **importable()),
        connected(address, None, print) as client,
    ):
        results = done_on_workers(client, Recorder(str(tmp_path), 0.01), itertools.count())
        assert len(list(itertools.islice(results, 20))) == 20
        os.kill(process.pid, signal.SIGKILL)
        with pytest.raises(LiteError, match="the scheduler ended"):
            list(results)
