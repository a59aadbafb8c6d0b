"""Benchmark of new sizes: what a new width of a text line, or length of a text, costs beside an inference of it.

    python benchmarks/new_sizes.py [--model decoder] [--threads 1 2] [--sizes 40] [--json]

A session first meets a few sizes, from which it records templates. Then each size is run for the first time, and again
after a few other sizes have come. One further size is run before every run that is timed, so that both runs of a size
find the caches, and the memory of runs, as another size leaves them. The difference of the two is the cost of the size.

A second round over the same sizes, which the session has evicted by then, gives the cost of an evicted size, and a
session without templates that of a size that is compiled. The medians of all sizes are printed, the cost of a new size
also with its quartiles and as a share of the run, and what recording a template costs.
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
from statistics import median, quantiles
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

#: How many new sizes come between the two runs of a size, and the plans that a session keeps, which are some more.
LAG, PLANS = 3, 8


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
    return {name: np.ones((1, 3, 48, width), np.float32) for name in session.inputs}


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


def costs(example: Example, session: lite.Session, sizes: Sequence[int], other: int) -> tuple[list[float], list[float]]:
    """Return the seconds that each size costs, which has no plan, and those of a run that has one.

    Another size is run before each run that is timed.
    """
    further = example.inputs(session, other)
    session.run(further)
    misses = session.plan_statistics.misses

    def seconds(size: int) -> float:
        inputs = example.inputs(session, size)
        session.run(further)
        start = time.perf_counter()
        session.run(inputs)
        return time.perf_counter() - start

    first, again = [], []
    for i in range(len(sizes) + LAG):
        if i < len(sizes):
            first.append(seconds(sizes[i]))
        if i >= LAG:
            again.append(seconds(sizes[i - LAG]))
    assert session.plan_statistics.misses == misses + len(sizes), "each size must be planned once, by its first run"
    return [new - known for new, known in zip(first, again)], again


def measure(example: Example, threads: int, count: int) -> dict[str, float]:
    """Return medians in seconds: a run, a size that is new, evicted, or compiled; quartiles; and the first template."""
    session = lite.load(example.model, backend="x86", threads=threads, plans=PLANS)
    begin = example.start + 1 + FIRST
    other = begin + STEP * count
    sizes = np.random.default_rng(0).permutation(np.arange(begin, other, STEP)).tolist()
    session.run(example.inputs(session, other))  # the memory of runs is then large enough for all
    first, _ = costs(example, session, range(begin - FIRST, begin), other)
    new, runs = costs(example, session, sizes, other)
    evicted, _ = costs(example, session, sizes, other)
    with compiling():
        compiled = lite.load(example.model, backend="x86", threads=threads, plans=PLANS)
        without, _ = costs(example, compiled, sizes, other)
    low, _, high = quantiles(new, n=4)
    return {
        "run": median(runs), "new size": median(new), "lower quartile": low, "upper quartile": high,
        "evicted size": median(evicted), "compiled": median(without), "first template": first[0],
    }  # fmt: skip


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="", metavar="TEXT", help="measure the models whose titles contain this")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2], metavar="N", help="default: 1 and 2")
    parser.add_argument("--sizes", type=int, default=40, metavar="N", help="sizes that are measured; default: 40")
    parser.add_argument("--json", action="store_true", help="print seconds as JSON")
    options = parser.parse_args()
    figures: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for example in [each for each in examples(Path(folder)) if options.model in each.title]:
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
