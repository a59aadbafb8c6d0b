"""The queue: order, bounds, batches within their delay, and the end. Its threads are real."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from lite_serve.models.batching import Key
from lite_serve.models.queue import Pending, RequestQueue
from lite_serve.protocol.errors import OverloadedError, UnavailableModelError

A, B = ((1,),), ((2,),)


def all_of(key: Key, rows: Sequence[int]) -> int:
    return len(rows)


def one_of(key: Key, rows: Sequence[int]) -> int:
    return 1


def queue_of(choose: Callable[[Key, Sequence[int]], int] = all_of, delay: float = 0.0, most: int = 100) -> RequestQueue:
    return RequestQueue(most, 4, delay, choose)


def pending(name: str, key: Key | None = A, rows: int = 1) -> Pending:
    return Pending({}, key, rows, None, name)


def names(taken: list[Pending]) -> str:
    return "".join(each.id for each in taken)


async def filled(queue: RequestQueue, *requests: Pending) -> RequestQueue:
    for each in requests:
        queue.put(each)
    return queue


def test_first_come_first_served() -> None:
    async def main() -> None:
        queue = await filled(queue_of(one_of), *(pending(name) for name in "abc"))
        assert [names(queue.take()) for _ in "abc"] == ["a", "b", "c"]

    asyncio.run(main())


def test_requests_with_equal_keys_are_taken_together_and_others_keep_their_order() -> None:
    async def main() -> None:
        requests = [pending("a"), pending("b", B), pending("c"), pending("d", None), pending("e"), pending("f", B)]
        queue = await filled(queue_of(), *requests)
        assert [names(queue.take()) for _ in range(3)] == ["ace", "bf", "d"]
        assert len(queue) == 0

    asyncio.run(main())


def test_a_batch_has_at_most_its_rows() -> None:
    async def main() -> None:
        queue = await filled(queue_of(), pending("a", rows=2), pending("b"), pending("c", rows=3), pending("d"))
        assert [names(queue.take()) for _ in range(2)] == ["ab", "cd"]

    asyncio.run(main())


def test_a_full_queue_refuses_and_one_that_was_left_has_room() -> None:
    async def main() -> None:
        queue = await filled(queue_of(most=2), pending("a"), waiting := pending("b"))
        with pytest.raises(OverloadedError, match="2 requests"):
            queue.put(pending("c"))
        assert queue.discard(waiting)
        assert not queue.discard(waiting)
        assert waiting.is_abandoned
        queue.put(pending("d"))
        assert names(queue.take()) == "ad"

    asyncio.run(main())


def test_a_closed_queue_is_emptied_and_ends_its_threads() -> None:
    async def main() -> None:
        queue = await filled(queue_of(one_of), *(pending(name) for name in "abc"))
        queue.close()
        with pytest.raises(UnavailableModelError):
            queue.put(pending("d"))
        taken: list[str] = []

        def work() -> None:
            while requests := queue.take():
                taken.append(names(requests))

        with ThreadPoolExecutor(3) as pool:
            for done in [pool.submit(work) for _ in range(3)]:
                done.result(60)
        assert sorted(taken) == ["a", "b", "c"]

    asyncio.run(main())


def test_threads_that_wait_use_no_processor_time() -> None:
    async def main() -> None:
        queue = queue_of(one_of)
        threads = [threading.Thread(target=queue.take) for _ in range(4)]
        for thread in threads:
            thread.start()
        while queue._idle < 4:
            await asyncio.sleep(0.001)
        used = time.process_time()
        await asyncio.sleep(0.4)
        # The event loop takes a few microseconds. A thread that asked again and again would take all of the time.
        assert time.process_time() - used < 0.2
        queue.close()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()

    asyncio.run(main())


def test_idle_instances_share_what_waits() -> None:
    async def main() -> None:
        queue = queue_of()
        other = ThreadPoolExecutor(1)
        waiting = other.submit(queue.take)
        while queue._idle < 1:
            await asyncio.sleep(0.001)
        with queue._changed:  # all four come before anybody wakes
            queue._waiting.extend(pending(name) for name in "abcd")
            halves = [queue._ready()[0]]
            for each in halves[0]:
                queue._waiting.remove(each)
            queue._changed.notify()
        halves.append(waiting.result(60))
        assert [names(half) for half in halves] == ["ab", "cd"]
        other.shutdown()

    asyncio.run(main())


def test_a_batch_waits_for_its_delay_unless_it_is_full_or_the_queue_closes() -> None:
    async def main() -> None:
        queue = queue_of(delay=3600)
        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(queue.take)
            for name in "abc":
                queue.put(pending(name))
            second = pool.submit(queue.take)
            while queue._idle < 2:
                await asyncio.sleep(0.001)
            assert not first.done()
            assert not second.done()
            queue.put(pending("x", None))  # a request that shares no run does not wait
            while not first.done() and not second.done():
                await asyncio.sleep(0.001)
            alone, other = (first, second) if first.done() else (second, first)
            assert names(alone.result()) == "x"
            queue.put(pending("d"))
            assert names(await asyncio.to_thread(other.result)) == "abcd"
            last = pool.submit(queue.take)
            queue.put(pending("e"))
            queue.close()
            assert names(await asyncio.to_thread(last.result)) == "e"

    asyncio.run(main())


def test_a_short_delay_ends() -> None:
    async def main() -> None:
        queue = await filled(queue_of(delay=0.01), pending("a"))
        assert names(await asyncio.to_thread(queue.take)) == "a"

    asyncio.run(main())
