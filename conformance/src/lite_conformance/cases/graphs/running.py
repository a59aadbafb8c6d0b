"""Running the graphs of level 3: as one partition, and in a session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lite_conformance.cases.case import Context
from lite_conformance.cases.graphs.draft import Drafted, GraphCase
from lite_conformance.cases.tensors import Array
from lite_conformance.judge.checks import check_outcome
from lite_conformance.judge.outcome import Failure, Outcome, Refused, merged
from lite_core.errors import BackendUnavailableError, LiteError, UnsupportedOperatorError
from lite_core.ir import Graph
from lite_core.ops.infer import infer_graph
from lite_core.session import Session, load

__all__ = ["only_on_the_backend", "run_compiled", "run_in_session", "session_outputs", "told"]


def run_compiled(context: Context, case: GraphCase) -> Outcome:
    """The graph as it is, compiled as one partition and run on several inputs in turn."""
    drafted = case.draft(context.settings.seed)
    compiled = context.subject.compile(drafted.graph)
    outcomes: list[Outcome] = []
    for number in _turns(drafted):
        inputs = drafted.arrays(number)
        actual = compiled.run(inputs)
        with told(f"run {len(outcomes) + 1}"):
            outcomes.append(check_outcome(drafted.graph, inputs, actual, case.numerics, context.allowance, case.dtype))
    return merged(outcomes)


def run_in_session(context: Context, case: GraphCase, *, optimize: bool) -> Outcome:
    """The graph in a session that may use this device only, with or without passes, with each signature in turn."""
    drafted = case.draft(context.settings.seed)
    session = only_on_the_backend(context, drafted.graph, optimize=optimize)
    outcomes: list[Outcome] = []
    for turn, (number, sizes) in enumerate(_runs(drafted, case.signatures)):
        inputs = drafted.arrays(number, sizes)
        with told(f"run {turn + 1}, shapes {[list(a.shape) for a in inputs]}"):
            actual = session_outputs(session, drafted.graph, inputs)
            try:
                outcome = check_outcome(drafted.graph, inputs, actual, case.numerics, context.allowance, case.dtype)
            except Failure as failure:
                if failure.replay is not None:  # what ran is what the passes have left
                    failure.replay = replace(failure.replay, graph=session.graph)
                raise
            outcomes.append(outcome)
    return merged(outcomes)


def only_on_the_backend(context: Context, graph: Graph, *, optimize: bool) -> Session:
    """A session of a graph that runs on the device under test and nowhere else.

    Raises:
        Refused: the backend does not take every node.
        Failure: it does, and the session cannot be made, or runs elsewhere.
    """
    subject = context.subject
    label = subject.device.label
    try:
        session = load(graph, label, fallback="never", optimize=optimize, plugins=subject.plugins)
    except BackendUnavailableError:
        raise
    except UnsupportedOperatorError as error:
        # The answers themselves are checked as well: a session takes any exception for a No.
        asked = graph.copy()
        infer_graph(asked)
        subject.require(asked)
        raise Refused("; ".join(p.reason for p in error.problems)) from error
    except LiteError as error:
        raise Failure(f"a session on {label!r} cannot be made: {error}") from error
    elsewhere = sorted({a.device for a in session.assignment()} - {label})
    if elsewhere:
        raise Failure(f"a session that may use {label!r} only has put nodes on {', '.join(elsewhere)}")
    return session


def session_outputs(session: Session, graph: Graph, inputs: Sequence[Array]) -> list[Array]:
    """The outputs of one run, in the order of the graph.

    Raises:
        Failure: the run raised, or an output has another element type than the graph says.
    """
    try:
        outputs = session.run({v.name: a for v, a in zip(graph.inputs, inputs)})
    except LiteError as error:
        raise Failure(f"the session failed with {type(error).__name__}: {error}") from error
    for value in graph.outputs:
        if outputs[value.name].dtype != value.dtype.numpy:
            raise Failure(f"output {value.name!r} is {outputs[value.name].dtype}, expected {value.type}")
    return [outputs[v.name] for v in graph.outputs]


def _turns(drafted: Drafted) -> list[int]:
    """Each set of inputs, and the first once more: what a run leaves behind must not show in the next."""
    return [*range(drafted.rounds), 0] if drafted.rounds > 1 else [0]


def _runs(drafted: Drafted, signatures: Sequence[Mapping[str, int]]) -> list[tuple[int, Mapping[str, int]]]:
    if not signatures:
        return [(number, {}) for number in _turns(drafted)]
    return list(enumerate(signatures))


class told:
    """Puts which run it was in front of a failure's reason."""

    def __init__(self, which: str) -> None:
        self._which = which

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Failure):
            error.reason = f"{self._which}: {error.reason}"
