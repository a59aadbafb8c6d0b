"""From pieces to a program that runs. Nothing of the compiler is imported."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from lite_core.backend import Interval, Stale
from lite_core.errors import LiteError
from lite_core.ir import Graph
from lite_cpu.executable import CompiledProgram, StepInfo
from lite_cpu.external import ExternalSgemm
from lite_cpu.lowering.weights import WeightCache
from lite_cpu.machine_code.image import CodeImage
from lite_cpu.machine_code.library import KernelLibrary
from lite_cpu.runtime import Program, ProgramTables
from lite_cpu.runtime.layout import STEP_WORDS, StepField
from lite_cpu.runtime.native import provide_native
from lite_cpu.saved.constants import find_constants
from lite_cpu.saved.frame import SavedStateError, describe_graph, read_frame
from lite_cpu.tensors import ABSOLUTE

__all__ = ["restore_program"]

Array = np.ndarray[Any, Any]

#: What malformed content may raise on the way, although its checksum is right.
_MALFORMED = (AttributeError, LookupError, OverflowError, RecursionError, TypeError, ValueError, struct.error)


def restore_program(
    pieces: Sequence[memoryview],
    graph: Graph,
    threads: int,
    compatibility: str,
    library: KernelLibrary,
    weights: WeightCache,
    external_sgemm: Callable[[], ExternalSgemm | None],
) -> CompiledProgram | Stale:
    """The program in pieces, or why it cannot be used here. Never raises for what is in them.

    Args:
        pieces: what :func:`~lite_cpu.saved.writing.save_program` gave; the program uses the packed weights in them.
        graph: the partition; the types of its inputs and outputs are known.
        threads: how many the session allows.
        compatibility: of this process, see :func:`~lite_cpu.saved.frame.compatibility`.
        library: takes the kernels.
        weights: takes the packed weights, for other programs.
        external_sgemm: the backend's other source of matrix products, asked only if the program needs one.
    """
    try:
        return _restore(pieces, graph, threads, compatibility, library, weights, external_sgemm)
    except LiteError as error:
        return Stale(str(error))
    except _MALFORMED as error:
        return Stale(f"the saved state cannot be read: {type(error).__name__}: {error}")


def _restore(
    pieces: Sequence[memoryview],
    graph: Graph,
    threads: int,
    compatibility: str,
    library: KernelLibrary,
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
        reader.words(STEP_WORDS * len(infos)).reshape(-1, STEP_WORDS),
        reader.words(2 * saved["pointers"]).reshape(-1, 2),
        reader.words(saved["params"]),
        tuple([info.kernel for info in infos]),
    )
    kernels = {key: CodeImage.from_bytes(reader.take(size)) for key, size in saved["kernels"]}
    for name, size in saved["runtime"]:
        provide_native(name, CodeImage.from_bytes(reader.take(size)))
    constants = find_constants(saved["constants"], graph, pieces[1:], weights)
    faults, arena_bytes = tuple(map(str, saved["faults"])), _size(saved["arena_bytes"])
    extents = _extents(graph, arena_bytes, bool(faults))
    tables.check(len(kernels), np.array([*extents, *(array.nbytes for array in constants)], np.int64))
    addresses = library.provide(kernels)
    if not _fits(saved["threads"], threads):
        # Not in vain: what compiles it again finds the kernels and the weights.
        raise SavedStateError(f"the saved program divides its work among {saved['threads']} thread(s), not {threads}")
    numbers = tables.steps[:, StepField.KERNEL]
    tables.steps[:, StepField.KERNEL] = np.array(list(addresses.values()), np.int64)[numbers]
    _point_to(tables.pointers, constants, len(extents))
    if saved["external"]:
        sgemm = external_sgemm()
        if sgemm is None:
            raise SavedStateError("the saved program calls another library's matrix product, and none is chosen here")
        tables.params[saved["external"]] = sgemm.address
    program = Program(tables, arena_bytes, _size(saved["thread_scratch_bytes"]), owners=[library, *constants])
    intervals = tuple([Interval(*map(_size, interval)) for interval in saved["intervals"]])
    return CompiledProgram(program, infos, faults, intervals, sum(a.nbytes for a in constants), lambda: [*pieces])


def _check_purpose(saved: Mapping[str, Any], graph: Graph, compatibility: str) -> None:
    """Make sure that a program was saved for such a process and such a partition."""
    if saved["compatibility"] != compatibility:
        raise SavedStateError(f"the saved program is for {saved['compatibility']}; here is {compatibility}")
    differing = [name for name, here in describe_graph(graph).items() if saved["graph"].get(name) != here]
    if differing:
        raise SavedStateError(f"the saved program is of another partition: other {', '.join(differing)}")


def _fits(planned: int, threads: int) -> bool:
    """Whether a program planned for so many threads is good for as many as there are.

    Measured, fewer threads take no longer with work divided for more, but for a single one, by up to a tenth. More
    threads than planned are busy as long as work is divided into a few parts for each of those that were.
    """
    return planned == threads or (planned > 1 and 1 < threads <= 2 * planned)


def _size(number: int) -> int:
    if not isinstance(number, int) or number < 0:
        raise SavedStateError(f"the saved state is damaged: a size is {number!r}")
    return number


class _Reader:
    """Takes one part after another."""

    def __init__(self, body: memoryview) -> None:
        self._body = body
        self._position = 0

    def take(self, size: int) -> bytes:
        """The next ``size`` bytes."""
        start, end = self._position, self._position + size
        if not start <= end <= len(self._body):
            raise SavedStateError(f"the saved state has {len(self._body)} bytes of tables and code, fewer than {end}")
        self._position = end
        return bytes(self._body[start:end])

    def words(self, count: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The next ``count`` words, to be changed."""
        return np.frombuffer(self.take(8 * count), "<i8").astype(np.int64)


def _extents(graph: Graph, arena_bytes: int, has_faults: bool) -> list[int]:
    """The bytes behind each base up to the last argument; address 0 may not be pointed to."""
    arguments = [prod(v.shape) * v.dtype.itemsize for v in (*graph.inputs, *graph.outputs)]
    return [arena_bytes, -1, *arguments, *([16] if has_faults else [])]


def _point_to(pointers: Array, constants: Sequence[Array], first: int) -> None:
    """Replace the bases of constants, which are numbered from ``first`` on, by their addresses."""
    starts = np.array([a.__array_interface__["data"][0] for a in constants], np.int64)
    of_constants = pointers[:, 0] >= first
    pointers[of_constants, 1] += starts[pointers[of_constants, 0] - first]
    pointers[of_constants, 0] = ABSOLUTE
