"""The cases of level 1 about saving executables and restoring them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from lite_conformance.cases.case import Context
from lite_conformance.cases.probe import require_well_spelt
from lite_conformance.cases.supported import large_tensor_graph, supported_cases
from lite_conformance.cases.tensors import Array
from lite_conformance.drive.backend_call import backend_call
from lite_conformance.drive.subject import Compiled, require_same
from lite_conformance.judge.outcome import Failure, Outcome, Refused
from lite_core.backend import (
    Executable,
    ListsConstantsRead,
    Options,
    Partition,
    RestoresState,
    SavesState,
    Stale,
)
from lite_core.ir import Graph, SavedWeights

__all__ = ["damaged_save", "save_and_restore"]

Pieces = Sequence[memoryview]

_MAX_DAMAGED_PIECES = 6  # pieces to omit, truncate and exchange, each in turn


def save_and_restore(context: Context) -> Outcome:
    """Require that save() returns pieces, and that restore() makes an executable of them with the same results."""
    graphs = _graphs(context)
    for name, graph, inputs in graphs:
        compiled = context.subject.compile(graph)
        restored = _restore(context, compiled, _saved(context, compiled))
        if isinstance(restored, Stale):
            raise Failure(f"restore() answered Stale to pieces that save() just returned: {restored.reason}")
        if type(restored) is not type(compiled.executable):
            require_well_spelt(restored, "executable", f"the restored executable of {name}")
        again = Compiled(context.subject, compiled.graph, restored)
        require_same(compiled.run(inputs), again.run(inputs), f"{name}: the restored executable")
    return Outcome(examples=2 * len(graphs))


def damaged_save(context: Context) -> Outcome:
    """Require that restore() answers Stale to pieces of another graph or damaged ones, or gives correct results."""
    examples = 0
    (_, other, _), *graphs = _graphs(context)
    foreign = _saved(context, context.subject.compile(other))
    for name, graph, inputs in graphs:
        compiled = context.subject.compile(graph)
        expected = compiled.run(inputs)
        for how, pieces in _damaged(_saved(context, compiled), foreign):
            restored = _restore(context, compiled, pieces)
            if not isinstance(restored, Stale):
                what = f"{name}: an executable restored from pieces {how}, where Stale(reason) is due,"
                require_same(expected, Compiled(context.subject, compiled.graph, restored).run(inputs), what)
            examples += 1
    return Outcome(examples=examples)


def _graphs(context: Context) -> list[tuple[str, Graph, list[Array]]]:
    """Return graphs with inputs: of different operators, and one with two weights of the same size."""
    cases = [(case.name, *case.build(0)) for case in supported_cases(context.subject)]
    return [*cases, ("two layers", *large_tensor_graph(context.subject, 0, layers=2))]


def _damaged(pieces: Pieces, foreign: Pieces) -> Iterator[tuple[str, Pieces]]:
    """Yield damaged versions of the saved pieces, each with a description of the damage."""
    nonsense = _stored(b"not what save() gave" * 20)
    yield "that are none", []
    yield "of another graph", foreign
    yield "of nonsense", [nonsense] * len(pieces)
    yield "and one more", [*pieces, nonsense]
    yield "in reverse order", pieces[::-1]
    for i, piece in enumerate(pieces[:_MAX_DAMAGED_PIECES]):
        before, after = pieces[:i], pieces[i + 1 :]
        yield f"without number {i}", [*before, *after]
        yield f"of which number {i} is cut short", [*before, piece[: len(piece) // 2], *after]
        yield f"of which number {i} is empty", [*before, piece[:0], *after]
        yield f"of which number {i} is another graph's", [*before, foreign[min(i, len(foreign) - 1)], *after]
        yield f"of which number {i} is exchanged with the next", [*before, *after[:1], piece, *after[1:]]


def _saved(context: Context, compiled: Compiled) -> Pieces:
    """Return the pieces that an executable saves, as a model file returns them."""
    if not isinstance(compiled.executable, SavesState):
        raise Refused("saving is optional: the executable has no save()")
    if not isinstance(context.subject.backend, RestoresState):
        raise Failure("the executable has save(), but the backend no restore()")
    with backend_call("save()"):
        saved = compiled.executable.save()
    # A bytes object is a sequence of ints, so the elements are checked as well.
    if not isinstance(saved, Sequence) or not all(isinstance(p, (bytes, memoryview, SavedWeights)) for p in saved):
        raise Failure(
            f"save() must give a sequence of bytes, memoryviews and SavedWeights, gave {type(saved).__name__}"
        )
    if not saved:
        raise Refused("saving is optional: save() gave no pieces")
    return [_stored(_weights(piece, compiled.graph) if isinstance(piece, SavedWeights) else piece) for piece in saved]


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


def _stored(piece: bytes | memoryview) -> memoryview:
    """Return a read-only copy that starts at a multiple of 64 bytes."""
    content = bytearray(piece)
    memory = np.empty(len(content) + 64, np.uint8)
    stored = memory[-memory.ctypes.data % 64 :][: len(content)]
    stored[:] = content
    stored.flags.writeable = False
    return stored.data


def _with_constants_read(compiled: Compiled) -> Graph:
    """Return the graph with nonsense in the constants that the executable does not list as read.

    The elements of such constants are undefined if they come from a model file.
    """
    if not isinstance(compiled.executable, ListsConstantsRead):
        return compiled.graph
    graph, names = compiled.graph.copy(), set(compiled.executable.constants_read())
    for value, array in graph.constants.items():
        if value.name not in names:
            graph.constants[value] = np.frombuffer(b"\x7f" * array.nbytes, array.dtype).reshape(array.shape)
    return graph


def _restore(context: Context, compiled: Compiled, pieces: Pieces) -> Executable | Stale:
    backend = context.subject.backend
    assert isinstance(backend, RestoresState)  # checked by _saved()
    with backend_call("restore(), which must answer Stale(reason),"):
        part = Partition("restored", _with_constants_read(compiled))
        answer = backend.restore(pieces, part, context.subject.device, Options())
    if isinstance(answer, Stale) and not answer.reason:
        raise Failure("restore() answered Stale without a reason")
    return answer
