"""Sessions whose nodes alternate between the backend and another device, with copies of tensors between them.

Every graph combines an operator that the backend supports with nodes pinned to the other device. Each graph runs
twice: with ``host``, whose tensors are in main memory, and (``,copied``) with a device that has its own memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial

import numpy as np

from lite_conformance.cases.case import Case, Context
from lite_conformance.cases.graphs.draft import Draft, Drafted
from lite_conformance.cases.graphs.running import failure_prefix, session_outputs
from lite_conformance.cases.graphs.second_device import SecondDevice
from lite_conformance.cases.graphs.two_devices import ON_BACKEND, ON_OTHER, TwoDeviceGraph, find_supported_case
from lite_conformance.cases.supported import SupportedCase, supported_cases
from lite_conformance.cases.tensors import Array
from lite_conformance.judge.checks import check_outcome
from lite_conformance.judge.outcome import Failure, Outcome, Refused, merged
from lite_conformance.judge.tolerances import GRAPH, Numerics
from lite_core.errors import BackendUnavailableError, LiteError, UnsupportedOperatorError
from lite_core.ir import DType, Graph
from lite_core.ops.infer import infer_graph
from lite_core.plugins import PluginManager, plugins_with
from lite_core.session import Session, load

__all__ = ["cases"]

Pattern = Callable[[TwoDeviceGraph], None]

_patterns: dict[str, Pattern] = {}
_SPECIAL = ("zero-size", "scalar", "bool-in", "bool-out", "int64-in", "int64-out")
_ROW_WISE = ("Relu", "Sigmoid", "Neg", "Exp", "Identity", "Tanh", "Abs")


def cases() -> Iterator[Case]:
    """Yield the cases of level 3 about partitions."""
    for suffix, copied in (("", False), (",copied", True)):
        for label, pattern in _patterns.items():
            run = partial(_run_pattern, pattern=pattern, copied=copied)
            yield Case(f"graph[partitions-{label}{suffix}]", 3, "graphs", run)
        for what in _SPECIAL:
            run = partial(_run_special, what=what, copied=copied)
            yield Case(f"graph[partitions-{what}{suffix}]", 3, "graphs", run)
        yield Case(f"graph[partitions-unknown-size{suffix}]", 3, "graphs", partial(_run_unknown_size, copied=copied))
        yield Case(f"graph[partitions-fallback{suffix}]", 3, "graphs", partial(_run_fallback, copied=copied))


def _pattern(pattern: Pattern) -> Pattern:
    """Register a pattern; its case is named after the function."""
    _patterns[pattern.__name__.strip("_").replace("_", "-")] = pattern
    return pattern


# **** patterns ****


@_pattern
def _sandwich(p: TwoDeviceGraph) -> None:
    """Other device, backend, other device."""
    p.output(p.on_other("Identity", p.on_backend(p.copy_to_other(p.operands()))))


@_pattern
def _backend_outside(p: TwoDeviceGraph) -> None:
    """Backend, other device, backend: inputs and outputs of the model are on the backend."""
    p.output(p.on_backend(p.select(p.on_backend(p.operands()), True)))


@_pattern
def _alternating(p: TwoDeviceGraph) -> None:
    """Five times the backend and four times the other device; every value made on the backend is an output."""
    y = p.on_backend(p.operands())
    p.output(y)
    for turn in range(4):
        y = p.on_backend(p.select(y, turn % 2 == 0))
        p.output(y)


@_pattern
def _consumers_on_both(p: TwoDeviceGraph) -> None:
    """A value made on the backend is used there, twice on the other device, and as an output."""
    y = p.on_backend(p.operands())
    p.output(p.consume(y), p.on_other("Identity", y), p.on_other("Shape", y), y)


@_pattern
def _consumers_of_an_input(p: TwoDeviceGraph) -> None:
    """Inputs of the model are used on both devices, and as outputs."""
    x = p.operands()
    p.output(p.on_backend(x), *p.copy_to_other(x), p.on_backend(p.copy_to_other(x)), *x)


@_pattern
def _diamond(p: TwoDeviceGraph) -> None:
    """From the other device to both devices, joined on the other device."""
    x = p.copy_to_other(p.operands())
    y = p.on_backend(x)
    condition = p.condition(y, True)
    chosen = [p.on_other("Where", condition, a, b) for a, b in zip(p.copy_to_other(x), p.operands())]
    p.output(p.on_backend(chosen), y)


@_pattern
def _diamond_on_backend(p: TwoDeviceGraph) -> None:
    """From the backend to both devices, joined on the backend."""
    y = p.on_backend(p.operands())
    left = p.select(y, False)
    right = p.consume(y)
    p.output(p.on_backend(left), right, p.on_backend(p.select(right, True)))


@_pattern
def _crosses_twice(p: TwoDeviceGraph) -> None:
    """A value made on the backend is used on the other device, and again after another partition on the backend."""
    y = p.on_backend(p.operands())
    z = p.on_backend(p.select(y, True))
    later = p.condition(z, False)
    p.output(p.on_other("Where", later, y, y), z)


@_pattern
def _unchanged_after_crossing(p: TwoDeviceGraph) -> None:
    """Values of the other device are used on the backend, and much later on the other device again."""
    x = p.copy_to_other(p.operands())
    y = p.on_backend(x)
    z = p.on_backend(p.select(y, False))
    later = p.condition(z, True)
    p.output(*(p.on_other("Where", later, v, v) for v in x), z)


@_pattern
def _outputs_everywhere(p: TwoDeviceGraph) -> None:
    """Outputs of both devices alternately, one of them twice, an input, and a constant."""
    x = p.operands()
    y = p.on_backend(x)
    z = p.on_backend(p.select(y, True))
    p.output(
        p.on_other("Identity", z), y, p.on_other("Shape", y), z, y, x[0], p.builder.constant(np.float32(0.5), "kept")
    )


@_pattern
def _independent_chains(p: TwoDeviceGraph) -> None:
    """Two independent chains with their devices in opposite order: one partition has nodes of both."""
    y = p.on_backend(p.operands())
    other = p.copy_to_other(p.operands())
    second = p.on_backend(p.select(y, True))
    p.output(p.on_other("Identity", p.on_backend(other)), second, p.on_other("Identity", second))


@_pattern
def _many_at_once(p: TwoDeviceGraph) -> None:
    """Six values cross together and are concatenated on the other device; the next value crosses back."""
    values = [p.on_backend(p.operands()) for _ in range(6)]
    flat = [p.on_other("Reshape", v, p.builder.ints(-1)) for v in values]
    joined = p.on_other("Concat", *flat, axis=0)
    p.output(joined, p.on_backend(p.select(joined, True)), *values[::-1])


# **** running ****


def _run_pattern(context: Context, pattern: Pattern, copied: bool) -> Outcome:
    """Run the pattern with each of a few operators that the backend supports."""
    return merged([_run(context, pattern, case, copied) for case in supported_cases(context.subject)])


def _run_special(context: Context, what: str, copied: bool) -> Outcome:
    return _run(context, _sandwich, find_supported_case(context.subject, what), copied)


def _run(context: Context, pattern: Pattern, case: SupportedCase, copied: bool) -> Outcome:
    graph_builder = TwoDeviceGraph(case, context.settings.seed)
    pattern(graph_builder)
    graph = graph_builder.builder.build()
    with failure_prefix(case.name):
        session = _pinned_session(context, graph, copied)
        # Operators that round or compare need the truth in their own type.
        numerics = replace(GRAPH, truth=case.case.numerics.truth)
        return merged(_turns(context, session, graph, graph_builder.arrays, numerics))


def _pinned_session(context: Context, graph: Graph, copied: bool) -> Session:
    """Return a session whose nodes are pinned to devices by their names.

    Raises:
        Refused: the backend does not support one of its nodes.
        Failure: the session cannot be created, or assigns a node to the wrong device.
    """
    label = context.subject.device.label
    other, plugins = _other_device(context, copied)
    pins = {ON_BACKEND: label, ON_OTHER: other}
    pins = {p: d for p, d in pins.items() if any(fnmatchcase(n.name, p) for n in graph.nodes)}
    session = _load(graph, label, other, plugins, pins)
    for assignment in session.assignment():
        wanted = label if fnmatchcase(assignment.node, ON_BACKEND) else other
        if assignment.device != wanted:
            raise Failure(f"node {assignment.node!r} is pinned to {wanted!r} and runs on {assignment.device!r}")
    return session


def _load(graph: Graph, label: str, other: str, plugins: PluginManager, pins: dict[str, str] | None) -> Session:
    labels = list(dict.fromkeys([label, other]))
    try:
        return load(graph, labels, fallback="never", placement=pins, optimize=False, plugins=plugins)
    except BackendUnavailableError:
        raise
    except UnsupportedOperatorError as error:
        raise Refused("; ".join(p.reason for p in error.problems)) from error
    except LiteError as error:
        raise Failure(f"a session on {' and '.join(labels)} cannot be created: {error}") from error


def _other_device(context: Context, copied: bool) -> tuple[str, PluginManager]:
    """Return the label of the other device, and a plugin manager with both backends."""
    if not copied:
        return "host", context.subject.plugins
    backend = context.subject.backend
    # The built-in backends are in every plugin manager; adding them again would be a name conflict.
    builtin = backend.name in ("host", "null")
    return SecondDevice.name, plugins_with(SecondDevice()) if builtin else plugins_with(backend, SecondDevice())


def _run_unknown_size(context: Context, copied: bool) -> Outcome:
    """Run a partition on the backend whose number of rows depends on data of the other device."""
    reasons = []
    for op in _ROW_WISE:
        drafted = _unknown_size(op, context.settings.seed)
        try:
            session = _pinned_session(context, drafted.graph, copied)
        except Refused as refused:
            reasons.append(str(refused))
            continue
        with failure_prefix(op):
            return merged(_turns(context, session, drafted.graph, drafted.arrays, GRAPH))
    raise Refused(reasons[0])


def _unknown_size(op: str, seed: int) -> Drafted:
    draft = Draft("unknown-size", DType.FLOAT32, seed)
    add = draft.builder.add
    x = draft.input(7, 5)
    largest = add("ReduceMax", [x, draft.builder.ints(1)], {"keepdims": 0}, name="other")
    chosen = add("Greater", [largest, draft.constant(1.0)], name="other")
    y = add(op, [add("Compress", [x, chosen], {"axis": 0}, name="other")], name="backend")
    draft.output(y, add("Shape", [y], name="other"))
    return draft.done()


def _run_fallback(context: Context, copied: bool) -> Outcome:
    """Require, without pins, that each node runs on the backend if it answers Yes, else on the other device."""
    drafted = _mixed(context.settings.seed)
    graph = drafted.graph
    infer_graph(graph)
    subject = context.subject
    label = subject.device.label
    other, plugins = _other_device(context, copied)
    refused = {node.name: subject.refusals([node]) for node in graph.nodes}
    if all(refused.values()):
        raise Refused(next(iter(refused.values()))[0])
    session = _load(graph, label, other, plugins, None)
    for assignment in session.assignment():
        wanted = other if refused[assignment.node] else label
        if assignment.device != wanted:
            answer = (refused[assignment.node] or ["Yes"])[0]
            placement = f"node {assignment.node!r} ({assignment.op}) runs on {assignment.device!r}"
            raise Failure(f"{placement}, although {label!r} answers {answer}")
    return merged(_turns(context, session, graph, drafted.arrays, GRAPH))


def _mixed(seed: int) -> Drafted:
    """Return a graph of operators that most backends support, between operators that few support."""
    g = Draft("mixed", DType.FLOAT32, seed)
    x = g("Relu", g.batch_norm(g.conv(g.input(2, 3, 6, 6), 5, 3)))
    energy = g("ReduceLogSumExp", x, (2, 3), keepdims=1)
    x = g("Mul", x, g("Sigmoid", g("Add", energy, 1.0)))
    x = g("Reshape", g("LpNormalization", x, axis=1), (2, -1))
    x = g("Softmax", g("Gemm", g("Trilu", x), g.weight(180, 7), g.weight(7)), axis=-1)
    best, indices = g.several("TopK", 2, x, (3,), axis=-1)
    hard = g("Add", g("Hardmax", best), g("MatMul", best, g.weight(3, 3)))
    g.output(g("Tanh", hard), g("Cast", indices, to=DType.INT32), g("Concat", x, hard, axis=1), best)
    return g.done()


def _turns(
    context: Context, session: Session, graph: Graph, arrays: Callable[[int], list[Array]], numerics: Numerics
) -> list[Outcome]:
    """Run a session on two sets of inputs, and on the first again, and check the outputs."""
    outcomes: list[Outcome] = []
    for turn in (0, 1, 0):
        inputs = arrays(turn)
        with failure_prefix(f"run {len(outcomes) + 1}"):
            actual = session_outputs(session, graph, inputs)
            try:
                outcomes.append(check_outcome(graph, inputs, actual, numerics, context.allowance))
            except Failure as failure:
                # No script: it would run the graph on the backend alone, without the other device.
                failure.replay = None
                raise
    return outcomes
