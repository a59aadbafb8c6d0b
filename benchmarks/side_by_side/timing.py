"""Interleaved timing: the engines take turns in short slices, so that drift affects all of them alike.

An engine that is measured alone also takes turns, while the processes of the others are stopped.
"""

from __future__ import annotations

import contextlib
import math
import random
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from side_by_side.conditions import Condition
from side_by_side.contenders import Contender
from side_by_side.models import ConversionError, ModelOnDisk
from side_by_side.results import LeftOut, Timing
from side_by_side.worker_process import WorkerError, WorkerProcess

Array = np.ndarray[Any, Any]

SLICE_SECONDS = 0.15
#: Turns that an engine takes at least, also if one run is longer than a slice.
_FEWEST_TURNS = 5


class Turns:
    """The times of one worker, turn by turn."""

    def __init__(self, worker: WorkerProcess) -> None:
        """Run the worker for a slice, to warm it up and to determine the number of runs in a slice."""
        self.worker = worker
        self.milliseconds: list[float] = []
        self._busy = self._busy_cpu = self._idle = self._idle_cpu = 0.0
        (once,), _ = worker.run(1)
        times, _ = worker.run(self._runs_per_slice(once))
        self.count = self._runs_per_slice(min(times))
        self._end_of_turn()

    def take(self) -> None:
        """Take one turn."""
        self._idle += time.perf_counter() - self._ended
        self._idle_cpu += self.worker.cpu_seconds() - self._cpu_at_end
        times, cpu_seconds = self.worker.run(self.count)
        self.milliseconds += [round(seconds * 1e3, 4) for seconds in times]
        self._busy += sum(times)
        self._busy_cpu += cpu_seconds
        self._end_of_turn()

    def is_done(self, seconds: float) -> bool:
        """Return True if it has run for so long, which takes engines few turns if one run is longer than a slice."""
        return self._busy >= seconds and len(self.milliseconds) >= _FEWEST_TURNS * self.count

    @property
    def cpu_per_wall(self) -> float:
        """Return the CPU seconds for each second of the turns."""
        return self._busy_cpu / self._busy

    @property
    def idle_cpu_share(self) -> float:
        """Return the CPU seconds for each second of the other engines' turns."""
        return self._idle_cpu / self._idle if self._idle else 0.0

    @staticmethod
    def _runs_per_slice(seconds: float) -> int:
        return max(1, round(SLICE_SECONDS / seconds))

    def _end_of_turn(self) -> None:
        self._ended, self._cpu_at_end = time.perf_counter(), self.worker.cpu_seconds()


def differences(outputs: Mapping[str, Array]) -> dict[str, float]:
    """Return the distance of each engine's output from the median of all, as a share of that median's range.

    An output of another shape than the majority is infinitely far away.
    """
    ((shape, _),) = Counter(output.shape for output in outputs.values()).most_common(1)
    comparable = {name: output for name, output in outputs.items() if output.shape == shape}
    middle = np.nanmedian(np.stack(list(comparable.values())).astype(np.float64), axis=0)
    extent = float(np.ptp(middle)) or 1.0
    distances = {name: float(np.abs(output - middle).max()) / extent for name, output in comparable.items()}
    return {name: distances.get(name, math.inf) for name in outputs}


def measure(
    contenders: Sequence[Contender], model: ModelOnDisk, condition: Condition, seconds: float
) -> tuple[list[Timing], list[LeftOut]]:
    """Time one model under one condition in every engine that supports both.

    Args:
        contenders: the engines.
        model: the model.
        condition: the number of threads, and the other circumstances.
        seconds: time that each engine runs, in slices.

    Returns:
        A timing for each engine whose output agrees with the others; and the other engines, with the reason.
    """
    left_out: list[LeftOut] = []
    with contextlib.ExitStack() as stack:
        workers: dict[str, WorkerProcess] = {}
        for contender in contenders:
            name = contender.engine.name
            if not contender.engine.can_run(condition):
                continue
            try:
                workers[name] = stack.enter_context(contender.start(model, condition))
            except (ConversionError, WorkerError) as error:
                left_out.append(LeftOut(name, str(error), model.name, condition))
        if not workers:
            return [], left_out
        distances = differences(_outputs(workers))
        for name, difference in distances.items():
            # NOTE: negated so that a NaN is treated as wrong.
            if not difference <= model.max_difference:
                reason = f"its output is {difference:.2g} of the range away from the other engines'"
                left_out.append(LeftOut(name, reason, model.name, condition))
                workers.pop(name).close()
        turns = {name: Turns(worker) for name, worker in workers.items()}
        take_turns(list(turns.values()), math.ceil(seconds / SLICE_SECONDS), seconds)
        return [
            Timing(
                model=model.name,
                engine=name,
                condition=condition,
                runs_in_a_slice=turn.count,
                milliseconds=turn.milliseconds,
                cpu_per_wall=round(turn.cpu_per_wall, 4),
                idle_cpu_share=round(turn.idle_cpu_share, 4),
                difference=distances[name],
            )
            for name, turn in turns.items()
        ], left_out


def take_turns(turns: list[Turns], rounds: int, seconds: float) -> None:
    """Let each take one turn a round, in a changing order: no engine always follows the same other one.

    Args:
        turns: the engines.
        rounds: number of rounds.
        seconds: an engine that has run for so long takes no more turns.
    """
    order = random.Random(0)
    for _ in range(rounds):
        order.shuffle(turns)
        for turn in turns:
            if not turn.is_done(seconds):
                turn.take()


def _outputs(workers: Mapping[str, WorkerProcess]) -> dict[str, Array]:
    with tempfile.TemporaryDirectory() as folder:
        files = {name: Path(folder) / f"{name}.npy" for name in workers}
        for name, worker in workers.items():
            worker.save(files[name])
        return {name: np.load(file) for name, file in files.items()}
