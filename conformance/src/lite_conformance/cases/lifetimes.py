"""The cases of level 1 about what outlives what: buffers, constants, graphs, executables and threads."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import numpy as np

from lite_conformance.cases.case import Context
from lite_conformance.cases.side_by_side import SideBySide, weighted_graphs
from lite_conformance.cases.supported import supported_cases
from lite_conformance.cases.tensors import Array
from lite_conformance.drive.backend_call import backend_call
from lite_conformance.drive.guards import POISON, GuardedStorage, Storage
from lite_conformance.drive.subject import Compiled, Run, require_same, same_bits
from lite_conformance.drive.watched import LentBytes, LentStorage
from lite_conformance.judge.checks import Allowance, check_outcome
from lite_conformance.judge.outcome import Failure, Outcome, Refused
from lite_conformance.judge.tolerances import GRAPH
from lite_core.backend import Memory, Options, Partition
from lite_core.builder import GraphBuilder
from lite_core.ir import Graph, TensorType
from lite_core.ops.infer import infer_graph
from lite_core.session import load

__all__ = ["CHECKS"]

Result = TypeVar("Result")

# Graphs that are compiled and dropped one after another, so that new arrays get the addresses of old ones.
_LIVES = 8


def _buffers_not_kept(context: Context) -> Outcome:
    """Require that nothing refers to inputs, outputs and scratch memory after a run."""
    for case in supported_cases(context.subject):
        graph, inputs = case.build(0)
        compiled = context.subject.compile(graph)
        compiled.run(inputs)
        run = Run(compiled, inputs, LentStorage, LentStorage)
        run.start()
        run.finish()
        storages = run.storages()
        del run
        for what, storage in storages.items():
            if isinstance(storage, LentStorage) and storage.is_kept():
                raise Failure(f"{case.name}: after run(), the backend still refers to the storage of {what}")
    return Outcome(examples=2 * len(supported_cases(context.subject)))


def _old_buffers_overwritten(context: Context) -> Outcome:
    """Require right results when the buffers of an earlier run are overwritten, which the next run must not touch."""
    for case in supported_cases(context.subject):
        graph, one = case.build(0)
        other = case.build(1)[1]
        expected = context.subject.compile(graph).run(other)
        compiled = context.subject.compile(graph)
        old = Run(compiled, one)
        old.start()
        old.finish()
        for storage in old.storages().values():
            storage.poison()
        require_same(expected, compiled.run(other), f"{case.name}: a run after one whose buffers were overwritten")
        for what, storage in old.storages().items():
            if (storage.read().reshape(-1).view(np.uint8) != POISON).any() or storage.breach():
                raise Failure(f"{case.name}: a run wrote to the {what} of an earlier one")
    return Outcome(examples=3 * len(supported_cases(context.subject)))


def _inputs_rewritten(context: Context) -> Outcome:
    """Require that each run reads its inputs anew and overwrites its outputs: two sets of buffers with new contents."""
    for case in supported_cases(context.subject):
        graph, *_ = case.build(0)
        given = [case.build(seed)[1] for seed in range(3)]
        expected = [context.subject.compile(graph).run(inputs) for inputs in given]
        compiled = context.subject.compile(graph)
        runs = [Run(compiled, given[0]), Run(compiled, given[1])]
        for number, turn in ((0, 0), (0, 1), (1, 1), (1, 0), (0, 2), (1, 2), (0, 0), (1, 1), (0, 1)):
            runs[number].store(given[turn])
            runs[number].start(poison=number == turn == 0)  # later runs find the results of earlier ones
            what = f"{case.name}: a run on buffers whose contents were replaced"
            require_same(expected[turn], runs[number].finish(), what)
    return Outcome(examples=12 * len(supported_cases(context.subject)))


def _one_array_twice(context: Context) -> Outcome:
    """Require right results when two inputs are in the same storage, and when a session gets one array for both."""
    graph = _two_operands(context)
    x = np.random.default_rng(context.settings.seed).standard_normal((5, 5)).astype(np.float32)
    compiled = context.subject.compile(graph)
    run = Run(compiled, [x, x], _sharing_the_first(2))
    run.start()
    check_outcome(graph, [x, x], run.finish(), GRAPH, context.allowance)
    label = context.subject.device.label
    with backend_call(f"a session on {label!r}, given one array for two inputs,"):
        session = load(graph, label, fallback="never", optimize=False, plugins=context.subject.plugins)
        outputs = session.run({v.name: x for v in graph.inputs})
    return check_outcome(graph, [x, x], [outputs[v.name] for v in graph.outputs], GRAPH, context.allowance)


def _two_operands(context: Context) -> Graph:
    """Return a graph with two inputs of the same type, of the first of a few operators that the backend supports."""
    reasons = []
    for op in ("Sub", "Add", "Mul", "MatMul", "Max", "Div"):
        builder = GraphBuilder("two_operands")
        operands = [builder.input(name, "float32", (5, 5)) for name in ("a", "b")]
        builder.output(builder.add(op, operands), "y")
        graph = builder.build()
        refusals = context.subject.refusals(graph.nodes)
        if not refusals:
            return graph
        reasons += refusals
    raise Refused(reasons[0])


def _sharing_the_first(count: int) -> Callable[[Memory, TensorType], Storage]:
    """Return a maker of storage that returns the same storage for the first ``count`` tensors."""
    made: list[Storage] = []

    def make(memory: Memory, type: TensorType) -> Storage:
        made.append(made[0] if 0 < len(made) < count else GuardedStorage(memory, type))
        return made[-1]

    return make


def _outputs_outlive_the_executable(context: Context) -> Outcome:
    """Require that outputs stay when their executable is gone and another was compiled."""
    for case in supported_cases(context.subject):
        graph, inputs = case.build(0)
        compiled = context.subject.compile(graph)
        run = Run(compiled, inputs)
        run.start()
        run.finish()
        storages = run.storages()
        before = {what: storage.read() for what, storage in storages.items()}
        del compiled, run
        gc.collect(1)
        context.subject.compile(graph).run(case.build(1)[1])
        for what, storage in storages.items():
            if not same_bits(before[what], storage.read()):
                raise Failure(f"{case.name}: the {what} of a run changed after its executable was dropped")
    return Outcome(examples=2 * len(supported_cases(context.subject)))


# **** constants ****


def _constants_outlive_the_graph(context: Context) -> Outcome:
    """Require that an executable refers to the constants that it reads, instead of only noting their addresses."""
    for op, graph, inputs in weighted_graphs(context.subject, 0):
        expected = context.subject.compile(graph).run(inputs)
        compiled, lent = _compiled_with_lent_constants(context, graph)
        for constant in lent:
            if not constant.is_used():
                constant.overwrite()
        require_same(expected, compiled.run(inputs), f"{op}: after its graph was dropped, a run")
    return Outcome(examples=2)


def _compiled_with_lent_constants(context: Context, graph: Graph) -> tuple[Compiled, list[LentBytes]]:
    """Compile a graph with constants in lent memory, to which only the backend can refer afterwards."""
    graph = graph.copy()
    infer_graph(graph)
    kept = graph.copy()
    lent = []
    for value, array in graph.constants.items():
        memory = LentBytes(array.itemsize + array.nbytes)
        assert memory.lent is not None
        copy = memory.lent[array.itemsize :].view(array.dtype).reshape(array.shape)  # aligned to elements, not more
        copy[...] = array
        copy.flags.writeable = False
        graph.constants[value] = copy
        memory.lent = None
        lent.append(memory)
    with backend_call("compile()"):
        executable = context.subject.backend.compile(Partition("lent", graph), context.subject.device, Options())
    return Compiled(context.subject, kept, executable), lent


def _other_executable_dropped(context: Context) -> Outcome:
    """Require the same results of one of two executables of a graph with constants, after the other was dropped."""
    graphs = weighted_graphs(context.subject, 0)
    for op, graph, inputs in graphs:
        other, kept = context.subject.compile(graph), context.subject.compile(graph)
        expected = other.run(inputs)
        require_same(expected, kept.run(inputs), f"{op}: the second executable of a graph")
        del other
        gc.collect(1)
        require_same(expected, kept.run(inputs), f"{op}: after another executable of the graph was dropped, a run")
    return Outcome(examples=3 * len(graphs))


def _constants_of_dropped_graphs(context: Context) -> Outcome:
    """Require right results for new constants, which get the addresses and identities of those of dropped graphs."""
    count = 0
    for number in range(_LIVES):
        for op, graph, inputs in weighted_graphs(context.subject, number):
            compiled = context.subject.compile(graph)
            outputs = compiled.run(inputs)
            _check(graph, inputs, outputs, f"{op} with new constants, after {number} dropped graphs")
            count += 1
            del graph, compiled
        gc.collect(1)
    return Outcome(examples=count)


def _other_constants(context: Context) -> Outcome:
    """Require right results of executables that differ only in their constants, compiled before any of them runs."""
    graphs = [weighted_graphs(context.subject, seed) for seed in range(3)]
    compiled = [[context.subject.compile(graph) for _, graph, _ in row] for row in graphs]
    for turn in (0, 1, 2, 0):
        for executable, (op, graph, inputs) in zip(compiled[turn], graphs[turn]):
            what = f"{op}, one of three executables that differ in constants,"
            _check(graph, inputs, executable.run(inputs), what)
    return Outcome(examples=4 * len(graphs[0]))


def _executables_side_by_side(context: Context) -> Outcome:
    """Require right results of executables of different graphs that run in turn, also in reverse order."""
    graphs = [SideBySide(context.subject, seed) for seed in (0, 1)]
    cases = [(case, *case.build(0)) for case in supported_cases(context.subject)]
    compiled = [context.subject.compile(graph) for _, graph, _ in cases]
    both = [context.subject.compile(one.graph) for one in graphs]
    expected = [executable.run(inputs) for executable, (_, _, inputs) in zip(compiled, cases)]
    for order in (1, -1, 1):
        for one, executable in list(zip(graphs, both))[::order]:
            one.check(executable.run(one.inputs), "one of several executables that run in turn")
        for (case, _, inputs), executable, before in list(zip(cases, compiled, expected))[::order]:
            require_same(before, executable.run(inputs), f"{case.name}: the same inputs, after other executables ran,")
    return Outcome(examples=3 * (len(graphs) + len(cases)))


# **** threads ****


def _other_threads(context: Context) -> Outcome:
    """Require the same results of an executable that is compiled in a thread that has ended, and runs in others."""
    for case in supported_cases(context.subject):
        graph, inputs = case.build(0)
        expected = context.subject.compile(graph).run(inputs)
        compiled = _in_a_thread(partial(context.subject.compile, graph))
        for _ in range(2):
            outputs = _in_a_thread(partial(compiled.run, inputs))
            require_same(expected, outputs, f"{case.name}: compiled in one thread and run in another,")
        require_same(expected, compiled.run(inputs), f"{case.name}: compiled in a thread that has ended,")
    return Outcome(examples=4 * len(supported_cases(context.subject)))


def _arithmetic_unchanged(context: Context) -> Outcome:
    """Require that the calling thread still rounds to nearest and computes subnormal numbers, after each call."""
    before = _sample_of_arithmetic()
    for case in supported_cases(context.subject):
        graph, inputs = case.build(0)
        compiled = context.subject.compile(graph)
        _require_arithmetic(before, "compile()")
        compiled.run(inputs)
        _require_arithmetic(before, "run()")
    return Outcome(examples=len(supported_cases(context.subject)))


def _require_arithmetic(before: bytes, what: str) -> None:
    if _sample_of_arithmetic() != before:
        raise Failure(
            f"{what} changed the arithmetic of the thread that called it: the rounding mode, or subnormal numbers are "
            "zero; set such modes in threads of your own, or restore them"
        )


def _sample_of_arithmetic() -> bytes:
    """Return the bits of results that depend on the rounding mode, and on whether subnormal numbers are zero."""
    one, three, tiny = (np.full(8, number, np.float32) for number in (1, 3, 2.0**-126))
    return b"".join(a.tobytes() for a in (one / three, -one / three, tiny / three, one + tiny, one - tiny))


def _in_a_thread(work: Callable[[], Result]) -> Result:
    """Return what a function returns in a new thread, or raise what it raises there."""
    results: list[Result] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    for failure in failures:
        raise failure
    return results[0]


def _check(graph: Graph, inputs: Sequence[Array], outputs: Sequence[Array], what: str) -> None:
    try:
        check_outcome(graph, inputs, outputs, GRAPH, Allowance())
    except Failure as failure:
        failure.reason = f"{what}: {failure.reason}"
        failure.replay = None  # a script of one run would not repeat it
        raise


CHECKS: Sequence[Callable[[Context], Outcome]] = (
    _buffers_not_kept,
    _old_buffers_overwritten,
    _inputs_rewritten,
    _one_array_twice,
    _outputs_outlive_the_executable,
    _constants_outlive_the_graph,
    _other_executable_dropped,
    _constants_of_dropped_graphs,
    _other_constants,
    _executables_side_by_side,
    _other_threads,
    _arithmetic_unchanged,
)
