"""Verification of a new model file: runs that are compared with the references."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from lite_core.backend import Options
from lite_core.container import ModelFile
from lite_core.errors import ConversionError, ExecutionError, InputError, LiteError
from lite_core.ir import Graph
from lite_core.ops.evaluate import evaluate_graph
from lite_core.plugins import PluginManager
from lite_core.schedule.precision import Precision
from lite_core.session import Session, load
from lite_core.session.arguments import to_arrays
from lite_tools.checking.comparison import largest_difference
from lite_tools.checking.random_inputs import candidate_inputs
from lite_tools.commands.errors import package_of_others
from lite_tools.conversion.report import Check
from lite_tools.conversion.typed import Shapes

__all__ = ["Sample", "check_reference", "check_target", "draw_samples"]

Array = np.ndarray[Any, Any]

_MAX_ATTEMPTS = 12
#: A function from inputs by name to outputs by name.
Run = Callable[[Mapping[str, Array]], Mapping[str, Array]]


@dataclass(frozen=True, slots=True)
class Sample:
    """Inputs, and the outputs of the references.

    Attributes:
        inputs: arrays by name, in the model's order.
        source: the source of the inputs, in words.
        expected: the outputs of the model before the conversion, by name.
    """

    inputs: Mapping[str, Array]
    source: str
    expected: Mapping[str, Array]

    @property
    def shapes(self) -> Shapes:
        """The shape of each input."""
        return {name: array.shape for name, array in self.inputs.items()}

    def fits(self, shapes: Shapes) -> bool:
        """Return True if the inputs have these shapes."""
        return dict(self.shapes) == dict(shapes)


def draw_samples(graph: Graph, shapes: Sequence[Shapes], data: Mapping[str, Array] | None, seed: int) -> list[Sample]:
    """Return samples to verify a model with: the caller's data, and random inputs for all other shapes.

    Args:
        graph: the graph that is correct.
        shapes: the shapes of prepared plans; if empty, sizes are chosen that fit the model.
        data: the caller's inputs by name.
        seed: the seed of random inputs.

    Raises:
        InputError: the data do not fit the model, or it runs on none of the random inputs.
        ConversionError: the reference of a plugin's operator failed with all of the random inputs.
    """
    samples = []
    if data is not None:
        arrays = to_arrays(graph.name, graph.inputs, data, {})
        samples.append(Sample(arrays, "given data", _outputs(graph, arrays)))
    for wanted in shapes or ([] if data is not None else [{}]):
        if not any(sample.fits(wanted) for sample in samples):
            samples.append(_random_sample(graph, wanted, seed))
    return samples


def check_reference(file: ModelFile, samples: Sequence[Sample], limit: float) -> list[Check]:
    """Compare the references' outputs of the graph in a file with those of the original model."""
    graph = file.graph()
    return [_check("references", None, sample, limit, lambda inputs: _outputs(graph, inputs)) for sample in samples]


def check_target(
    file: ModelFile,
    backends: Sequence[str],
    samples: Sequence[Sample],
    limit: float,
    plugins: PluginManager,
    options: Options,
    precision: Precision,
) -> list[Check]:
    """Run a file on a target with each number of threads that it has a plan for, and compare the outputs.

    Args:
        file: the model file.
        backends: the target, and the backends that may run nodes that it refuses.
        samples: the samples.
        limit: the largest allowed difference, as a share of an output's range.
        plugins: the plugins that the session uses.
        options: the options of sessions; the number of threads is for shapes without a plan.
        precision: the precision of every node.
    """
    target = backends[0]
    start = partial(
        load,
        file.path,
        backend=backends,
        precision=precision.text,
        exact=options.exact,
        fallback="never",
        saved="trust",  # this process made the code, even if no key can be kept to seal it
        plugins=plugins,
    )
    plans = [plan for own in file.targets if own.backend == target for plan in own.plans]
    checks = []
    for sample in samples:
        planned = list(dict.fromkeys(plan.threads for plan in plans if dict(plan.shapes) == dict(sample.shapes)))
        for threads in planned or [options.threads]:
            session = partial(start, threads=threads)
            checks.append(_check_session(target, threads, sample, limit, session, has_plan=bool(planned)))
    return checks


def _check_session(
    target: str, threads: int, sample: Sample, limit: float, start: Callable[[], Session], *, has_plan: bool
) -> Check:
    """Check a sample with a new session, so that its notes are only about this sample."""
    try:
        session = start()
    except LiteError as error:
        return Check(target, threads, sample.shapes, sample.source, {}, limit, str(error))
    check = _check(target, threads, sample, limit, session.run)
    unused = [note for note in session.notes if note not in session.shortfalls]
    return replace(check, prepared=not unused, unused="; ".join(unused)) if has_plan else check


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
    """Return random inputs that the references accept in a run: inference does not detect every invalid input."""
    reason: LiteError | None = None
    for inputs in islice(candidate_inputs(graph, seed, shapes=shapes), _MAX_ATTEMPTS):
        try:
            return Sample(inputs, f"random numbers, seed {seed}", _outputs(graph, inputs))
        except LiteError as error:
            reason = error
    if isinstance(reason, ExecutionError) and package_of_others(reason.source):
        fault = ConversionError(
            f"model {graph.name!r} cannot be verified, and was not converted: an operator of {reason.source} failed "
            "with all random inputs. If it needs certain values, give inputs (data=, in a shell --data x.npz):",
            [str(reason)],
        )
        fault.source = reason.source
        raise fault from reason
    raise InputError(
        f"model {graph.name!r} runs on none of the random inputs that were tried; the last failed with: {reason}. "
        "Give inputs for the verification (data=, on the command line --data x.npz), or disable the verification"
    )
