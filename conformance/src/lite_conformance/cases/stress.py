"""Level 5: many threads, many runs, many compilations, and guard pages directly behind tensors.

Guard zones, poisoned outputs and the comparison of inputs are part of every run of every level. This level repeats
runs, so that rare errors occur.
"""

from __future__ import annotations

import gc
import mmap
import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from lite_conformance.cases.case import Case, Context
from lite_conformance.cases.op_cases import OpCase, OpTable
from lite_conformance.cases.operators import all_tables
from lite_conformance.cases.supported import large_tensor_graph, supported_case
from lite_conformance.cases.tensors import Array
from lite_conformance.drive.backend_call import backend_call
from lite_conformance.drive.guard_pages import PageGuardedStorage
from lite_conformance.drive.subject import Run, require_same
from lite_conformance.judge.checks import check_outcome
from lite_conformance.judge.outcome import Failure, Outcome, Skipped
from lite_core.ir import DType
from lite_core.session import load

__all__ = ["cases"]

_THREADS = 16
_RUNS_PER_THREAD = 8
_REPEATS = 100
_REPETITIONS = 60
# Allowed growth, as a share of the memory that a leak of one tensor per repetition would take.
_GROWTH_SHARE = 0.25


def cases() -> Iterator[Case]:
    """Yield the cases of level 5: three for each operator, and some for the backend as a whole."""
    for table in all_tables():
        representative = _representative(table)
        if representative is None:
            continue
        case, dtype = representative
        op = table.definition.qualified_name
        for name, check in (("deterministic", _deterministic), ("threads", _threads), ("guard-page", _guard_page)):
            run = partial(check, case=case, dtype=dtype)
            yield Case(f"stress[{name},{op}]", 5, "stress", run, op, dtype.value, timeout_factor=3)
    for check_all in (_compile_repeatedly, _run_repeatedly, _compile_threads, _session_threads):
        name = check_all.__name__.strip("_").replace("_", "-")
        yield Case(f"stress[{name}]", 5, "stress", check_all, timeout_factor=5)


def _representative(table: OpTable) -> tuple[OpCase, DType] | None:
    """Return a case with non-empty run-time inputs, in float32 if the operator supports it; None if there is none."""
    for _, dtype, case in sorted(table.cases(), key=lambda c: c[1] is not DType.FLOAT32):
        sizes = [int(np.prod(t.shape)) for t in case.inputs if t is not None and not t.constant]
        if sizes and all(sizes):
            return case, dtype
    return None


# **** one operator ****


def _deterministic(context: Context, case: OpCase, dtype: DType) -> Outcome:
    """Require the same bits for the same input in a hundred runs, and after compiling again."""
    graph, inputs = case.build(dtype, context.settings.seed)
    compiled = context.subject.compile(graph)
    run = Run(compiled, inputs)
    run.start()
    first = run.finish()
    for number in range(1, _REPEATS):
        run.start()
        require_same(first, run.read(), f"run {number + 1} of {_REPEATS}")
    for _ in range(2):
        require_same(first, context.subject.compile(graph).run(inputs), "the same graph, compiled again,")
    return Outcome(examples=_REPEATS + 2)


def _threads(context: Context, case: OpCase, dtype: DType) -> Outcome:
    """Run one executable in sixteen threads at once, each with its own inputs."""
    graph = case.build(dtype, 0)[0]
    compiled = context.subject.compile(graph)
    # Inputs depend on the thread's seed; the graph and its constants are those of seed 0.
    given = [case.build(dtype, number)[1] for number in range(_THREADS)]
    expected = [compiled.run(inputs) for inputs in given]

    def work(number: int) -> None:
        run = Run(compiled, given[number])
        for _ in range(_RUNS_PER_THREAD):
            run.start()
            require_same(expected[number], run.finish(), f"thread {number} of {_THREADS}")

    _in_threads(work)
    return Outcome(examples=_THREADS * _RUNS_PER_THREAD)


def _guard_page(context: Context, case: OpCase, dtype: DType) -> Outcome:
    """Require that nothing is accessed past the end of a tensor, where a guard page begins."""
    graph, inputs = case.build(dtype, context.settings.seed)
    run = Run(context.subject.compile(graph), inputs, PageGuardedStorage)
    run.start()
    # Not compared bit by bit with another run: the order of a sum may depend on a tensor's alignment.
    return check_outcome(graph, inputs, run.finish(), case.numerics, context.allowance)


# **** the backend as a whole ****


def _compile_repeatedly(context: Context) -> Outcome:
    """Require bounded memory when graphs are compiled, run and dropped repeatedly."""

    def compile_and_run(number: int) -> None:
        graph, inputs = large_tensor_graph(context.subject, number)
        run = Run(context.subject.compile(graph), inputs)
        run.start()
        run.finish()

    _require_bounded_memory(
        compile_and_run, _bytes_of(large_tensor_graph(context.subject, 0)[1]), "compiling, running and dropping"
    )
    return Outcome(examples=3 * _REPETITIONS)


def _run_repeatedly(context: Context) -> Outcome:
    """Require bounded memory when one executable runs repeatedly."""
    graph, inputs = large_tensor_graph(context.subject, 0)
    compiled = context.subject.compile(graph)

    def run(number: int) -> None:
        compiled.run(inputs)

    _require_bounded_memory(run, _bytes_of(inputs), "running")
    return Outcome(examples=3 * _REPETITIONS)


def _compile_threads(context: Context) -> Outcome:
    """Compile and run in sixteen threads at once."""
    case = supported_case(context.subject)
    graph, inputs = case.build(0)
    expected = context.subject.compile(graph).run(inputs)

    def work(number: int) -> None:
        for _ in range(_RUNS_PER_THREAD):
            require_same(expected, context.subject.compile(graph).run(inputs), f"thread {number} of {_THREADS}")

    _in_threads(work)
    return Outcome(examples=_THREADS * _RUNS_PER_THREAD)


def _session_threads(context: Context) -> Outcome:
    """Run one session in sixteen threads at once; no output may change after its run."""
    case = supported_case(context.subject)
    graph = case.build(0)[0]
    label = context.subject.device.label
    given = [dict(zip((v.name for v in graph.inputs), case.build(number)[1])) for number in range(_THREADS)]
    with backend_call(f"a session on {label!r}"):
        session = load(graph, label, fallback="never", optimize=False, plugins=context.subject.plugins)
        expected = [list(session.run(inputs).values()) for inputs in given]

    def work(number: int) -> None:
        with backend_call(f"a session on {label!r}, run by {_THREADS} threads,"):
            kept = [session.run(given[number]) for _ in range(_RUNS_PER_THREAD)]
        for outputs in kept:
            require_same(expected[number], list(outputs.values()), f"thread {number} of {_THREADS}, in a session,")

    _in_threads(work)
    return Outcome(examples=_THREADS * _RUNS_PER_THREAD)


# **** helpers ****


def _in_threads(work: Callable[[int], None]) -> None:
    """Run ``work`` in all threads at once, and raise the first exception of any of them."""
    barrier = threading.Barrier(_THREADS)
    failures: list[BaseException] = []

    def run(number: int) -> None:
        try:
            barrier.wait()
            work(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(_THREADS)]
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


def _require_bounded_memory(work: Callable[[int], None], size: int, what: str) -> None:
    """Call ``work`` repeatedly; memory may grow in the first third (caches), and must hardly grow after it."""
    numbers = iter(range(1_000_000))

    def repeat() -> tuple[int, int]:
        for _ in range(_REPETITIONS):
            work(next(numbers))
        gc.collect()
        return tracemalloc.get_traced_memory()[0], _resident_bytes()

    tracemalloc.start()
    try:
        repeat()
        traced, resident = repeat()
        traced_then, resident_then = repeat()
    finally:
        tracemalloc.stop()
    allowed = int(_GROWTH_SHARE * _REPETITIONS * size)
    for kind, growth in (
        ("Python objects and arrays", traced_then - traced),
        ("the process", resident_then - resident),
    ):
        if growth > allowed:
            raise Failure(
                f"{what} {_REPETITIONS} times more let {kind} grow by {growth / 2**20:.1f} MiB (tensors of "
                f"{size / 2**10:.0f} KiB each time); runs must not keep memory, and caches need a limit"
            )


def _resident_bytes() -> int:
    """Return the resident memory of the process in bytes; the peak on systems that report only the peak."""
    if sys.platform == "win32":
        raise Skipped("the memory of the process is not known on Windows")
    statistics = Path("/proc/self/statm")
    if statistics.exists():
        return int(statistics.read_text(encoding="ascii").split()[1]) * mmap.PAGESIZE
    import resource  # not available on Windows

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _bytes_of(arrays: Sequence[Array]) -> int:
    return sum(a.nbytes for a in arrays)
