"""The cases of level 1 about saving executables and restoring them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from lite_conformance.cases.case import Context
from lite_conformance.cases.probe import require_well_spelt
from lite_conformance.cases.side_by_side import SideBySide
from lite_conformance.cases.supported import large_tensor_graph, supported_cases
from lite_conformance.cases.tensors import Array
from lite_conformance.drive.saved_state import Pieces, restore, restore_or_stale, save, stored
from lite_conformance.drive.subject import require_same
from lite_conformance.judge.outcome import Outcome
from lite_core.backend import Stale
from lite_core.ir import Graph

__all__ = ["CHECKS", "graphs_to_save"]

_MAX_DAMAGED_PIECES = 6  # pieces to omit, truncate and exchange, each in turn


def _save_and_restore(context: Context) -> Outcome:
    """Require that save() returns pieces, and that restore() makes an executable of them with the same results."""
    graphs = graphs_to_save(context)
    for name, graph, inputs in graphs:
        compiled = context.subject.compile(graph)
        restored = restore(save(compiled))
        if type(restored.executable) is not type(compiled.executable):
            require_well_spelt(restored.executable, "executable", f"the restored executable of {name}")
        require_same(compiled.run(inputs), restored.run(inputs), f"{name}: the restored executable")
        others = [a.reshape(-1)[::-1].reshape(a.shape) for a in inputs]
        require_same(compiled.run(others), restored.run(others), f"{name}: a second run of the restored executable")
    return Outcome(examples=4 * len(graphs))


def _damaged_save(context: Context) -> Outcome:
    """Require that restore() answers Stale to pieces of another graph or damaged ones, or gives correct results."""
    examples = 0
    (_, other, _), *graphs = graphs_to_save(context)
    foreign = save(context.subject.compile(other)).pieces
    for name, graph, inputs in graphs:
        compiled = context.subject.compile(graph)
        expected = compiled.run(inputs)
        saved = save(compiled)
        for how, pieces in _damaged(saved.pieces, foreign):
            restored = restore_or_stale(saved._replace(pieces=pieces))
            if not isinstance(restored, Stale):
                what = f"{name}: an executable restored from pieces {how}, where Stale(reason) is due,"
                require_same(expected, restored.run(inputs), what)
            examples += 1
    return Outcome(examples=examples)


def graphs_to_save(context: Context) -> list[tuple[str, Graph, list[Array]]]:
    """Return graphs with inputs: of one operator, of two weights of the same size, and with several outputs."""
    cases = [(case.name, *case.build(0)) for case in supported_cases(context.subject)]
    several = SideBySide(context.subject, 0)
    layers = ("two layers", *large_tensor_graph(context.subject, 0, layers=2))
    return [*cases, layers, ("a graph with several outputs", several.graph, several.inputs)]


def _damaged(pieces: Pieces, foreign: Pieces) -> Iterator[tuple[str, Pieces]]:
    """Yield damaged versions of the saved pieces, each with a description of the damage."""
    nonsense = stored(b"not what save() gave" * 20)
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


CHECKS: Sequence[Callable[[Context], Outcome]] = (_save_and_restore, _damaged_save)
