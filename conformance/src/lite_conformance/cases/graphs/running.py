"""Running the graphs of level 3, as one partition and in a session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from lite_conformance.cases.case import Context, Example, Settings
from lite_conformance.cases.graphs.draft import Drafted, GraphCase
from lite_conformance.cases.tensors import Array
from lite_conformance.drive.subject import Subject, replay_of
from lite_conformance.judge.checks import check_outcome
from lite_conformance.judge.oracle import expect
from lite_conformance.judge.outcome import Failure, Outcome, Refused, merged
from lite_core.errors import BackendUnavailableError, LiteError, UnsupportedOperatorError
from lite_core.ir import Graph
from lite_core.ops.infer import infer_graph
from lite_core.session import Session, load

__all__ = ["examples_of", "failure_prefix", "load_on_backend_only", "run_compiled", "run_in_session", "session_outputs"]


def run_compiled(context: Context, case: GraphCase) -> Outcome:
    """Compile the unchanged graph as one partition, and run it on several sets of inputs."""
    drafted = case.draft(context.settings.seed)
    compiled = context.subject.compile(drafted.graph)
    outcomes: list[Outcome] = []
    for number in _input_sets(drafted):
        inputs = drafted.arrays(number)
        actual = compiled.run(inputs)
        with failure_prefix(f"run {len(outcomes) + 1}"):
            outcomes.append(check_outcome(drafted.graph, inputs, actual, case.numerics, context.allowance, case.dtype))
    return merged(outcomes)


def run_in_session(context: Context, case: GraphCase, *, optimize: bool) -> Outcome:
    """Run the graph in a session on this device only, with or without passes, with each signature in turn."""
    drafted = case.draft(context.settings.seed)
    session = load_on_backend_only(context, drafted.graph, optimize=optimize)
    outcomes: list[Outcome] = []
    for turn, (number, sizes) in enumerate(_runs(drafted, case.signatures)):
        inputs = drafted.arrays(number, sizes)
        with failure_prefix(f"run {turn + 1}, shapes {[list(a.shape) for a in inputs]}"):
            actual = _outputs_with_replay(context.subject, session, drafted.graph, inputs, optimize=optimize)
            try:
                outcome = check_outcome(drafted.graph, inputs, actual, case.numerics, context.allowance, case.dtype)
            except Failure as failure:
                if failure.replay is not None:  # the graph that ran is that after the passes
                    failure.replay = replace(failure.replay, graph=session.graph)
                raise
            outcomes.append(outcome)
    return merged(outcomes)


def examples_of(settings: Settings, case: GraphCase) -> Iterator[Example]:
    """Yield the graph with each set of inputs, and with each signature."""
    drafted = case.draft(settings.seed)
    for number, sizes in enumerate(case.signatures or ({},) * drafted.rounds):
        inputs = drafted.arrays(number, sizes)
        expected = expect(drafted.graph, inputs, case.numerics)
        yield Example(drafted.graph, inputs, expected, case.numerics, case.dtype)


def load_on_backend_only(context: Context, graph: Graph, *, optimize: bool) -> Session:
    """Return a session of a graph that runs on the device under test only.

    Raises:
        Refused: the backend does not support every node.
        Failure: it supports every node, but the session cannot be created or uses another device.
    """
    subject = context.subject
    label = subject.device.label
    subject.require_precision(graph)
    try:
        session = load(
            graph, label, fallback="never", optimize=optimize, plugins=subject.plugins, **subject.request.session
        )
    except BackendUnavailableError:
        raise
    except UnsupportedOperatorError as error:
        # Ask the backend directly as well: a session treats exceptions of supports() as a No.
        asked = graph.copy()
        infer_graph(asked)
        subject.require(asked)
        raise Refused("; ".join(p.reason for p in error.problems)) from error
    except LiteError as error:
        raise Failure(f"a session on {label!r} cannot be created: {error}") from error
    others = sorted({a.device for a in session.assignment()} - {label})
    if others:
        raise Failure(f"a session restricted to {label!r} placed nodes on {', '.join(others)}")
    return session


def session_outputs(session: Session, graph: Graph, inputs: Sequence[Array]) -> list[Array]:
    """Run a session once and return its outputs in the order of the graph.

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


def _outputs_with_replay(
    subject: Subject, session: Session, graph: Graph, inputs: Sequence[Array], *, optimize: bool
) -> list[Array]:
    """Return :func:`session_outputs`; a failure has a replay if the session applies no passes, as scripts do."""
    if not optimize and subject.on_run is not None:
        subject.on_run(replay_of(graph, inputs))
    try:
        return session_outputs(session, graph, inputs)
    except Failure as failure:
        if not optimize:
            failure.replay = replay_of(graph, inputs)
        raise


def _input_sets(drafted: Drafted) -> list[int]:
    """Return the numbers of the sets of inputs, and the first again: a run must not affect later ones."""
    return [*range(drafted.rounds), 0] if drafted.rounds > 1 else [0]


def _runs(drafted: Drafted, signatures: Sequence[Mapping[str, int]]) -> list[tuple[int, Mapping[str, int]]]:
    if not signatures:
        return [(number, {}) for number in _input_sets(drafted)]
    return list(enumerate(signatures))


class failure_prefix:
    """A context that prefixes the reason of a failure, for example with the number of the run."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Failure):
            error.reason = f"{self._prefix}: {error.reason}"
