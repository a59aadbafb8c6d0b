"""Observing a compiled partition: the values that are in memory between its steps, and a run that shows them.

A program is cut after each group of nodes that was lowered (:class:`~lite_compiler.fusion.Group`) into segments. After
a segment has run, the results of its nodes that later nodes read, and the partition's outputs, are in memory; values
inside a fused step never are. A view takes no step, so it is shown with the segment before it. Being shown changes
neither steps nor memory: a tensor in the arena is shown only if a later step still reads it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from lite_compiler.tensors import StridedTensor, dense_strides
from lite_core.errors import ExecutionError
from lite_core.ir import DType, Graph, Node, TensorType, Value
from lite_core.observing import Observed, Observer

__all__ = [
    "ARENA",
    "LoweredGroup",
    "RunMemory",
    "Segment",
    "StepSummary",
    "VisibleValue",
    "find_segments",
    "run_segments",
    "segments_from_json",
    "segments_to_json",
]

Array = np.ndarray[Any, Any]
T = TypeVar("T", bound=StridedTensor[Any])

#: Number of the arena among the memories of a run; the partition's outputs follow it.
ARENA = 0

#: Most elements that the other dimensions of an empty value may have.
_MOST_ELEMENTS = 1 << 48

#: Most dimensions of an array; NumPy 1 has no more.
_MOST_DIMENSIONS = 32

#: Most labels of steps in the name of a segment's kernel.
_MOST_LABELS = 3


class StepSummary(NamedTuple):
    """A step as an observer is told of it: its label, the nodes that it computes, and its operations."""

    label: str
    nodes: tuple[str, ...]
    flops: int


class VisibleValue(NamedTuple):
    """A value in memory.

    Attributes:
        name: its name in the graph.
        memory: :data:`ARENA`, or n for the n-th output of the partition.
        offset: the first element's distance from the beginning of that memory, in bytes.
        dtype: the element type in memory.
        shape: its shape.
        strides: the distance of elements along each dimension, in elements.
        graph_dtype: the element type in the graph.
    """

    name: str
    memory: int
    offset: int
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    graph_dtype: DType

    @property
    def extent(self) -> tuple[int, int]:
        """The first byte of the value in its memory, and the byte after the last one."""
        if 0 in self.shape:
            return self.offset, self.offset
        size = self.dtype.itemsize
        steps = [size * (n - 1) * stride for n, stride in zip(self.shape, self.strides)]
        return self.offset + sum(s for s in steps if s < 0), self.offset + sum(s for s in steps if s > 0) + size

    def view(self, content: Array) -> Array:
        """Return the elements as an array that shares memory with ``content``, the bytes of :attr:`extent`."""
        size = self.dtype.itemsize
        # Dimensions of one element may have any stride, also one that NumPy cannot count.
        strides = [size * stride if 0 not in self.shape and n > 1 else 0 for n, stride in zip(self.shape, self.strides)]
        view: Array = np.ndarray(self.shape, self.dtype.numpy, content, self.offset - self.extent[0], strides)
        return view


class Segment(NamedTuple):
    """Consecutive steps that compute a group of nodes, and the values that are in memory after them.

    Attributes:
        end: the number of the program's steps up to its end. It begins where the segment before it ends.
        nodes: names of nodes that take no step; the steps name the others.
        values: the values.
    """

    end: int
    nodes: tuple[str, ...]
    values: tuple[VisibleValue, ...]


@dataclass(eq=False, slots=True)
class LoweredGroup(Generic[T]):
    """A group after its lowering.

    Attributes:
        nodes: its nodes.
        begin, end: the numbers of steps before and after its lowering.
        tensors: the tensors that hold the results of its nodes, as far as they have any.
    """

    nodes: Sequence[Node]
    begin: int
    end: int
    tensors: Mapping[Value, T]


class RunMemory(Protocol):
    """The memory of a run, as far as visible values are in it."""

    def load(self, memory: int, begin: int, end: int) -> Array:
        """Return the bytes of a part of a memory, as uint8; the array may share memory with it."""
        ...

    def store(self, memory: int, begin: int, content: Array) -> None:
        """Write bytes, which :meth:`load` returned and which have changed, to where they came from."""
        ...


# **** finding what is visible ****


def find_segments(
    groups: Sequence[LoweredGroup[T]],
    steps: Iterable[Iterable[T]],
    outputs: Mapping[Value, T],
    graph: Graph,
    memory_of: Callable[[Any], int | None],
) -> list[Segment]:
    """Return the segments of a program whose memory is planned.

    Args:
        groups: the groups, in the order of their steps. Their nodes may be rewritten ones.
        steps: the tensors that each step reads or writes. Steps after the last group copy results into outputs.
        outputs: the memory of the partition's outputs.
        graph: the partition as it was given; only its values are shown.
        memory_of: returns the number of the memory that a storage is in, or None for inputs and constants. Storages
            have their ``offset`` from the beginning of that memory.
    """
    last_uses: dict[Any, int] = {}
    count = 0
    for number, tensors in enumerate(steps):
        last_uses.update((tensor.storage, number) for tensor in tensors)
        count = number + 1
    types = {value.name: value.type for node in graph.nodes for value in node.outputs if value is not None}
    reading: dict[Value, set[int]] = {}
    for number, group in enumerate(groups):
        for node in group.nodes:
            for value in node.used():
                reading.setdefault(value, set()).add(number)

    def is_intact(tensor: T, end: int) -> bool:
        return memory_of(tensor.storage) != ARENA or last_uses.get(tensor.storage, -1) >= end

    segments: dict[int, tuple[list[str], list[VisibleValue]]] = {}
    shown: set[Value] = set()
    for number, group in enumerate(groups):
        nodes, values = segments.setdefault(group.end, ([], []))
        if group.begin == group.end:
            nodes += [node.name or node.op for node in group.nodes]
        for value, tensor in group.tensors.items():
            if value in outputs or not reading.get(value, set()) <= {number}:
                visible = _visible(value, tensor, types, memory_of)
                if visible is not None and is_intact(tensor, group.end):
                    values.append(visible)
                    shown.add(value)
    nodes, values = segments.setdefault(count, ([], []))
    producers = {value: (node, group) for group in groups for node in group.nodes for value in node.outputs}
    for value, tensor in outputs.items():
        # An output that shares the memory of an input, or repeats elements, is in memory when it has been copied.
        visible = None if value in shown else _visible(value, tensor, types, memory_of)
        values += [] if visible is None else [visible]
        if value in producers:
            node, group = producers[value]
            own = group.tensors.get(value)
            is_copied = own is None or own.storage is not tensor.storage
            nodes += [node.name or node.op] if is_copied else []
    begins = [0, *segments]
    return [
        Segment(end, tuple(dict.fromkeys(nodes)), tuple(values))
        for begin, (end, (nodes, values)) in zip(begins, segments.items())
        if end > begin or values
    ]


def _visible(
    value: Value, tensor: StridedTensor[Any], types: Mapping[str, TensorType], memory_of: Callable[[Any], int | None]
) -> VisibleValue | None:
    """Return a value of the original graph in its memory; None if it has no elements there to be replaced."""
    memory, given = memory_of(tensor.storage), types.get(value.name)
    if memory is None or given is None or given.shape != tensor.shape:
        return None
    if any(stride == 0 and count > 1 for count, stride in zip(tensor.shape, tensor.strides)):
        return None  # elements that a view repeats cannot be replaced one by one
    if given.dtype is not tensor.dtype and not (given.dtype.is_floating and tensor.dtype.is_floating):
        return None
    offset = tensor.storage.offset + tensor.byte_offset
    return VisibleValue(value.name, memory, offset, tensor.dtype, tensor.shape, tensor.strides, given.dtype)


# **** running ****


def run_segments(
    segments: Sequence[Segment],
    steps: Sequence[StepSummary],
    run: Callable[[int, int, int], None],
    memory: RunMemory,
    observer: Observer,
) -> None:
    """Run a program segment by segment, and show the values in memory after each.

    Args:
        segments: the segments, which contain all steps.
        steps: the steps of the program.
        run: runs a segment to its end; it is given the number of the segment and the range of its steps.
        memory: the memory of the run.
        observer: receives the results.
    """
    begin = 0
    for number, segment in enumerate(segments):
        own = steps[begin : segment.end]
        kernel, nodes = _kernel_name(own), [*dict.fromkeys([n for s in own for n in s.nodes]), *segment.nodes]
        observer.starts(kernel, nodes)
        if own:
            run(number, begin, segment.end)
        observer.computed(_observed(kernel, nodes, segment.values, memory))
        begin = segment.end


def _kernel_name(steps: Sequence[StepSummary]) -> str:
    """Return the labels of steps, beginning with the one that computes most, or else with the last."""
    if not steps:
        return "view"
    main = max(reversed(steps), key=lambda step: step.flops)
    labels = list(dict.fromkeys([main.label, *[step.label for step in steps]]))
    return "+".join([*labels[:_MOST_LABELS], *(["..."] if len(labels) > _MOST_LABELS else [])])


def _observed(kernel: str, nodes: Sequence[str], values: Sequence[VisibleValue], memory: RunMemory) -> Observed:
    by_name = {value.name: value for value in values}

    def read(name: str) -> Array:
        value = by_name[name]
        view = value.view(memory.load(value.memory, *value.extent))
        return np.array(view, value.graph_dtype.numpy)  # in the order of the memory: reordering takes longest

    def write(name: str, array: Array) -> None:
        value = by_name[name]
        if array.shape != value.shape or array.dtype != value.graph_dtype.numpy:
            raise ExecutionError(
                f"{name!r} is {value.graph_dtype}{list(value.shape)}, and an observer replaced it by "
                f"{array.dtype}{list(array.shape)}: write an array of that type and shape"
            )
        content = memory.load(value.memory, *value.extent)
        value.view(content)[...] = array.astype(value.dtype.numpy)
        memory.store(value.memory, value.extent[0], content)

    return Observed(kernel, nodes, [*by_name], read, write)


# **** saving ****


def segments_to_json(segments: Iterable[Segment]) -> str:
    """Return segments as a text, to be saved with their program."""
    return json.dumps(
        [[s.end, s.nodes, [_value_to_json(v) for v in s.values]] for s in segments], separators=(",", ":")
    )


def segments_from_json(text: object, steps: int, sizes: Sequence[int]) -> list[Segment]:
    """Return the segments that :func:`segments_to_json` converted.

    Args:
        text: the text.
        steps: the number of the program's steps.
        sizes: the bytes of each memory: of the arena and the outputs. No value may be outside.

    Raises:
        ExecutionError: the text is damaged.
    """
    try:
        if not isinstance(text, str):
            raise TypeError("it is no text")
        segments = [
            Segment(end, _names(nodes), tuple(map(_value_from_json, vs))) for end, nodes, vs in json.loads(text)
        ]
        ends = [0, *[_count(segment.end) for segment in segments]]
        if ends != sorted(ends) or ends[-1] != steps:
            raise ValueError(f"its segments end at {ends[1:]}, the program has {steps} steps")
        for value in [value for segment in segments for value in segment.values]:
            _check_inside(value, sizes)
    except (LookupError, OverflowError, RecursionError, TypeError, ValueError) as error:
        raise ExecutionError(
            f"the saved description of values between kernels is damaged: {error}\nconvert the model again"
        ) from error
    return segments


def _value_to_json(value: VisibleValue) -> list[Any]:
    strides = None if value.strides == dense_strides(value.shape) else value.strides
    dtype = None if value.dtype is value.graph_dtype else value.dtype.value
    optional = [strides, dtype] if dtype else [strides] if strides else []
    return [value.name, value.graph_dtype.value, value.shape, value.memory, value.offset, *optional]


def _value_from_json(item: Sequence[Any]) -> VisibleValue:
    name, graph_dtype, sizes, memory, offset, *optional = item
    strides, dtype = [*optional, None, None][:2]
    (name,), shape = _names([name]), tuple(map(_count, sizes))
    own = dense_strides(shape) if strides is None else tuple([_count(abs(n)) * (1 if n >= 0 else -1) for n in strides])
    if len(shape) > _MOST_DIMENSIONS or len(own) != len(shape):
        raise ValueError(f"{name!r} has {len(shape)} dimensions and {len(own)} strides")
    given = DType(graph_dtype)
    return VisibleValue(
        name, _count(memory), _count(offset), given if dtype is None else DType(dtype), shape, own, given
    )


def _check_inside(value: VisibleValue, sizes: Sequence[int]) -> None:
    begin, end = value.extent
    available, elements = sizes[value.memory], prod(n for n in value.shape if n)
    most = _MOST_ELEMENTS if 0 in value.shape else available
    if begin < 0 or end > available or elements * value.dtype.itemsize > most:
        raise ValueError(f"{value.name!r} is in the bytes {begin} to {end} of a memory of {available}")


def _names(items: Sequence[Any]) -> tuple[str, ...]:
    if not all(isinstance(item, str) for item in items):
        raise TypeError(f"a name is {items!r}")
    return tuple(items)


def _count(number: Any) -> int:
    if type(number) is not int or number < 0:  # True and False are no numbers here
        raise ValueError(f"a number is {number!r}")
    return number
