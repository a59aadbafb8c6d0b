"""Measurement of sessions in turns, so that load on the machine affects all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from lite_core.errors import InputError
from lite_core.log import tracked
from lite_core.plugins import available_backends
from lite_core.session import Session
from lite_tools.benchmark.kernel_counts import KernelCounts, kernel_counts
from lite_tools.benchmark.memory import PeakMemory, resident_bytes
from lite_tools.benchmark.summary import Summary, summarize
from lite_tools.benchmark.turns import Load, run_concurrently, run_in_turn
from lite_tools.commands.progress import set_progress, undisturbed

__all__ = ["Budget", "Measured", "Phase", "measure"]

Array = np.ndarray[Any, Any]
T = TypeVar("T")

#: The duration of a turn of one session.
_TURN_SECONDS = 0.1
#: The duration of a turn of several threads, as a multiple: at its end, threads that are ready wait for the last one.
_LOAD_TURNS = 3
_MIN_RUNS = 5
_NO_LIMIT = 1 << 62


@dataclass(frozen=True, slots=True)
class Budget:
    """The length of a measurement.

    Attributes:
        warmup: runs of each session after its first run and before those that count.
        iterations: number of runs that count; None for as many as fit into ``seconds``, at least five.
        seconds: total run time of each session; 0 to count ``iterations`` runs. If both are given, both are reached.
        concurrent: number of threads that run a session at once, in further turns; 1 for none.

    Raises:
        InputError: neither runs nor seconds are given.
    """

    warmup: int = 3
    iterations: int | None = None
    seconds: float = 3.0
    concurrent: int = 1

    def __post_init__(self) -> None:
        if self.seconds <= 0 and self.iterations is None:
            raise InputError(f"nothing to measure: {self.seconds} s; give a time above 0 or a number of iterations")

    def allows(self, runs: int) -> int:
        """Return how many more runs may count."""
        return _NO_LIMIT if self.iterations is None or self.seconds > 0 else self.iterations - runs

    def is_spent(self, seconds: float, runs: int) -> bool:
        """Return True if a session has run long and often enough."""
        return seconds >= self.seconds and runs >= (self.iterations or _MIN_RUNS)


class Phase(NamedTuple):
    """The time of a phase in seconds, and the process's highest resident set size during it; None if not known."""

    seconds: float
    peak_bytes: int | None


@dataclass
class Measured:
    """The measurements of one session.

    Attributes:
        name: the session's name for the user.
        session: the session.
        phases: time and memory of ``load``, which reads the model, runs the passes and places the nodes; ``compile``,
            which makes the plan for the input shapes; ``first_run``; and memory of ``runs`` and ``concurrent_runs``.
            ``before`` has the resident set size before the load.
        shapes: the shapes of the inputs.
        kernels: by backend, what was found and compiled up to the end of the first run.
        outputs: the outputs of the first run.
        turns: the seconds of the runs that count, turn by turn.
        loads: the turns of several threads.
    """

    name: str
    session: Session
    phases: dict[str, Phase]
    shapes: dict[str, tuple[int, ...]]
    kernels: dict[str, KernelCounts]
    outputs: dict[str, Array]
    turns: list[list[float]] = field(default_factory=list)
    loads: list[Load] = field(default_factory=list)

    @property
    def runs(self) -> list[float]:
        """The seconds of the runs that count, in the order in which they ran."""
        return [seconds for turn in self.turns for seconds in turn]

    @property
    def summary(self) -> Summary:
        """The statistics of the runs."""
        return summarize(self.runs)

    @property
    def under_load(self) -> Summary | None:
        """The statistics of the runs in several threads at once; None if there were none."""
        return summarize([seconds for load in self.loads for seconds in load.latencies]) if self.loads else None

    @property
    def throughput(self) -> float:
        """Runs per second, under load if that was measured, else of runs one after another."""
        if self.loads:
            return sum(load.rate for load in self.loads) / len(self.loads)
        return len(self.runs) / sum(self.runs)


def measure(
    makers: Mapping[str, Callable[[], Session]],
    make_inputs: Callable[[Session], Mapping[str, Array]],
    budget: Budget | None = None,
) -> list[Measured]:
    """Load a session for each name, and run them in turns.

    Args:
        makers: a function for each name that loads the session.
        make_inputs: creates inputs for the model from the first session.
        budget: the length of the measurement.

    Raises:
        InputError: there are no sessions, or the inputs do not fit the model.
    """
    if not makers:
        raise InputError("nothing to measure: 0 sessions")
    budget, memory = budget or Budget(), PeakMemory()
    measured: list[Measured] = []
    inputs: Mapping[str, Array] = {}
    for name, make in makers.items():
        set_progress(f"loading the model for {name}")
        phases = {"before": Phase(0.0, resident_bytes())}
        session = _timed(phases, memory, "load", make)
        backends = available_backends().values()  # after the load, so that its time includes importing plugins
        counts = kernel_counts(backends)
        if not measured:
            inputs = make_inputs(session)
        shapes = {key: array.shape for key, array in inputs.items()}
        _timed(phases, memory, "compile", partial(session.plan, shapes))
        outputs = _timed(phases, memory, "first_run", partial(session.run, inputs))
        kernels = {key: now - counts[key] for key, now in kernel_counts(backends).items()}
        measured.append(Measured(name, session, phases, shapes, kernels, outputs))
    for each in measured:
        set_progress(f"runs of {each.name} that do not count")
        for _ in tracked(range(budget.warmup), "runs"):
            each.session.run(inputs)
    with undisturbed():
        _run_in_turns(measured, inputs, budget, memory)
    return measured


def _timed(phases: dict[str, Phase], memory: PeakMemory, name: str, action: Callable[[], T]) -> T:
    """Call a function, and record its time and the peak of memory as a phase."""
    memory.reset()
    start = time.perf_counter()
    result = action()
    phases[name] = Phase(time.perf_counter() - start, memory.peak_bytes())
    return result


def _run_in_turns(measured: list[Measured], inputs: Mapping[str, Array], budget: Budget, memory: PeakMemory) -> None:
    """Give the sessions turns until each has run long and often enough."""
    counts = {each.name: 0 for each in measured}
    loaded = {each.name: 0 for each in measured}
    spent = {each.name: 0.0 for each in measured}
    pending = measured
    while pending:
        for each in pending:
            set_progress(f"measuring {each.name}: {_progress(spent[each.name], counts[each.name], budget)}")
            run = partial(each.session.run, inputs)
            most = budget.allows(counts[each.name])
            # What other sessions left in the caches does not matter to a run that is longer than a turn.
            warm = (each.turns[-1][-1] if each.turns else each.phases["first_run"].seconds) < _TURN_SECONDS
            memory.reset()
            each.turns.append(run_in_turn(run, _TURN_SECONDS, most, warm))
            counts[each.name] += len(each.turns[-1])
            spent[each.name] += sum(each.turns[-1])
            _raise_peak(each.phases, "runs", memory)
            share = -(-budget.allows(loaded[each.name]) // budget.concurrent)
            if budget.concurrent > 1 and share > 0:
                memory.reset()
                seconds = _LOAD_TURNS * _TURN_SECONDS
                each.loads.append(run_concurrently(run, budget.concurrent, seconds, share, warm))
                loaded[each.name] += len(each.loads[-1].latencies)
                _raise_peak(each.phases, "concurrent_runs", memory)
        pending = [each for each in pending if not budget.is_spent(spent[each.name], counts[each.name])]


def _progress(seconds: float, runs: int, budget: Budget) -> str:
    """Return how much of a session's measurement is done, in words."""
    done = [f"{seconds:.0f} of {budget.seconds:g} s"] if seconds < budget.seconds else []
    wanted = budget.iterations or _MIN_RUNS
    return ", ".join([*done, f"{runs} of {wanted} runs" if runs < wanted else f"{runs} runs"])


def _raise_peak(phases: dict[str, Phase], name: str, memory: PeakMemory) -> None:
    """Record the peak of a turn, if it is higher than those of earlier turns."""
    peaks = [peak for peak in (phases.get(name, Phase(0.0, None)).peak_bytes, memory.peak_bytes()) if peak is not None]
    phases[name] = Phase(0.0, max(peaks, default=None))
