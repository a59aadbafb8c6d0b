"""The server alone: a model that does nothing, an idle server, and many requests."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import grpc
import numpy as np
from serving_process import Server, serving

import lite_core as lite
from lite_tools.writing import write_model
from serving_load import hey
from serving_load.processes import processor_seconds, resident_bytes
from serving_load.recorded import Cost, Idle, Many
from serving_load.requests_of import as_binary, as_grpc, as_json

__all__ = ["costs", "idle", "many_requests"]

_METHOD = "/inference.GRPCInferenceService/ModelInfer"
_CONNECTIONS = 8
_LOG = Path(os.devnull)
#: The inputs: a row of numbers, and a picture.
_SHAPES = ((1, 8), (1, 3, 224, 224))


def write_trivial(folder: Path) -> Path:
    """Write models that return the first element of each row: what they compute costs next to nothing."""
    for number, shape in enumerate(_SHAPES):
        b = lite.GraphBuilder("trivial")
        rank = len(shape)
        x = b.input("x", "float32", ["n", *shape[1:]])
        bounds = [b.constant(np.array(v, np.int64)) for v in ([0] * (rank - 1), [1] * (rank - 1), range(1, rank))]
        b.output(b.add("Slice", [x, *bounds]), "y")
        folder.mkdir(exist_ok=True)
        write_model(folder / f"trivial_{number}.lite", b.build())
    return folder


def costs(folder: Path, count: int, about: dict[str, Any]) -> list[Cost]:
    """Measure each way in which requests travel, with a small and a large input."""
    found = []
    with serving(write_trivial(folder / "trivial"), "--no-log-requests", log=_LOG) as server:
        for number, shape in enumerate(_SHAPES):
            model, x = f"trivial_{number}", np.random.default_rng(0).standard_normal(shape).astype(np.float32)
            large = x.nbytes > 1e5
            ways: dict[str, Callable[[int, int], tuple[int, float, float]]] = {
                "HTTP, JSON": _by_hey(server, as_json(model, x=x), folder),
                "HTTP, binary": _by_hey(server, as_binary(model, x=x), folder),
                "gRPC": _by_grpc(server, as_grpc(model, x=x)),
            }
            for way, ask in ways.items():
                requests = count // 20 if large and "JSON" in way else count // 4 if large else count
                ask(max(100, requests // 10), 1)
                before = processor_seconds(server.process.pid)
                done, _, middle = ask(requests, 1)
                processor = (processor_seconds(server.process.pid) - before) / done * 1e3
                _, per_second, _ = ask(requests, _CONNECTIONS)
                found.append(
                    Cost(
                        way=way, size=x.nbytes, median=round(middle, 3), processor=round(processor, 3),
                        per_second=round(per_second, 1), **about,
                    )
                )  # fmt: skip
                print(
                    f"{way:13} {x.nbytes:7} bytes: {middle:7.3f} ms a request, {processor:7.3f} ms of processor time; "
                    f"{per_second:8.1f} a second on {_CONNECTIONS} connections",
                    flush=True,
                )
    return found


def idle(folder: Path, seconds: float, about: dict[str, Any]) -> list[Idle]:
    """Measure the processor time of a server that was asked, and is not asked any more."""
    x = np.zeros(_SHAPES[0], np.float32)
    with serving(write_trivial(folder / "idle"), log=_LOG) as server:
        hey.load(server.http, as_binary("trivial_0", x=x), folder, _CONNECTIONS, count=1000)
        time.sleep(1)
        before = processor_seconds(server.process.pid)
        time.sleep(seconds)
        used = processor_seconds(server.process.pid) - before
    print(f"idle for {seconds:.0f} s: {used:.2f} s of processor time", flush=True)
    return [Idle(seconds=seconds, processor=round(used, 3), **about)]


def many_requests(folder: Path, count: int, about: dict[str, Any]) -> list[Many]:
    """Measure the memory before and after many requests, by HTTP and by gRPC."""
    x = np.zeros(_SHAPES[0], np.float32)
    found = []
    with serving(write_trivial(folder / "many"), "--no-log-requests", log=_LOG) as server:
        for way, ask in (
            ("HTTP, JSON", _by_hey(server, as_json("trivial_0", x=x), folder)),
            ("HTTP, binary", _by_hey(server, as_binary("trivial_0", x=x), folder)),
            ("gRPC", _by_grpc(server, as_grpc("trivial_0", x=x))),
        ):
            ask(max(1000, count // 10), _CONNECTIONS)
            before = resident_bytes(server.process.pid)
            done, per_second, _ = ask(count, _CONNECTIONS)
            after = resident_bytes(server.process.pid)
            found.append(Many(way=way, requests=done, before=before, after=after, **about))
            print(
                f"{way:13} {done} requests, {per_second:.0f} a second: {before / 2**20:.1f} MiB before, "
                f"{after / 2**20:.1f} MiB after",
                flush=True,
            )
    return found


def _by_hey(server: Server, request: Any, folder: Path) -> Callable[[int, int], tuple[int, float, float]]:
    def ask(count: int, connections: int) -> tuple[int, float, float]:
        done = hey.load(server.http, request, folder, connections, count=count)
        return done.requests, done.per_second, done.median

    return ask


def _by_grpc(server: Server, request: bytes) -> Callable[[int, int], tuple[int, float, float]]:
    """Return a function that sends a request: so many times, on so many calls at once."""

    def ask(count: int, calls: int) -> tuple[int, float, float]:
        times = []
        with grpc.insecure_channel(server.grpc) as channel:
            infer = channel.unary_unary(_METHOD)
            start = time.perf_counter()
            if calls == 1:
                for _ in range(count):
                    began = time.perf_counter()
                    infer(request)
                    times.append(time.perf_counter() - began)
            else:
                waiting = []
                for _ in range(count):
                    waiting.append(infer.future(request))
                    if len(waiting) == calls:
                        waiting.pop(0).result()
                for call in waiting:
                    call.result()
            seconds = time.perf_counter() - start
        return count, count / seconds, median(times) * 1e3 if times else 0.0

    return ask
