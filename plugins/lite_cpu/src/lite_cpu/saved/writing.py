"""Saving of compiled programs as pieces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np

from lite_compiler.observing import Segment, segments_to_json
from lite_compiler.tournaments.choice import choices_to_json
from lite_core.backend import Options
from lite_core.ir import Graph
from lite_cpu.executable import Pieces, StepInfo, Tuned
from lite_cpu.kernels.external_product import ExternalProduct
from lite_cpu.kernels.winograd_weights import WinogradWeights
from lite_cpu.lowering.computing import computed_types
from lite_cpu.lowering.memory import lifetimes_of
from lite_cpu.lowering.weights import WeightCache
from lite_cpu.machine_code.image import CodeImage
from lite_cpu.machine_code.library import KernelLibrary
from lite_cpu.runtime import Program
from lite_cpu.runtime.layout import StepField
from lite_cpu.runtime.native import runtime_image
from lite_cpu.saved.constants import describe_constants
from lite_cpu.saved.frame import compatibility, describe_graph, write_frame
from lite_cpu.tensors import ABSOLUTE, FIRST_ARGUMENT, Storage

if TYPE_CHECKING:
    from lite_cpu.lowering.steps import PlannedStep

__all__ = ["save_program"]


def save_program(
    graph: Graph,
    options: Options,
    planned: Sequence[PlannedStep],
    program: Program,
    infos: Sequence[StepInfo],
    faults: Sequence[str],
    library: KernelLibrary,
    weights: WeightCache,
    tuned: Tuned,
    segments: Sequence[Segment],
    in_place: Mapping[int, int],
) -> Pieces:
    """Return the pieces that :func:`~lite_cpu.saved.restoring.restore_program` needs.

    Args:
        graph: the graph that the program computes.
        options: the options that it was compiled with.
        planned: the planned steps that its steps were built from.
        program: the program, with one step for each of ``planned``.
        infos: descriptions of its steps.
        faults: messages of the errors that its kernels may detect.
        library: the library that has its kernels.
        weights: the cache that has its packed constants.
        tuned: the choices of its kernels that were measured.
        segments: its segments.
        in_place: see :class:`~lite_cpu.executable.CompiledProgram`.
    """
    keys = {step.kernel: step.kernel.key(library.machine) for step in planned}
    images = library.images(keys.values())
    storages = [tensor.storage for step in planned for tensor in step.tensors]
    constants = list(dict.fromkeys(s for s in storages if s.base == ABSOLUTE))
    described, packed = describe_constants(constants, graph, weights)
    images |= _makers_of_weights(described, library)
    numbers = {key: number for number, key in enumerate(images)}
    steps = program.tables.steps.copy()
    steps[:, StepField.KERNEL] = [numbers[keys[step.kernel]] for step in planned]
    first_constant = FIRST_ARGUMENT + len(graph.inputs) + len(graph.outputs) + bool(faults or in_place)
    pointers = _relative(program.tables.pointers, storages, constants, first_constant)
    external, params = _external_calls(planned, program)
    code = {key: image.to_bytes() for key, image in images.items()}
    runtime = runtime_image(library.machine.triple)
    description: dict[str, Any] = {
        "compatibility": compatibility(options),
        "machine": library.machine.name,
        "threads": options.threads,
        "graph": describe_graph(graph),
        "arena_bytes": program.arena_bytes,
        "thread_scratch_bytes": program.thread_scratch_bytes,
        "intervals": [life.interval for life in lifetimes_of(planned)],
        "steps": [list(info) for info in infos],
        "computes": computed_types(planned, library.machine),
        "faults": list(faults),
        "in_place": [list(pair) for pair in in_place.items()],
        "choices": choices_to_json(tuned.choices),
        "tuned": tuned.device,
        "external": external,
        "segments": segments_to_json(segments),
        "pointers": len(pointers),
        "params": len(params),
        "constants": described,
        "runtime": sha256(runtime).hexdigest(),
        "kernels": [[key, sha256(image).hexdigest()] for key, image in code.items()],
    }
    tables = [table.astype("<i8").tobytes() for table in (steps, pointers, params)]
    return [write_frame(description, tables), runtime, *code.values(), *packed]


def _makers_of_weights(described: Sequence[dict[str, Any]], library: KernelLibrary) -> dict[str, CodeImage]:
    """Return the kernels that make weights when the program is restored, and add their keys to the entries."""
    made = [entry for entry in described if "winograd" in entry]
    makers = {entry["winograd"].outputs: WinogradWeights(entry["winograd"].outputs) for entry in made}
    library.addresses(makers.values())
    for entry in made:
        entry["maker"] = makers[entry["winograd"].outputs].key(library.machine)
    return library.images([entry["maker"] for entry in made])


def _relative(
    pointers: np.ndarray[Any, Any], storages: Sequence[Storage], constants: Sequence[Storage], first_constant: int
) -> np.ndarray[Any, Any]:
    """Replace absolute addresses by offsets in the constants, whose base numbers start at ``first_constant``."""
    numbers = {storage: first_constant + i for i, storage in enumerate(constants)}
    moved: np.ndarray[Any, Any] = pointers.copy()
    for pointer, storage in zip(moved, storages):
        if storage.base == ABSOLUTE:
            pointer[:] = numbers[storage], pointer[1] - storage.offset
    return moved


def _external_calls(planned: Sequence[PlannedStep], program: Program) -> tuple[list[int], np.ndarray[Any, Any]]:
    """Return the indices of parameters that hold the address of an external product, and the parameters without it."""
    params = program.tables.params.copy()
    starts = program.tables.steps[:, StepField.PARAMS] // params.itemsize
    external = [int(start) for start, step in zip(starts, planned) if isinstance(step.kernel, ExternalProduct)]
    params[external] = 0
    return external, params
