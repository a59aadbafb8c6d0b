"""Counts of the instructions that an emulated program executes for one inference."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from side_by_side.engines import Job

if TYPE_CHECKING:
    from arm_environment import ArmEnvironment

__all__ = ["Count", "Counter", "CountingError"]

HERE = Path(__file__).resolve().parent


class CountingError(Exception):
    """Instructions cannot be counted; the message says what is missing or has failed."""


@dataclass(frozen=True)
class Count:
    """The instructions of each run of a model, and its output."""

    runs: tuple[int, ...]
    output: np.ndarray[Any, Any]

    @property
    def typical(self) -> int:
        """The median of the runs: once in a while one has other work in it, of Python or of a library."""
        return sorted(self.runs)[len(self.runs) // 2]


class Counter:
    """Runs programs under qemu with the counting plugin, which it compiles.

    Args:
        environment: the ARM environment, which has the engines.
        folder: a folder for files.

    Raises:
        CountingError: there is no C compiler, or it fails.
    """

    def __init__(self, environment: ArmEnvironment, folder: Path) -> None:
        self._environment = environment
        self._folder = folder
        self._plugin = folder / "count.so"
        compiler = os.environ.get("CC", "cc")
        if shutil.which(compiler) is None:
            raise CountingError(
                f"{compiler} is missing: the plugin that counts instructions needs a C compiler; install gcc, or name "
                "another one by CC"
            )
        command = [
            compiler,
            "-shared",
            "-fPIC",
            "-O2",
            "-fvisibility=hidden",
            "-o",
            str(self._plugin),
            str(HERE / "count.c"),
        ]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise CountingError(f"{' '.join(command)} failed:\n{done.stderr[-1500:]}")

    def count(self, job: Job, processor: str, runs: int, packages: Sequence[str] = ()) -> Count:
        """Count the instructions of some runs of a job.

        Args:
            job: the job.
            processor: qemu's name of the processor.
            runs: number of runs; the model has run once before.
            packages: parts of the environment that the engine is in.

        Raises:
            CountingError: the program failed; the message has the end of its output.
        """
        counts, output = self._folder / "counts.txt", self._folder / "output.npy"
        for old in (counts, output):
            old.unlink(missing_ok=True)
        folders = [HERE.parent, *(self._environment.folder / package for package in packages)]
        options = ["-plugin", f"{self._plugin},out={counts}"]
        arguments = ["-m", "emulated.counted", json.dumps(asdict(job)), str(runs), str(output)]
        done = subprocess.run(
            [*self._environment.command(processor, options), *arguments],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))},
        )
        if done.returncode or not output.exists():
            raise CountingError(f"{job.engine} on {processor} ended with {done.returncode}:\n{done.stderr[-1500:]}")
        marks = [int(line.split()[1]) for line in counts.read_text().splitlines()][1:]
        return Count(tuple(after - before for before, after in itertools.pairwise(marks)), np.load(output))
