"""Sessions whose nodes alternate between the backend and another device: what crosses, how often, and in what order.

Every graph is made of an operator that the backend has, whatever that is, with nodes pinned to the other device
around it. Each runs twice: beside ``host``, whose tensors lie in main memory, and (``,copied``) beside a device
with a memory of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial

import numpy as np

from lite_conformance.cases.case import Case, Context
from lite_conformance.cases.graphs.draft import Draft, Drafted
from lite_conformance.cases.graphs.running import session_outputs, told
from lite_conformance.cases.graphs.second_device import SecondDevice
from lite_conformance.cases.graphs.two_devices import HERE, THERE, TwoDeviceGraph, find_supported_case
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
    """The cases of level 3 that are about partitions."""
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
    _patterns[pattern.__name__.strip("_").replace("_", "-")] = pattern
    return pattern


# **** patterns ****


@_pattern
def _sandwich(p: TwoDeviceGraph) -> None:
    """There, here, there."""
    p.output(p.there("Identity", p.here(p.copied(p.operands()))))


@_pattern
def _bread_outside(p: TwoDeviceGraph) -> None:
    """Here, there, here: inputs and outputs of the model lie on the backend."""
    p.output(p.here(p.choose(p.here(p.operands()), True)))


@_pattern
def _alternating(p: TwoDeviceGraph) -> None:
    """Five times here and four times there; every value made here is an output."""
    y = p.here(p.operands())
    p.output(y)
    for turn in range(4):
        y = p.here(p.choose(y, turn % 2 == 0))
        p.output(y)


@_pattern
def _consumers_on_both(p: TwoDeviceGraph) -> None:
    """A value made here is used here, there twice, and is an output."""
    y = p.here(p.operands())
    p.output(p.follow(y), p.there("Identity", y), p.there("Shape", y), y)


@_pattern
def _consumers_of_an_input(p: TwoDeviceGraph) -> None:
    """The model's own inputs are used on both devices, and handed out."""
    x = p.operands()
    p.output(p.here(x), *p.copied(x), p.here(p.copied(x)), *x)


@_pattern
def _diamond(p: TwoDeviceGraph) -> None:
    """From there to both devices, and back together there."""
    x = p.copied(p.operands())
    y = p.here(x)
    truth = p.truth(y, True)
    chosen = [p.there("Where", truth, a, b) for a, b in zip(p.copied(x), p.operands())]
    p.output(p.here(chosen), y)


@_pattern
def _diamond_here(p: TwoDeviceGraph) -> None:
    """From here to both devices, and back together here."""
    y = p.here(p.operands())
    left = p.choose(y, False)
    right = p.follow(y)
    p.output(p.here(left), right, p.here(p.choose(right, True)))


@_pattern
def _crosses_twice(p: TwoDeviceGraph) -> None:
    """A value made here is needed there now, and once more after another partition has run here."""
    y = p.here(p.operands())
    z = p.here(p.choose(y, True))
    later = p.truth(z, False)
    p.output(p.there("Where", later, y, y), z)


@_pattern
def _there_and_back_unchanged(p: TwoDeviceGraph) -> None:
    """Values of there that are used here, and there again long after."""
    x = p.copied(p.operands())
    y = p.here(x)
    z = p.here(p.choose(y, False))
    later = p.truth(z, True)
    p.output(*(p.there("Where", later, v, v) for v in x), z)


@_pattern
def _outputs_everywhere(p: TwoDeviceGraph) -> None:
    """Outputs of both devices in turn, one twice, an input, and a constant."""
    x = p.operands()
    y = p.here(x)
    z = p.here(p.choose(y, True))
    p.output(p.there("Identity", z), y, p.there("Shape", y), z, y, x[0], p.builder.constant(np.float32(0.5), "kept"))


@_pattern
def _independent_chains(p: TwoDeviceGraph) -> None:
    """Chains that do not touch, the devices of one the other way round: one partition holds parts of both."""
    y = p.here(p.operands())
    other = p.copied(p.operands())
    second = p.here(p.choose(y, True))
    p.output(p.there("Identity", p.here(other)), second, p.there("Identity", second))


@_pattern
def _many_at_once(p: TwoDeviceGraph) -> None:
    """Six values cross together, are joined there, and the next crosses back."""
    values = [p.here(p.operands()) for _ in range(6)]
    flat = [p.there("Reshape", v, p.builder.ints(-1)) for v in values]
    joined = p.there("Concat", *flat, axis=0)
    p.output(joined, p.here(p.choose(joined, True)), *values[::-1])


# **** running ****


def _run_pattern(context: Context, pattern: Pattern, copied: bool) -> Outcome:
    """The pattern on each of a few operators that the backend has."""
    return merged(
        [_run(context, pattern, supported_case, copied) for supported_case in supported_cases(context.subject)]
    )


def _run_special(context: Context, what: str, copied: bool) -> Outcome:
    return _run(context, _sandwich, find_supported_case(context.subject, what), copied)


def _run(context: Context, pattern: Pattern, supported_case: SupportedCase, copied: bool) -> Outcome:
    patchwork = TwoDeviceGraph(supported_case, context.settings.seed)
    pattern(patchwork)
    graph = patchwork.builder.build()
    with told(supported_case.name):
        session = _pinned_session(context, graph, copied)
        # A relaxed truth where the operator's own is in its own type: rounding, comparing.
        numerics = replace(GRAPH, truth=supported_case.case.numerics.truth)
        return merged(_turns(context, session, graph, patchwork.arrays, numerics))


def _pinned_session(context: Context, graph: Graph, copied: bool) -> Session:
    """A session whose nodes run where their names say.

    Raises:
        Refused: the backend does not take one of its nodes.
        Failure: the session cannot be made, or puts a node elsewhere.
    """
    label = context.subject.device.label
    other, plugins = _other(context, copied)
    pins = {HERE: label, THERE: other}
    pins = {p: d for p, d in pins.items() if any(fnmatchcase(n.name, p) for n in graph.nodes)}
    session = _load(graph, label, other, plugins, pins)
    for assignment in session.assignment():
        wanted = label if fnmatchcase(assignment.node, HERE) else other
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
        raise Failure(f"a session on {' and '.join(labels)} cannot be made: {error}") from error


def _other(context: Context, copied: bool) -> tuple[str, PluginManager]:
    """The label of the other device, and the plugins that give both."""
    if not copied:
        return "host", context.subject.plugins
    backend = context.subject.backend
    # The built-in backends are always there, and their names are taken.
    builtin = backend.name in ("host", "null")
    return SecondDevice.name, plugins_with(SecondDevice()) if builtin else plugins_with(backend, SecondDevice())


def _run_unknown_size(context: Context, copied: bool) -> Outcome:
    """As many rows as the other device has found cross to the backend, go through an operator, and come back."""
    reasons = []
    for op in _ROW_WISE:
        drafted = _unknown_size(op, context.settings.seed)
        try:
            session = _pinned_session(context, drafted.graph, copied)
        except Refused as refused:
            reasons.append(str(refused))
            continue
        with told(op):
            return merged(_turns(context, session, drafted.graph, drafted.arrays, GRAPH))
    raise Refused(reasons[0])


def _unknown_size(op: str, seed: int) -> Drafted:
    draft = Draft("unknown-size", DType.FLOAT32, seed)
    add = draft.builder.add
    x = draft.input(7, 5)
    largest = add("ReduceMax", [x, draft.builder.ints(1)], {"keepdims": 0}, name="there")
    chosen = add("Greater", [largest, draft.constant(1.0)], name="there")
    y = add(op, [add("Compress", [x, chosen], {"axis": 0}, name="there")], name="here")
    draft.output(y, add("Shape", [y], name="there"))
    return draft.done()


def _run_fallback(context: Context, copied: bool) -> Outcome:
    """No pins: each node goes to the backend where that says Yes, and to the other device where it says No."""
    drafted = _mixed(context.settings.seed)
    graph = drafted.graph
    infer_graph(graph)
    subject = context.subject
    label = subject.device.label
    other, plugins = _other(context, copied)
    refused = {node.name: subject.refusals([node]) for node in graph.nodes}
    if all(refused.values()):
        raise Refused(next(iter(refused.values()))[0])
    session = _load(graph, label, other, plugins, None)
    for assignment in session.assignment():
        wanted = other if refused[assignment.node] else label
        if assignment.device != wanted:
            answer = (refused[assignment.node] or ["Yes"])[0]
            where = f"node {assignment.node!r} ({assignment.op}) runs on {assignment.device!r}"
            raise Failure(f"{where}, although {label!r} says {answer}")
    return merged(_turns(context, session, graph, drafted.arrays, GRAPH))


def _mixed(seed: int) -> Drafted:
    """Operators that most backends have, between operators that few have."""
    g = Draft("mixed", DType.FLOAT32, seed)
    x = g("Relu", g.batch_norm(g.conv(g.input(2, 3, 6, 6), 5, 3)))
    energy = g("ReduceLogSumExp", x, (2, 3), keepdims=1)
    x = g("Mul", x, g("Sigmoid", g("Add", energy, 1.0)))
    x = g("Reshape", g("LpNormalization", x, axis=1), (2, -1))
    x = g("Softmax", g("Gemm", g("Trilu", x), g.weight(180, 7), g.weight(7)), axis=-1)
    best, places = g.several("TopK", 2, x, (3,), axis=-1)
    hard = g("Add", g("Hardmax", best), g("MatMul", best, g.weight(3, 3)))
    g.output(g("Tanh", hard), g("Cast", places, to=DType.INT32), g("Concat", x, hard, axis=1), best)
    return g.done()


def _turns(
    context: Context, session: Session, graph: Graph, arrays: Callable[[int], list[Array]], numerics: Numerics
) -> list[Outcome]:
    """Two sets of inputs, and the first once more."""
    outcomes: list[Outcome] = []
    for turn in (0, 1, 0):
        inputs = arrays(turn)
        with told(f"run {len(outcomes) + 1}"):
            actual = session_outputs(session, graph, inputs)
            try:
                outcomes.append(check_outcome(graph, inputs, actual, numerics, context.allowance))
            except Failure as failure:
                # A script would run the graph on the backend alone, which is another thing.
                failure.replay = None
                raise
    return outcomes
