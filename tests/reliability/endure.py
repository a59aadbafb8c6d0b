"""A program that runs, loads or changes shapes very often, and prints the memory of the process on the way.

    python endure.py runs|loads|shapes BACKEND NUMBER

It prints one line of JSON: the resident bytes at regular intervals, a hundred times, and the seconds of it all. Each
result is compared with an earlier one for the same input, or with Paddle's.
"""

from __future__ import annotations

import gc
import json
import mmap
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from attempts import answers, are_right, tiny_model

import lite_core as lite
from lite_core.builder import GraphBuilder
from lite_core.ir import Graph

__all__ = ["SIZES", "convolution", "picture"]

SAMPLES = 100
#: Heights and widths of pictures.
SIZES = [(height, width) for height in range(16, 36) for width in range(16, 36)]


def dense() -> Graph:
    """A network that runs so fast that a hundred thousand runs take seconds."""
    builder, chance = GraphBuilder("dense"), np.random.default_rng(0)
    x = builder.input("x", "float32", [1, 32])
    for number in range(2):
        weights = builder.constant(chance.standard_normal((32, 32)).astype(np.float32), f"w{number}")
        x = builder.add("Relu", [builder.add("MatMul", [x, weights])])
    builder.output(x, "y")
    return builder.build()


def convolution() -> Graph:
    """A network for pictures of any size."""
    builder, chance = GraphBuilder("pictures"), np.random.default_rng(0)
    x = builder.input("x", "float32", [1, 3, "height", "width"])
    filters = builder.constant(chance.standard_normal((8, 3, 3, 3)).astype(np.float32), "filters")
    y = builder.add("Relu", [builder.add("Conv", [x, filters], {"pads": [1, 1, 1, 1]})])
    builder.output(builder.add("GlobalAveragePool", [y]), "mean")
    builder.output(y, "y")
    return builder.build()


def picture(size: tuple[int, int]) -> np.ndarray[Any, Any]:
    """Return the same picture for the same size."""
    return np.random.default_rng(size).standard_normal((1, 3, *size)).astype(np.float32)


def runs(backend: str) -> Callable[[int], None]:
    """Return a function that runs one session."""
    session = lite.load(dense(), backend, fallback="never")
    x = np.linspace(-1, 1, 32, dtype=np.float32).reshape(1, 32)
    expected = session.run({"x": x})["y"].tobytes()

    def run(number: int) -> None:
        assert session.run({"x": x})["y"].tobytes() == expected

    return run


def loads(backend: str) -> Callable[[int], None]:
    """Return a function that loads a file, and every tenth time the original of another framework, and runs it."""
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / "model.lite"
    lite.convert(tiny_model(), path, [backend], verify=False)
    inputs, expected = answers()

    def load(number: int) -> None:
        assert folder  # it exists as long as this function
        session = lite.load(path if number % 10 else tiny_model(), backend)
        assert are_right(session.run(inputs), expected)
        assert session.devices == (backend,)

    return load


def shapes(backend: str) -> Callable[[int], None]:
    """Return a function that runs one session on pictures of another size each time."""
    session = lite.load(convolution(), backend, fallback="never")
    sizes = random.Random(0).sample(SIZES, len(SIZES))

    def run(number: int) -> None:
        size = sizes[number % len(sizes)]
        first, second = (session.run({"x": picture(size)})["y"] for _ in range(2))
        assert first.tobytes() == second.tobytes()

    return run


def resident_bytes() -> int:
    """Return the resident memory of this process."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * mmap.PAGESIZE


def main(kind: str, backend: str, number: int) -> None:
    """Do it so often, and print the samples."""
    work = {"runs": runs, "loads": loads, "shapes": shapes}[kind](backend)
    gc.collect()
    gc.freeze()  # what was imported is not searched each time
    begin, samples = time.perf_counter(), []
    for index in range(number):
        work(index)
        if (index + 1) % (number // SAMPLES) == 0:
            samples.append(resident_bytes())
    print(json.dumps({"resident": samples, "seconds": time.perf_counter() - begin}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
