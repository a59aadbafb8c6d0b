"""Caches that a program updates in place; see :class:`lite_core.in_place.UpdatesInPlace`.

Past and present are an input and an output of the partition. Where they are in memory is known only when the program
runs, and also the strides of their first two dimensions: the program finds them in its record, behind the fault.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from lite_core.ir import Graph, Node, Value
from lite_cpu.kernels import cache_update
from lite_cpu.kernels.cache_update import CacheUpdate
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.products import with_contiguous_rows
from lite_cpu.tensors import Tensor

__all__ = ["append", "emit_update", "find_caches"]


def find_caches(graph: Graph) -> dict[Value, Value]:
    """Return the outputs of a partition that update an input in place, each with the input.

    They are computed by TensorScatter, or by Concat along the positions, and read only as keys and values of attention;
    nothing else reads the elements of the input. All are [batch, heads, positions, size].
    """
    found = {}
    inputs, outputs = set(graph.inputs), set(graph.outputs)
    candidates = [node for node in graph.nodes if node.op in ("TensorScatter", "Concat") and _is_update(node)]
    users = graph.consumers() if candidates else {}
    for node in candidates:
        past, present = node.inputs[0], node.outputs[0]
        assert past is not None
        assert present is not None
        readers, later = ([u for u in users.get(v, ()) if u.op != "Shape"] for v in (past, present))
        is_private = past in inputs and past not in outputs and readers == [node]
        is_cache = all(_reads_as_cache(user, present) for user in later)
        if is_private and is_cache and graph.outputs.count(present) == 1:
            found[present] = past
    return found


def _is_update(node: Node) -> bool:
    if len(node.outputs[0].shape) != 4 or node.domain:  # type: ignore[union-attr]
        return False
    axis = node.attributes.get("axis", -2)
    return axis in (2, -2) and (node.op == "TensorScatter" or len(node.inputs) == 2)


def _reads_as_cache(node: Node, value: Value) -> bool:
    return node.op == "Attention" and not node.domain and value not in (*node.inputs[:1], *node.inputs[3:])


def append(lowering: Lowering, node: Node) -> None:
    """Emit the concatenation of a past cache and new positions; where both caches are in one place, only the latter."""
    source, added = (value for value in node.inputs if value is not None)
    past, new = lowering.tensor(source), lowering.tensor(added)
    present = node.outputs[0]
    assert present is not None
    result, new = lowering.target(present), with_contiguous_rows(lowering, new)
    strides = [lowering.strides(value) for value in (source, present)]
    numbers = {
        "inner": past.shape[1], "size": result.shape[2], "old": past.shape[2], "count": new.shape[2],
        "length": past.shape[3],
    }  # fmt: skip
    emit_update(lowering, [past, new, result], numbers, strides)


def emit_update(
    lowering: Lowering,
    tensors: list[Tensor],
    numbers: Mapping[str, int],
    strides: list[Tensor | None],
    more: list[Tensor] | None = None,
    *,
    circular: bool = False,
) -> None:
    """Emit a step of :class:`~lite_cpu.kernels.cache_update.CacheUpdate`, which copies a cache and adds to it.

    Args:
        lowering: the context.
        tensors: past, new positions, present.
        numbers: parameters; those of the strides are added.
        strides: for past and present where the program finds their strides, or None if they are contiguous.
        more: start indices and the fault; None if new positions come behind the past.
        circular: new positions behind the end continue at the beginning.
    """
    past, new, present = tensors
    lines = numbers["inner"]
    listed = {
        "new_batch": new.strides[0], "new_line": new.strides[1] if new.rank == 4 else 0,
        "new_position": new.strides[-2], **numbers,
    }  # fmt: skip
    past, new, present = (t.as_bits() for t in tensors)
    given = [t for t in strides if t is not None]
    kernel = CacheUpdate(past.dtype.itemsize, more is not None, circular, bool(given))
    params = [listed.get(name, 0) for name in cache_update.PARAMETERS]
    items = present.shape[0] * lines
    if prod(present.shape):
        # A cache of the same shape, in memory of its own, has each position where it was.
        is_same = more is not None and present.bytes == present.storage.bytes == past.bytes == past.storage.bytes
        overwrites = (2,) if is_same and not given else ()
        lowering.step(kernel, [present, new, past, *given, *(more or [])], params, items, overwrites=overwrites)
