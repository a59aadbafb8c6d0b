"""Count of the instructions that one inference executes on 64-bit ARM, in Lite and in ONNX Runtime.

    python benchmarks/arm_instructions.py [--models NAME ...] [--processors NAME ...] [--record | --check]

The eleven Paddle models of ``peers.py`` run under qemu, with one thread. Lite reads files that `lite convert` makes on
this machine, and has no compiler; ONNX Runtime reads the copies of paddle2onnx. The results of both are compared. A
count is no time: it says nothing of caches, of memory, or of how many instructions a processor executes at once. But
it is the same on every machine, so that a change of the kernels for the worse shows without an ARM processor.

``--record`` writes the counts into ``docs/results/arm/instructions.json``, from which `make docs` makes the page.
``--check`` counts Lite's instructions and compares them with the file: the end is an error if one model needs more than
2 % more. A C compiler is needed, and a Debian or Ubuntu for x86-64 (``scripts/arm_environment.py``).
"""

from __future__ import annotations

import argparse
import datetime
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))
sys.path.insert(0, str(Path(__file__).resolve().parent))
from emulated.counting import Count, Counter, CountingError
from emulated.instruction_file import FILE, Cell, geometric_mean, read, update
from side_by_side import machine, models
from side_by_side.engines import Job

from arm_environment import DEFAULT, ArmEnvironment
from arm_processors import PROCESSORS
from debian_packages import PackageError

ROOT = Path(__file__).resolve().parents[1]
LITE, PEER = "lite", "onnxruntime"
#: How much more instructions than recorded are reported as worse; counts of one version differed by 0.1 %.
TOLERANCE = 0.02


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    every = list(models.GROUPS["paddle"])
    parser.add_argument("--models", nargs="+", choices=every, default=every, metavar="NAME", help=", ".join(every))
    parser.add_argument("--processors", nargs="+", choices=PROCESSORS, default=["cortex-a53"],
        metavar="NAME", help=f"{', '.join(PROCESSORS)}; default: cortex-a53")  # fmt: skip
    parser.add_argument("--runs", type=int, default=3, help="counted runs of each model, of which the median counts")
    parser.add_argument("--environment", type=Path, default=DEFAULT, help="the ARM environment; default: .venv-arm")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--record", action="store_true", help="write the counts into the file that is in the repository")
    what.add_argument("--check", action="store_true", help="compare Lite's counts with this file")
    parser.add_argument("--again", action="store_true", help="also count ONNX Runtime where the file has its count")
    parser.add_argument("--file", type=Path, default=FILE, help="another file to record in, or to compare with")
    options = parser.parse_args(arguments)
    if options.runs < 1:
        parser.error("--runs must be positive")
    return options


def count(counter: Counter, engine: str, model: models.ModelOnDisk, processor: str, runs: int) -> Count:
    """Count the instructions of a model in an engine."""
    file = model.lite("arm", processor) if engine == LITE else model.onnx()
    job = Job(engine, (str(file),), str(model.input_file), threads=1, backend="arm", alone=True)
    return counter.count(job, processor, runs, [] if engine == LITE else [PEER])


def compare(model: models.ModelOnDisk, own: Count, other: Count) -> None:
    """Compare the outputs of two engines.

    Raises:
        CountingError: they differ.
    """
    largest = float(np.abs(own.output - other.output).max() / np.ptp(other.output))
    if not largest <= model.max_difference:
        raise CountingError(f"{model.title}: the outputs differ by {largest:.2g} of their range")


def measure(options: argparse.Namespace, counter: Counter, folder: Path) -> list[Cell]:
    """Count every model on every processor; recorded, if at all, after each.

    ONNX Runtime's count is taken from the file if it is of the same version.
    """
    pinned = (ROOT / "requirements-bench.txt").read_text().splitlines()
    (version,) = (line.partition("==")[2] for line in pinned if line.startswith(f"{PEER}=="))
    known = {(cell.processor, cell.model): cell.onnxruntime for cell in read(options.file) if cell.version == version}
    cells = []
    for processor in options.processors:
        for name in options.models:
            model = models.set_up(models.MODELS[name], folder)
            own = count(counter, LITE, model, processor, options.runs)
            other = known.get((processor, name), 0) if not options.again else 0
            if not other:
                counted = count(counter, PEER, model, processor, options.runs)
                compare(model, own, counted)
                other = counted.typical
            day = datetime.date.today().isoformat()
            cells.append(Cell(processor, name, model.title, own.typical, other, day, machine.revision(), version))
            show(cells[-1])
            if options.record:
                update(cells[-1:], list(models.MODELS), options.file)
    for processor in options.processors:
        mean = geometric_mean(cell for cell in cells if cell.processor == processor)
        print(f"{processor}: geometric mean of Lite / ONNX Runtime {mean:.2f}")
    return cells


def show(cell: Cell) -> None:
    """Print a line about a cell."""
    millions = f"Lite {cell.lite / 1e6:8.1f} M, ONNX Runtime {cell.onnxruntime / 1e6:8.1f} M"
    print(f"{cell.processor:12} {cell.title:20} {millions}, ratio {cell.ratio:.2f}", flush=True)


def check(options: argparse.Namespace, counter: Counter, folder: Path) -> list[str]:
    """Count Lite's instructions, and return a line for each model that needs more of them than recorded."""
    worse = []
    recorded = {(cell.processor, cell.model): cell for cell in read(options.file)}
    for processor in options.processors:
        for name in options.models:
            cell = recorded.get((processor, name))
            if cell is None:
                raise CountingError(f"{options.file} has no count of {name} on {processor}: record one with --record")
            model = models.set_up(models.MODELS[name], folder)
            change = count(counter, LITE, model, processor, options.runs).typical / cell.lite - 1
            line = f"{processor} {name}: {change:+.1%} instructions since {cell.revision or cell.measured}"
            print(line, flush=True)
            if change > TOLERANCE:
                worse.append(line)
    return worse


def main(arguments: Sequence[str] | None = None) -> None:
    """Count, and print, record or compare."""
    options = parse(arguments)
    try:
        environment = ArmEnvironment(options.environment)
        environment.make([] if options.check else [PEER])
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            # Both the process that converts and the emulated one, which must trust its code, have this key.
            os.environ["LITE_CONFIG_DIR"] = str(folder / "configuration")
            counter = Counter(environment, folder)
            worse = check(options, counter, folder) if options.check else []
            if not options.check:
                measure(options, counter, folder)
    except (PackageError, CountingError, models.ModelUnavailableError, models.ConversionError) as error:
        sys.exit(f"arm_instructions.py: {error}")
    if worse:
        sys.exit("more than 2 % worse:\n" + "\n".join(worse))


if __name__ == "__main__":
    main()
