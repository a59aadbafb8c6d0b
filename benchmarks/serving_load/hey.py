"""Load by ``hey``, which Debian and Ubuntu have: a number of connections, each with one request at a time."""

from __future__ import annotations

import csv
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import numpy as np

from serving_load.requests_of import Request

__all__ = ["Load", "is_installed", "load"]


class Load(NamedTuple):
    """What the answers to a number of requests took.

    Attributes:
        requests: the number of answers.
        per_second: answers per second.
        median: milliseconds of a request, the median.
        p99: milliseconds in which 99 of 100 requests were answered.
    """

    requests: int
    per_second: float
    median: float
    p99: float


def is_installed() -> bool:
    """Return whether ``hey`` is on the PATH."""
    return shutil.which("hey") is not None


def load(address: str, request: Request, folder: Path, connections: int, *, seconds: float = 0, count: int = 0) -> Load:
    """Send a request again and again.

    Args:
        address: the server's, such as ``http://127.0.0.1:8000``.
        request: the request.
        folder: where its body is written.
        connections: the number of connections.
        seconds: how long; or
        count: how many requests, the same for each connection.

    Raises:
        RuntimeError: an answer was an error.
    """
    headers = [part for name, value in request.headers.items() for part in ("-H", f"{name}: {value}")]
    # hey rounds the number of requests down to a multiple of the connections.
    extent = ["-z", f"{seconds}s"] if seconds else ["-n", str(count)]
    command = ["hey", *extent, "-c", str(connections), "-cpus", "1", "-m", "POST", *headers, "-o", "csv"]
    command += ["-T", request.headers["Content-Type"], "-D", str(request.written(folder)), f"{address}{request.path}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = list(csv.DictReader(done.stdout.splitlines()))
    failed = [row["status-code"] for row in rows if row["status-code"] != "200"]
    if failed or not rows:
        raise RuntimeError(
            f"{len(failed)} of {len(rows)} requests failed with {sorted(set(failed))}: {' '.join(command)}"
        )
    times = np.array([float(row["response-time"]) for row in rows])
    begins = np.array([float(row["offset"]) for row in rows])
    lasted = float((begins + times).max() - begins.min())
    return Load(len(rows), len(rows) / lasted, float(np.median(times)) * 1e3, float(np.quantile(times, 0.99)) * 1e3)
