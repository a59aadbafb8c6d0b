"""Benchmark of two versions of Lite, to find out if the second one is slower.

    python benchmarks/versions.py OLD_PYTHON NEW_PYTHON [--rounds 5] [--json FILE]

Both are Pythons of environments in which a version is installed with lite-paddle and lite-x86. In each round every
measurement is made in three processes of each version, interleaved, so that load affects both alike. The shortest
time of the three counts, because other work only ever adds time, and then the median of the rounds' ratios. The eleven
models are those of tests/models/catalog.py. It takes about 12 minutes.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/models"))

import catalog

MODELS = [f"{name}-legacy" for name in catalog.VISION] + ["pp_ocrv4_det", "pp_ocrv4_rec", "pp_ocrv4_cls"]

#: Processes of each version in a round: the clock frequency differs from one process to the next.
TURNS = 3

#: Code of a measuring process: its first argument names the measurement, the others are model files and input shape.
MEASURE = """
import json, sys, time
start = time.perf_counter()
import lite_core as lite
imported = time.perf_counter() - start
import numpy as np

measurement, *arguments = sys.argv[1:]

def least(action, seconds=0.3):
    action()
    times = []
    while len(times) < 5 or sum(times) < seconds:
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)

def load():
    return lite.load(arguments[0], backend="x86", threads=1)

if measurement == "import":
    print(imported)
elif measurement == "run of one node":
    b = lite.GraphBuilder("one")
    b.output(b.add("Relu", [b.input("x", "float32", [8])]))
    session, inputs = lite.load(b.build(), backend="x86", threads=1), {"x": np.ones(8, np.float32)}
    print(least(lambda: [session.run(inputs) for _ in range(1000)]) / 1000)
elif measurement == "load":
    print(least(load))
else:
    session, random = load(), np.random.default_rng(0)
    inputs = {name: random.standard_normal(json.loads(arguments[1])).astype(np.float32) for name in session.inputs}
    print(least(lambda: session.run(inputs)))
"""


def measure(python: str, *arguments: str) -> float:
    """Return the seconds that a process of one environment measures."""
    done = subprocess.run([python, "-c", MEASURE, *arguments], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{python} failed at {arguments[0]}:\n{done.stderr}")
    return float(done.stdout)


def measure_both(old: str, new: str, arguments: tuple[str, ...], *, first: int) -> tuple[float, float]:
    """Return the seconds of the old and of the new version; the old one is measured first if ``first`` is 0."""
    order = (old, new) if first == 0 else (new, old)
    seconds = {python: measure(python, *arguments) for python in order}
    return seconds[old], seconds[new]


def cases() -> dict[str, tuple[str, ...]]:
    """Return for each measurement, by name, the arguments of its processes."""
    found: dict[str, tuple[str, ...]] = {"import lite_core": ("import",), "run of one node": ("run of one node",)}
    for name in MODELS:
        (array,) = catalog.example_input(name).values()
        files = str(catalog.ensure(name).model), json.dumps(array.shape)
        found[f"load {name}"] = ("load", *files)
        found[f"run {name}"] = ("run", *files)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("old", help="Python of the environment with the old version")
    parser.add_argument("new", help="Python of the environment with the new version")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="file for all figures")
    options = parser.parse_args()
    measurements = cases()
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in measurements}
    for number in range(options.rounds):
        for name, arguments in measurements.items():
            turns = [
                measure_both(options.old, options.new, arguments, first=(number + turn) % 2) for turn in range(TURNS)
            ]
            old, new = map(min, zip(*turns))
            seconds[name].append((old, new))
    if options.json:
        options.json.write_text(json.dumps(seconds, indent=2))
    ratios = {name: statistics.median(new / old for old, new in pairs) for name, pairs in seconds.items()}
    for name, pairs in seconds.items():
        old, new = (statistics.median(times) * 1e3 for times in zip(*pairs))
        print(f"{name:32} old {old:9.3f} ms  new {new:9.3f} ms  new/old {ratios[name]:.3f}")
    for kind in ("load", "run"):
        logs = [math.log(ratios[f"{kind} {name}"]) for name in MODELS]
        print(f"{kind}: geometric mean of new/old {math.exp(statistics.mean(logs)):.3f} on {len(logs)} models")


if __name__ == "__main__":
    main()
