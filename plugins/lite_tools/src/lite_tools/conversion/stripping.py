"""Constants that a file's prepared plans do not read, so that the file can go without them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lite_core.errors import InputError
from lite_core.ir import DType, Graph
from lite_tools.conversion.pieces import Pieces
from lite_tools.conversion.prepare import PreparedTarget

__all__ = ["unread_constants"]

Array = np.ndarray[Any, Any]


def unread_constants(graph: Graph, prepared: Sequence[PreparedTarget], pieces: Pieces) -> list[Array]:
    """Return the constants of a graph that no partition of a prepared plan reads.

    A partition that is restored reads the constants that its record lists, and those among its packed pieces. One that
    is compiled when the file is loaded, such as one of host, reads all constants of its nodes.

    Raises:
        InputError: a target has no prepared plan, so that its sessions need every constant.
    """
    packed = {f"packed/{number}": constant.array for number, constant in enumerate(pieces.packed)}
    by_name = {value.name: array for value, array in graph.constants.items()}
    read: set[int] = set()
    for part in prepared:
        if not part.record.plans:
            raise InputError(
                f"strip: {part.record.backend} has no prepared plan, so its sessions compile the model, which needs "
                "every constant; give the input shapes to prepare for, or do not strip"
            )
        for partition in (partition for plan in part.record.plans for partition in plan.partitions):
            if partition.sections:
                read.update(id(by_name[name]) for name in partition.reads if name in by_name)
                read.update(id(packed[name]) for name in partition.sections if name in packed)
            nodes = [graph.nodes[index] for index in partition.nodes]
            held = [array for node in nodes for body in node.subgraphs for array in body.every_constant()]
            if not partition.sections:
                held += [graph.constants[v] for node in nodes for v in node.used() if v in graph.constants]
            read.update(map(id, held))
    # Programs make panels of 4-bit weights from the file's bytes, and do not list them among the arrays that they read.
    return [a for a in graph.constants.values() if id(a) not in read and DType.of(a) not in (DType.INT4, DType.UINT4)]
