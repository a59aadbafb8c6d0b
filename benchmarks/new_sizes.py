"""Benchmark of new sizes: what a new width of a text line, or length of a text, costs beside an inference of it.

    python benchmarks/new_sizes.py [--threads 1 2] [--sizes 40] [--json]

A session first meets a few sizes, from which it records templates; then each size is run for the first time, and run
again. The difference is the cost of the size: with templates, and where each size is compiled. The medians of all sizes
are printed, the cost also as a share of the run, and what recording a template costs.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np

import lite_core as lite
from lite_core.schedule import Plan

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/models"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples/decoding"))

from make_model import Decoder, make_model
from sentence_encoder import sentence_encoder, sentences
from side_by_side import models

#: Sizes that come before those that are measured, and how far apart the others are.
FIRST, STEP = 4, 3


class Example(NamedTuple):
    """A model, a function that makes its inputs for a size, and the first size to measure."""

    title: str
    model: object
    inputs: Callable[[lite.Session, int], dict[str, np.ndarray]]
    start: int


def examples(folder: Path) -> Iterator[Example]:
    """Yield the models, of which the decoder is written to a folder."""
    found = models.MODELS["pp_ocrv4_rec"].files()
    yield Example("PP-OCRv4 rec, width", getattr(found, "model", found), _line, 320)
    yield Example("sentence encoder, tokens", sentence_encoder(longest=512), lambda _, n: sentences(1, n), 100)
    make_model(folder / "decoder.onnx", Decoder())
    yield Example("decoder, past positions", folder / "decoder.onnx", _step, 100)


def _line(session: lite.Session, width: int) -> dict[str, np.ndarray]:
    return {name: np.zeros((1, 3, 48, width), np.float32) for name in session.inputs}


def _step(session: lite.Session, past: int) -> dict[str, np.ndarray]:
    sizes = {"batch": 1, "sequence": 1, "past": past, "total": past + 1}
    found = {}
    for name, type in session.inputs.items():
        shape = tuple([sizes.get(str(dim), dim) for dim in type.shape or ()])
        found[name] = np.ones(shape, type.dtype.numpy)
    return found


@contextmanager
def compiling() -> Iterator[None]:
    """Compile plans for all sizes, without templates."""
    resized = Plan.resized
    Plan.resized = lambda self, shapes: None  # type: ignore[method-assign]
    try:
        yield
    finally:
        Plan.resized = resized  # type: ignore[method-assign]


def costs(example: Example, session: lite.Session, sizes: Sequence[int]) -> tuple[list[float], list[float]]:
    """Return the seconds that each size costs when it is new, and those of a run."""
    extra, runs = [], []
    for size in sizes:
        inputs, times = example.inputs(session, size), []
        for _ in range(3):
            start = time.perf_counter()
            session.run(inputs)
            times.append(time.perf_counter() - start)
        extra.append(times[0] - min(times[1:]))
        runs.append(min(times[1:]))
    return extra, runs


def measure(example: Example, threads: int, count: int) -> dict[str, float]:
    """Return medians in seconds: a run, a new size, a new size that is compiled; and the first template."""
    session = lite.load(example.model, backend="x86", threads=threads)
    start = example.start
    session.run(example.inputs(session, start))
    first, _ = costs(example, session, range(start + 1, start + 1 + FIRST))
    begin = start + 1 + FIRST
    sizes = np.random.default_rng(0).permutation(np.arange(begin, begin + STEP * count, STEP)).tolist()
    session.run(example.inputs(session, begin + STEP * count))  # the memory of runs is then large enough for all
    extra, runs = costs(example, session, sizes)
    with compiling():
        compiled = lite.load(example.model, backend="x86", threads=threads)
        compiled.run(example.inputs(compiled, begin + STEP * count))
        without, _ = costs(example, compiled, sizes)
    return {"run": median(runs), "new size": median(extra), "compiled": median(without), "first template": first[0]}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2], metavar="N", help="default: 1 and 2")
    parser.add_argument("--sizes", type=int, default=40, metavar="N", help="sizes that are measured; default: 40")
    parser.add_argument("--json", action="store_true", help="print seconds as JSON")
    options = parser.parse_args()
    figures: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for example in examples(Path(folder)):
            for threads in options.threads:
                figures[f"{example.title}, {threads} thread(s)"] = found = measure(example, threads, options.sizes)
                if not options.json:
                    times = ", ".join(f"{name} {seconds * 1e3:.2f} ms" for name, seconds in found.items())
                    shares = [f"{found[name] / found['run']:.3f}" for name in ("new size", "compiled")]
                    print(f"{example.title}, {threads} thread(s): {times}; of a run {shares[0]}, compiled {shares[1]}")
    if options.json:
        print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
