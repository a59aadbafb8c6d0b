"""Kernels for sizes that are not prepared: what a device without a compiler needs to run a model in them.

Most kernels take sizes as parameters, and the others depend on remainders and on whether a size is 1. So a model is
compiled for some sizes around the prepared ones besides, only to find the kernels that these need. Sizes that depend on
data, and those in the bodies of If, Loop and Scan, are found by a run with the inputs of the verification.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from lite_core.backend import Options
from lite_core.container import PartitionRecord
from lite_core.errors import InputError, LiteError
from lite_core.ir import Graph, SymbolicDim, Value, evaluate_shape
from lite_core.saved_kernels import SavesKernels
from lite_core.schedule import Candidate, Plan, compatibility_of, place
from lite_core.schedule.planner import Planner
from lite_core.session.arguments import check_shapes
from lite_tools.conversion.pieces import Pieces
from lite_tools.conversion.typed import Shapes, typed_graph
from lite_tools.conversion.verification import Sample

__all__ = ["OtherSizes", "collecting", "depends_on_data", "find_other_sizes", "kernel_records"]

Array = np.ndarray[Any, Any]

logger = logging.getLogger("lite.convert")

#: Sizes up to this one count items, such as those of a batch; larger ones are lengths and widths.
_MOST_ITEMS = 7
_ITEMS = (2, 3, 4, 1, 5, 6, 8, 16)
#: The most sizes in which several dimensions differ from the prepared one.
_MOST_TOGETHER = 24


@dataclass(frozen=True, slots=True)
class OtherSizes:
    """Sizes in which a model may run besides the prepared ones, as far as they are known.

    Attributes:
        graph: the model as it will be in the file.
        nearby: input shapes around those of a prepared plan.
        samples: inputs, one of each prepared shape, to run models whose sizes depend on data.
        command: the command of this conversion, for messages.
    """

    graph: Graph
    nearby: Sequence[Shapes]
    samples: Sequence[Sample]
    command: str

    def compile(self, plans: Iterable[tuple[Shapes, Plan]], candidates: Sequence[Candidate], planner: Planner) -> None:
        """Compile the model for the nearby sizes, and run it for those that depend on data.

        Args:
            plans: the prepared plans, with their input shapes.
            candidates: the devices, which remember their kernels.
            planner: makes plans with the options of expected sessions.
        """
        plans = list(plans)
        for shapes, plan in plans:
            for sample in (sample for sample in self.samples if sample.fits(shapes)):
                try:
                    plan.run([sample.inputs[value.name] for value in plan.graph.inputs])
                except LiteError as error:  # the verification reports it
                    logger.info("running %s for the sizes that depend on data: %s", self.graph.name, error)
        for _, plan in plans:
            _compile_bodies(planner, plan.graph)
        for shapes in self.nearby:
            with suppress(LiteError):  # the model need not accept every size
                typed = typed_graph(self.graph, shapes)
                if planner.plan_decided(typed) is None:
                    planner.plan(typed, place(typed, candidates))
                    _compile_bodies(planner, typed)


def find_other_sizes(
    graph: Graph, signatures: Sequence[tuple[Shapes, Graph]], samples: Sequence[Sample], command: str
) -> OtherSizes | None:
    """Return the sizes in which a model may run besides the prepared ones; None if there are none.

    Args:
        graph: the model as it will be in the file.
        signatures: the input shapes to prepare plans for, each with the graph whose types follow from them.
        samples: inputs for these shapes.
        command: the command of this conversion.
    """
    nearby = nearby_shapes(graph, signatures[0][0]) if signatures else []
    to_run = [each for shapes, typed in signatures if depends_on_data(typed) for each in samples if each.fits(shapes)]
    return OtherSizes(graph, nearby, to_run, command) if nearby or to_run else None


def _compile_bodies(planner: Planner, graph: Graph) -> None:
    """Compile the bodies whose sizes are known: a run takes only one branch of an If, and perhaps none of a Loop."""
    for body in _bodies(graph, {}):
        if all(value.type.is_static for value in body.defined()):
            with suppress(LiteError):
                planner.plan_body(body, f"{body.name}/")


def _bodies(graph: Graph, outer: Mapping[Value, Array]) -> Iterator[Graph]:
    """Yield each body as the separate graph that sessions make of it; values that it captures become inputs."""
    constants = {**outer, **graph.constants}
    for body in (body for node in graph.nodes for body in node.subgraphs):
        captured, computed = list(body.captured()), {value for node in body.nodes for value in node.outputs}
        yield Graph(
            body.name,
            inputs=[*body.inputs, *(value for value in captured if value not in constants)],
            outputs=[value for value in dict.fromkeys(body.outputs) if value in computed],
            nodes=body.nodes,
            constants={**body.constants, **{value: constants[value] for value in captured if value in constants}},
        )
        yield from _bodies(body, constants)


def collecting(candidate: Candidate) -> Candidate:
    """Return the candidate with a device that remembers the kernels of everything compiled for it, if it can."""
    backend = candidate.backend
    if not isinstance(backend, SavesKernels):
        return candidate
    return candidate._replace(device=backend.collecting(candidate.device))


def kernel_records(
    candidates: Sequence[Candidate], options: Options, pieces: Pieces, command: str
) -> tuple[PartitionRecord, ...]:
    """Return a record of the kernels that each collecting device remembers.

    Args:
        candidates: the devices.
        options: the options of expected sessions.
        pieces: receives the kernels.
        command: the command that converts the model, to which input shapes can be added.
    """
    found = []
    for candidate in candidates:
        backend = candidate.backend
        saved = backend.saved_kernels(candidate.device) if isinstance(backend, SavesKernels) else ()
        text = compatibility_of(candidate, options) if saved else ""
        if saved and isinstance(text, str):
            sections = tuple(pieces.add(piece, {}) for piece in saved)
            found.append(PartitionRecord(command, candidate.device.backend, (), (), (), text, sections))
    return tuple(found)


def depends_on_data(graph: Graph) -> bool:
    """Return True if sizes in a graph whose inputs have known sizes, or what it runs, are known only during a run."""
    return any(
        any(any(node.subgraphs) for node in scope.nodes) or not all(value.type.is_static for value in scope.defined())
        for scope in graph.walk()
    )


def nearby_shapes(graph: Graph, prepared: Shapes) -> list[Shapes]:
    """Return input shapes around prepared ones; none if the graph has only static inputs.

    A size of a few items is replaced by other small numbers, a larger one by its neighbours, fractions and multiples:
    first one dimension at a time, then all together.
    """
    sizes: dict[str, int] = {}
    for value in graph.inputs:
        for dim, size in zip(value.type.shape or (), prepared[value.name]):
            if isinstance(dim, SymbolicDim):
                sizes.setdefault(str(dim), size)
    if any(v.type.shape is None or not v.type.symbols <= sizes.keys() for v in graph.inputs):
        return []
    others = {symbol: _others(size) for symbol, size in sizes.items()}
    found: list[Shapes] = []
    for changed in chain(_alone(others), _together(others) if len(others) > 1 else ()):
        env = {**sizes, **changed}
        shapes = {v.name: evaluate_shape(v.type.shape or (), env) for v in graph.inputs}
        with suppress(InputError):
            complete = check_shapes(graph.name, graph.inputs, shapes)
            if complete not in found and complete != dict(prepared):
                found.append(complete)
    return found


def _others(size: int) -> list[int]:
    """Return sizes that need other kernels than ``size``: with other remainders, and of other orders of magnitude."""
    if size <= _MOST_ITEMS:
        return [items for items in _ITEMS if items != size]
    by_block = [size + 32 * step for step in range(1, 8)]
    scaled = [size // 2, 2 * size, size // 4, size * 7 // 20, size * 3 // 4, 4 * size, size * 11 // 20, size * 3 // 20]
    others = [*by_block, *scaled, *(size + 4 * step for step in range(1, 8)), size + 1, size // 2 + 1, size // 3]
    return list(dict.fromkeys(others))


def _alone(others: Mapping[str, Sequence[int]]) -> Iterator[dict[str, int]]:
    for symbol, sizes in others.items():
        yield from ({symbol: size} for size in sizes)


def _together(others: Mapping[str, Sequence[int]]) -> Iterator[dict[str, int]]:
    """Yield a size for every symbol; in each further round, the sizes meet others."""
    for number in range(_MOST_TOGETHER):
        yield {
            symbol: sizes[(number + (number // len(sizes) + 1) * place) % len(sizes)]
            for place, (symbol, sizes) in enumerate(others.items())
        }
