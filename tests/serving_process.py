"""``lite serve`` in a process of its own, and the models that its tests ask: what the tests of clients share."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import lite_core as lite
from lite_tools.writing import write_model

__all__ = ["CLIENTS", "ELEMENT_TYPES", "Server", "run_clients", "serving", "write_repository"]

ROOT = Path(__file__).parents[1]
#: The interpreter with the clients that others wrote; `make clients` makes it.
CLIENTS = ROOT / ".venv-clients/bin/python"
#: Lite's name of each element type of the protocol.
ELEMENT_TYPES = {
    "BOOL": "bool",
    "INT8": "int8",
    "INT16": "int16",
    "INT32": "int32",
    "INT64": "int64",
    "UINT8": "uint8",
    "UINT16": "uint16",
    "UINT32": "uint32",
    "UINT64": "uint64",
    "FP16": "float16",
    "FP32": "float32",
    "FP64": "float64",
    "BF16": "bfloat16",
    "BYTES": "string",
}
#: Seconds in which a server must be ready, and end.
_PATIENCE = 120


@dataclass(frozen=True)
class Server:
    """A server that runs.

    Attributes:
        http: its address for HTTP, such as ``http://127.0.0.1:8000``.
        grpc: its address for gRPC, such as ``127.0.0.1:8001``.
        process: the process.
        started: what it printed when it was ready.
    """

    http: str
    grpc: str
    process: subprocess.Popen[str]
    started: dict[str, Any]


@contextmanager
def serving(
    source: Path, *options: str, python: str = sys.executable, log: Path | None = None, **variables: str
) -> Iterator[Server]:
    """Serve a model or a folder of models on ports that the system chooses; end the server by a signal.

    Args:
        source: the model or the folder.
        options: more options of the command.
        python: the interpreter.
        log: the file for what the server writes to standard error; the test's own by default.
        variables: more variables of its environment.

    Raises:
        RuntimeError: the server ended instead of being ready.
    """
    command = [python, "-m", "lite_core", "serve", str(source), "--http-port", "0", "--grpc-port", "0", "--json"]
    with open(log or os.devnull, "a") as errors:
        process = subprocess.Popen(
            [*command, *options],
            stdout=subprocess.PIPE,
            stderr=errors if log else None,
            text=True,
            env={**os.environ, **variables},
        )
        try:
            started = _first_document(process)
            yield Server(started["http"], started["grpc"], process, started)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                raise


def _first_document(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Return the JSON document that the server prints when it is ready; go on reading, so that it never blocks."""
    found: queue.Queue[dict[str, Any] | None] = queue.Queue()

    def read() -> None:
        text = ""
        assert process.stdout is not None
        for line in process.stdout:
            text += line
            if line.startswith("}"):
                found.put(json.loads(text))
                text = ""
        found.put(None)

    threading.Thread(target=read, daemon=True).start()
    document = found.get(timeout=_PATIENCE)
    if document is None:
        raise RuntimeError(f"lite serve ended with exit code {process.wait()} before it was ready")
    return document


def write_repository(folder: Path) -> Path:
    """Write the models of the tests into a folder, as a repository of models.

    ``echo_fp32`` and so on return ``x``, of any number of rows of three, as ``y``; one for each element type.
    ``sum`` adds ``a`` and ``b``, float32 of the same kind, to ``total``, and its mean is ``mean``. ``scale`` has the
    versions 1 and 2, which return ``x`` times 1 and times 2 as ``y``.
    """
    for datatype, dtype in ELEMENT_TYPES.items():
        echo = lite.GraphBuilder("echo")
        echo.output(echo.add("Identity", [echo.input("x", dtype, ["n", 3])]), "y")
        _write(folder / f"echo_{datatype.lower()}/1", echo.build())
    total = lite.GraphBuilder("sum")
    added = total.add("Add", [total.input("a", "float32", ["n", 3]), total.input("b", "float32", ["n", 3])])
    total.output(added, "total")
    total.output(total.add("ReduceMean", [added, total.constant(np.array([1], np.int64))]), "mean")
    folder.mkdir(exist_ok=True)
    write_model(folder / "sum.lite", total.build())
    for version in (1, 2):
        scale = lite.GraphBuilder("scale")
        factor = scale.constant(np.array(version, np.float32))
        scale.output(scale.add("Mul", [scale.input("x", "float32", ["n", 2]), factor]), "y")
        _write(folder / f"scale/{version}", scale.build())
    return folder


def _write(folder: Path, graph: lite.Graph) -> None:
    folder.mkdir(parents=True)
    write_model(folder / "model.lite", graph)


def run_clients(file: Path, server: Server, *options: str, **variables: str) -> str:
    """Run a file of tests in the environment of the clients, in a process of its own; return its last line.

    Raises:
        AssertionError: a test failed or was skipped.
    """
    about = {"LITE_TEST_HTTP": server.http, "LITE_TEST_GRPC": server.grpc, **variables}
    # Without the workspace's own conftest.py, which needs packages that the clients' environment does not have.
    folder = str(file.parent)
    alone = ["-c", os.devnull, "--rootdir", folder, "--confcutdir", folder, "-p", "no:cacheprovider"]
    done = subprocess.run(
        [str(CLIENTS), "-m", "pytest", str(file), *alone, "-q", *options],
        env={**os.environ, **about, "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    last = done.stdout.splitlines()[-1]
    assert "skipped" not in last, done.stdout
    return last
