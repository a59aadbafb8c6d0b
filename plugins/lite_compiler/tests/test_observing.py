"""Segments of a program and the values that are visible after them: found, run, saved and restored."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from observers import Recorder

from lite_compiler.observing import (
    ARENA,
    LoweredGroup,
    Segment,
    StepSummary,
    VisibleValue,
    find_segments,
    run_segments,
    segments_from_json,
    segments_to_json,
)
from lite_compiler.tensors import StridedTensor, dense_strides
from lite_core.builder import GraphBuilder
from lite_core.errors import ExecutionError
from lite_core.ir import DType, Graph

Array = np.ndarray[Any, Any]

F16, F32 = DType.FLOAT16, DType.FLOAT32


class Block:
    """A storage: a part of the memory of that number, or of none that is shown."""

    def __init__(self, memory: int | None, offset: int = 0) -> None:
        self.memory, self.offset = memory, offset


def tensor(block: Block, *shape: int, dtype: DType = F32) -> StridedTensor[Block]:
    return StridedTensor(block, dtype, shape, dense_strides(shape))


OUT = tensor(Block(1), 2, 3)


def chain(*ops: str) -> Graph:
    """Return a graph of operators, each of which reads the result of the one before it; the last is the output."""
    b = GraphBuilder("chain")
    value = b.input("x", F32, (2, 3))
    for op in ops:
        value = b.add(op, [value], name=op.lower())
    b.output(value, "y")
    return b.build()


def segments_of(graph: Graph, *lowered: tuple[int, int, StridedTensor[Block]], steps: Any) -> list[Segment]:
    """Return the segments of a chain: for each node the steps before and after it, and the tensor of its result."""
    groups = [
        LoweredGroup([node], begin, end, {v: found for v in node.outputs if v})
        for node, (begin, end, found) in zip(graph.nodes, lowered)
    ]
    return find_segments(groups, steps, {graph.outputs[0]: OUT}, graph, lambda block: block.memory)


def names_of(segments: list[Segment]) -> list[tuple[int, tuple[str, ...], list[str]]]:
    return [(s.end, s.nodes, [value.name for value in s.values]) for s in segments]


def test_a_result_is_shown_after_its_steps_while_a_later_step_reads_it() -> None:
    a = tensor(Block(ARENA, 64), 2, 3)
    found = segments_of(chain("Relu", "Neg"), (0, 2, a), (2, 3, OUT), steps=[[a], [a], [a, OUT]])
    assert names_of(found) == [(2, (), ["relu"]), (3, (), ["y"])]
    assert found[0].values[0][1:] == (ARENA, 64, F32, (2, 3), (3, 1), F32)


def test_memory_that_no_later_step_reads_is_not_shown() -> None:
    a = tensor(Block(ARENA), 2, 3)
    found = segments_of(chain("Relu", "Neg"), (0, 2, a), (2, 3, OUT), steps=[[a], [OUT], [OUT]])
    assert names_of(found) == [(2, (), []), (3, (), ["y"])]


def test_a_view_is_shown_with_the_segment_before_it() -> None:
    block = Block(ARENA)
    a, view = tensor(block, 2, 3), tensor(block, 2, 3).permute((1, 0))
    graph = chain("Relu", "Transpose", "Transpose")
    found = segments_of(graph, (0, 1, a), (1, 1, view), (1, 2, OUT), steps=[[a], [view, OUT]])
    assert names_of(found) == [(1, ("transpose",), ["relu", "transpose"]), (2, (), ["y"])]


def test_an_output_outside_the_arena_is_shown_when_it_has_been_copied() -> None:
    of_input = tensor(Block(None), 2, 3)
    found = segments_of(chain("Identity"), (0, 0, of_input), steps=[[of_input]])
    assert names_of(found) == [(1, ("identity",), ["y"])]


def test_repeated_elements_and_other_types_are_not_shown() -> None:
    block = Block(ARENA)
    repeated, integers = StridedTensor(block, F32, (2, 3), (0, 1)), tensor(block, 2, 3, dtype=DType.INT32)
    for hidden in (repeated, integers, tensor(block, 3, 2)):
        found = segments_of(chain("Relu", "Neg"), (0, 1, hidden), (1, 2, OUT), steps=[[hidden], [hidden, OUT]])
        assert names_of(found) == [(1, (), []), (2, (), ["y"])]


class _Memory:
    """One memory of bytes; it counts what is stored."""

    def __init__(self, content: Array) -> None:
        self.bytes, self.stores = content.view(np.uint8), 0

    def load(self, memory: int, begin: int, end: int) -> Array:
        return self.bytes[begin:end].copy()

    def store(self, memory: int, begin: int, content: Array) -> None:
        self.bytes[begin : begin + content.nbytes] = content
        self.stores += 1


def test_values_are_converted_and_keep_the_elements_around_them() -> None:
    memory = _Memory(np.arange(12, dtype=np.float16))
    value = VisibleValue("v", ARENA, 2 * 10, F16, (2, 2), (-4, -1), F32)
    recorder = Recorder({"v": np.full((2, 2), 9.5, np.float32)})
    run_segments([Segment(0, (), (value,))], [], lambda *_: None, memory, recorder)
    assert recorder.values["v"].tolist() == [[10, 9], [6, 5]]
    assert recorder.values["v"].dtype == np.float32
    assert memory.bytes.view(np.float16).tolist() == [0, 1, 2, 3, 4, 9.5, 9.5, 7, 8, 9.5, 9.5, 11]
    assert memory.stores == 1


def test_a_kernel_is_named_after_the_step_that_computes_most() -> None:
    steps = [StepSummary(label, (f"n{i}",), flops) for i, (label, flops) in enumerate([("a", 1), ("b", 5), ("a", 0)])]
    steps += [StepSummary(label, ("n",), 0) for label in ("c", "d", "e")]
    ran: list[tuple[int, int, int]] = []
    recorder = Recorder()
    segments = [Segment(3, ("view",), ()), Segment(4, (), ()), Segment(6, (), ())]
    run_segments(segments, steps, lambda *part: ran.append(part), _Memory(np.zeros(1)), recorder)
    assert recorder.started == [("b+a", ["n0", "n1", "n2", "view"]), ("c", ["n"]), ("e+d", ["n"])]
    assert ran == [(0, 0, 3), (1, 3, 4), (2, 4, 6)]
    run_segments([Segment(6, (), ())], steps, lambda *_: None, _Memory(np.zeros(1)), recorder)
    assert recorder.started[-1][0] == "b+a+c+..."


# **** saved ****

SAVED = [
    Segment(1, ("a", "b"), (VisibleValue("v", ARENA, 64, F16, (2, 3), (1, 4), F32),)),
    Segment(4, (), (VisibleValue("y", 1, 0, F32, (0, 3), (3, 1), F32), VisibleValue("z", 1, 20, F32, (), (), F32))),
]
SIZES = [96, 24]


def test_segments_are_saved_and_restored() -> None:
    assert segments_from_json(segments_to_json(SAVED), 4, SIZES) == SAVED


def _set(*path: int) -> Callable[[Any, Any], None]:
    def change(items: Any, new: Any) -> None:
        for key in path[:-1]:
            items = items[key]
        items[path[-1]] = new

    return change


@pytest.mark.parametrize(
    ("place", "new"),
    [
        (_set(0), 7),
        (_set(0, 0), 5),
        (_set(0, 0), -1),
        (_set(0, 0), "1"),
        (_set(1, 0), 3),
        (_set(0, 1), [3]),
        (_set(0, 2, 0), []),
        (_set(0, 2, 0, 0), None),
        (_set(0, 2, 0, 1), "float31"),
        (_set(0, 2, 0, 2), [2, -3]),
        (_set(0, 2, 0, 2), [2, True]),
        (_set(1, 2, 1, 2), [1] * 33),
        (_set(0, 2, 0, 2), [2, 3, 1]),
        (_set(0, 2, 0, 2), [2, 10**30]),
        (_set(0, 2, 0, 3), 2),
        (_set(0, 2, 0, 3), -1),
        (_set(0, 2, 0, 4), 88),
        (_set(0, 2, 0, 4), -2),
        (_set(0, 2, 0, 4), 1.5),
        (_set(0, 2, 0, 5), [1, 16]),
        (_set(0, 2, 0, 5), [1, 1.5]),
        (_set(0, 2, 0, 5), [-1, -40]),
        (_set(0, 2, 0, 5), ["1", "x"]),
        (_set(0, 2, 0, 6), {}),
        (_set(1, 2, 0, 2), [0, 10**30]),
        (_set(1, 2, 0, 4), 25),
    ],
)
def test_a_damaged_description_is_refused(place: Callable[[Any, Any], None], new: Any) -> None:
    items = json.loads(segments_to_json(SAVED))
    place(items, new)
    with pytest.raises(ExecutionError, match="damaged"):
        segments_from_json(json.dumps(items), 4, SIZES)


@pytest.mark.parametrize("text", [None, 3, "", "{", "[[[[", '{"a": 1}', "[[1,2]]", "[" * 100_000])
def test_a_text_of_another_form_is_refused(text: object) -> None:
    with pytest.raises(ExecutionError, match="damaged"):
        segments_from_json(text, 4, SIZES)


def test_strides_of_single_elements_are_free() -> None:
    value = VisibleValue("v", ARENA, 0, F32, (1, 2), (10**30, 1), F32)
    (segment,) = segments_from_json(segments_to_json([Segment(0, (), (value,))]), 0, [8])
    assert segment.values[0].view(np.zeros(8, np.uint8)).shape == (1, 2)
