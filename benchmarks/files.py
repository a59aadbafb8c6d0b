"""Benchmark of .lite files: their sizes, and the time from process start to the first result.

    python benchmarks/files.py [--models NAME ...] [--repeats 7] [--json]

Each of the eleven models of tests/models/catalog.py is converted for x86. For each file the table has the size of the
weights, the size of the file and its parts, and the time from before the start of a new process to its first result, on
one thread: with the file's code (*own*), and without it, compiled from the graph with a warm cache of kernels
(*ignored*). Processes are interleaved; the figures are medians. NumPy's import, which both contain, is measured too.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/models"))

import catalog

import lite_core as lite

MODELS = [f"{name}-legacy" for name in catalog.VISION] + ["pp_ocrv4_det", "pp_ocrv4_rec", "pp_ocrv4_cls"]

FIRST_RESULT = """
import sys
import numpy as np
import lite_core as lite
session = lite.load(sys.argv[1], backend="x86", threads=1, saved=sys.argv[2])
shapes = dict(item.split("=") for item in sys.argv[3:])
session.run({name: np.ones([*map(int, shape.split("x"))], np.float32) for name, shape in shapes.items()})
"""


def seconds(*arguments: str) -> float:
    """Return the time that a new Python process takes."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", *arguments], check=True)
    return time.perf_counter() - start


def measure(name: str, folder: Path, repeats: int) -> dict[str, object]:
    """Convert a model and measure its file."""
    files, inputs = catalog.ensure(name), catalog.example_input(name)
    shapes = {key: array.shape for key, array in inputs.items()}
    options = {"params": files.params}
    file = folder / f"{name}.lite"
    report = lite.convert(files.model, file, "x86", shapes=shapes, verify=False, reader_options=options)
    given = [f"{key}={'x'.join(map(str, shape))}" for key, shape in shapes.items()]
    times: dict[str, list[float]] = {"own": [], "ignore": []}
    for turn in range(repeats + 1):
        for saved, found in times.items():
            taken = seconds(FIRST_RESULT, str(file), saved, *given)
            if turn:  # the first turn warms the caches
                found.append(taken)
    return {
        "model": name,
        "weights": report.after.weight_bytes,
        "file": report.size,
        "split": dict(report.split),
        "ratio": report.size / report.after.weight_bytes,
        "own_ms": 1e3 * statistics.median(times["own"]),
        "ignored_ms": 1e3 * statistics.median(times["ignore"]),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=MODELS, choices=MODELS, metavar="NAME")
    parser.add_argument("--repeats", type=int, default=7, help="processes for each figure; default: 7")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = [measure(name, Path(folder), options.repeats) for name in options.models]
    numpy = 1e3 * statistics.median(seconds("import numpy") for _ in range(options.repeats))
    if options.json:
        print(json.dumps({"numpy_ms": numpy, "models": rows}, indent=1))
        return
    print(f"import numpy: {numpy:.0f} ms\n")
    print(f"{'model':28} {'weights':>9} {'file':>9} {'ratio':>6} {'code':>8} {'own':>8} {'ignored':>8}")
    for row in rows:
        split = row["split"]
        assert isinstance(split, dict)
        sizes = f"{int(str(row['weights'])) / 1e6:6.1f} MB {int(str(row['file'])) / 1e6:6.1f} MB"
        first = f"{row['own_ms']:5.0f} ms {row['ignored_ms']:5.0f} ms"
        print(f"{row['model']:28} {sizes} {row['ratio']:6.2f} {split['code'] / 1e6:5.2f} MB {first}")


if __name__ == "__main__":
    main()
