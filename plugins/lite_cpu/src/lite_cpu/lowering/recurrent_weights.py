"""The weights of recurrent layers in the order their kernel reads them: constants once, other values in every run.

In ONNX a weight is [directions, gates * hidden, depth]. The kernel takes hidden units a vector at a time, all gates
of a unit together: units are divided into blocks of as many as a vector has lanes, the last filled up with units that
nothing reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lite_compiler.tensors import split_dimensions
from lite_core.ir import Value
from lite_cpu.kernels.tiles import gemm_tile, pack_panels
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.packing import pack_at_run_time
from lite_cpu.tensors import Tensor

__all__ = ["gate_vectors", "input_panels", "recurrent_weights"]

Array = np.ndarray[Any, Any]


def gate_vectors(lowering: Lowering, value: Value, gates: int, hidden: int, first: int = 0) -> Tensor:
    """A bias, or peepholes: [directions, blocks * gates * lanes].

    Args:
        lowering: where they are used.
        value: [directions, n].
        gates: how many there are.
        hidden: units.
        first: column of ``value`` where they begin.
    """
    lanes, blocks = lowering.machine.lanes(), _blocks(lowering, hidden)
    directions = value.shape[0]
    columns = slice(first, first + gates * hidden)

    def arrange(array: Array) -> Array:
        blocked: Array = _in_blocks(array[:, columns, None], gates, lanes).transpose(0, 2, 1, 3, 4)
        return blocked

    array = lowering.known(value)
    if array is not None:
        made = lowering.packed(("gate vectors", gates, first, lanes), [array], lambda: arrange(array))
    else:
        made = lowering.allocate((directions, blocks, gates, lanes), value.dtype)
        source = lowering.tensor(value).slice(1, first, gates * hidden)
        _copy_blocks(lowering, split_dimensions(source, [(directions,), (gates, hidden)]), made.permute((0, 2, 1, 3)))
    return _reshaped(made, (directions, blocks * gates * lanes))


def input_panels(lowering: Lowering, value: Value, gates: int, hidden: int) -> Tensor:
    """W [directions, gates * hidden, depth] as panels of [depth, directions * blocks * gates * lanes]."""
    lanes, (_, vectors) = lowering.machine.lanes(), gemm_tile(lowering.machine)
    directions, _, depth = value.shape
    blocks = _blocks(lowering, hidden)
    columns = directions * blocks * gates * lanes

    def arrange(array: Array) -> Array:
        matrix = _in_blocks(array, gates, lanes).transpose(4, 0, 2, 1, 3)
        return pack_panels(matrix.reshape(1, depth, columns), lanes, vectors)

    array = lowering.known(value)
    if array is not None:
        return lowering.packed(("input panels", gates, lanes, vectors), [array], lambda: arrange(array))
    made = lowering.allocate((depth, directions, blocks, gates, lanes), value.dtype)
    source = split_dimensions(lowering.tensor(value), [(directions,), (gates, hidden), (depth,)])
    _copy_blocks(lowering, source, made.permute((1, 3, 2, 4, 0)))
    return pack_at_run_time(lowering, _reshaped(made, (1, depth, columns)))


def recurrent_weights(lowering: Lowering, value: Value, passes: Sequence[Sequence[int]], hidden: int) -> Tensor:
    """R [directions, gates * hidden, hidden] as [directions, n]: for each pass [blocks, hidden, its gates, lanes]."""
    lanes, blocks = lowering.machine.lanes(), _blocks(lowering, hidden)
    directions, gates = value.shape[0], sum(map(len, passes))

    def arrange(array: Array) -> Array:
        whole = _in_blocks(array, gates, lanes)
        parts = [whole[:, list(p)].transpose(0, 2, 4, 1, 3).reshape(directions, -1) for p in passes]
        return np.concatenate(parts, axis=1)

    array = lowering.known(value)
    if array is not None:
        return lowering.packed(("recurrent weights", tuple(passes), lanes), [array], lambda: arrange(array))
    made = lowering.allocate((directions, blocks * hidden * gates * lanes), value.dtype)
    source = split_dimensions(lowering.tensor(value), [(directions,), (gates, hidden), (hidden,)])
    start = 0
    for numbers in passes:
        size = blocks * hidden * len(numbers) * lanes
        parts = [(directions,), (blocks, hidden, len(numbers), lanes)]
        target = split_dimensions(made.slice(1, start, size), parts).permute((0, 3, 1, 4, 2))
        _copy_blocks(lowering, source.slice(1, numbers[0], len(numbers)), target)
        start += size
    return made


def _blocks(lowering: Lowering, hidden: int) -> int:
    return -(-hidden // lowering.machine.lanes())


def _in_blocks(array: Array, gates: int, lanes: int) -> Array:
    """[directions, gates * hidden, depth] as [directions, gates, blocks, lanes, depth], filled up with zeros."""
    directions, rows, depth = array.shape
    hidden = rows // gates
    padded = np.zeros((directions, gates, -(-hidden // lanes) * lanes, depth), array.dtype)
    padded[:, :, :hidden] = array.reshape(directions, gates, hidden, depth)
    return padded.reshape(directions, gates, -1, lanes, depth)


def _copy_blocks(lowering: Lowering, source: Tensor, target: Tensor) -> None:
    """Copy [directions, gates, hidden, ...] to [directions, gates, blocks, lanes, ...]."""
    hidden, lanes = source.shape[2], target.shape[3]
    whole, rest = divmod(hidden, lanes)
    around = [(n,) for n in source.shape[3:]]
    for first, blocks, units in ((0, whole, lanes), (whole, 1, rest)):
        if blocks and units:
            part = source.slice(2, first * lanes, blocks * units)
            split = split_dimensions(part, [*((n,) for n in part.shape[:2]), (blocks, units), *around])
            lowering.copy(split, target.slice(2, first, blocks).slice(3, 0, units))


def _reshaped(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    view = tensor.reshape(shape)
    assert view is not None, "the tensor is dense"
    return view
