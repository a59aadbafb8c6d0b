"""Backends that compute wrong numbers."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from wrong_executables import WrongBackend, WrongExecutable, right

from lite_core.backend import Buffer
from lite_core.ir import Node
from lite_core.ops.evaluate import evaluate_graph

__all__ = ["BACKENDS"]


def off_by_one_row(executable: WrongExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """Return the second to last row as the last one."""
    for buffer, result in zip(outputs, executable.results(inputs)):
        wrong = result.copy()
        if wrong.ndim and wrong.shape[0] > 1:
            wrong[-1] = wrong[-2]
        buffer.store(wrong)


def ignores_axis(executable: WrongExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """Compute Softmax along the last axis, ignoring the attribute."""
    (node,) = executable.graph.nodes
    if node.op == "Softmax":
        node = Node("Softmax", node.inputs, node.outputs, {"axis": -1}, name=node.name)
        graph = executable.graph.copy()
        graph.nodes[0].attributes["axis"] = -1
        outputs[0].store(evaluate_graph(graph, [b.data for b in inputs])[0])
    else:
        right(executable, inputs, outputs)


def leaves_the_tail(executable: WrongExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """Leave the elements after the last full vector unwritten."""
    for buffer, result in zip(outputs, executable.results(inputs)):
        flat = buffer.data.reshape(-1)
        whole = flat.size - flat.size % 4
        flat[:whole] = result.reshape(-1)[:whole]


_count = itertools.count()


def not_deterministic(executable: WrongExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """Round differently in every fiftieth run."""
    result = executable.results(inputs)[0]
    if next(_count) % 50 == 49 and result.dtype == np.float32:
        result = np.nextafter(result, np.float32(np.inf))
    outputs[0].store(result)


def half_precision(executable: WrongExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """Round results to float16."""
    result = executable.results(inputs)[0]
    with np.errstate(all="ignore"):
        outputs[0].store(result.astype(np.float16).astype(result.dtype) if result.dtype.kind == "f" else result)


def loses_nan(executable: WrongExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    """Replace NaN with 0, like a maximum computed by a comparison."""
    result = executable.results(inputs)[0]
    outputs[0].store(np.where(np.isnan(result), 0, result).astype(result.dtype) if result.dtype.kind == "f" else result)


#: The backends by name.
BACKENDS = {
    compute.__name__: WrongBackend(compute.__name__, compute)
    for compute in (off_by_one_row, ignores_axis, leaves_the_tail, not_deterministic, half_precision, loses_nan)
}
