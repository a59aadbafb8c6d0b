"""Running whole networks in sessions, with host for nodes that the backend refuses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice

from lite_conformance.cases.case import Context, Example, Settings
from lite_conformance.cases.graphs.running import session_outputs
from lite_conformance.cases.models.blame import blame
from lite_conformance.cases.networks import Network
from lite_conformance.cases.tensors import Array
from lite_conformance.judge.checks import Allowance, check_arrays, check_expected
from lite_conformance.judge.compare import Expected
from lite_conformance.judge.oracle import expect
from lite_conformance.judge.outcome import Failure, Outcome, Refused, Skipped, merged
from lite_conformance.judge.tolerances import NETWORK
from lite_core.errors import BackendUnavailableError, InputError, LiteError
from lite_core.formats import read_model
from lite_core.ir import Graph
from lite_core.ops.evaluate import evaluate_graph
from lite_core.session import Session, load
from lite_tools.checking import candidate_inputs

__all__ = ["examples_of_file", "examples_of_network", "run_file", "run_network", "stable_examples"]

# The truth of a model file is computed in its own types: float64 would double the memory of its weights.
_FILE = replace(NETWORK, truth="native")
# A quarter of the backends' tolerance.
_QUARTER = replace(NETWORK, wide=(250, 250), half=(15, 15))
_EXAMPLES = 2
_MAX_CANDIDATES = 12
_MAX_SEEDS = 32
_SHOWN_REFUSALS = 4


def run_network(context: Context, network: Network) -> Outcome:
    """Run a network of the suite in one session, on two sets of examples of different shapes.

    Raises:
        Failure: an output is wrong, or the outputs do not solve the network's task.
        Refused: the backend refused some nodes; the outputs agree.
    """
    graph = network.build()
    session = _session(context, graph)
    outcomes = []
    for seed, inputs, expected in islice(stable_examples(network, graph, context.settings.seed), _EXAMPLES):
        actual, outcome = _run(context, session, graph, inputs, expected)
        problem = network.task_error(seed, {v.name: a for v, a in zip(graph.outputs, actual)})
        if problem:
            raise Failure(f"the outputs are within tolerance, but do not solve the task: {problem}")
        outcomes.append(outcome)
    return _with_refusals(context, session, merged(outcomes))


def run_file(context: Context, path: str) -> Outcome:
    """Run a model file on random inputs.

    Raises:
        Failure: an output is wrong.
        Refused: the backend refused some nodes; the outputs agree.
        Skipped: the model runs on none of the random inputs tried.
        ModelFormatError: the file cannot be read.
    """
    graph = read_model(path)
    session = _session(context, graph)
    inputs, expected = _random_example(graph, context.settings.seed)
    return _with_refusals(context, session, _run(context, session, graph, inputs, expected)[1])


# **** inputs and expected outputs ****


def examples_of_network(settings: Settings, network: Network) -> Iterator[Example]:
    """Yield a network of the suite with the examples that :func:`run_network` runs."""
    graph = network.build()

    def task_error(outputs: Sequence[Array], seed: int) -> str | None:
        return network.task_error(seed, {v.name: a for v, a in zip(graph.outputs, outputs)})

    for seed, inputs, expected in islice(stable_examples(network, graph, settings.seed), _EXAMPLES):
        yield Example(graph, inputs, expected, NETWORK, task_error=partial(task_error, seed=seed))


def examples_of_file(settings: Settings, path: str) -> Iterator[Example]:
    """Yield a model file with the inputs that :func:`run_file` runs.

    Raises:
        Skipped: the model runs on none of the random inputs tried.
        ModelFormatError: the file cannot be read.
    """
    graph = read_model(path)
    inputs, expected = _random_example(graph, settings.seed)
    yield Example(graph, inputs, expected, NETWORK)


def stable_examples(network: Network, graph: Graph, seed: int) -> Iterator[tuple[int, list[Array], list[Expected]]]:
    """Yield seeds, examples and truths; shapes differ between successive examples.

    NOTE: examples are skipped if the references in the network's own types and in float64 differ by more than a
    quarter of the tolerance: there a box or a class number depends on rounding, and backends may differ.
    """
    shapes: list[tuple[int, ...]] = []
    for number in range(seed, seed + _MAX_SEEDS):
        examples = network.examples(number)
        inputs = [examples[v.name] for v in graph.inputs]
        if [a.shape for a in inputs] == shapes:
            continue
        expected = expect(graph, inputs, NETWORK)
        if _is_stable(expected, evaluate_graph(graph, inputs)):
            shapes = [a.shape for a in inputs]
            yield number, inputs, expected


def _is_stable(expected: Sequence[Expected], native: Sequence[Array]) -> bool:
    try:
        return not check_arrays(native, expected, _QUARTER, Allowance())[1].wrong
    except Failure:
        return False


def _random_example(graph: Graph, seed: int) -> tuple[list[Array], list[Expected]]:
    reason = "none was found"
    try:
        for inputs in islice(candidate_inputs(graph, seed), _MAX_CANDIDATES):
            arrays = [inputs[v.name] for v in graph.inputs]
            try:
                return arrays, expect(graph, arrays, _FILE)
            except LiteError as error:
                reason = str(error)
    except InputError as error:
        reason = str(error)
    raise Skipped(f"the model runs on none of the random inputs tried: {reason}")


# **** running ****


def _session(context: Context, graph: Graph) -> Session:
    """Return a session on the device under test, with host for nodes that it refuses.

    Raises:
        Refused: the backend refuses every node.
        Failure: an answer is neither Yes nor No, or the session cannot be created.
    """
    subject = context.subject
    label = subject.device.label
    subject.require_precision(graph)
    try:
        session = load(graph, label, fallback="host", plugins=subject.plugins, **subject.request.session)
    except BackendUnavailableError:
        raise
    except LiteError as error:
        raise Failure(f"a session on {label!r} cannot be created: {error}") from error
    # A session treats exceptions and invalid answers as a No; here they are failures.
    subject.refusals(session.graph.nodes)
    if all(a.device != label for a in session.assignment()):
        raise Refused(_refusals(context, session))
    return session


def _run(
    context: Context, session: Session, graph: Graph, inputs: Sequence[Array], expected: Sequence[Expected]
) -> tuple[list[Array], Outcome]:
    """Run a session; return the outputs in the order of the graph, and the outcome of their comparison.

    Raises:
        Failure: the run failed, or an output is wrong; the reason names the wrong node.
    """
    try:
        actual = session_outputs(session, graph, inputs)
        outcome = check_expected(graph, inputs, actual, expected, NETWORK, context.allowance)
    except Failure as failure:
        found = blame(context, session.graph, inputs, expected)
        failure.reason = f"{failure.reason}; {found.sentence}"
        failure.details, failure.replay = found.table, found.replay
        raise
    return actual, outcome


def _with_refusals(context: Context, session: Session, outcome: Outcome) -> Outcome:
    """Return the outcome, or raise Refused if nodes ran on host: such a network does not count as passed."""
    label = context.subject.device.label
    if any(a.device != label for a in session.assignment()):
        raise Refused(f"{_refusals(context, session)}; the rest agrees with the reference")
    return outcome


def _refusals(context: Context, session: Session) -> str:
    """Return the operators that the backend refused most often, with counts and reasons."""
    label = context.subject.device.label
    refused = [a for a in session.assignment() if a.device != label]
    reasons: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for assignment in refused:
        counts[assignment.op] += 1
        reasons.setdefault(assignment.op, dict(assignment.refusals).get(label, "no reason"))
    parts = [f"{op} ({number}): {reasons[op]}" for op, number in counts.most_common(_SHOWN_REFUSALS)]
    if len(counts) > _SHOWN_REFUSALS:
        parts.append(f"{len(counts) - _SHOWN_REFUSALS} more operator(s)")
    return f"{len(refused)} of {len(session.graph.nodes)} nodes refused: {'; '.join(parts)}"
