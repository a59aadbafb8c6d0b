"""Restoring of saved programs. This module imports nothing of the compiler."""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from lite_core.backend import Interval, Stale
from lite_core.errors import LiteError
from lite_core.ir import Graph
from lite_cpu.executable import CompiledProgram, StepInfo, Tuned
from lite_cpu.external import ExternalSgemm
from lite_cpu.lowering.weights import WeightCache
from lite_cpu.machine_code.file_code import code_of_file
from lite_cpu.runtime import Program, ProgramTables
from lite_cpu.runtime.layout import STEP_FIELDS, StepField
from lite_cpu.saved.constants import find_constants
from lite_cpu.saved.frame import SavedStateError, describe_graph, read_frame
from lite_cpu.tensors import ABSOLUTE, FIRST_ARGUMENT

if TYPE_CHECKING:
    from lite_compiler.observing import Segment

__all__ = ["restore_program"]

logger = logging.getLogger("lite.cpu.tuning")

Array = np.ndarray[Any, Any]

#: Exceptions that malformed content may raise although its checksum is right.
_MALFORMED = (AttributeError, LookupError, OverflowError, RecursionError, TypeError, ValueError, struct.error)


def restore_program(
    pieces: Sequence[memoryview],
    graph: Graph,
    threads: int,
    compatibility: str,
    weights: WeightCache,
    external_sgemm: Callable[[], ExternalSgemm | None],
) -> CompiledProgram | Stale:
    """Return the program saved in pieces, or the reason why it cannot be used. Invalid content never raises.

    Args:
        pieces: the result of :func:`~lite_cpu.saved.writing.save_program`; the program reads the packed weights there.
        graph: the partition's graph; the types of its inputs and outputs are known.
        threads: number of threads that the session allows.
        compatibility: the text of this process, see :func:`~lite_cpu.saved.frame.compatibility`.
        weights: receives the packed weights, for other programs.
        external_sgemm: returns another library's matrix product; called only if the program needs it.
    """
    try:
        return _restore(pieces, graph, threads, compatibility, weights, external_sgemm)
    except LiteError as error:
        return Stale(str(error))
    except _MALFORMED as error:
        return Stale(f"the saved state cannot be read: {type(error).__name__}: {error}")


def _restore(
    pieces: Sequence[memoryview],
    graph: Graph,
    threads: int,
    compatibility: str,
    weights: WeightCache,
    external_sgemm: Callable[[], ExternalSgemm | None],
) -> CompiledProgram:
    if not pieces:
        raise SavedStateError("nothing is saved")
    saved, body = read_frame(pieces[0])
    _check_purpose(saved, graph, compatibility)
    infos = tuple([StepInfo(label, tuple(nodes), flops, size) for label, nodes, flops, size in saved["steps"]])
    reader = _Reader(body)
    tables = ProgramTables(
        reader.int64_array(STEP_FIELDS * len(infos)).reshape(-1, STEP_FIELDS),
        reader.int64_array(2 * saved["pointers"]).reshape(-1, 2),
        reader.int64_array(saved["params"]),
        tuple([info.kernel for info in infos]),
    )
    keys, first = [key for key, _ in saved["kernels"]], 2 + len(saved["kernels"])
    if len(pieces) < first:
        raise SavedStateError(f"there are {len(pieces)} pieces, expected {first} with the code, and the saved arrays")
    runtime, *kernels = [bytes(piece) for piece in pieces[1:first]]
    checksums = [saved["runtime"], *(checksum for _, checksum in saved["kernels"])]
    if [sha256(code).hexdigest() for code in (runtime, *kernels)] != checksums:
        raise SavedStateError("the pieces of code are not those that were saved with the program")
    code = code_of_file(keys, kernels, runtime)
    constants = find_constants(saved["constants"], graph, pieces[first:], weights, code, threads)
    faults, arena_bytes = tuple(map(str, saved["faults"])), _size(saved["arena_bytes"])
    in_place = _in_place(saved["in_place"], graph)
    extents = _extents(graph, arena_bytes, 16 * (1 + 2 * len(in_place)) if faults or in_place else 0)
    tables.check(len(keys), np.array([*extents, *(array.nbytes for array in constants)], np.int64))
    if not _fits(saved["threads"], threads):
        # The work above is not lost: compiling the partition again finds the packed weights.
        raise SavedStateError(f"the saved program divides its work among {saved['threads']} thread(s), not {threads}")
    numbers = tables.steps[:, StepField.KERNEL]
    tables.steps[:, StepField.KERNEL] = np.array(list(code.addresses.values()), np.int64)[numbers]
    _point_to(tables.pointers, constants, len(extents))
    if saved["external"]:
        sgemm = external_sgemm()
        if sgemm is None:
            raise SavedStateError("the saved program calls another library's matrix product, and none is chosen here")
        tables.params[saved["external"]] = sgemm.address
    program = Program(
        tables, arena_bytes, _size(saved["thread_scratch_bytes"]), owners=[code, *constants], code=code.native
    )
    intervals = tuple([Interval(*map(_size, interval)) for interval in saved["intervals"]])
    weight_bytes = sum(a.nbytes for a in constants)
    visible, first = saved["segments"], FIRST_ARGUMENT + len(graph.inputs)
    memories = [arena_bytes, *extents[first : first + len(graph.outputs)]]

    def segments() -> list[Segment]:
        # Parsed late: few programs are observed.
        from lite_compiler.observing import segments_from_json

        return segments_from_json(visible, len(infos), memories)

    computes = str(saved["computes"])
    return CompiledProgram(
        program,
        infos,
        faults,
        intervals,
        weight_bytes,
        lambda: [*pieces],
        segments,
        _tuned(saved),
        computes=lambda: computes,
        in_place=in_place,
    )


def _tuned(saved: Mapping[str, Any]) -> Tuned:
    """Return the measured choices of a saved program; none if their record is damaged, as it only speeds up others."""
    if not saved.get("choices"):
        return Tuned(device=str(saved.get("tuned", "")))
    # Imported late: few files have choices.
    from lite_compiler.tournaments.choice import choices_of_json

    try:
        choices = choices_of_json(saved["choices"])
    except TypeError as error:
        logger.warning("the record of tournaments in a model file is damaged and is not used: %s", error)
        return Tuned()
    return Tuned(choices, str(saved["tuned"]), (f"choices: {len(choices)} from the model's file",))


def _check_purpose(saved: Mapping[str, Any], graph: Graph, compatibility: str) -> None:
    """Raise SavedStateError unless the program was saved for a compatible process and for this partition."""
    if saved["compatibility"] != compatibility:
        raise SavedStateError(f"the saved program is for {saved['compatibility']}; here is {compatibility}")
    differing = [name for name, here in describe_graph(graph).items() if saved["graph"].get(name) != here]
    if differing:
        raise SavedStateError(f"the saved program is of another partition: it has other {', '.join(differing)}")


def _fits(planned: int, threads: int) -> bool:
    """Return True if a program planned for ``planned`` threads runs well on ``threads`` threads.

    Measured: work divided for more threads takes fewer threads no longer, except a single thread, which takes up to a
    tenth longer. More threads than planned stay busy if work is divided into several parts per planned thread. Without
    a compiler, any program is better than none.
    """
    if planned == threads or (planned > 1 and 1 < threads <= 2 * planned):
        return True
    from lite_cpu.machine_code.objects import missing_compiler

    return bool(missing_compiler())


def _size(number: int) -> int:
    if not isinstance(number, int) or number < 0:
        raise SavedStateError(f"the saved state is damaged: a size is {number!r}")
    return number


class _Reader:
    """Sequential reader of the parts of a frame's body."""

    def __init__(self, body: memoryview) -> None:
        self._body = body
        self._position = 0

    def take(self, size: int) -> bytes:
        """Return the next ``size`` bytes."""
        start, end = self._position, self._position + size
        if not start <= end <= len(self._body):
            raise SavedStateError(f"the saved state has {len(self._body)} bytes of tables, fewer than {end}")
        self._position = end
        return bytes(self._body[start:end])

    def int64_array(self, count: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return a writable copy of the next ``count`` 64-bit integers."""
        return np.frombuffer(self.take(8 * count), "<i8").astype(np.int64)


def _in_place(pairs: Any, graph: Graph) -> dict[int, int]:
    """Return for each output that may be in the memory of an input that input; both are caches."""
    found = {int(output): int(input) for output, input in pairs}
    for output, input in found.items():
        if not (0 <= output < len(graph.outputs) and 0 <= input < len(graph.inputs)):
            raise SavedStateError(f"the saved state is damaged: output {output} cannot be in place of input {input}")
        old, new = graph.inputs[input], graph.outputs[output]
        if old.dtype is not new.dtype or len(old.shape) != 4 or len(new.shape) != 4:
            raise SavedStateError(f"the saved state is damaged: {new!r} cannot be in place of {old!r}")
    return found


def _extents(graph: Graph, arena_bytes: int, record_bytes: int) -> list[int]:
    """Return the size of each base up to the last argument, in bytes; -1 forbids pointers relative to address 0."""
    arguments = [prod(v.shape) * v.dtype.itemsize for v in (*graph.inputs, *graph.outputs)]
    return [arena_bytes, -1, *arguments, *([record_bytes] if record_bytes else [])]


def _point_to(pointers: Array, constants: Sequence[Array], first: int) -> None:
    """Replace pointers to constants, whose bases are numbered from ``first`` on, by absolute addresses."""
    starts = np.array([a.__array_interface__["data"][0] for a in constants], np.int64)
    of_constants = pointers[:, 0] >= first
    pointers[of_constants, 1] += starts[pointers[of_constants, 0] - first]
    pointers[of_constants, 0] = ABSOLUTE
