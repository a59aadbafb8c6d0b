"""Running a written model file, and comparing it with the references."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from lite_core.backend import Options
from lite_core.container import ModelFile
from lite_core.errors import InputError, LiteError
from lite_core.ir import Graph
from lite_core.ops.evaluate import evaluate_graph
from lite_core.plugins import PluginManager
from lite_core.session import Session, load
from lite_core.session.arguments import to_arrays
from lite_tools.checking.comparison import largest_difference
from lite_tools.checking.random_inputs import candidate_inputs
from lite_tools.conversion.prepare import Shapes
from lite_tools.conversion.report import Check

__all__ = ["Sample", "check_reference", "check_target", "draw_samples"]

Array = np.ndarray[Any, Any]

_MOST_ATTEMPTS = 12
#: Outputs by name for inputs by name.
Run = Callable[[Mapping[str, Array]], Mapping[str, Array]]


@dataclass(frozen=True, slots=True)
class Sample:
    """Inputs, and what the references make of them.

    Attributes:
        inputs: arrays by name, in the model's order.
        source: where they come from, in words.
        expected: the outputs of the model as it was before, by name.
    """

    inputs: Mapping[str, Array]
    source: str
    expected: Mapping[str, Array]

    @property
    def shapes(self) -> Shapes:
        """The shape of each input."""
        return {name: array.shape for name, array in self.inputs.items()}


def draw_samples(graph: Graph, shapes: Sequence[Shapes], data: Mapping[str, Array] | None, seed: int) -> list[Sample]:
    """Inputs to verify a model with: what the caller gives, and random ones for all other shapes.

    Args:
        graph: what is right.
        shapes: of the plans that are prepared; where there is none, sizes are chosen that the model takes.
        data: inputs by name.
        seed: of random inputs.

    Raises:
        InputError: the data do not fit the model, or it runs on no random input.
    """
    samples = []
    if data is not None:
        arrays = to_arrays(graph.name, graph.inputs, data, {})
        samples.append(Sample(arrays, "given data", _outputs(graph, arrays)))
    for wanted in shapes or ([] if data is not None else [{}]):
        if not any(dict(sample.shapes) == dict(wanted) for sample in samples):
            samples.append(_random_sample(graph, wanted, seed))
    return samples


def check_reference(file: ModelFile, samples: Sequence[Sample], limit: float) -> list[Check]:
    """Compare what the references make of the graph in a file with what they made of the model it comes from."""
    graph = file.graph()
    return [_check("references", None, sample, limit, lambda inputs: _outputs(graph, inputs)) for sample in samples]


def check_target(
    file: ModelFile,
    backends: Sequence[str],
    samples: Sequence[Sample],
    limit: float,
    plugins: PluginManager,
    options: Options,
) -> list[Check]:
    """Run a file on a target and compare, with each number of threads that it has a plan for.

    Args:
        file: the model file.
        backends: the target, and what may run what it cannot.
        samples: the inputs.
        limit: the largest difference that is allowed, as a share of an output's range.
        plugins: those that the session uses.
        options: what sessions are to allow; the number of threads holds for shapes without a plan.
    """
    target = backends[0]
    start = partial(
        load,
        file.path,
        backend=backends,
        precision=options.precision,
        exact=options.exact,
        fallback="never",
        plugins=plugins,
    )
    plans = [plan for own in file.targets if own.backend == target for plan in own.plans]
    checks = []
    for sample in samples:
        planned = [plan.threads for plan in plans if dict(plan.shapes) == dict(sample.shapes)]
        for threads in planned or [options.threads]:
            session = partial(start, threads=threads)
            checks.append(_check_session(target, threads, sample, limit, session, has_plan=bool(planned)))
    return checks


def _check_session(
    target: str, threads: int, sample: Sample, limit: float, start: Callable[[], Session], *, has_plan: bool
) -> Check:
    """Check a session of its own, whose notes are about this sample and no other."""
    try:
        session = start()
    except LiteError as error:
        return Check(target, threads, sample.shapes, sample.source, {}, limit, str(error))
    check = _check(target, threads, sample, limit, session.run)
    return replace(check, prepared=not session.notes, unused="; ".join(session.notes)) if has_plan else check


def _check(target: str, threads: int | None, sample: Sample, limit: float, run: Run) -> Check:
    try:
        found = run(sample.inputs)
    except LiteError as error:
        return Check(target, threads, sample.shapes, sample.source, {}, limit, str(error))
    differences = {name: _difference(array, found[name]) for name, array in sample.expected.items()}
    return Check(target, threads, sample.shapes, sample.source, differences, limit)


def _difference(expected: Array, found: Array) -> float:
    if expected.shape != found.shape or expected.dtype != found.dtype:
        return float("inf")
    return largest_difference(expected, found)


def _outputs(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    arrays = evaluate_graph(graph, [inputs[value.name] for value in graph.inputs])
    return {value.name: array for value, array in zip(graph.outputs, arrays)}


def _random_sample(graph: Graph, shapes: Shapes, seed: int) -> Sample:
    """Random inputs that the references run on: inference cannot see every reason why a graph refuses some."""
    reason: LiteError | None = None
    for inputs in islice(candidate_inputs(graph, seed, shapes=shapes), _MOST_ATTEMPTS):
        try:
            return Sample(inputs, f"random numbers, seed {seed}", _outputs(graph, inputs))
        except LiteError as error:
            reason = error
    raise InputError(
        f"model {graph.name!r} runs on none of the random inputs that were tried; the last failed with: {reason}. "
        "Give inputs to verify it with (data=, on the command line --data x.npz), or leave verifying out"
    )
