"""The cases of level 5 in which threads compile, restore and run different graphs at once."""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from lite_conformance.cases.case import Context
from lite_conformance.cases.new_process import run_in_new_process
from lite_conformance.cases.side_by_side import SideBySide, weighted_graphs
from lite_conformance.cases.supported import supported_case, supported_cases
from lite_conformance.cases.tensors import Array
from lite_conformance.drive.backend_call import backend_call
from lite_conformance.drive.saved_state import restore, save
from lite_conformance.drive.subject import Compiled, Run, in_form_of_a_session, require_same
from lite_conformance.judge.outcome import Outcome, Refused
from lite_core.backend import Options, Partition
from lite_core.ir import Graph
from lite_core.session import load

__all__ = ["CHECKS", "THREADS", "in_threads"]

#: Number of threads that start at once.
THREADS = 16
_RUNS_PER_THREAD = 8


class _Job(NamedTuple):
    """A graph with inputs, and the outputs of an executable that ran in one thread."""

    label: str
    graph: Graph
    inputs: list[Array]
    expected: list[Array]


def _jobs(context: Context) -> list[_Job]:
    """Return jobs of several operators; some differ only in their constants."""
    graphs = [(case.name, *case.build(0)) for case in supported_cases(context.subject)]
    with suppress(Refused):
        graphs += [one for seed in range(3) for one in weighted_graphs(context.subject, seed)]
    return [_Job(label, graph, x, context.subject.compile(graph).run(x)) for label, graph, x in graphs]


def _compile_threads(context: Context) -> Outcome:
    """Compile and run different graphs in sixteen threads at once."""
    jobs = _jobs(context)

    def work(number: int) -> None:
        for turn in range(_RUNS_PER_THREAD):
            job = jobs[(number + turn) % len(jobs)]
            what = f"{job.label}, compiled and run in thread {number} of {THREADS},"
            require_same(job.expected, context.subject.compile(job.graph).run(job.inputs), what)

    in_threads(work)
    return Outcome(examples=THREADS * _RUNS_PER_THREAD)


def _executables_in_threads(context: Context) -> Outcome:
    """Run new executables of different graphs in sixteen threads at once."""
    jobs = _jobs(context)
    _run_in_threads(jobs, [context.subject.compile(job.graph) for job in jobs], "compiled")
    return Outcome(examples=THREADS * _RUNS_PER_THREAD)


def _restored_in_threads(context: Context) -> Outcome:
    """Run restored executables of different graphs in sixteen threads at once, before any other run of them."""
    jobs = _jobs(context)
    restored = [restore(save(context.subject.compile(job.graph))) for job in jobs]
    _run_in_threads(jobs, restored, "restored")
    return Outcome(examples=THREADS * _RUNS_PER_THREAD)


def _run_in_threads(jobs: Sequence[_Job], executables: Sequence[Compiled], how: str) -> None:
    # Two threads begin with the same executable.
    indices = [[(number // 2 + turn) % len(jobs) for turn in range(_RUNS_PER_THREAD)] for number in range(THREADS)]
    runs = [[Run(executables[index], jobs[index].inputs) for index in row] for row in indices]

    def work(number: int) -> None:
        for index, run in zip(indices[number], runs[number]):
            run.start()
            what = f"{jobs[index].label}, {how}, in thread {number} of {THREADS}"
            require_same(jobs[index].expected, run.finish(), what)

    in_threads(work)


def _session_threads(context: Context) -> Outcome:
    """Run one session, which has not run before, in sixteen threads at once; no output may change after its run."""
    case = supported_case(context.subject)
    graph = case.build(0)[0]
    label = context.subject.device.label
    given = [dict(zip((v.name for v in graph.inputs), case.build(number)[1])) for number in range(THREADS)]
    with backend_call(f"a session on {label!r}"):
        reference, session = (
            load(graph, label, fallback="never", optimize=False, plugins=context.subject.plugins) for _ in range(2)
        )
        expected = [list(reference.run(inputs).values()) for inputs in given]

    def work(number: int) -> None:
        with backend_call(f"a session on {label!r}, run by {THREADS} threads,"):
            kept = [session.run(given[number]) for _ in range(_RUNS_PER_THREAD)]
        for outputs in kept:
            require_same(expected[number], list(outputs.values()), f"thread {number} of {THREADS}, in a session,")

    in_threads(work)
    return Outcome(examples=THREADS * _RUNS_PER_THREAD)


def _first_use_in_threads(context: Context) -> Outcome:
    """Compile and run in sixteen threads at once in a new process, in which the backend has compiled nothing yet."""
    with tempfile.TemporaryDirectory() as folder:
        return run_in_new_process(context, first_use, Path(folder))


def first_use(context: Context, folder: Path) -> Outcome:
    """Compile and run graphs with several outputs in threads, and compare the outputs with the truth."""
    subject = context.subject
    graphs = [SideBySide(subject, seed) for seed in range(4)]
    parts = [Partition("first use", in_form_of_a_session(one.graph)) for one in graphs]

    def work(number: int) -> None:
        one, part = graphs[number % len(graphs)], parts[number % len(graphs)]
        with backend_call(f"compile(), called by {THREADS} threads at once,"):
            executable = subject.backend.compile(part, subject.device, Options())
        outputs = Compiled(subject, part.graph, executable).run(one.inputs)
        one.check(outputs, f"the first use of the backend, by thread {number} of {THREADS} at once")

    in_threads(work)
    return Outcome(examples=THREADS)


def in_threads(work: Callable[[int], None]) -> None:
    """Run ``work`` in all threads at once, and raise the first exception of any of them."""
    barrier = threading.Barrier(THREADS)
    failures: list[BaseException] = []
    awake: list[int] = []

    def run(number: int) -> None:
        try:
            barrier.wait()
            awake.append(number)
            while len(awake) < THREADS:  # the barrier wakes one after another, and the first would be done too early
                time.sleep(0)
            work(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # frequent switches make races likely
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    for failure in failures:
        raise failure


CHECKS: Sequence[Callable[[Context], Outcome]] = (
    _compile_threads,
    _session_threads,
    _executables_in_threads,
    _restored_in_threads,
    _first_use_in_threads,
)
