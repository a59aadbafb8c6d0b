"""Attempts to load and run a small model under a condition, each in a process of its own.

``python attempts.py`` is the program of such a process: it reads one attempt as JSON from standard input, and prints
its result as JSON. :func:`attempt` starts it.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

__all__ = ["DEADLINE_SECONDS", "Result", "answers", "are_right", "attempt", "in_a_child", "load_and_run", "tiny_model"]

TINY = Path(__file__).parents[1] / "models/goldens/tiny_conv"
#: Sums of up to 384 products in another order than Paddle's, of numbers that end as shares of 1.
TOLERANCE = 1e-5
#: Longer than any attempt takes on a busy machine: a process that runs longer hangs.
DEADLINE_SECONDS = 300


class Result(NamedTuple):
    """Outcome of an attempt.

    Attributes:
        right: True if the session gave Paddle's answers; False if others; None if it gave none.
        error: class and text of the exception, or empty; ``expected`` is True if it is a LiteError or a MemoryError.
        devices: the devices that ran nodes.
        notes: the session's selection log, and the reasons why devices refuse nodes.
        warnings: what was logged as a warning or worse.
    """

    right: bool | None
    error: str
    expected: bool
    devices: list[str]
    notes: list[str]
    warnings: list[str]


def tiny_model() -> Path:
    """Return the path of a small convolutional network of Paddle's."""
    return TINY / "legacy"


@cache
def answers() -> tuple[dict[str, Any], list[Any]]:
    """Return the inputs of the network, and Paddle's outputs for them. They are read once."""
    with np.load(TINY / "inputs.npz") as inputs, np.load(TINY / "legacy/outputs.npz") as outputs:
        return dict(inputs), [outputs[name] for name in outputs.files]


def are_right(outputs: Mapping[str, Any], expected: Sequence[Any]) -> bool:
    """Return True if a session's outputs are the expected ones."""
    return len(outputs) == len(expected) and all(
        np.allclose(one, other, rtol=0, atol=TOLERANCE) for one, other in zip(outputs.values(), expected)
    )


def in_a_child(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return what ``work`` returns in a forked process, and its exit status; an alarm ends a process that hangs."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(DEADLINE_SECONDS)
        try:
            told = work()
        except BaseException as error:
            told = {"unexpected": "".join(traceback.format_exception(error))}
        os.write(writing, json.dumps(told).encode())
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        content = pipe.read()
    return {**(json.loads(content) if content else {}), "status": os.waitpid(child, 0)[1]}


def load_and_run(model: str | Path, backend: str | Sequence[str], **options: Any) -> tuple[Result, Any]:
    """Load and run the network; return what happened, and the session if there is one. Never raises."""
    import lite_core as lite

    warnings: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: warnings.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("lite").addHandler(handler)
    inputs, expected = answers()
    session = None
    try:
        session = lite.load(model, backend, **options)
        right = are_right(session.run(inputs), expected)
        refused = [f"{label}: {why}" for one in session.assignment() for label, why in one.refusals]
        result = Result(
            right, "", True, [*session.devices], [*session.selection_log, *dict.fromkeys(refused)], warnings
        )
    except (lite.LiteError, MemoryError) as error:
        result = Result(None, f"{type(error).__name__}: {error}", True, [], [], warnings)
    except BaseException as error:
        result = Result(None, "".join(traceback.format_exception(error)), False, [], [], warnings)
    finally:
        logging.getLogger("lite").removeHandler(handler)
    return result, session


def attempt(
    model: str | Path,
    backend: str,
    *,
    wrapper: Sequence[str] = (),
    folder: Path | None = None,
    **environment: str | None,
) -> Result:
    """Load and run the network in a process of its own.

    Args:
        model: the model's path.
        backend: the backend's name.
        wrapper: a command in front of Python's, such as ``unshare``.
        folder: the working folder.
        environment: variables to set; None removes one.
    """
    variables = {**os.environ, **{name: value for name, value in environment.items() if value is not None}}
    for name in environment:
        if environment[name] is None:
            variables.pop(name, None)
    done = subprocess.run(
        [*wrapper, sys.executable, __file__],
        input=json.dumps({"model": str(model), "backend": backend}),
        env=variables,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    return Result(*json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    given = json.loads(sys.stdin.read())
    print(json.dumps(load_and_run(given["model"], given["backend"])[0]))
