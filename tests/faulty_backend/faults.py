"""The faults: functions that spoil the correct results of one node, each as a real mistake in a kernel would.

A fault receives the node, its inputs, the correct results, which it overwrites, and the session's number of threads.
Each compiled partition has a fault of its own; the generator of random numbers belongs to the backend.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

import numpy as np

from lite_core import ops
from lite_core.errors import ExecutionError
from lite_core.ir import Node
from lite_core.ops.evaluate import evaluate_node

__all__ = ["FAULTS", "WRAPPED_AT", "Fault"]

Array = np.ndarray[Any, Any]
Fault = Callable[[Node, Sequence[Array | None], Sequence[Array], int], None]

#: Elements after this one repeat the first ones in the fault ``"large"``.
WRAPPED_AT = 1 << 16
#: Partial sums of the fault ``"float16"``.
_MOST_PARTS = 32


def _shift_padding(node: Node, inputs: Sequence[Array | None], results: Sequence[Array], threads: int) -> None:
    """Move a window by one element along the last axis: one element of padding more before, one less after."""
    pads = list(ops.get(node).attributes_of(node).get("pads") or ())
    last = len(pads) // 2 - 1
    if not pads or pads[last] + pads[-1] == 0:
        raise _misplaced("padding", node, "a Conv or a pool with padding along its last axis")
    step = 1 if pads[-1] else -1
    pads[last], pads[-1] = pads[last] + step, pads[-1] - step
    _store_reference(node, inputs, results, pads=tuple(pads))


def _exchange_axes(node: Node, inputs: Sequence[Array | None], results: Sequence[Array], threads: int) -> None:
    """Take a wrong axis: the axis before a Softmax's, a transposed window, or only the first column of a mean."""
    given = list(inputs)
    first, second = given[0], given[1] if len(given) > 1 else None
    if node.op in ("Softmax", "LogSoftmax"):
        assert first is not None
        axis = int(ops.get(node).attributes_of(node)["axis"]) % first.ndim
        _store_reference(node, given, results, axis=axis - 1 if axis else first.ndim - 1)
    elif node.op == "Conv" and second is not None and second.ndim > 3 and second.shape[-1] == second.shape[-2] > 1:
        given[1] = np.ascontiguousarray(second.swapaxes(-1, -2))
        _store_reference(node, given, results)
    elif node.op.startswith(("Reduce", "GlobalAverage", "GlobalMax")):
        assert first is not None
        given[0] = np.ascontiguousarray(np.broadcast_to(first[..., :1], first.shape))
        _store_reference(node, given, results)
    else:
        raise _misplaced("axis", node, "a Softmax, a reduction over the last axis, or a Conv with a square window")


def _add_in_float16(node: Node, inputs: Sequence[Array | None], results: Sequence[Array], threads: int) -> None:
    """Add up a sum of products in parts, and round it to float16 after each part."""
    data, weights, bias = (*inputs, None, None)[:3]
    if node.op not in ("Conv", "MatMul") or data is None or weights is None:
        raise _misplaced("float16", node, "a Conv or a MatMul")
    # The elements of the weights that meet in one sum; all others are zero while a part is computed.
    terms = int(np.prod(weights.shape[1:])) if node.op == "Conv" else weights.shape[-2]
    total = np.zeros(results[0].shape, np.float16)
    for part in np.array_split(np.arange(terms), min(terms, _MOST_PARTS)):
        kept = np.zeros_like(weights)
        if node.op == "Conv":
            kept.reshape(len(kept), terms)[:, part] = weights.reshape(len(weights), terms)[:, part]
        else:
            kept[..., part, :] = weights[..., part, :]
        (sums,) = evaluate_node(node.copy_with(node.inputs[:2], node.outputs, node.attributes), [data, kept])
        total += sums.astype(np.float16)
    if bias is not None:
        total += bias.reshape(-1, *[1] * (total.ndim - 2)).astype(np.float16)
    results[0][...] = total


def _repeat_beyond_65536(node: Node, inputs: Sequence[Array | None], results: Sequence[Array], threads: int) -> None:
    """Repeat the first elements after element 65,536, as a kernel does whose index has 16 bits."""
    flat = results[0].reshape(-1)
    flat[...] = flat[np.arange(flat.size) % WRAPPED_AT].copy()


class _StaleBuffer:
    """Leave what the previous run wrote in the second half of the result. The first run is correct."""

    def __init__(self) -> None:
        self._previous: Array | None = None

    def __call__(self, node: Node, inputs: Sequence[Array | None], results: Sequence[Array], threads: int) -> None:
        flat = results[0].reshape(-1)
        previous, self._previous = self._previous, flat.copy()
        if previous is not None and previous.size == flat.size:
            flat[flat.size // 2 :] = previous[flat.size // 2 :]


class _Race:
    """Lose the middle third of the result in about one of three runs, if there are several threads."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def __call__(self, node: Node, inputs: Sequence[Array | None], results: Sequence[Array], threads: int) -> None:
        if threads > 1 and self._random.random() < 1 / 3:
            flat = results[0].reshape(-1)
            flat[flat.size // 3 : 2 * flat.size // 3] = 0


#: The faults of kernels by name; each function makes the fault of one compiled partition.
FAULTS: Mapping[str, Callable[[Random], Fault]] = {
    "padding": lambda random: _shift_padding,
    "axis": lambda random: _exchange_axes,
    "float16": lambda random: _add_in_float16,
    "stale": lambda random: _StaleBuffer(),
    "race": _Race,
    "large": lambda random: _repeat_beyond_65536,
}


def _store_reference(
    node: Node, inputs: Sequence[Array | None], results: Sequence[Array], **changed: int | tuple[int, ...]
) -> None:
    """Compute a node with its reference, with some attributes changed; the shapes of the results stay."""
    wrong = node.copy_with(node.inputs, node.outputs, {**node.attributes, **changed})
    for result, computed in zip(results, evaluate_node(wrong, inputs)):
        if computed.shape != result.shape:
            raise ExecutionError(f"the fault changes the shape of {node.describe()} to {computed.shape}")
        result[...] = computed


def _misplaced(fault: str, node: Node, wanted: str) -> ExecutionError:
    return ExecutionError(f"the fault {fault!r} needs {wanted}; it was planted in {node.describe()}")
