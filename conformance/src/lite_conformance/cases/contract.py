"""Level 1: buffers, life cycle, answers of ``supports`` and options, tested with operators the backend supports."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence

import numpy as np

from lite_conformance.cases import host_arrays, lifetimes, observing, restoring, saving
from lite_conformance.cases.case import Case, Context
from lite_conformance.cases.plugins.brought import every_table
from lite_conformance.cases.probe import require_well_spelt
from lite_conformance.cases.supported import supported_case, supported_cases
from lite_conformance.cases.tensors import Array, normal
from lite_conformance.drive.backend_call import backend_call
from lite_conformance.drive.guards import GuardedStorage, download
from lite_conformance.drive.subject import (
    Compiled,
    Run,
    first_difference,
    in_form_of_a_session,
    require_same,
    same_bits,
)
from lite_conformance.judge.outcome import Failure, Outcome, Refused
from lite_core.backend import (
    Buffer,
    KernelTime,
    Options,
    Partition,
    ProfilesKernels,
    TakesOptions,
    ViewsMemory,
)
from lite_core.errors import InputError
from lite_core.ir import DType, Graph, Node, SymbolicDim, TensorType
from lite_core.memory import HostMemory, read_only
from lite_core.session import load

__all__ = ["cases"]


def cases() -> Iterator[Case]:
    """Yield the cases of level 1."""
    checks = (
        _answers,
        _answers_for_unknown_shapes,
        _memory,
        _memory_view,
        _graph_unchanged,
        _runs,
        _outputs_stay,
        _storage_reused,
        _outlives_the_graph,
        _two_of_one_graph,
        _read_only_inputs,
        _member_names,
        _options,
        *saving.CHECKS,
        _session,
        _profiled_runs,
        *observing.CHECKS,
        *lifetimes.CHECKS,
        *host_arrays.CHECKS,
        *restoring.CHECKS,
    )
    for check in checks:
        yield Case(f"contract[{check.__name__.strip('_').replace('_', '-')}]", 1, "contract", check)


# **** answers ****


def _answers(context: Context) -> Outcome:
    """Require a Yes, or a No with a reason, for every operator and element type, and the same when asked again.

    Each node is asked about twice at once, and once more in reverse order after all others.
    """
    subject = context.subject
    asked: list[tuple[str, Node, list[str]]] = []
    for table in every_table():
        seen: set[DType] = set()
        for name, dtype, case in table.cases():
            if dtype in seen:
                continue
            seen.add(dtype)
            node = case.build(dtype, 0)[0].nodes[0]
            before = _snapshot(node)
            first, again = subject.refusals([node]), subject.refusals([node])
            if first != again:
                raise Failure(f"supports() answered {first or 'Yes'} for {name}, and asked again {again or 'Yes'}")
            if _snapshot(node) != before:
                raise Failure(f"supports() changed the node of {name}")
            asked.append((name, node, first))
    for name, node, first in reversed(asked):
        again = subject.refusals([node])
        if first != again:
            answers = f"{first or 'Yes'} for {name}, and after questions about other nodes {again or 'Yes'}"
            raise Failure(f"supports() answered {answers}")
    return Outcome(examples=0)


def _answers_for_unknown_shapes(context: Context) -> Outcome:
    """Require answers for symbolic sizes and for unknown ranks."""
    for table in every_table():
        for _, dtype, case in table.cases():
            graph = case.build(dtype, 0)[0]
            for unknown in (_symbolic, lambda type: type.with_shape(None)):
                for value in (*graph.inputs, *graph.outputs):
                    value.type = unknown(value.type)
                context.subject.refusals(graph.nodes)
            break
    return Outcome(examples=0)


def _symbolic(type: TensorType) -> TensorType:
    return type.with_shape(
        None if type.shape is None else tuple(SymbolicDim.named(f"n{i}") for i in range(len(type.shape)))
    )


def _snapshot(node: Node) -> str:
    values = [str(v) + str(v.type) for v in (*node.inputs, *node.outputs) if v is not None]
    return f"{node.qualified_op} {values} {sorted((k, str(a)) for k, a in node.attributes.items())}"


# **** memory ****


def _memory(context: Context) -> Outcome:
    """Require that uploads round-trip in every element type, also for empty tensors, and that downloads are copies."""
    memory = context.subject.memory
    if not isinstance(memory.space, str) or not memory.space:
        raise Failure(f"Memory.space must name the memory, is {memory.space!r}")
    random = np.random.default_rng(context.settings.seed)
    for dtype in (d for d in DType if not d.is_narrow and d is not DType.STRING):
        for shape in ((), (0, 3), (1,), (3, 5, 7)):
            array = normal(random, shape, dtype)
            with backend_call(f"the memory, with {dtype}{list(shape)},"):
                storage = memory.allocate(TensorType(dtype, shape))
            if memory.space == HostMemory.space and not isinstance(storage, np.ndarray):
                raise Failure(
                    f"the memory calls its space {memory.space!r}, which is main memory: nothing is copied to it, and "
                    f"its storage is NumPy arrays. allocate() returned {type(storage).__name__}: choose another name"
                )
            with backend_call(f"the memory, with {dtype}{list(shape)},"):
                memory.upload(read_only(array), storage)
            first = download(memory, storage)
            if not same_bits(first, array) or first.dtype != array.dtype:
                raise Failure(
                    f"{dtype}{list(shape)} came back from the memory as {first.dtype}{list(first.shape)}: {first}"
                )
            if not first.flags.writeable:
                raise Failure("download() returned a read-only array; the caller must own a writable one")
            if first.size:
                first.fill(0)
                if not same_bits(download(memory, storage), array):
                    raise Failure(f"writing to the result of download() changed the storage of {dtype}{list(shape)}")
    with backend_call("the memory"):
        array = np.ones(4, np.float32)
        one = memory.allocate(TensorType(DType.FLOAT32, (4,)))
        memory.upload(array, one)
        array.fill(7)
    if not same_bits(download(memory, one), np.ones(4, np.float32)):
        raise Failure("writing to an array after its upload() changed the storage; upload() must copy it")
    with backend_call("the memory"):
        one, other = (memory.allocate(TensorType(DType.FLOAT32, (4,))) for _ in range(2))
        memory.upload(np.ones(4, np.float32), one)
        memory.upload(np.zeros(4, np.float32), other)
    if not same_bits(download(memory, one), np.ones(4, np.float32)):
        raise Failure("two calls of allocate() gave storage that overlaps")
    return Outcome(examples=0)


def _memory_view(context: Context) -> Outcome:
    """Check storage within larger storage: the optional Memory.view(storage, offset, type)."""
    memory = context.subject.memory
    if not isinstance(memory, ViewsMemory):
        raise Refused(f"the memory {memory.space!r} has no view(); it is optional, and guard zones need it")
    storage = GuardedStorage(memory, TensorType(DType.FLOAT32, (2, 3)))
    storage.store(np.arange(6, dtype=np.float32).reshape(2, 3))
    if storage.breach():
        raise Failure(f"uploading into a view wrote outside it: {storage.breach()}")
    if not same_bits(storage.read(), np.arange(6, dtype=np.float32).reshape(2, 3)):
        raise Failure("downloading a view did not give the array that was uploaded into it")
    return Outcome(examples=0)


# **** compiling and running ****


def _graph_unchanged(context: Context) -> Outcome:
    """Require that compile() and run() do not change the graph."""
    for case in supported_cases(context.subject):
        graph, inputs = case.build(0)
        graph = in_form_of_a_session(graph)
        before = [str(graph), *map(_snapshot, graph.nodes)]
        context.subject.require(graph)
        with backend_call("compile()"):
            executable = context.subject.backend.compile(Partition("kept", graph), context.subject.device, Options())
        Compiled(context.subject, graph, executable).run(inputs)
        if [str(graph), *map(_snapshot, graph.nodes)] != before:
            raise Failure(f"compile() or run() changed the graph of {case.name}")
    return Outcome(examples=len(supported_cases(context.subject)))


def _runs(context: Context) -> Outcome:
    """Require that a compiled partition runs many times, each time on the inputs of that run."""
    for case in supported_cases(context.subject):
        graph, one = case.build(0)
        other = case.build(1)[1]
        compiled = context.subject.compile(graph)
        first = compiled.run(one)
        compiled.run(other)
        require_same(first, compiled.run(one), f"{case.name}: the same inputs, given again after others,")
        if _all_same_bits(first, compiled.run(other)) and not _all_same_bits(one, other) and _depends_on_inputs(graph):
            raise Failure(f"{case.name} gave the same outputs for different inputs")
    return Outcome(examples=4 * len(supported_cases(context.subject)))


def _depends_on_inputs(graph: Graph) -> bool:
    """Return True if different inputs must give different outputs: if all are floats, and no input is only a shape."""
    return all(v.dtype.is_floating for v in (*graph.inputs, *graph.outputs)) and graph.nodes[0].op != "ConstantOfShape"


def _outputs_stay(context: Context) -> Outcome:
    """Require that the outputs of one run do not change during another."""
    for case in supported_cases(context.subject):
        graph, one = case.build(0)
        compiled = context.subject.compile(graph)
        run = Run(compiled, one)
        run.start()
        before = run.finish()
        compiled.run(case.build(1)[1])
        require_same(before, run.read(), f"{case.name}: outputs of the first run, read after a second one,")
    return Outcome(examples=2 * len(supported_cases(context.subject)))


def _storage_reused(context: Context) -> Outcome:
    """Require the same result of a second run into the same storage, which holds the first result."""
    case = supported_case(context.subject)
    graph, inputs = case.build(0)
    run = Run(context.subject.compile(graph), inputs)
    run.start()
    first = run.finish()
    run.start()
    require_same(first, run.finish(), f"{case.name}: a second run into the same storage")
    return Outcome(examples=2)


def _outlives_the_graph(context: Context) -> Outcome:
    """Require that an executable runs after the caller has dropped the partition and another executable."""
    case = supported_case(context.subject)
    graph, inputs = case.build(0)
    compiled = context.subject.compile(graph)
    other = context.subject.compile(case.build(0)[0])
    expected = other.run(inputs)
    del other, graph
    gc.collect()
    require_same(expected, compiled.run(inputs), f"{case.name}: after another executable was dropped, a run")
    return Outcome(examples=2)


def _two_of_one_graph(context: Context) -> Outcome:
    """Require that two executables of one partition do not affect each other's results."""
    case = supported_case(context.subject)
    graph, one = case.build(0)
    other = case.build(1)[1]
    first, second = context.subject.compile(graph), context.subject.compile(graph)
    kept = Run(first, one)
    kept.start()
    before = kept.finish()
    expected = second.run(other)
    require_same(before, kept.read(), f"{case.name}: outputs of one executable, after another ran,")
    require_same(expected, first.run(other), f"{case.name}: two executables of one partition")
    return Outcome(examples=3)


def _read_only_inputs(context: Context) -> Outcome:
    """Require that a session runs on read-only input arrays."""
    case = supported_case(context.subject)
    graph, inputs = case.build(0)
    label = context.subject.device.label
    given = {v.name: read_only(a) for v, a in zip(graph.inputs, inputs)}
    with backend_call(f"a session on {label!r}, given read-only arrays,"):
        load(graph, label, fallback="never", optimize=False, plugins=context.subject.plugins).run(given)
    return Outcome()


def _member_names(context: Context) -> Outcome:
    """Require that no member of an executable looks like a misspelt optional member, which Lite would never use."""
    for case in supported_cases(context.subject):
        executable = context.subject.compile(case.build(0)[0]).executable
        require_well_spelt(executable, "executable", f"the executable of {case.name}")
    return Outcome(examples=0)


def _options(context: Context) -> Outcome:
    """Require that every option of a session is accepted, and that unknown backend options are rejected."""
    case = supported_case(context.subject)
    graph, inputs = case.build(0)
    expected = context.subject.compile(graph).run(inputs)
    many = (Options(threads=2), Options(threads=64), Options(exact=True))
    for options in many:
        _require_close(expected, context.subject.compile(graph, options).run(inputs), f"{case.name} with {options}")
    before = context.subject.compile(graph)
    for precision in ("float16", "bfloat16"):
        context.subject.compile(graph, Options(precision=precision)).run(inputs)
        others = f"an executable with {precision} was compiled"
        require_same(expected, before.run(inputs), f"{case.name}: after {others}, one that was compiled before")
        require_same(expected, context.subject.compile(graph).run(inputs), f"{case.name} in float32, after {others},")
    if isinstance(context.subject.backend, TakesOptions):
        _check_own_options(context.subject.backend)
    return Outcome(examples=len(many) + 3)


def _check_own_options(backend: TakesOptions) -> None:
    with backend_call("check_options() of no options"):
        backend.check_options({})
    with backend_call("check_options() of an unknown option, which must raise InputError,"):
        try:
            backend.check_options({"no_such_option": 1})
        except InputError:
            return
    raise Failure("check_options() accepted an unknown option (no_such_option); it must raise InputError")


def _profiled_runs(context: Context) -> Outcome:
    """Require of the optional run_profiled() the results of run(), and the time of each kernel."""
    for case in supported_cases(context.subject):
        graph, inputs = case.build(0)
        compiled = context.subject.compile(graph)
        expected = compiled.run(inputs)
        if not isinstance(compiled.executable, ProfilesKernels):
            raise Refused("profiling is optional: the executable has no run_profiled()")
        profiled = _Profiled(compiled.executable)
        outputs = Compiled(context.subject, compiled.graph, profiled).run(inputs)
        require_same(expected, outputs, f"{case.name}: run_profiled()")
        if not isinstance(profiled.times, Sequence) or not all(isinstance(t, KernelTime) for t in profiled.times):
            raise Failure(f"{case.name}: run_profiled() must give a list of KernelTime, gave {profiled.times!r}")
        wrong = [time for time in profiled.times if not time.seconds >= 0]
        if wrong:
            raise Failure(f"{case.name}: run_profiled() gave {wrong[0].seconds!r} seconds for kernel {wrong[0].name!r}")
    return Outcome(examples=2 * len(supported_cases(context.subject)))


class _Profiled:
    """An executable whose ``run`` is the ``run_profiled`` of another."""

    def __init__(self, executable: ProfilesKernels) -> None:
        self._executable = executable
        self.scratch_bytes: int = executable.scratch_bytes  # type: ignore[attr-defined]
        self.times: object = None

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        self.times = self._executable.run_profiled(inputs, outputs, scratch)


# **** a session ****


def _session(context: Context) -> Outcome:
    """Require that a session restricted to this device runs on it, and that the caller owns its outputs."""
    case = supported_case(context.subject)
    graph, inputs = case.build(0)
    label = context.subject.device.label
    with backend_call(f"a session on {label!r}"):
        session = load(graph, label, fallback="never", optimize=False, plugins=context.subject.plugins)
        given = {v.name: a for v, a in zip(graph.inputs, inputs)}
        first = session.run(given)
        kept = {name: array.copy() for name, array in first.items()}
        again = session.run(given)
    for name, array in first.items():
        if not array.flags.writeable:
            raise Failure(f"output {name!r} of a session is read-only; the caller must own it")
        again[name].fill(0)
        if not same_bits(array, kept[name]):
            raise Failure(f"output {name!r} of a session changed when a later one was written")
    return Outcome(examples=2)


def _all_same_bits(one: Sequence[Array], other: Sequence[Array]) -> bool:
    return all(same_bits(a, b) for a, b in zip(one, other))


def _require_close(one: Sequence[Array], other: Sequence[Array], what: str) -> None:
    """Raise a Failure unless the results are equal up to rounding: threads may split sums differently."""
    for first, second in zip(one, other):
        if not np.allclose(first.astype(np.float64), second.astype(np.float64), 1e-3, 1e-3, equal_nan=True):
            raise Failure(f"{what} gave another result: {first_difference(first, second)}")
