"""The cases of level 5 about memory: compiling, running and restoring many times must not let it grow."""

from __future__ import annotations

import gc
import mmap
import sys
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path

from lite_conformance.cases.case import Context
from lite_conformance.cases.supported import large_tensor_graph
from lite_conformance.cases.tensors import Array
from lite_conformance.drive.saved_state import restore, save
from lite_conformance.drive.subject import Run
from lite_conformance.judge.outcome import Failure, Outcome, Skipped

__all__ = ["CHECKS"]

_REPETITIONS = 60
# Allowed growth, as a share of the memory that a leak of one tensor per repetition would take.
_GROWTH_SHARE = 0.25


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


def _restore_repeatedly(context: Context) -> Outcome:
    """Require bounded memory when executables are restored from the same pieces, run and dropped repeatedly."""
    graph, inputs = large_tensor_graph(context.subject, 0)
    saved = save(context.subject.compile(graph))

    def restore_and_run(number: int) -> None:
        restore(saved).run(inputs)

    _require_bounded_memory(restore_and_run, _bytes_of(inputs), "restoring, running and dropping")
    return Outcome(examples=3 * _REPETITIONS)


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


CHECKS: Sequence[Callable[[Context], Outcome]] = (_compile_repeatedly, _run_repeatedly, _restore_repeatedly)
