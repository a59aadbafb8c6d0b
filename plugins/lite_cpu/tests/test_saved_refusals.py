"""Saved programs that are damaged or of another machine, partition or version are refused with the reason."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from agreement import normal
from levels import LevelBackend, backend_for, runnable_machines
from saving import (
    DEVICE,
    Sketch,
    aligned,
    compiled,
    convolutions,
    refusal,
    restored,
    run,
    saved,
    split,
    transformer,
    views,
)

from lite_core import GraphBuilder
from lite_core.backend import Options, Partition, Stale
from lite_core.ir import Graph
from lite_cpu.executable import CpuExecutable
from lite_cpu.runtime import ProgramError
from lite_cpu.runtime.layout import StepField
from lite_cpu.saved.frame import read_frame

Array = np.ndarray[Any, Any]


def test_program_is_restored_only_for_its_partition() -> None:
    machine = runnable_machines()[-1]

    def graph(op: str, *shape: int) -> Graph:
        b = GraphBuilder(op)
        b.output(b.add(op, [b.input("x", "float32", shape)]))
        return b.build()

    pieces = saved(compiled(machine, graph("Exp", 5, 7)))
    assert "of another partition: it has other nodes" in refusal(machine, pieces, graph("Sqrt", 5, 7))
    assert "of another partition: it has other inputs, outputs" in refusal(machine, pieces, graph("Exp", 7, 5))


def unary(op: str) -> Graph:
    b = GraphBuilder(op)
    b.output(b.add(op, [b.input("x", "float32", [40])]), "y")
    return b.build()


def test_code_of_a_file_is_used_by_no_other_program() -> None:
    """A saved program may bring any code under any name; what is compiled or restored besides has its own."""
    machine, inputs = runnable_machines()[-1], {"x": normal(40)}
    exp, absolute = (saved(compiled(machine, unary(op))) for op in ("Exp", "Abs"))
    (wanted,) = [key for key, _ in read_frame(absolute[0]).description["kernels"]]

    def rename(description: dict[str, Any]) -> None:
        description["kernels"] = [[wanted, checksum] for _, checksum in description["kernels"]]

    backend, part = LevelBackend(machine), Partition("part", unary("Abs"))
    planted = backend.restore(with_description(exp, rename), Partition("part", unary("Exp")), DEVICE, Options())
    own = backend.restore(absolute, part, DEVICE, Options())
    built = backend.compile(part, DEVICE, Options())
    for executable, expected in ((planted, np.exp), (own, np.abs), (built, np.abs)):
        assert isinstance(executable, CpuExecutable)
        np.testing.assert_allclose(run(executable, part.graph, inputs)[0], expected(inputs["x"]), rtol=1e-5)
    assert isinstance(built, CpuExecutable)
    assert [*map(bytes, saved(built))] == [*map(bytes, absolute)], (
        "a converted file contains other code than was compiled"
    )


def test_missing_or_resized_constants_are_refused() -> None:
    machine = runnable_machines()[-1]

    def graph(rows: int, name: str) -> Graph:
        b = GraphBuilder("table")
        b.output(b.add("Gather", [b.constant(normal(rows, 8), name), b.input("i", "int64", [3])], name="g"), "y")
        return b.build()

    pieces = saved(compiled(machine, graph(9, "table")))
    restored(machine, pieces, graph(9, "table"))
    assert "'table'" in refusal(machine, pieces, graph(4, "table"))
    assert refusal(machine, pieces, graph(9, "other"))


def test_other_code_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, example = runnable_machines()[-1], transformer()
    pieces = saved(compiled(machine, example.graph))
    other = LevelBackend(machine)
    before = other.compatibility(DEVICE, Options())
    monkeypatch.setattr("lite_cpu.saved.frame.sources_version", lambda: "edited")
    assert before != other.compatibility(DEVICE, Options())
    assert "edited" in refusal(machine, pieces, example.graph)


def test_program_of_another_level_is_restored() -> None:
    """The core compares what the code needs, so that a processor of a higher level can use code for a lower one."""
    lowest, best, example = runnable_machines()[0], runnable_machines()[-1], transformer()
    options = Options()
    assert LevelBackend(lowest).compatibility(DEVICE, options) == LevelBackend(best).compatibility(DEVICE, options)
    executable = compiled(lowest, example.graph)
    again = restored(best, saved(executable), example.graph)
    for one, other in zip(run(executable, example.graph, example.inputs), run(again, example.graph, example.inputs)):
        assert one.tobytes() == other.tobytes()


def with_description(pieces: list[memoryview], change: Callable[[dict[str, Any]], None]) -> list[memoryview]:
    """Return the pieces with a changed description of the program and a correct checksum."""
    program, *arrays = pieces
    content = program.tobytes()
    size = struct.unpack_from("<Q", content, 20)[0]
    description = json.loads(content[64 : 64 + size])
    change(description)
    text = json.dumps(description, separators=(",", ":")).encode()
    head = text.ljust(-(-len(text) // 64) * 64, b"\0") + content[64 + -(-size // 64) * 64 :]
    fields = struct.pack("<2Q", 64 + len(head), len(text)).ljust(52, b"\0") + head
    return [aligned(content[:8] + struct.pack("<I", zlib.crc32(fields)) + fields), *arrays]


#: Fields of the description, and wrong values for them.
_FIELDS: dict[str, tuple[Any, ...]] = {
    "arena_bytes": (0, -1, 1.5, "x", None),
    "compatibility": ("", None),
    "constants": ([], [{}], "x", None),
    "external": ([10**9], ["x"], [[]]),
    "faults": (1, None),
    "graph": ({}, [], None),
    "kernels": ([], [["x", 5]], [[1, 2, 3]], ["x"], "x", None),
    "params": (0, 3, -1, 10**6, 2**62, None),
    "pointers": (0, 1, -1, 10**6, 1.5, None),
    "runtime": (0, "x", None),
    "steps": ([], [["relu", [], 0, 0]], [[]], "x", None),
    "thread_scratch_bytes": (-1, "x", None),
    "threads": ("x", None),
}

#: Fields of the descriptions of constants, and wrong values for them.
_CONSTANT_FIELDS: dict[str, tuple[Any, ...]] = {
    "bytes": (-1, 10**9, "x", None),
    "dtype": ("text", 3, None),
    "fingerprint": (0, "x", None),
    "graph": ("missing", 5, None),
    "offset": (-1, 10**6, "x", None),
    "shape": ([10**9], [-1], [2**63], [0.5], "x", None),
}


@pytest.mark.parametrize("field", [*_FIELDS, *_CONSTANT_FIELDS])
def test_inconsistent_content_is_refused(field: str) -> None:
    """Inconsistent content with a correct checksum is refused without an exception or a pointer outside its memory."""
    machine, example = runnable_machines()[-1], transformer()
    pieces = saved(compiled(machine, example.graph))
    restored(machine, with_description(pieces, lambda _: None), example.graph)

    def put(value: Any, description: dict[str, Any]) -> None:
        entries = [description] if field in _FIELDS else description["constants"]
        for entry in entries:
            if field in entry:
                entry[field] = value

    for value in (*_FIELDS.get(field, ()), *_CONSTANT_FIELDS.get(field, ())):
        assert refusal(machine, with_description(pieces, partial(put, value)), example.graph)


#: Fields of weights that are made when a program is restored, and wrong values for them.
_MADE_FIELDS: dict[str, tuple[Any, ...]] = {
    "maker": ("missing", 5, [], None),
    "sources": (["missing"], [], [[]], 5, None),
    "winograd": ([], [4, 16, 2], "x", None),
}


@pytest.mark.parametrize("field", _MADE_FIELDS)
def test_weights_that_cannot_be_made_are_refused(field: str) -> None:
    machine, example = runnable_machines()[-1], convolutions()
    pieces = saved(compiled(machine, example.graph))

    def put(value: Any, description: dict[str, Any]) -> None:
        made = [entry for entry in description["constants"] if "winograd" in entry]
        assert made
        for entry in made:
            entry[field] = value

    for value in _MADE_FIELDS[field]:
        assert refusal(machine, with_description(pieces, partial(put, value)), example.graph), value


@pytest.mark.parametrize(
    ("number", "value"), [(3, [1, 16, 16, 3, 4]), (3, [1, 17, 16, 3, 3]), (4, [0] * 4), (5, 1), (5, -1)]
)
def test_weights_made_from_outside_their_constant_are_refused(number: int, value: Any) -> None:
    g = Sketch()
    example = g.done(g.add("Conv", g.input(1, 16, 20, 20), g.constant(16, 16, 3, 3)))
    machine = runnable_machines()[-1]
    pieces = saved(compiled(machine, example.graph))

    def put(description: dict[str, Any]) -> None:
        (entry,) = [entry for entry in description["constants"] if "winograd" in entry]
        entry["winograd"][number] = value

    assert "WinogradRecipe" in refusal(machine, with_description(pieces, put), example.graph)


@pytest.mark.parametrize("field", StepField)
def test_inconsistent_tables_are_refused(field: StepField) -> None:
    """Steps and pointers are checked before native code uses them."""
    machine, example = runnable_machines()[-1], views()
    tables = compiled(machine, example.graph)._program.tables
    steps = tables.steps.copy()
    steps[:, 0] = 0
    extents = np.full(int(tables.pointers[:, 0].max()) + 1, 2**62)
    tables._replace(steps=steps).check(1, extents)
    # A grain may be larger than the number of work items.
    for value in (-1, 0) if field is StepField.GRAIN else (-1, 2**40):
        wrong = steps.copy()
        wrong[0, field] = value
        with pytest.raises(ProgramError, match="are inconsistent"):
            tables._replace(steps=wrong).check(1, extents)
    for column, value in ((0, -1), (0, len(extents)), (1, -1), (1, 2**62 + 1)):
        pointers = tables.pointers.copy()
        pointers[-1, column] = value
        with pytest.raises(ProgramError, match="are inconsistent"):
            tables._replace(steps=steps, pointers=pointers).check(1, extents)


def test_flipped_bits_of_a_program_are_refused() -> None:
    machine, example = runnable_machines()[-1], views()
    backend, part = backend_for(machine), Partition("part", example.graph)
    program, *arrays = saved(compiled(machine, example.graph))
    content = program.tobytes()
    # The whole header, and a sample of the rest.
    positions = [*range(64), *np.random.default_rng(0).integers(64, len(content), 200).tolist()]
    for position in positions:
        flipped = bytearray(content)
        flipped[position] ^= 1 << position % 8
        pieces = [memoryview(flipped), *arrays]
        assert isinstance(backend.restore(pieces, part, DEVICE, Options()), Stale), position


@pytest.mark.parametrize("size", [0, 1, 12, 63, 64, 65, 1000, -64, -1])
def test_truncated_program_is_refused(size: int) -> None:
    machine, example = runnable_machines()[-1], views()
    program, *arrays = saved(compiled(machine, example.graph))
    assert refusal(machine, [program[:size], *arrays], example.graph)
    assert refusal(machine, [aligned(program.tobytes() + b"\0"), *arrays], example.graph)


def test_other_arrays_than_the_saved_ones_are_refused() -> None:
    """Arrays that are missing, surplus, of another size, exchanged, or misaligned."""
    g = Sketch()
    y = g.add("MatMul", g.input(5, 24), g.constant(24, 24))
    example = g.done(g.add("MatMul", y, g.b.constant(np.eye(24, dtype=np.float32))))
    machine = runnable_machines()[-1]
    pieces = saved(compiled(machine, example.graph))
    code, arrays = split(pieces)
    restored(machine, pieces, example.graph)
    assert refusal(machine, [], example.graph) == "nothing is saved"
    assert "0 saved arrays, expected" in refusal(machine, code, example.graph)
    assert refusal(machine, arrays, example.graph)
    assert refusal(machine, pieces[:-1], example.graph)
    assert refusal(machine, [*pieces, pieces[-1]], example.graph)
    for number, array in enumerate(arrays):
        before, after = [*code, *arrays[:number]], arrays[number + 1 :]
        for wrong in (array[:-1], array[:0], aligned(array.tobytes() + b"\0")):
            assert "which is no" in refusal(machine, [*before, wrong, *after], example.graph)
        moved = aligned(b"\0" * 4 + array.tobytes())[4:]
        assert "multiple of 64" in refusal(machine, [*before, moved, *after], example.graph)
    first, *between, second = arrays
    assert "not the one that belongs there" in refusal(machine, [*code, second, *between, first], example.graph)


def test_other_code_than_the_saved_is_refused() -> None:
    """The runtime and the kernels: missing, surplus, changed, or exchanged."""
    machine, example = runnable_machines()[-1], transformer()
    pieces = saved(compiled(machine, example.graph))
    code, arrays = split(pieces)
    assert len(code) > 4
    for number in range(1, len(code)):
        before, after = pieces[:number], pieces[number + 1 :]
        assert refusal(machine, [*before, *after], example.graph)
        assert refusal(machine, [*before, pieces[number], *pieces[number:]], example.graph)
        assert refusal(machine, [*before, pieces[number][:-1], *after], example.graph)
        flipped = bytearray(pieces[number])
        flipped[len(flipped) // 2] ^= 1
        assert refusal(machine, [*before, aligned(flipped), *after], example.graph)
    for number in range(1, len(code) - 1):
        exchanged = [*code]
        exchanged[number], exchanged[number + 1] = exchanged[number + 1], exchanged[number]
        assert refusal(machine, [*exchanged, *arrays], example.graph)
    assert refusal(machine, code[:2], example.graph)
