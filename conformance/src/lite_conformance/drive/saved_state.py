"""Saving an executable and restoring it, with the pieces as a model file returns them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lite_conformance.drive.backend_call import backend_call
from lite_conformance.drive.subject import Compiled, Subject
from lite_conformance.drive.watched import LentBytes
from lite_conformance.judge.outcome import Failure, Refused
from lite_core.backend import ListsConstantsRead, Options, Partition, RestoresState, SavesState, Stale
from lite_core.ir import Graph, SavedWeights
from lite_core.plugins.contracts import missing_members

__all__ = ["Pieces", "Saved", "lend_pieces", "restore", "restore_or_stale", "save", "stored"]

Pieces = Sequence[memoryview]


class Saved(NamedTuple):
    """The saved state of an executable.

    Attributes:
        subject: the device that it was compiled for.
        graph: its graph.
        pieces: what it saved, as a model file returns it.
        constants_read: the names of the constants that it lists as read when it is restored; None if it has no list.
    """

    subject: Subject
    graph: Graph
    pieces: Pieces
    constants_read: frozenset[str] | None


def save(compiled: Compiled) -> Saved:
    """Return the saved state of an executable.

    Raises:
        Refused: the executable saves nothing.
        Failure: it saves something that no model file can hold, or the backend cannot restore.
    """
    executable, graph = compiled.executable, compiled.graph
    if not isinstance(executable, SavesState):
        raise Refused("saving is optional: the executable has no save()")
    if not isinstance(compiled.subject.backend, RestoresState):
        raise Failure("the executable has save(), but the backend no restore()")
    with backend_call("save()"):
        saved = executable.save()
    # A bytes object is a sequence of ints, so the elements are checked as well.
    if not isinstance(saved, Sequence) or not all(isinstance(p, (bytes, memoryview, SavedWeights)) for p in saved):
        raise Failure(
            f"save() must give a sequence of bytes, memoryviews and SavedWeights, gave {type(saved).__name__}"
        )
    if not saved:
        raise Refused("saving is optional: save() gave no pieces")
    pieces = [stored(_weights(piece, graph) if isinstance(piece, SavedWeights) else piece) for piece in saved]
    read = None
    if isinstance(executable, ListsConstantsRead):
        with backend_call("constants_read()"):
            read = frozenset(executable.constants_read())
        unknown = read.difference(value.name for value in graph.constants)
        if unknown:
            raise Failure(f"constants_read() lists {', '.join(sorted(unknown))}, which are no constants of the graph")
    return Saved(compiled.subject, graph, pieces, read)


def stored(piece: bytes | memoryview) -> memoryview:
    """Return a read-only copy that starts at a multiple of 64 bytes."""
    content = bytearray(piece)
    memory = np.empty(len(content) + 64, np.uint8)
    copy = memory[-memory.ctypes.data % 64 :][: len(content)]
    copy[:] = content
    copy.flags.writeable = False
    return copy.data


def lend_pieces(pieces: Pieces) -> tuple[list[memoryview], list[LentBytes]]:
    """Return copies of pieces, and for each the memory it is in, which tells whether the backend refers to it."""
    copies, memories = [], []
    for piece in pieces:
        memory = LentBytes(piece.nbytes)
        copy = memory.lent
        assert copy is not None
        copy[:] = np.frombuffer(piece, np.uint8)
        copy.flags.writeable = False
        memory.lent = None
        copies.append(copy.data)
        memories.append(memory)
    return copies, memories


def restore(saved: Saved, options: Options | None = None) -> Compiled:
    """Return the executable that the backend restores.

    Raises:
        Failure: the backend answered Stale, or raised.
    """
    restored = restore_or_stale(saved, options)
    if isinstance(restored, Stale):
        raise Failure(f"restore() answered Stale to pieces that save() just returned: {restored.reason}")
    return restored


def restore_or_stale(saved: Saved, options: Options | None = None) -> Compiled | Stale:
    """Return the executable that the backend restores, or its answer that it cannot.

    Raises:
        Failure: the backend raised, or gave no reason.
    """
    backend, graph = saved.subject.backend, saved.graph
    if not isinstance(backend, RestoresState):
        raise Failure("the backend has no restore()")
    with backend_call("restore(), which must answer Stale(reason),"):
        part = Partition("restored", _with_constants_read(graph, saved.constants_read))
        answer = backend.restore(saved.pieces, part, saved.subject.device, options or Options())
    if isinstance(answer, Stale):
        if not answer.reason:
            raise Failure("restore() answered Stale without a reason")
        return answer
    if missing_members(answer, "executable"):
        found = "None" if answer is None else f"an object of type {type(answer).__name__}"
        raise Failure(f"restore() returned {found}, expected an Executable or Stale(reason)")
    return Compiled(saved.subject, graph, answer)


def _weights(piece: SavedWeights, graph: Graph) -> bytes | memoryview:
    """Return the content of a piece; if it claims to be a constant in a layout, require that it is."""
    if piece.layout is None:
        return piece.data
    array = next((array for value, array in graph.constants.items() if value.name == piece.constant), None)
    if array is None or array.dtype != np.float32:
        raise Failure(
            f"save() gave weights in a layout of {piece.constant!r}, which is no float32 constant of the graph"
        )
    try:
        piece.layout.check(array.size)
    except ValueError as error:
        raise Failure(f"save() gave weights of {piece.constant!r} in an impossible layout: {error}") from error
    packed = np.empty(piece.layout.shape, np.float32)
    piece.layout.pack(array, packed)
    if packed.tobytes() != bytes(piece.data):
        raise Failure(f"save() gave weights that are not {piece.constant!r} in the layout that it states")
    return piece.data


def _with_constants_read(graph: Graph, names: frozenset[str] | None) -> Graph:
    """Return the graph with nonsense in the constants that are not among ``names``.

    The elements of such constants are undefined if they come from a model file.
    """
    if names is None:
        return graph
    graph = graph.copy()
    for value, array in graph.constants.items():
        if value.name not in names:
            graph.constants[value] = np.frombuffer(b"\x7f" * array.nbytes, array.dtype).reshape(array.shape)
    return graph
