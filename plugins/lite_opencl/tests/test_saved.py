"""Saving and restoring partitions: no lowering, packing or building is needed, and other pieces are rejected."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from opencl_device import first_device, first_runtime, run_executable, saved_pieces

from lite_core.backend import Executable, Options, Partition, SavedWeights, Stale
from lite_core.builder import GraphBuilder
from lite_core.ir import Graph
from lite_core.ops.evaluate import evaluate_graph
from lite_opencl.lowering import compile as compiler
from lite_opencl.programs.library import ProgramLibrary

RANDOM = np.random.default_rng(0)


def partition(name: str = "Relu") -> Graph:
    """Return an element-wise operator, a convolution, and a product with a matrix that is packed."""
    builder = GraphBuilder("saved")
    x = builder.add(name, [builder.input("x", "float32", (2, 2, 5, 5))])
    y = builder.add("Conv", [x, builder.constant(RANDOM.standard_normal((2, 2, 3, 3)).astype(np.float32))])
    y = builder.add("Flatten", [y])
    y = builder.add("MatMul", [y, builder.constant(RANDOM.standard_normal((18, 40)).astype(np.float32))])
    builder.output(builder.add("Mul", [y, builder.constant(RANDOM.random(40).astype(np.float32))]), "y")
    return builder.build()


def compiled(graph: Graph) -> Executable:
    backend, device = first_device()
    return backend.compile(Partition("test", graph), device, Options())


def saved(graph: Graph) -> list[bytes]:
    return contents(compiled(graph))


def contents(executable: Executable) -> list[bytes]:
    """Return copies of the pieces that an executable saves."""
    return [bytes(piece) for piece in saved_pieces(executable)]


def restored(pieces: list[bytes], graph: Graph) -> Executable | Stale:
    backend, device = first_device()
    return backend.restore([memoryview(p) for p in pieces], Partition("test", graph), device, Options())


def test_restored_partition_is_not_lowered_or_built(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = partition()
    executable = compiled(graph)
    pieces = contents(executable)
    runtime = first_runtime()
    monkeypatch.setenv("LITE_CACHE_DIR", "off")
    programs = ProgramLibrary(runtime.context, runtime.found)
    monkeypatch.setattr(runtime, "programs", programs)
    monkeypatch.delattr(compiler, "lower_graph")
    again = restored(pieces, graph)
    assert not isinstance(again, Stale)
    assert programs.statistics.misses == 0
    assert programs.statistics.hits > 1
    assert again.memory_use() == executable.memory_use()
    x = RANDOM.standard_normal((2, 2, 5, 5)).astype(np.float32)
    (y,) = run_executable(again, graph, [x])
    np.testing.assert_allclose(y, evaluate_graph(graph, [x])[0], rtol=1e-5, atol=1e-5)


def test_unpacked_constants_are_not_saved() -> None:
    graph = partition()
    executable = compiled(graph)
    names = {value.name for value in graph.constants}
    assert set(executable.constants_read()) < names
    again = restored(contents(executable), graph)
    assert not isinstance(again, Stale)
    assert set(again.constants_read()) == set(executable.constants_read())


def test_packed_weights_are_no_code() -> None:
    """They may come from anyone, so a start need not hash them."""
    graph = partition()
    packed = [piece for piece in compiled(graph).save() if isinstance(piece, SavedWeights)]
    assert sum(len(piece.data) for piece in packed) >= 4 * 18 * 40


def test_partitions_restored_from_same_pieces_share_memory() -> None:
    graph = partition()
    mapped = [np.frombuffer(piece, np.uint8).copy() for piece in saved(graph)]
    backend, device = first_device()
    pool = first_runtime().constants
    restored_partitions = []
    counts = []
    for _ in range(2):
        restored_partitions.append(
            backend.restore([memoryview(m) for m in mapped], Partition("test", graph), device, Options())
        )
        counts.append(len(pool._entries))
    assert counts[0] == counts[1]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda pieces: [],
        lambda pieces: pieces[:-1],
        lambda pieces: [*pieces, pieces[-1]],
        lambda pieces: [pieces[0], *reversed(pieces[1:])],
        lambda pieces: [*reversed(pieces)],
        lambda pieces: [pieces[0][:-1], *pieces[1:]],
        lambda pieces: [pieces[0][:20], *pieces[1:]],
        lambda pieces: [pieces[0][:-1] + b"x", *pieces[1:]],
        lambda pieces: [*pieces[:-1], pieces[-1][:-1]],
        lambda pieces: [b"x" * 99, *pieces[1:]],
        lambda pieces: [*pieces[:-1], b"x" * len(pieces[-1])],
        lambda pieces: saved(partition("Neg")),
    ],
)
def test_damaged_or_foreign_pieces_are_stale(spoil: Callable[[list[bytes]], list[bytes]]) -> None:
    graph = partition()
    assert isinstance(restored(spoil(saved(graph)), graph), Stale)


def test_program_refused_by_driver_is_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = partition()
    pieces = saved(graph)
    monkeypatch.setattr(ProgramLibrary, "restore", lambda *_: False)
    assert isinstance(restored(pieces, graph), Stale)
