"""Two models under load: Lite and ONNX Runtime behind the same server, with and without batching, in turns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from serving_load import hey
from serving_load.processes import processor_seconds
from serving_load.recorded import ENGINES, Lines, Throughput
from serving_load.requests_of import Request, as_binary

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "models"))
import catalog
from serving_process import CLIENTS, Server, serving

__all__ = ["BATCHING", "MODELS", "text_lines", "throughput"]

#: The server's ways of batching that are compared.
BATCHING = ("off", "fast")
#: Seconds of requests before those that count.
_WARMING_UP = 12


class Model(NamedTuple):
    """A model and its input.

    Attributes:
        title: its name in tables.
        path: the model.
        shape: the shape of its input, one row.
    """

    title: str
    path: Callable[[], Path]
    shape: tuple[int, ...]


MODELS = {
    "mobilenet_v3_small": Model(
        "MobileNetV3 small", lambda: catalog.ensure("mobilenet_v3_small-legacy").model, (1, 3, 224, 224)
    ),
    "pp_ocrv4_rec": Model("PP-OCRv4 rec, 48 x 320", lambda: catalog.ensure("pp_ocrv4_rec").model, (1, 3, 48, 320)),
}


def throughput(
    name: str, folder: Path, connections: Sequence[int], rounds: int, seconds: float, about: dict[str, Any]
) -> list[Throughput]:
    """Measure a model with each number of connections; engines and ways of batching take turns in each round."""
    model = MODELS[name]
    x = np.random.default_rng(0).uniform(-1, 1, model.shape).astype(np.float32)
    with ExitStack() as stack:
        servers = {key: _started(stack, model.path(), *key) for key in _keys()}
        requests = {key: as_binary(_served(server), **{_input(server): x}) for key, server in servers.items()}
        for key, server in servers.items():  # plans and kernels are compiled
            hey.load(server.http, requests[key], folder, max(connections), seconds=max(2.0, seconds))
        found = []
        for count in connections:
            turns: dict[tuple[str, str], list[tuple[hey.Load, float]]] = {key: [] for key in servers}
            for _ in range(rounds):
                for key, server in servers.items():
                    turns[key].append(_turn(server, requests[key], folder, count, seconds))
            for (engine, batching), measured in turns.items():
                per_second, middle, p99 = (
                    median(getattr(load, field) for load, _ in measured) for field in ("per_second", "median", "p99")
                )
                processor = median(milliseconds for _, milliseconds in measured)
                found.append(
                    Throughput(
                        model=model.title, engine=engine, batching=batching, connections=count,
                        per_second=round(per_second, 1), median=round(middle, 2), p99=round(p99, 2),
                        processor=round(processor, 3), **about,
                    )
                )  # fmt: skip
                print(
                    f"{model.title:24} {ENGINES[engine]:13} batching {batching:5} {count:3} connections: "
                    f"{per_second:8.1f} a second, p50 {middle:7.2f} ms, p99 {p99:7.2f} ms, "
                    f"processor time {processor:6.3f} ms a request",
                    flush=True,
                )
        return found


def text_lines(users: int, seconds: int, about: dict[str, Any]) -> list[Lines]:
    """Measure PP-OCR's recogniser on lines of different widths, each engine with each way of batching in turn."""
    model = MODELS["pp_ocrv4_rec"]
    found = []
    with ExitStack() as stack:
        servers = {key: _started(stack, model.path(), *key) for key in _keys()}
        for warming_up in (True, False):
            for (engine, batching), server in servers.items():
                if warming_up:  # the plan of each width is made, and kernels are compiled
                    _by_locust(server, users, _WARMING_UP)
                    continue
                stats = _by_locust(server, users, seconds)
                times = {float(key): count for key, count in stats["response_times"].items()}
                per_second = stats["num_requests"] / (stats["last_request_timestamp"] - stats["start_time"])
                found.append(
                    Lines(
                        engine=engine, batching=batching, users=users, per_second=round(per_second, 1),
                        median=_quantile(times, 0.5), p99=_quantile(times, 0.99), **about,
                    )
                )  # fmt: skip
                print(
                    f"text lines of 10 widths   {ENGINES[engine]:13} batching {batching:5} {users:3} users: "
                    f"{per_second:8.1f} a second, p50 {found[-1].median:.0f} ms, p99 {found[-1].p99:.0f} ms",
                    flush=True,
                )
    return found


def _keys() -> list[tuple[str, str]]:
    return [(engine, batching) for batching in BATCHING for engine in ENGINES]


def _started(stack: ExitStack, path: Path, engine: str, batching: str) -> Server:
    options = ["--backend", engine, "--batching", batching, "--no-log-requests"]
    return stack.enter_context(serving(path, *options, log=Path(os.devnull)))


def _served(server: Server) -> str:
    name: str = server.started["models"][0]["name"]
    return name


def _input(server: Server) -> str:
    """Return the name of the input of the server's model, from the model's metadata."""
    import urllib.request

    with urllib.request.urlopen(f"{server.http}/v2/models/{_served(server)}") as answer:
        name: str = json.load(answer)["inputs"][0]["name"]
        return name


def _turn(server: Server, request: Request, folder: Path, count: int, seconds: float) -> tuple[hey.Load, float]:
    """Return the load, and the milliseconds of the server's processor time for each request."""
    before = processor_seconds(server.process.pid)
    load = hey.load(server.http, request, folder, count, seconds=seconds)
    return load, (processor_seconds(server.process.pid) - before) / load.requests * 1e3


def _by_locust(server: Server, users: int, seconds: int) -> dict[str, Any]:
    """Run locust and return the statistics of its requests; empty if none was answered.

    Raises:
        RuntimeError: an answer was an error.
    """
    program = Path(__file__).with_name("line_users.py")
    command = [str(CLIENTS.parent / "locust"), "--locustfile", str(program), "--headless", "--host", server.http]
    command += ["--users", str(users), "--spawn-rate", str(users), "--run-time", f"{seconds}s", "--json"]
    command += ["--model", _served(server), "--input", _input(server)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{done.stdout[-2000:]}{done.stderr[-2000:]}")
    listed: list[dict[str, Any]] = json.loads(done.stdout)
    return listed[0] if listed else {}


def _quantile(times: dict[float, int], share: float) -> float:
    """Return a quantile of rounded times, which are counted."""
    seen, total = 0, sum(times.values())
    for time in sorted(times):
        seen += times[time]
        if seen >= share * total:
            return time
    raise ValueError("no request was answered")
