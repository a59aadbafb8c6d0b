"""Time from the start of a process to a model's first result, for ``opencl.py --startup``.

Every start is a separate process. A backend's compiled programs are in its cache, from a first start that is not
counted. At its end, each process opens the model once more, with everything compiled in memory. The difference
between the two first plans and runs is an upper bound of the cost of finding the programs, loading them into the
driver and creating kernels from them; it includes modules that are imported only then. The whole time over the time
without this difference is the remaining cost of compilation.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Start", "measure_startup", "report"]


@dataclass(frozen=True)
class Start:
    """The quickest of several starts of one kind, in milliseconds.

    Attributes:
        model, way: the model, and the backend and file it is started from.
        first_result: from the start of the process to its first result.
        loading: the part of it for importing, finding devices and reading the model.
        planning: the first plan and run.
        planning_again: plan and first run of the second session, which finds everything compiled in memory.
    """

    model: str
    way: str
    first_result: float
    loading: float
    planning: float
    planning_again: float

    @property
    def ratio(self) -> float:
        """Return the time to the first result over the same time without compilation."""
        return self.first_result / (self.first_result - max(0.0, self.planning - self.planning_again))


def measure_startup(name: str, device: str, threads: int, repeats: int) -> list[Start]:
    """Measure every way to start a model of the catalog; the ways are interleaved."""
    import catalog

    files = catalog.ensure(name)
    with tempfile.TemporaryDirectory() as folder:
        inputs, converted = Path(folder) / "inputs.npz", Path(folder) / "model.lite"
        _store(inputs, catalog.example_input(name))
        _convert(files.model, files.params, inputs, device, converted)
        ways: dict[str, list[str]] = {
            f"{device}, Paddle model": [device, str(files.model), str(files.params)],
            f"{device}, .lite file": [device, str(converted)],
            "x86, Paddle model": ["x86", str(files.model), str(files.params)],
        }
        times_of_way: dict[str, list[list[float]]] = {way: [] for way in ways}
        for _ in range(repeats + 1):
            for way, arguments in ways.items():
                times_of_way[way].append(_start([str(inputs), str(threads), *arguments]))
    return [Start(name, way, *min(times[1:])) for way, times in times_of_way.items()]


def report(starts: Sequence[Start]) -> str:
    """Format the starts as Markdown."""
    rows = [["model", "start", "first result, ms", "loading", "plan and run", "again", "with / without compiling"]]
    rows.append(["---"] * len(rows[0]))
    for s in starts:
        times = [f"{t:.0f}" for t in (s.first_result, s.loading, s.planning, s.planning_again)]
        rows.append([s.model, s.way, *times, f"{s.ratio:.2f}"])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def _store(path: Path, arrays: Any) -> None:
    import numpy as np

    np.savez(path, **arrays)


def _convert(model: Path, params: Path, inputs: Path, device: str, target: Path) -> None:
    """Convert a model to a file that is prepared for the device and for inputs of these shapes."""
    import numpy as np

    with np.load(inputs) as arrays:
        shapes = [f"--input-shape={name}={'x'.join(map(str, arrays[name].shape))}" for name in arrays.files]
    command = [sys.executable, "-m", "lite_core", "convert", str(model), "--params", str(params), "-o", str(target)]
    _run([*command, "--targets", device.partition(":")[0], *shapes])


def _start(arguments: Sequence[str]) -> list[float]:
    """Start one process; return its four times in milliseconds, in the order of :class:`Start`."""
    times: list[float] = json.loads(_run([sys.executable, __file__, *arguments]))
    return times


def _run(command: Sequence[str]) -> str:
    """Run a command and return its standard output; LITE_STARTED tells it when it was started."""
    environment = {**os.environ, "LITE_STARTED": repr(time.time())}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(f"opencl_startup.py: a started process failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def main() -> None:
    """Entry point of the started process: print its four times."""
    began = float(os.environ["LITE_STARTED"])
    import numpy as np

    import lite_core as lite

    parser = argparse.ArgumentParser()
    for name in ("inputs", "threads", "backend", "model"):
        parser.add_argument(name)
    parser.add_argument("params", nargs="?")
    options = parser.parse_args()
    with np.load(options.inputs) as stored:
        inputs = {name: stored[name] for name in stored.files}
    given = {"params": options.params} if options.params else None

    def load() -> lite.Session:
        return lite.load(options.model, options.backend, threads=int(options.threads), reader_options=given)

    def planned(session: lite.Session) -> float:
        start = time.perf_counter()
        session.run(inputs)
        return time.perf_counter() - start

    session = load()
    loaded = time.time() - began
    planning = planned(session)
    first_result = time.time() - began
    again = planned(load())
    print(json.dumps([1e3 * seconds for seconds in (first_result, loaded, planning, again)]))


if __name__ == "__main__":
    main()
