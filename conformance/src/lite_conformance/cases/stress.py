"""Level 5: many threads, many runs, many compilations, and guard pages directly behind tensors.

Guard zones, poisoned outputs and the comparison of inputs are part of every run of every level. This level repeats
runs, so that rare errors occur.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from lite_conformance.cases import stress_memory, stress_threads
from lite_conformance.cases.case import Case, Context
from lite_conformance.cases.op_cases import OpCase, OpTable
from lite_conformance.cases.plugins.brought import every_table
from lite_conformance.cases.stress_threads import THREADS, in_threads
from lite_conformance.cases.tensors import Array
from lite_conformance.drive.guard_pages import PageGuardedStorage
from lite_conformance.drive.guards import GuardedStorage
from lite_conformance.drive.subject import Run, require_same
from lite_conformance.judge.checks import check_expected
from lite_conformance.judge.outcome import Failure, Outcome, Skipped
from lite_core.backend import Options
from lite_core.ir import DType, Graph, TensorType
from lite_core.memory import HostMemory

__all__ = ["cases"]

_REPEATS = 100
# Executables of an operator that threads start to run at once, and runs of each in each thread.
_FRESH_EXECUTABLES, _RUNS_PER_THREAD = 6, 2
# Numbers of threads that one run is divided among, and runs of which the bits are compared.
_THREAD_COUNTS, _PARALLEL_REPEATS = (2, 3, 7), 5


def cases() -> Iterator[Case]:
    """Yield the cases of level 5: four for each operator, and some for the backend as a whole."""
    for table in every_table():
        representative = _representative(table)
        if representative is None:
            continue
        case, dtype = representative
        op = table.definition.qualified_name
        for name, check in (("deterministic", _deterministic), ("threads", _threads), ("guard-page", _guard_page)):
            run = partial(check, case=case, dtype=dtype)
            yield Case(f"stress[{name},{op}]", 5, "stress", run, op, dtype.value, timeout_factor=3)
        run = partial(_parallel, case=_largest(table, dtype), dtype=dtype)
        yield Case(f"stress[parallel,{op}]", 5, "stress", run, op, dtype.value, timeout_factor=3)
    for check_all in (*stress_memory.CHECKS, *stress_threads.CHECKS):
        name = check_all.__name__.strip("_").replace("_", "-")
        yield Case(f"stress[{name}]", 5, "stress", check_all, timeout_factor=5)


def _representative(table: OpTable) -> tuple[OpCase, DType] | None:
    """Return a case with non-empty run-time inputs, in float32 if the operator supports it; None if there is none."""
    for _, dtype, case in sorted(table.cases(), key=lambda c: c[1] is not DType.FLOAT32):
        sizes = [int(np.prod(t.shape)) for t in case.inputs if t is not None and not t.constant]
        if sizes and all(sizes):
            return case, dtype
    return None


def _largest(table: OpTable, dtype: DType) -> OpCase:
    """Return the case with the largest run-time input, which a backend may divide among threads."""

    def size(case: OpCase) -> int:
        return max((int(np.prod(t.shape)) for t in case.inputs if t is not None and not t.constant), default=0)

    return max((case for _, type, case in table.cases() if type is dtype), key=size)


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
    """Run new executables in sixteen threads at once, each with its own inputs; the first run is one of these."""
    graph = case.build(dtype, 0)[0]
    # Inputs depend on the thread's seed; the graph and its constants are those of seed 0.
    given = [case.build(dtype, number)[1] for number in range(THREADS)]
    reference = context.subject.compile(graph)
    expected = [reference.run(inputs) for inputs in given]
    for inputs, outputs in zip(given, expected):
        _check(context, case, graph, inputs, outputs)
    for _ in range(_FRESH_EXECUTABLES):
        compiled = context.subject.compile(graph)
        runs = [Run(compiled, inputs) for inputs in given]

        def work(number: int) -> None:
            run = runs[number]  # noqa: B023 - the threads end before the next executable is compiled
            for _ in range(_RUNS_PER_THREAD):
                run.start()
                require_same(expected[number], run.finish(), f"thread {number} of {THREADS}")

        in_threads(work)
    return Outcome(examples=THREADS * _RUNS_PER_THREAD * _FRESH_EXECUTABLES)


def _parallel(context: Context, case: OpCase, dtype: DType) -> Outcome:
    """Require right results, and the same bits in each run, when one run is divided among several threads."""
    graph, inputs = case.build(dtype, context.settings.seed)
    outcome = Outcome()
    for threads in _THREAD_COUNTS:
        compiled = context.subject.compile(graph, Options(threads=threads))
        first = compiled.run(inputs)
        try:
            outcome = _check(context, case, graph, inputs, first)
        except Failure as failure:
            failure.reason = f"{case.describe(dtype)} on {threads} threads: {failure.reason}"
            raise
        for number in range(1, _PARALLEL_REPEATS):
            what = f"{case.describe(dtype)} on {threads} threads, run {number + 1} of {_PARALLEL_REPEATS},"
            require_same(first, compiled.run(inputs), what)
    return outcome


def _guard_page(context: Context, case: OpCase, dtype: DType) -> Outcome:
    """Require that nothing is accessed past the end of a tensor or constant, where a guard page begins.

    Tensors in another memory than main memory are not guarded.
    """
    graph, inputs = case.build(dtype, context.settings.seed)
    is_main = isinstance(context.subject.memory, HostMemory)
    if not is_main and not graph.constants:
        raise Skipped(f"guard pages need main memory, the tensors are in {context.subject.memory.space!r}")
    for value, array in graph.constants.items():
        guarded = PageGuardedStorage(HostMemory(), TensorType.of_array(array))
        guarded.store(array)
        guarded.data.flags.writeable = False
        graph.constants[value] = guarded.data
    run = Run(context.subject.compile(graph), inputs, PageGuardedStorage if is_main else GuardedStorage)
    run.start()
    # Not compared bit by bit with another run: the order of a sum may depend on a tensor's alignment.
    return _check(context, case, graph, inputs, run.finish())


def _check(context: Context, case: OpCase, graph: Graph, inputs: list[Array], outputs: list[Array]) -> Outcome:
    expected = case.expect(graph, inputs)
    return check_expected(graph, inputs, outputs, expected, case.numerics, context.allowance)
