"""Level 1: buffers, life cycle, answers and options, on whatever operators the backend has."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence

import numpy as np

from lite_conformance.cases.case import Case, Context
from lite_conformance.cases.operators import all_tables
from lite_conformance.cases.probe import require_well_spelt
from lite_conformance.cases.saving import damaged_save, save_and_restore
from lite_conformance.cases.supported import supported_case, supported_cases
from lite_conformance.cases.tensors import Array, normal
from lite_conformance.drive.backend_call import backend_call
from lite_conformance.drive.guards import GuardedStorage, download
from lite_conformance.drive.subject import Compiled, Run, first_difference, require_same, same_bits
from lite_conformance.judge.outcome import Failure, Outcome, Refused
from lite_core.backend import Options, Partition, TakesOptions, ViewsMemory
from lite_core.errors import InputError
from lite_core.ir import DType, Graph, Node, SymbolicDim, TensorType
from lite_core.memory import read_only
from lite_core.ops.infer import infer_graph
from lite_core.session import load

__all__ = ["cases"]


def cases() -> Iterator[Case]:
    """The cases of level 1."""
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
        save_and_restore,
        damaged_save,
        _session,
    )
    for check in checks:
        yield Case(f"contract[{check.__name__.strip('_').replace('_', '-')}]", 1, "contract", check)


# **** answers ****


def _answers(context: Context) -> Outcome:
    """Every operator in every element type gets a Yes, or a No with a reason; asked again, the same."""
    subject = context.subject
    for table in all_tables():
        seen: set[DType] = set()
        for name, dtype, case in table.cases():
            if dtype in seen:
                continue
            seen.add(dtype)
            node = case.build(dtype, 0)[0].nodes[0]
            before = _written_down(node)
            first, again = subject.refusals([node]), subject.refusals([node])
            if first != again:
                raise Failure(f"supports() answered {first or 'Yes'} for {name}, and asked again {again or 'Yes'}")
            if _written_down(node) != before:
                raise Failure(f"supports() changed the node of {name}")
    return Outcome(examples=0)


def _answers_for_unknown_shapes(context: Context) -> Outcome:
    """Sizes that are symbols, and ranks that nobody knows, are answered as well."""
    for table in all_tables():
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


def _written_down(node: Node) -> str:
    values = [str(v) + str(v.type) for v in (*node.inputs, *node.outputs) if v is not None]
    return f"{node.qualified_op} {values} {sorted((k, str(a)) for k, a in node.attributes.items())}"


# **** memory ****


def _memory(context: Context) -> Outcome:
    """What is uploaded comes back, in every element type, empty and scalar too; a download is the caller's own."""
    memory = context.subject.memory
    if not isinstance(memory.space, str) or not memory.space:
        raise Failure(f"Memory.space must name the memory, is {memory.space!r}")
    random = np.random.default_rng(context.settings.seed)
    for dtype in (d for d in DType if not d.is_narrow):
        for shape in ((), (0, 3), (1,), (3, 5, 7)):
            array = normal(random, shape, dtype)
            with backend_call(f"the memory, with {dtype}{list(shape)},"):
                storage = memory.allocate(TensorType(dtype, shape))
                memory.upload(read_only(array), storage)
            first = download(memory, storage)
            if not same_bits(first, array) or first.dtype != array.dtype:
                raise Failure(
                    f"{dtype}{list(shape)} came back from the memory as {first.dtype}{list(first.shape)}: {first}"
                )
            if not first.flags.writeable:
                raise Failure("what download() gave cannot be written; the caller owns it")
            if first.size:
                first.fill(0)
                if not same_bits(download(memory, storage), array):
                    raise Failure(f"writing to what download() gave changed the storage of {dtype}{list(shape)}")
    with backend_call("the memory"):
        one, other = (memory.allocate(TensorType(DType.FLOAT32, (4,))) for _ in range(2))
        memory.upload(np.ones(4, np.float32), one)
        memory.upload(np.zeros(4, np.float32), other)
    if not same_bits(download(memory, one), np.ones(4, np.float32)):
        raise Failure("two calls of allocate() gave storage that overlaps")
    return Outcome(examples=0)


def _memory_view(context: Context) -> Outcome:
    """Storage within larger storage: the optional Memory.view(storage, offset, type)."""
    memory = context.subject.memory
    if not isinstance(memory, ViewsMemory):
        raise Refused(f"the memory {memory.space!r} has no view(); it is optional, and guard zones need it")
    storage = GuardedStorage(memory, TensorType(DType.FLOAT32, (2, 3)))
    storage.fill(np.arange(6, dtype=np.float32).reshape(2, 3))
    if storage.breach():
        raise Failure(f"uploading into a view wrote outside it: {storage.breach()}")
    if not same_bits(storage.read(), np.arange(6, dtype=np.float32).reshape(2, 3)):
        raise Failure("what was uploaded into a view did not come back from it")
    return Outcome(examples=0)


# **** compiling and running ****


def _graph_unchanged(context: Context) -> Outcome:
    """compile() and run() leave the graph they were given as it is."""
    for found in supported_cases(context.subject):
        graph, inputs = found.build(0)
        infer_graph(graph)
        before = [str(graph), *map(_written_down, graph.nodes)]
        context.subject.require(graph)
        with backend_call("compile()"):
            executable = context.subject.backend.compile(Partition("kept", graph), context.subject.device, Options())
        Compiled(context.subject, graph, executable).run(inputs)
        if [str(graph), *map(_written_down, graph.nodes)] != before:
            raise Failure(f"compile() or run() changed the graph of {found.name}")
    return Outcome(examples=len(supported_cases(context.subject)))


def _runs(context: Context) -> Outcome:
    """A compiled partition runs many times, each time on what it is given then."""
    for found in supported_cases(context.subject):
        graph, one = found.build(0)
        other = found.build(1)[1]
        compiled = context.subject.compile(graph)
        first = compiled.run(one)
        compiled.run(other)
        require_same(first, compiled.run(one), f"{found.name}: the same inputs, given again after others,")
        if _same(first, compiled.run(other)) and not _same(one, other) and _depends_on_inputs(graph):
            raise Failure(f"{found.name} gave the same outputs for different inputs")
    return Outcome(examples=4 * len(supported_cases(context.subject)))


def _depends_on_inputs(graph: Graph) -> bool:
    """Float results of different random floats differ; results that are shapes or comparisons may not."""
    return all(v.dtype.is_floating for v in (*graph.inputs, *graph.outputs)) and graph.nodes[0].op != "ConstantOfShape"


def _outputs_stay(context: Context) -> Outcome:
    """What one run has put into its outputs does not change when another runs."""
    for found in supported_cases(context.subject):
        graph, one = found.build(0)
        compiled = context.subject.compile(graph)
        run = Run(compiled, one)
        run.start()
        before = run.finish()
        compiled.run(found.build(1)[1])
        require_same(before, run.read(), f"{found.name}: outputs of the first run, looked at after a second one,")
    return Outcome(examples=2 * len(supported_cases(context.subject)))


def _storage_reused(context: Context) -> Outcome:
    """Running again into the same storage, which holds the last result, gives the same."""
    found = supported_case(context.subject)
    graph, inputs = found.build(0)
    run = Run(context.subject.compile(graph), inputs)
    run.start()
    first = run.finish()
    run.start()
    require_same(first, run.finish(), f"{found.name}: a second run into the same storage")
    return Outcome(examples=2)


def _outlives_the_graph(context: Context) -> Outcome:
    """An executable runs after the caller has dropped the partition, and after another executable has died."""
    found = supported_case(context.subject)
    graph, inputs = found.build(0)
    compiled = context.subject.compile(graph)
    other = context.subject.compile(found.build(0)[0])
    expected = other.run(inputs)
    del other, graph
    gc.collect()
    require_same(expected, compiled.run(inputs), f"{found.name}: after another executable was dropped, a run")
    return Outcome(examples=2)


def _two_of_one_graph(context: Context) -> Outcome:
    """Two executables of one partition do not share anything that shows."""
    found = supported_case(context.subject)
    graph, one = found.build(0)
    other = found.build(1)[1]
    first, second = context.subject.compile(graph), context.subject.compile(graph)
    kept = Run(first, one)
    kept.start()
    before = kept.finish()
    expected = second.run(other)
    require_same(before, kept.read(), f"{found.name}: outputs of one executable, after another ran,")
    require_same(expected, first.run(other), f"{found.name}: two executables of one partition")
    return Outcome(examples=3)


def _read_only_inputs(context: Context) -> Outcome:
    """Inputs of the model arrive as arrays that cannot be written."""
    found = supported_case(context.subject)
    graph, inputs = found.build(0)
    label = context.subject.device.label
    given = {v.name: read_only(a) for v, a in zip(graph.inputs, inputs)}
    with backend_call(f"a session on {label!r}, given arrays that cannot be written,"):
        load(graph, label, fallback="never", optimize=False, plugins=context.subject.plugins).run(given)
    return Outcome()


def _member_names(context: Context) -> Outcome:
    """No member of an executable looks like a misspelt optional one, which Lite would never use."""
    for found in supported_cases(context.subject):
        executable = context.subject.compile(found.build(0)[0]).executable
        require_well_spelt(executable, "executable", f"the executable of {found.name}")
    return Outcome(examples=0)


def _options(context: Context) -> Outcome:
    """Every option that a session may give is taken; of the backend's own, only those that it knows."""
    found = supported_case(context.subject)
    graph, inputs = found.build(0)
    expected = context.subject.compile(graph).run(inputs)
    many = (Options(threads=2), Options(threads=64), Options(exact=True))
    for options in many:
        _require_close(expected, context.subject.compile(graph, options).run(inputs), f"{found.name} with {options}")
    for precision in ("float16", "bfloat16"):
        context.subject.compile(graph, Options(precision=precision)).run(inputs)
    if isinstance(context.subject.backend, TakesOptions):
        _check_own_options(context.subject.backend)
    return Outcome(examples=len(many) + 3)


def _check_own_options(backend: TakesOptions) -> None:
    with backend_call("check_options() of no options"):
        backend.check_options({})
    with backend_call("check_options() of an option that nobody knows, which must raise InputError,"):
        try:
            backend.check_options({"nobody_knows_this": 1})
        except InputError:
            return
    raise Failure("check_options() took an option that nobody knows (nobody_knows_this); it must raise InputError")


# **** a session ****


def _session(context: Context) -> Outcome:
    """A session that is allowed this device only runs on it, and gives outputs that are the caller's own."""
    found = supported_case(context.subject)
    graph, inputs = found.build(0)
    label = context.subject.device.label
    with backend_call(f"a session on {label!r}"):
        session = load(graph, label, fallback="never", optimize=False, plugins=context.subject.plugins)
        given = {v.name: a for v, a in zip(graph.inputs, inputs)}
        first = session.run(given)
        kept = {name: array.copy() for name, array in first.items()}
        again = session.run(given)
    for name, array in first.items():
        if not array.flags.writeable:
            raise Failure(f"output {name!r} of a session cannot be written by the caller")
        again[name].fill(0)
        if not same_bits(array, kept[name]):
            raise Failure(f"output {name!r} of a session changed when a later one was written")
    return Outcome(examples=2)


def _same(one: Sequence[Array], other: Sequence[Array]) -> bool:
    return all(same_bits(a, b) for a, b in zip(one, other))


def _require_close(one: Sequence[Array], other: Sequence[Array], what: str) -> None:
    """Threads may split sums in other ways: equal up to rounding."""
    for first, second in zip(one, other):
        if not np.allclose(first.astype(np.float64), second.astype(np.float64), 1e-3, 1e-3, equal_nan=True):
            raise Failure(f"{what} gave another result: {first_difference(first, second)}")
