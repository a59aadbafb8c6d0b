"""Packing of the weights of recurrent layers: constants once, other values in every run.

In ONNX a weight is [directions, gates * hidden, depth]. The kernel processes one vector of hidden units at a time, with
all gates of a unit. Units are therefore divided into blocks of the vector's size; the last block is padded with units
whose results are not used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lite_compiler.tensors import split_dimensions
from lite_core.ir import DType, PanelLayout, Value
from lite_cpu.dot_panels import DotPanels, Matrices, pack_pairs
from lite_cpu.kernels.tiles import gemm_tile, pack_panels
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.packing import pack_at_run_time
from lite_cpu.tensors import Tensor

__all__ = ["gate_vectors", "in_blocks", "input_panels", "recurrent_weights"]

Array = np.ndarray[Any, Any]


def gate_vectors(lowering: Lowering, value: Value, gates: int, hidden: int, first: int = 0) -> Tensor:
    """Pack a bias or peephole weights into [directions, blocks * gates * lanes].

    Args:
        lowering: the lowering context.
        value: [directions, n].
        gates: number of gates.
        hidden: number of hidden units.
        first: the first column of ``value`` to use.
    """
    lanes, blocks = lowering.machine.lanes(), _blocks(lowering, hidden)
    directions = value.shape[0]
    columns = slice(first, first + gates * hidden)

    def arrange(array: Array) -> Array:
        blocked: Array = in_blocks(array[:, columns, None], gates, lanes).transpose(0, 2, 1, 3, 4)
        return blocked

    array = lowering.known(value)
    if array is not None:
        arranged = lowering.packed(("gate vectors", gates, first, lanes), [array], lambda: arrange(array))
    else:
        arranged = lowering.allocate((directions, blocks, gates, lanes), value.dtype)
        source = lowering.tensor(value).slice(1, first, gates * hidden)
        _copy_blocks(
            lowering, split_dimensions(source, [(directions,), (gates, hidden)]), arranged.permute((0, 2, 1, 3))
        )
    return _reshaped(arranged, (directions, blocks * gates * lanes))


def input_panels(lowering: Lowering, value: Value, gates: int, hidden: int, *, pairs: bool = False) -> Tensor:
    """Pack W [directions, gates * hidden, depth] into panels of [depth, directions * blocks * gates * lanes].

    With ``pairs``, W is known, and the panels have pairs of bfloat16.
    """
    lanes, (_, vectors) = lowering.machine.lanes(), gemm_tile(lowering.machine)
    directions, _, depth = value.shape
    blocks = _blocks(lowering, hidden)
    columns = directions * blocks * gates * lanes

    def arrange(array: Array) -> Array:
        matrix = in_blocks(array, gates, lanes).transpose(4, 0, 2, 1, 3)
        return pack_panels(matrix.reshape(1, depth, columns), lanes, vectors)

    array = lowering.known(value)
    split = (directions, gates, blocks, lanes, depth)
    if array is not None and pairs:
        matrices = Matrices(split, (4, 0, 2, 1, 3), (1, 1, depth, columns), ())
        dots = DotPanels(matrices, DType.BFLOAT16, 2, lanes, vectors)

        def arrange_pairs() -> Array:
            matrix = in_blocks(array, gates, lanes).transpose(matrices.order)
            return pack_pairs(matrix.reshape(matrices.shape), lanes, vectors)

        return lowering.packed(("input pairs", gates, dots), [array], arrange_pairs, None if hidden % lanes else dots)
    if array is not None:
        layout = PanelLayout(split, (4, 0, 2, 1, 3), depth, columns, lanes * vectors, lanes)
        recipe = None if hidden % lanes or not array.size else layout
        return lowering.packed(("input panels", gates, lanes, vectors), [array], lambda: arrange(array), recipe)
    arranged = lowering.allocate((depth, directions, blocks, gates, lanes), value.dtype)
    source = split_dimensions(lowering.tensor(value), [(directions,), (gates, hidden), (depth,)])
    _copy_blocks(lowering, source, arranged.permute((1, 3, 2, 4, 0)))
    return pack_at_run_time(lowering, _reshaped(arranged, (1, depth, columns)))


def recurrent_weights(
    lowering: Lowering, value: Value, passes: Sequence[Sequence[int]], hidden: int, *, pairs: bool = False
) -> Tensor:
    """Pack R [directions, gates * hidden, hidden] into [directions, n].

    A direction has for each pass a block of [blocks, hidden, gates of the pass, lanes]. With ``pairs``, R is known and
    an element is a pair of bfloat16, so that there are half as many along the hidden units of the state.
    """
    lanes, blocks = lowering.machine.lanes(), _blocks(lowering, hidden)
    directions, gates = value.shape[0], sum(map(len, passes))
    if pairs:
        return _recurrent_pairs(lowering, value, passes, hidden)

    def arrange(array: Array) -> Array:
        whole = in_blocks(array, gates, lanes)
        parts = [whole[:, list(p)].transpose(0, 2, 4, 1, 3).reshape(directions, -1) for p in passes]
        return np.concatenate(parts, axis=1)

    array = lowering.known(value)
    if array is not None:
        split, width = (directions, gates, blocks, lanes, hidden), gates * lanes
        layout = PanelLayout(split, (0, 2, 4, 1, 3), hidden, width, width, lanes)
        in_order = [number for numbers in passes for number in numbers] == [*range(gates)] and len(passes) == 1
        recipe = layout if in_order and array.size and not hidden % lanes else None
        packed = lowering.packed(("recurrent weights", tuple(passes), lanes), [array], lambda: arrange(array), recipe)
        # A model file has the same elements as [directions * blocks, ...].
        return _reshaped(packed, (directions, blocks * hidden * gates * lanes))
    arranged = lowering.allocate((directions, blocks * hidden * gates * lanes), value.dtype)
    source = split_dimensions(lowering.tensor(value), [(directions,), (gates, hidden), (hidden,)])
    start = 0
    for numbers in passes:
        size = blocks * hidden * len(numbers) * lanes
        parts = [(directions,), (blocks, hidden, len(numbers), lanes)]
        target = split_dimensions(arranged.slice(1, start, size), parts).permute((0, 3, 1, 4, 2))
        _copy_blocks(lowering, source.slice(1, numbers[0], len(numbers)), target)
        start += size
    return arranged


def _recurrent_pairs(lowering: Lowering, value: Value, passes: Sequence[Sequence[int]], hidden: int) -> Tensor:
    lanes, blocks = lowering.machine.lanes(), _blocks(lowering, hidden)
    directions, gates = value.shape[0], sum(map(len, passes))
    array = lowering.known(value)
    assert array is not None

    def arrange() -> Array:
        whole = in_blocks(array, gates, lanes)
        parts = []
        for numbers in passes:
            matrices = whole[:, list(numbers)].transpose(0, 2, 4, 1, 3)
            columns = matrices.reshape(directions * blocks, 1, hidden, len(numbers) * lanes)
            parts.append(pack_pairs(columns, lanes, len(numbers)).reshape(directions, -1))
        return np.concatenate(parts, axis=1)

    packed = lowering.packed(("recurrent pairs", tuple(passes), lanes), [array], arrange)
    return _reshaped(packed, (directions, blocks * hidden // 2 * gates * lanes))


def _blocks(lowering: Lowering, hidden: int) -> int:
    return -(-hidden // lowering.machine.lanes())


def in_blocks(array: Array, gates: int, lanes: int) -> Array:
    """Return [directions, gates * hidden, depth] as [directions, gates, blocks, lanes, depth], padded with zeros."""
    directions, rows, depth = array.shape
    hidden = rows // gates
    padded = np.zeros((directions, gates, -(-hidden // lanes) * lanes, depth), array.dtype)
    padded[:, :, :hidden] = array.reshape(directions, gates, hidden, depth)
    return padded.reshape(directions, gates, -1, lanes, depth)


def _copy_blocks(lowering: Lowering, source: Tensor, target: Tensor) -> None:
    """Copy [directions, gates, hidden, ...] to [directions, gates, blocks, lanes, ...]."""
    hidden, lanes = source.shape[2], target.shape[3]
    whole, rest = divmod(hidden, lanes)
    trailing = [(n,) for n in source.shape[3:]]
    for first, blocks, units in ((0, whole, lanes), (whole, 1, rest)):
        if blocks and units:
            part = source.slice(2, first * lanes, blocks * units)
            split = split_dimensions(part, [*((n,) for n in part.shape[:2]), (blocks, units), *trailing])
            lowering.copy(split, target.slice(2, first, blocks).slice(3, 0, units))


def _reshaped(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    view = tensor.reshape(shape)
    assert view is not None, "the tensor is dense"
    return view
