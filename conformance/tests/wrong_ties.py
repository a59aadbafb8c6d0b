"""Backends that compute the references' results with one intentional error in ties, rounding, indices or emptiness."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lite_core.backend import Buffer, Device, Executable, No, Options, Partition, Yes
from lite_core.builtin import HostBackend
from lite_core.errors import ExecutionError, LiteError
from lite_core.ir import Graph, Node
from lite_core.ops.evaluate import evaluate_graph

Array = np.ndarray[Any, Any]
#: Returns the outputs of a graph of one node, whose inputs may be changed before.
Compute = Callable[[Graph, list[Array]], list[Array]]


class _Executable:
    scratch_bytes = 0

    def __init__(self, graph: Graph, compute: Compute) -> None:
        self.graph = graph
        self._compute = compute

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        for buffer, array in zip(outputs, self._compute(self.graph, [b.data for b in inputs])):
            buffer.store(np.array(array, order="C"))


class OneMistake(HostBackend):
    """A backend with some operators, which a function computes.

    Args:
        ops: the operators.
        compute: the function.
    """

    def __init__(self, ops: Sequence[str], compute: Compute) -> None:
        self.name = compute.__name__
        self.ops = ops
        self.compute = compute

    def probe(self) -> list[Device]:
        return [Device(self.name, name="wrong on purpose")]

    def supports(self, node: Node, device: Device) -> Yes | No:
        return Yes() if node.op in self.ops else No(f"{self.name} has no {node.qualified_op}")

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        return _Executable(part.graph, self.compute)


def evaluated_with(graph: Graph, inputs: Sequence[Array], **attributes: Any) -> list[Array]:
    """Return the results of a graph of one node with other attributes."""
    copy = graph.copy()
    copy.nodes[0].attributes.update(attributes)
    return evaluate_graph(copy, inputs)


def attribute(graph: Graph, name: str, default: Any) -> Any:
    """Return an attribute of the only node."""
    return graph.nodes[0].attributes.get(name, default)


def operands(graph: Graph, inputs: Sequence[Array]) -> list[Array | None]:
    """Return the arrays of all inputs of the only node, constants included."""
    known = {**graph.constants, **dict(zip(graph.inputs, inputs))}
    return [None if value is None else known[value] for value in graph.nodes[0].inputs]


# **** ties ****


def takes_the_last(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Return the index of the last of equal elements, like a comparison with >= instead of >."""
    return evaluated_with(graph, inputs, select_last_index=1 - attribute(graph, "select_last_index", 0))


def takes_the_best_lane(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Return the index from the lowest of eight lanes that have the largest element, not the lowest index."""
    (right,) = evaluate_graph(graph, inputs)
    axis = attribute(graph, "axis", 0) % inputs[0].ndim
    if attribute(graph, "select_last_index", 0) or not inputs[0].size:
        return [right]
    data = np.moveaxis(inputs[0], axis, -1)
    order = np.argsort(np.arange(data.shape[-1]) % 8, kind="stable")
    found = order[np.argmax(data[..., order], axis=-1)]
    return [np.asarray(found).reshape(right.shape)]


def ranks_from_the_end(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Return the higher index of equal elements first, like a heap without the index in its order."""
    data, k = operands(graph, inputs)
    assert data is not None
    assert k is not None
    axis = attribute(graph, "axis", -1)
    descending = attribute(graph, "largest", 1)
    order = np.argsort(data, axis=axis, kind="stable")
    if not descending:  # of equal elements the last: sort from the end
        order = data.shape[axis] - 1 - np.argsort(np.flip(data, axis), axis=axis, kind="stable")
    else:
        order = np.flip(order, axis)
    chosen = np.take(order, range(int(k.reshape(-1)[0])), axis)
    return [np.take_along_axis(data, chosen, axis), chosen][: len(graph.outputs)]


def suppresses_the_first(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Return the boxes that remain if of equal scores the higher index comes first."""
    boxes, scores, *rest = inputs
    (kept,) = evaluate_graph(graph, [boxes[:, ::-1].copy(), scores[..., ::-1].copy(), *rest])
    return [np.column_stack([kept[:, :2], boxes.shape[1] - 1 - kept[:, 2]])]


# **** rounding ****


def rounds_half_up(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Return halves rounded up."""
    wide = inputs[0].astype(np.float64)
    return [np.floor(wide + 0.5).astype(inputs[0].dtype)]


def quantizes(rounded: Callable[[Array], Array], graph: Graph, inputs: list[Array]) -> list[Array]:
    """Return quantized numbers; a scale for an axis or for blocks is left to the reference."""
    x, scale, point = (*operands(graph, inputs), None)[:3]
    assert x is not None
    assert scale is not None
    (right,) = evaluate_graph(graph, inputs)
    if scale.size > 1 or point is None:
        return [right]
    limits = np.iinfo(right.dtype)
    with np.errstate(all="ignore"):
        whole = np.nan_to_num(rounded(x.astype(np.float64) / scale.astype(np.float64).reshape(()))) + point.reshape(())
    return [np.clip(whole, limits.min, limits.max).astype(right.dtype)]


def quantizes_half_away(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Quantize with halves away from zero, as C's ``round``."""
    return quantizes(lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x), graph, inputs)


def quantizes_by_truncation(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Quantize by a conversion to an integer."""
    return quantizes(np.trunc, graph, inputs)


def _cast(graph: Graph) -> tuple[Any, bool]:
    to: Any = graph.nodes[0].attributes["to"]
    return to, to.is_integer


def saturates_integers(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Saturate where integers are converted to smaller ones."""
    to, is_integer = _cast(graph)
    if not is_integer or inputs[0].dtype.kind not in "iu":
        return evaluate_graph(graph, inputs)
    limits = np.iinfo(to.numpy)
    own = np.iinfo(inputs[0].dtype)
    return [np.clip(inputs[0], max(limits.min, own.min), min(limits.max, own.max)).astype(to.numpy)]


def casts_to_the_nearest(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Round to the nearest integer where floats are converted to integers."""
    to, is_integer = _cast(graph)
    if not is_integer or inputs[0].dtype.kind not in "fV":
        return evaluate_graph(graph, inputs)
    with np.errstate(all="ignore"):
        return [np.rint(inputs[0].astype(np.float64)).astype(np.int64).astype(to.numpy)]


def casts_by_way_of_int64(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Convert floats from 2**63 on to uint64 by way of int64, whose range they exceed."""
    to, is_integer = _cast(graph)
    if not is_integer or inputs[0].dtype.kind not in "fV":
        return evaluate_graph(graph, inputs)
    with np.errstate(all="ignore"):
        return [np.trunc(inputs[0].astype(np.float64)).astype(np.int64).astype(to.numpy)]


def cuts_bfloat16(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Convert float32 to bfloat16 by dropping the lower half of its bits."""
    to, _ = _cast(graph)
    if to.value != "bfloat16" or inputs[0].dtype != np.float32:
        return evaluate_graph(graph, inputs)
    return [(inputs[0].view(np.uint32) >> 16).astype(np.uint16).view(to.numpy)]


def prefers_the_other_neighbour(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Take the other neighbour half-way between two elements, like a kernel that ignores ``nearest_mode``."""
    other = {"round_prefer_floor": "round_prefer_ceil", "round_prefer_ceil": "round_prefer_floor"}
    mode = attribute(graph, "nearest_mode", "round_prefer_floor")
    return evaluated_with(graph, inputs, nearest_mode=other.get(mode, mode))


def samples_half_up(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Take the upper neighbour of a point half-way between two elements."""
    x, grid = inputs
    return evaluate_graph(graph, [x, grid + grid.dtype.type(1e-4)])


# **** indices out of range ****


def reads_anywhere(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Read rows at any distance from the beginning of the data."""
    data, indices = inputs
    if data.ndim != 2 or attribute(graph, "axis", 0) or not data.size:
        return evaluate_graph(graph, inputs)
    size = data[0].nbytes
    positive = np.where((indices < 0) & (indices >= -len(data)), indices + len(data), indices).reshape(-1)
    rows = [ctypes.string_at(data.ctypes.data + int(i) * size, size) for i in positive]
    return [np.frombuffer(b"".join(rows), data.dtype).reshape(*indices.shape, *data.shape[1:])]


def writes_anywhere(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Write a row next to the data where an index is next to the last one."""
    try:
        return evaluate_graph(graph, inputs)
    except LiteError:
        data, indices, updates = inputs
        if (indices == len(data)).any():
            ctypes.memmove(data.ctypes.data + data.nbytes, updates.ctypes.data, 64)
        return [data]


def hides_the_node(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Raise an error that does not say where."""
    try:
        return evaluate_graph(graph, inputs)
    except LiteError:
        raise ExecutionError("an index is out of range") from None


_in_error: dict[int, LiteError] = {}


def stays_in_error(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Raise the error of an earlier run again, like a flag on a device that is never cleared."""
    if id(graph) in _in_error:
        raise _in_error[id(graph)]
    try:
        return evaluate_graph(graph, inputs)
    except LiteError as error:
        _in_error[id(graph)] = error
        raise


_flags: set[int] = set()


def shares_its_error(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Raise an error in whichever thread looks first at a flag that all runs share."""
    try:
        results = evaluate_graph(graph, inputs)
    except LiteError:
        _flags.add(id(graph))
        results = [np.zeros((5, 16), np.float32)]
        for _ in range(20_000):  # long enough for the interpreter to switch threads
            pass
    if id(graph) in _flags:
        _flags.discard(id(graph))
        raise ExecutionError(f"{graph.nodes[0].describe()}: an index is out of range")
    return results


def spoils_the_rest(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Return only zeros if one index is out of range."""
    try:
        return evaluate_graph(graph, inputs)
    except LiteError:
        return [np.zeros_like(array) for array in takes_the_nearest_row(graph, inputs)]


def _gathered(graph: Graph, inputs: list[Array]) -> tuple[Array, Array, int, int]:
    """Return the data and the indices of a Gather, its axis, and the size of the axis."""
    data, indices = operands(graph, inputs)
    assert data is not None
    assert indices is not None
    axis = attribute(graph, "axis", 0) % data.ndim
    return data, indices, axis, data.shape[axis]


def takes_the_nearest_row(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Clamp indices without an error, which is allowed."""
    data, indices, axis, size = _gathered(graph, inputs)
    return [np.take(data, np.clip(indices, -size, size - 1), axis)]


def fills_with_nan(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Return NaN for indices out of range without an error, as JAX does, which is allowed."""
    _, indices, axis, size = _gathered(graph, inputs)
    (result,) = takes_the_nearest_row(graph, inputs)
    outside = (indices < -size) | (indices >= size)
    if outside.any():
        np.moveaxis(result, axis, 0)[outside] = np.nan
    return [result]


# **** no elements ****


def is_zero_over_nothing(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Return zeros if there are no elements, like a kernel that skips empty tensors and clears its output."""
    results = evaluate_graph(graph, inputs)
    return results if inputs[0].size else [np.zeros_like(r) for r in results]


def averages_padding(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Return 0 for the mean of no elements, like a division by at least 1."""
    (mean,) = evaluate_graph(graph, inputs)
    return [np.nan_to_num(mean)] if np.isfinite(inputs[0].astype(np.float32)).all() else [mean]


_GATHER, _CAST, _QUANTIZE = ("Gather",), ("Cast",), ("QuantizeLinear",)
_REDUCTIONS = ("ReduceMax", "ReduceMin", "ReduceProd", "ReduceMean", "ReduceLogSum", "ReduceLogSumExp")

#: All backends by name; they are also attributes ``backend_NAME`` of the module.
BACKENDS = {
    compute.__name__: OneMistake(ops, compute)
    for ops, compute in (
        (("ArgMax", "ArgMin"), takes_the_last),
        (("ArgMax",), takes_the_best_lane),
        (("TopK",), ranks_from_the_end),
        (("NonMaxSuppression",), suppresses_the_first),
        (("Round",), rounds_half_up),
        (_QUANTIZE, quantizes_half_away),
        (_QUANTIZE, quantizes_by_truncation),
        (_CAST, saturates_integers),
        (_CAST, casts_to_the_nearest),
        (_CAST, casts_by_way_of_int64),
        (_CAST, cuts_bfloat16),
        (("Resize",), prefers_the_other_neighbour),
        (("GridSample",), samples_half_up),
        (_GATHER, reads_anywhere),
        (_GATHER, hides_the_node),
        (_GATHER, stays_in_error),
        (_GATHER, shares_its_error),
        (_GATHER, spoils_the_rest),
        (_GATHER, takes_the_nearest_row),
        (_GATHER, fills_with_nan),
        (("ScatterND",), writes_anywhere),
        (_REDUCTIONS, is_zero_over_nothing),
        (("AveragePool",), averages_padding),
    )
}


def __getattr__(name: str) -> OneMistake:
    try:
        return BACKENDS[name.removeprefix("backend_")]
    except KeyError:
        raise AttributeError(name) from None
