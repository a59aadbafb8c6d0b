"""A worker: one process that attacks one target until its time is over.

python -m fuzz.worker TARGET --seconds 60 --folder out/fuzz
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# NOTE: nothing of Lite is imported here, so that a target can import it with instrumentation.
from fuzz.corpus import Corpus
from fuzz.execution import Execution, execute, limit_process
from fuzz.progress import Progress
from fuzz.shrinking import shrunk
from fuzz.targets import INSTRUMENTED, find_target

try:
    import atheris  # type: ignore[import-untyped]
except ImportError:
    atheris = None

_MOST_BYTES = 1 << 16
#: Inputs are changed this many times, most of them once.
_CHANGES = (1, 1, 1, 2, 2, 3, 5)
#: Share of the inputs that are made from a seed instead of an input of the growing corpus.
_FROM_SEEDS = 0.25


def main(arguments: list[str] | None = None) -> None:
    """Attack a target; the exit code is 0 when the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target")
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=time.time_ns())
    options = parser.parse_args(arguments)
    # The memory file system saves most of the time of small files.
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None, prefix="lite-fuzz-") as scratch:
        with _instrumented(options.target):
            attack = _Attack(options.target, options.folder, Path(scratch))
        if atheris is None:
            attack.by_outcomes(options.seconds, random.Random(options.seed))
        else:
            attack.by_coverage(options.seconds)


@contextlib.contextmanager
def _instrumented(target: str) -> Iterator[None]:
    """Instrument the modules that are imported meanwhile, if atheris is installed."""
    if atheris is None:
        yield
        return
    with atheris.instrument_imports(include=list(INSTRUMENTED[target])):
        yield


class _Attack:
    """Executions of one target, with their findings.

    Args:
        target: the target's name.
        folder: the folder of all corpora.
        scratch: a folder for the files of inputs.
    """

    def __init__(self, target: str, folder: Path, scratch: Path) -> None:
        self.corpus = Corpus(target, folder)
        self.progress = Progress(self.corpus.folder / "progress")
        self.target = find_target(target)
        self._scratch = scratch
        self.corpus.write_seeds(self.target.seeds())
        # What is imported on first use is imported now, before memory is measured and limited.
        for data in [*self.corpus.every_input()][:: max(1, len([*self.corpus.seeds.iterdir()]) // 200)]:
            with contextlib.suppress(Exception):
                self.target.run(data, scratch)
        limit_process()

    def execute(self, data: bytes) -> Execution:
        """Run an input and store its finding, shrunk if it is an exception."""
        self.progress.begin(data)
        execution = execute(self.target, data, self._scratch)
        self.progress.end(execution.growth, execution.seconds)
        finding = execution.finding
        if finding is not None:
            if finding.kind == "crash" and not self.corpus.file_of(finding).exists():
                data = shrunk(data, lambda part: self._key(part) == finding.key, self.target.smaller)
            self.corpus.store(finding, data)
        return execution

    def _key(self, data: bytes) -> str:
        found = execute(self.target, data, self._scratch).finding
        return found.key if found else ""

    def mutated(self, data: bytes, chance: random.Random) -> bytes:
        """Return an input with a few changes."""
        for _ in range(chance.choice(_CHANGES)):
            data = self.target.mutate(data, chance)
        return data

    def by_outcomes(self, seconds: float, chance: random.Random) -> None:
        """Keep inputs that end with a new outcome: error messages tell the branches apart, without instrumentation."""
        pool = [*self.corpus.every_input()]
        seen = {self.execute(data).outcome for data in pool}
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            data = self.mutated(chance.choice(pool), chance)
            execution = self.execute(data)
            if execution.finding is None and len(data) <= _MOST_BYTES and execution.outcome not in seen:
                seen.add(execution.outcome)
                pool.append(data)
                self.corpus.add(data)
        print(f"outcomes: {len(seen)}")

    def by_coverage(self, seconds: float) -> None:
        """Keep inputs that reach new branches; libFuzzer ends the process."""
        seeds = [file.read_bytes() for file in sorted(self.corpus.seeds.iterdir())]

        def run(data: bytes) -> int:
            return -1 if self.execute(data).finding else 0  # -1: not for the corpus, its descendants would fail alike

        def mutate(data: bytes, most: int, seed: int) -> bytes:
            chance = random.Random(seed)
            # libFuzzer drops inputs that reach the same branches as a shorter one: their structure must not be lost.
            changed = self.mutated(chance.choice(seeds) if chance.random() < _FROM_SEEDS else data, chance)
            return changed if len(changed) <= most else data

        flags = {
            "max_total_time": max(1, round(seconds)),
            "max_len": _MOST_BYTES,
            "len_control": 0,
            # The limits of fuzz.execution take the place of libFuzzer's.
            "timeout": 0,
            "rss_limit_mb": 0,
            "malloc_limit_mb": 0,
            "reload": 0,
            "reduce_inputs": 0,
            "print_final_stats": 1,
        }
        folders = [str(self.corpus.inputs), str(self.corpus.seeds)]
        command = [sys.argv[0], *(f"-{name}={value}" for name, value in flags.items()), *folders]
        options: dict[str, Any] = {"custom_mutator": mutate}
        atheris.Setup(command, run, **options)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
