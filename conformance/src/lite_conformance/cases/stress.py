"""Level 5: many threads, many runs, many lives, and memory that ends where a tensor ends.

Guard zones, poisoned outputs and the comparison of inputs are part of every run of every level; here the same
runs are repeated until what goes wrong seldom goes wrong.
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
from lite_conformance.cases.supported import bulk, supported_case
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
_LIVES = 60
# A quarter of what a leak of one tensor for each life would take.
_GROWTH_SHARE = 0.25


def cases() -> Iterator[Case]:
    """The cases of level 5: three for each operator, and some for the backend as a whole."""
    for table in all_tables():
        found = _representative(table)
        if found is None:
            continue
        case, dtype = found
        op = table.definition.qualified_name
        for name, check in (("deterministic", _deterministic), ("threads", _threads), ("fence", _fence)):
            run = partial(check, case=case, dtype=dtype)
            yield Case(f"stress[{name},{op}]", 5, "stress", run, op, dtype.value, patience=3)
    for check_all in (_lives, _runs, _compile_threads, _session_threads):
        name = check_all.__name__.strip("_").replace("_", "-")
        yield Case(f"stress[{name}]", 5, "stress", check_all, patience=5)


def _representative(table: OpTable) -> tuple[OpCase, DType] | None:
    """A case in float32 where the operator has it, with inputs at run time and something to compute."""
    for _, dtype, case in sorted(table.cases(), key=lambda c: c[1] is not DType.FLOAT32):
        sizes = [int(np.prod(t.shape)) for t in case.inputs if t is not None and not t.constant]
        if sizes and all(sizes):
            return case, dtype
    return None


# **** one operator ****


def _deterministic(context: Context, case: OpCase, dtype: DType) -> Outcome:
    """The same input gives the same bits, a hundred times, and when it is compiled again."""
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
    """One executable, run by sixteen threads at once, each with inputs of its own."""
    graph = case.build(dtype, 0)[0]
    compiled = context.subject.compile(graph)
    # The inputs go with the seed; the constants of the graph stay those of seed 0.
    given = [case.build(dtype, number)[1] for number in range(_THREADS)]
    expected = [compiled.run(inputs) for inputs in given]

    def work(number: int) -> None:
        run = Run(compiled, given[number])
        for _ in range(_RUNS_PER_THREAD):
            run.start()
            require_same(expected[number], run.finish(), f"thread {number} of {_THREADS}")

    _in_threads(work)
    return Outcome(examples=_THREADS * _RUNS_PER_THREAD)


def _fence(context: Context, case: OpCase, dtype: DType) -> Outcome:
    """Nothing is read or written past the end of a tensor: the next byte is not this process's to touch."""
    graph, inputs = case.build(dtype, context.settings.seed)
    run = Run(context.subject.compile(graph), inputs, PageGuardedStorage)
    run.start()
    # Not the bits of another run: kernels may sum in an order that depends on where a tensor begins.
    return check_outcome(graph, inputs, run.finish(), case.numerics, context.allowance)


# **** the backend as a whole ****


def _lives(context: Context) -> Outcome:
    """Compiling, running and dropping, again and again, takes no more memory than doing it a few times."""

    def live(number: int) -> None:
        graph, inputs = bulk(context.subject, number)
        run = Run(context.subject.compile(graph), inputs)
        run.start()
        run.finish()

    _require_bounded(live, _size(bulk(context.subject, 0)[1]), "compiling, running and dropping")
    return Outcome(examples=3 * _LIVES)


def _runs(context: Context) -> Outcome:
    """Running one executable again and again takes no more memory than running it a few times."""
    graph, inputs = bulk(context.subject, 0)
    compiled = context.subject.compile(graph)

    def run(number: int) -> None:
        compiled.run(inputs)

    _require_bounded(run, _size(inputs), "running")
    return Outcome(examples=3 * _LIVES)


def _compile_threads(context: Context) -> Outcome:
    """Sixteen threads compile and run at once."""
    found = supported_case(context.subject)
    graph, inputs = found.build(0)
    expected = context.subject.compile(graph).run(inputs)

    def work(number: int) -> None:
        for _ in range(_RUNS_PER_THREAD):
            require_same(expected, context.subject.compile(graph).run(inputs), f"thread {number} of {_THREADS}")

    _in_threads(work)
    return Outcome(examples=_THREADS * _RUNS_PER_THREAD)


def _session_threads(context: Context) -> Outcome:
    """One session, run by sixteen threads at once; every output is its caller's own."""
    found = supported_case(context.subject)
    graph = found.build(0)[0]
    label = context.subject.device.label
    given = [dict(zip((v.name for v in graph.inputs), found.build(number)[1])) for number in range(_THREADS)]
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
    """Run ``work`` in every thread at once; raises what one raised."""
    together = threading.Barrier(_THREADS)
    failures: list[BaseException] = []

    def run(number: int) -> None:
        try:
            together.wait()
            work(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(_THREADS)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # threads that meet seldom would seldom disturb each other
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    for failure in failures:
        raise failure


def _require_bounded(work: Callable[[int], None], size: int, what: str) -> None:
    """Do something often; memory may grow in the first third (caches), and hardly after it."""
    numbers = iter(range(1_000_000))

    def some() -> tuple[int, int]:
        for _ in range(_LIVES):
            work(next(numbers))
        gc.collect()
        return tracemalloc.get_traced_memory()[0], _resident()

    tracemalloc.start()
    try:
        some()
        traced, resident = some()
        traced_then, resident_then = some()
    finally:
        tracemalloc.stop()
    allowed = int(_GROWTH_SHARE * _LIVES * size)
    for kind, growth in (
        ("Python objects and arrays", traced_then - traced),
        ("the process", resident_then - resident),
    ):
        if growth > allowed:
            raise Failure(
                f"{what} {_LIVES} times more let {kind} grow by {growth / 2**20:.1f} MiB (tensors of "
                f"{size / 2**10:.0f} KiB each time); nothing of a run may be kept, and caches need a bound"
            )


def _resident() -> int:
    """Bytes of memory that the process has; where only the peak is known, the peak."""
    if sys.platform == "win32":
        raise Skipped("the memory of the process is not known on Windows")
    statistics = Path("/proc/self/statm")
    if statistics.exists():
        return int(statistics.read_text(encoding="ascii").split()[1]) * mmap.PAGESIZE
    import resource  # Windows has none

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _size(arrays: Sequence[Array]) -> int:
    return sum(a.nbytes for a in arrays)
