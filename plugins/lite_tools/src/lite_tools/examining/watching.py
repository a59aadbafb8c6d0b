"""Effects of loading a plugin: heavy modules that it imports, text that it prints, changes to the process."""

from __future__ import annotations

import logging
import os
import signal
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

__all__ = ["HEAVY", "Effect", "watched"]

#: Packages that take long to import. A plugin imports them when they are needed, not when it is loaded.
HEAVY = frozenset(
    (
        *(
            "cv2",
            "google",
            "jax",
            "llvmlite",
            "matplotlib",
            "mxnet",
            "numba",
            "onnx",
            "onnxruntime",
            "openvino",
            "paddle",
        ),
        *(
            "pandas",
            "pyopencl",
            "scipy",
            "sklearn",
            "skimage",
            "sympy",
            "tensorflow",
            "tensorrt",
            "torch",
            "transformers",
        ),
    )
)
_MANY_MODULES = 100  # a package with as many modules counts as heavy, too
_MOST_TEXT = 200


class Effect(NamedTuple):
    """One thing that loading a plugin did.

    Attributes:
        kind: ``imports``, ``output``, ``threads``, ``environment``, ``folder``, ``signals``, ``numpy``, ``path`` or
            ``logging``.
        step: ``import``, or the hook that was asked.
        text: what it did, as the end of a sentence.
    """

    kind: str
    step: str
    text: str


class _State(NamedTuple):
    modules: frozenset[str]
    threads: frozenset[int]
    environment: dict[str, str]
    folder: str
    signals: dict[int, Any]
    numpy_errors: dict[str, Any]
    path: list[str]
    handlers: int


@contextmanager
def watched(step: str, effects: list[Effect]) -> Iterator[None]:
    """Add to ``effects`` what a step does to this process, besides what is its purpose."""
    before = _state()
    sys.stdout.flush()
    with tempfile.TemporaryFile("w+b") as output:
        saved = os.dup(1)
        os.dup2(output.fileno(), 1)
        try:
            yield
        finally:
            sys.stdout.flush()
            os.dup2(saved, 1)
            os.close(saved)
            output.seek(0)
            written = output.read().decode(errors="replace")
            sys.stderr.write(written)
            found = [] if not written else [("output", f"prints {written.strip()[:_MOST_TEXT]!r} to standard output")]
            effects += [Effect(kind, step, text) for kind, text in (*found, *_differences(before, _state()))]


def _state() -> _State:
    return _State(
        frozenset(sys.modules),
        frozenset(thread.ident or 0 for thread in threading.enumerate()),
        dict(os.environ),
        os.getcwd(),
        {number: signal.getsignal(number) for number in signal.valid_signals()},
        {**np.geterr()},
        [*sys.path],
        len(logging.getLogger().handlers),
    )


def _differences(before: _State, after: _State) -> Iterator[tuple[str, str]]:
    if heavy := _heavy_packages(after.modules - before.modules):
        yield "imports", f"imports {', '.join(heavy)}"
    if started := [t.name for t in threading.enumerate() if t.ident in after.threads - before.threads]:
        yield "threads", f"starts the thread(s) {', '.join(started)}"
    names = {*before.environment, *after.environment}
    changed = sorted(n for n in names if before.environment.get(n) != after.environment.get(n))
    if changed:
        yield "environment", f"changes the environment variable(s) {', '.join(changed)}"
    if before.folder != after.folder:
        yield "folder", "changes the working folder"
    if handled := [n for n in after.signals if before.signals.get(n) != after.signals[n]]:
        yield "signals", f"handles the signal(s) {', '.join(signal.Signals(n).name for n in handled)}"
    if before.numpy_errors != after.numpy_errors:
        yield "numpy", "changes numpy.seterr() for the whole process"
    if before.path != after.path:
        yield "path", "changes sys.path"
    if before.handlers != after.handlers:
        yield "logging", "adds a handler to the root logger"


def _heavy_packages(modules: frozenset[str]) -> list[str]:
    """Return the packages among modules that take long to import, each with the number of its modules."""
    counts = Counter(name.partition(".")[0] for name in modules)
    others = counts.keys() - {*sys.stdlib_module_names} - {"lite_core", "lite_tools"}
    heavy = sorted(name for name in others if name in HEAVY or counts[name] >= _MANY_MODULES)
    return [f"{name} ({counts[name]} module{'s' * (counts[name] > 1)})" for name in heavy]
