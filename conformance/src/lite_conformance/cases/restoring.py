"""The cases of level 1 about what restored executables depend on: other executables, threads, processes, graphs."""

from __future__ import annotations

import gc
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lite_conformance.cases.case import Context
from lite_conformance.cases.new_process import run_in_new_process
from lite_conformance.cases.saving import graphs_to_save
from lite_conformance.cases.side_by_side import SideBySide, weighted_graphs
from lite_conformance.cases.tensors import Array
from lite_conformance.drive.saved_state import Saved, lend_pieces, restore, restore_or_stale, save, stored
from lite_conformance.drive.subject import in_form_of_a_session, require_same
from lite_conformance.judge.outcome import Failure, Outcome, Refused
from lite_core.backend import ListsConstantsRead, Options, Stale
from lite_core.builder import GraphBuilder
from lite_core.ir import Graph, Value, fresh_dim

__all__ = ["CHECKS"]


def _save_again(context: Context) -> Outcome:
    """Require that an executable can be saved before and after runs, twice, and after it was restored."""
    graphs = graphs_to_save(context)
    for name, graph, inputs in graphs:
        compiled = context.subject.compile(graph)
        early = [save(compiled), save(compiled)]
        expected = compiled.run(inputs)
        late = save(compiled)
        require_same(expected, compiled.run(inputs), f"{name}: a run after save()")
        for when, saved in (("before the first run", early[0]), ("twice", early[1]), ("after a run", late)):
            restored = restore(saved)
            require_same(expected, restored.run(inputs), f"{name}: saved {when}, the restored executable")
        try:
            again = save(restored)
        except Refused:
            continue
        require_same(expected, restore(again).run(inputs), f"{name}: saved when it was itself restored, it")
    return Outcome(examples=6 * len(graphs))


def _restore_several(context: Context) -> Outcome:
    """Require the results of the compiled executables of several that are restored together, when those are gone."""
    other = SideBySide(context.subject, 1)
    graphs = [*graphs_to_save(context), ("a graph with other constants", other.graph, other.inputs)]
    compiled = [context.subject.compile(graph) for _, graph, _ in graphs]
    expected = [one.run(inputs) for one, (_, _, inputs) in zip(compiled, graphs)]
    saved = [save(one) for one in compiled]
    restored = [(restore(one), restore(one)) for one in saved[::-1]][::-1]
    del compiled, saved
    gc.collect(1)
    for order in (1, -1):
        for (name, _, inputs), pair, want in list(zip(graphs, restored, expected))[::order]:
            for one in pair:
                require_same(want, one.run(inputs), f"{name}: restored twice, beside executables of other graphs, it")
    del one, pair
    firsts = [pair[0] for pair in restored]
    restored.clear()
    gc.collect(1)
    for (name, _, inputs), one, want in zip(graphs, firsts, expected):
        require_same(want, one.run(inputs), f"{name}: restored twice, and one of the two dropped, it")
    return Outcome(examples=6 * len(graphs))


def _pieces_not_referenced(context: Context) -> Outcome:
    """Require that a restored executable refers to the pieces that it reads, instead of only noting their addresses."""
    graphs = graphs_to_save(context)
    for name, graph, inputs in graphs:
        compiled = context.subject.compile(graph)
        expected = compiled.run(inputs)
        saved = save(compiled)
        pieces, memories = lend_pieces(saved.pieces)
        restored = restore(saved._replace(pieces=pieces))
        pieces.clear()
        for memory in memories:
            if not memory.is_used():
                memory.overwrite()
        require_same(expected, restored.run(inputs), f"{name}: after the pieces it was restored from were released, it")
    return Outcome(examples=2 * len(graphs))


def _restore_with_threads(context: Context) -> Outcome:
    """Require correct results of an executable that is saved for one thread and restored for several, or Stale."""
    graphs = graphs_to_save(context)
    for name, graph, inputs in graphs:
        for saved_for, restored_for in ((1, 3), (3, 1)):
            compiled = context.subject.compile(graph, Options(threads=saved_for))
            expected = compiled.run(inputs)
            restored = restore_or_stale(save(compiled), Options(threads=restored_for))
            if isinstance(restored, Stale):
                continue
            what = f"{name}: saved for {saved_for} thread(s) and restored for {restored_for}, it"
            for one, other in zip(expected, restored.run(inputs)):
                # Threads may split sums differently.
                if not np.allclose(one.astype(np.float64), other.astype(np.float64), 1e-3, 1e-3, equal_nan=True):
                    raise Failure(f"{what} gave another result")
    return Outcome(examples=4 * len(graphs))


def _restore_with_open_types(context: Context) -> Outcome:
    """Require that an executable is restored where the sizes of values between nodes are symbols.

    A session reads these types from a model file, which may hold programs for several sizes; it only infers those of
    inputs and outputs.
    """
    graphs = graphs_to_save(context)
    for name, graph, inputs in graphs:
        compiled = context.subject.compile(graph)
        restored = restore_or_stale(save(compiled)._replace(graph=_with_symbols_inside(compiled.graph)))
        if isinstance(restored, Stale):
            raise Failure(
                f"{name}: restore() answered Stale where the sizes of values between nodes are symbols, as in a model "
                f"file with an open size: {restored.reason}. Compare the types of inputs, constants and outputs only"
            )
        require_same(compiled.run(inputs), restored.run(inputs), f"{name}: the executable restored with open types")
    return Outcome(examples=2 * len(graphs))


def _with_symbols_inside(graph: Graph) -> Graph:
    """Return a copy in which every size of a value between nodes is a symbol."""
    graph = graph.copy()
    for value in {v for node in graph.nodes for v in node.outputs if v is not None} - {*graph.outputs}:
        value.type = value.type.with_shape(tuple([fresh_dim("size") for _ in value.shape or ()]))
    return graph


# **** another process ****


def _restore_in_a_new_process(context: Context) -> Outcome:
    """Require the same results of executables that another process restores, which has compiled nothing."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number, (_, graph, inputs) in enumerate(graphs_to_save(context)):
            compiled = context.subject.compile(graph)
            saved = save(compiled)
            pieces = {f"piece_{i}": np.frombuffer(piece, np.uint8) for i, piece in enumerate(saved.pieces)}
            outputs = {f"output_{i}": _as_bytes(a) for i, a in enumerate(compiled.run(inputs))}
            np.savez(folder / f"{number}.npz", **pieces, **outputs)  # type: ignore[arg-type]
            read = None if saved.constants_read is None else sorted(saved.constants_read)
            (folder / f"{number}.json").write_text(json.dumps(read), encoding="utf-8")
        return run_in_new_process(context, restore_what_was_saved, folder)


def restore_what_was_saved(context: Context, folder: Path) -> Outcome:
    """Restore the executables in a folder before anything is compiled, and compare their outputs with those there."""
    graphs = graphs_to_save(context)
    for number, (name, graph, inputs) in enumerate(graphs):
        with np.load(folder / f"{number}.npz") as file:
            pieces = [stored(file[key].tobytes()) for key in file.files if key.startswith("piece")]
            wanted = [file[key] for key in file.files if key.startswith("output")]
        names = json.loads((folder / f"{number}.json").read_text(encoding="utf-8"))
        read = None if names is None else frozenset(names)
        restored = restore(Saved(context.subject, in_form_of_a_session(graph), pieces, read))
        require_same(wanted, [_as_bytes(a) for a in restored.run(inputs)], f"{name}: the restored executable")
    return Outcome(examples=len(graphs))


def _as_bytes(array: Array) -> Array:
    flat: Array = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return flat


# **** similar graphs ****


class _Pair(NamedTuple):
    """Two graphs with inputs of the same types that differ in one respect."""

    difference: str
    saved: Graph
    restored: Graph
    inputs: list[Array]


def _restore_for_a_similar_graph(context: Context) -> Outcome:
    """Require Stale, or correct results, when pieces are restored for a graph that differs in one respect."""
    examples = 0
    for pair in _pairs(context):
        compiled = context.subject.compile(pair.restored)
        expected = compiled.run(pair.inputs)
        pieces = save(context.subject.compile(pair.saved)).pieces
        restored = restore_or_stale(save(compiled)._replace(pieces=pieces))
        if not isinstance(restored, Stale):
            what = f"pieces of a graph with {pair.difference} were restored, where Stale(reason) is due: the executable"
            require_same(expected, restored.run(pair.inputs), what)
        examples += 1
    if not examples:
        raise Refused("the backend supports none of the pairs of similar graphs")
    return Outcome(examples=examples)


def _pairs(context: Context) -> Iterator[_Pair]:
    """Yield pairs of graphs that the backend supports."""
    random = np.random.default_rng(context.settings.seed)
    x, y = (random.standard_normal((4, 4)).astype(np.float32) for _ in range(2))
    image = random.standard_normal((1, 1, 4, 4)).astype(np.float32)
    for difference, one, other, inputs in (
        ("another operator", _unary("Relu"), _unary("Neg"), [x]),
        ("another operator", _unary("Sigmoid"), _unary("Tanh"), [x]),
        ("another operator", _binary("Add"), _binary("Mul"), [x, y]),
        ("another attribute", _unary("Softmax", axis=0), _unary("Softmax", axis=1), [x]),
        ("another attribute", _unary("LeakyRelu", alpha=0.1), _unary("LeakyRelu", alpha=0.3), [x]),
        ("another attribute", _binary("Gemm", transB=0), _binary("Gemm", transB=1), [x, y]),
        ("another attribute", _pool(pads=(1, 0, 0, 1)), _pool(pads=(0, 1, 1, 0)), [image]),
        ("exchanged operands", _binary("Sub"), _binary("Sub", exchanged=True), [x, y]),
        ("exchanged outputs", _two_outputs(False), _two_outputs(True), [x]),
        ("another element type", _binary("Add", dtype="int32"), _binary("Add"), [x, y]),
        ("other sizes", _unary("Softmax", (2, 8), axis=1), _unary("Softmax", axis=1), [x]),
    ):
        if not context.subject.refusals([*one.nodes, *other.nodes]):
            yield _Pair(difference, one, other, inputs)
    try:
        weighted = zip(weighted_graphs(context.subject, 1), weighted_graphs(context.subject, 0))
    except Refused:
        return
    for (_, one, _), (_, other, inputs) in weighted:
        # Constants that a restored executable does not read are undefined, so it cannot compare them.
        if not isinstance(context.subject.compile(one).executable, ListsConstantsRead):
            yield _Pair("other constants", one, other, inputs)


def _graph(write: Callable[[GraphBuilder], Sequence[Value]]) -> Graph:
    builder = GraphBuilder("similar")
    for value in write(builder):
        builder.output(value)
    return builder.build()


def _unary(op: str, shape: tuple[int, ...] = (4, 4), **attributes: Any) -> Graph:
    return _graph(lambda b: [b.add(op, [b.input("x", "float32", shape)], attributes)])


def _pool(**attributes: Any) -> Graph:
    attributes = {"kernel_shape": (2, 2), **attributes}
    return _graph(lambda b: [b.add("MaxPool", [b.input("x", "float32", (1, 1, 4, 4))], attributes)])


def _binary(op: str, dtype: str = "float32", exchanged: bool = False, **attributes: Any) -> Graph:
    def write(builder: GraphBuilder) -> list[Value]:
        operands = [builder.input(name, dtype, (4, 4)) for name in ("x", "y")]
        return [builder.add(op, operands[::-1] if exchanged else operands, attributes)]

    return _graph(write)


def _two_outputs(exchanged: bool) -> Graph:
    def write(builder: GraphBuilder) -> list[Value]:
        x = builder.input("x", "float32", (4, 4))
        results = [builder.add("Relu", [x]), builder.add("Neg", [x])]
        return results[::-1] if exchanged else results

    return _graph(write)


CHECKS: Sequence[Callable[[Context], Outcome]] = (
    _save_again,
    _restore_several,
    _pieces_not_referenced,
    _restore_with_threads,
    _restore_with_open_types,
    _restore_in_a_new_process,
    _restore_for_a_similar_graph,
)
