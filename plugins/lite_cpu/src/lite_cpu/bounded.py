"""Operators whose number of results depends on data, run natively: with room for the most results, then cut.

Such a node is compiled with the largest shapes that its results can have, and with one more output, ``rows``: the
number of rows (the first dimension) of each result whose number of rows depends on data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lite_core import ops
from lite_core.backend import Buffer
from lite_core.ir import DType, Graph, Node, TensorType, Value
from lite_core.memory import HostMemory
from lite_core.observing import Observer, observed_buffers
from lite_cpu.executable import CompiledProgram, CpuExecutable

__all__ = ["Bounded", "BoundedExecutable", "bounded"]

Array = np.ndarray[Any, Any]
I32, I64 = DType.INT32, DType.INT64


class Bounded(NamedTuple):
    """A graph of one node with the largest shapes of its results.

    Attributes:
        graph: the graph; its last output is ``rows``.
        cut: for each other output, which of the rows it is cut to; None if its shape does not depend on data.
    """

    graph: Graph
    cut: Sequence[int | None]


def bounded(graph: Graph) -> Bounded | None:
    """Return a graph with the largest shapes; None unless it is one node with such results and inputs of known shapes.

    Args:
        graph: the graph; its outputs are those of the node that are used.
    """
    if len(graph.nodes) != 1 or not graph.inputs:
        return None
    node = graph.nodes[0]
    largest = _LARGEST.get(node.qualified_op)
    if largest is None or not all(v.type.is_static for v in node.used()):
        return None
    fixed, sized = largest(node, ops.get(node).attributes_of(node), graph.constants)
    types = [*sized, *fixed]
    given = [*node.outputs, *[None] * (len(types) - len(node.outputs))]
    values = [Value(v.name if v else f"{node.name}/unused{i}", types[i]) for i, v in enumerate(given)]
    rows = Value(f"{node.name}/rows", TensorType(I64, (len(sized),)))
    copy = Node(
        node.op, node.inputs, [*values, rows], node.attributes, domain=node.domain, name=node.name, origin=node.origin
    )
    positions = [given.index(v) for v in graph.outputs]
    outputs = [*(values[i] for i in positions), rows]
    wide = Graph(graph.name, inputs=graph.inputs, outputs=outputs, nodes=[copy], constants=graph.constants)
    return Bounded(wide, [i if i < len(sized) else None for i in positions])


class BoundedExecutable(CpuExecutable):
    """An executable of a bounded graph, which returns the rows that its node has found.

    Args:
        compiled: the program of the bounded graph.
        threads: maximum number of threads of a run.
        peak_flops: see :class:`CpuExecutable`.
        bounded: the graph.
    """

    def __init__(
        self, compiled: CompiledProgram, threads: int, peak_flops: Callable[[], float], bounded: Bounded
    ) -> None:
        super().__init__(compiled, threads, peak_flops)
        self._bounded = bounded

    def run(
        self,
        inputs: Sequence[Buffer],
        outputs: Sequence[Buffer],
        scratch: Buffer | None,
        times: Array | None = None,
    ) -> None:
        """Run the program, and copy the rows that it has found."""
        memory = HostMemory()
        # Pages that are not written take no memory.
        wide = [Buffer(v.type, memory, memory.allocate(v.type)) for v in self._bounded.graph.outputs]
        super().run(inputs, wide, scratch, times)
        rows = wide[-1].data.tolist()
        for output, buffer, part in zip(outputs, wide, self._bounded.cut):
            output.store(buffer.data if part is None else buffer.data[: rows[part]])

    def run_observed(
        self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None, observer: Observer
    ) -> None:
        """Run the program, and show an observer the results of the node."""
        graph = self._bounded.graph
        names = [node.name for node in graph.nodes]
        observer.starts(graph.nodes[0].op, names)
        self.run(inputs, outputs, scratch)
        observer.computed(observed_buffers(graph.nodes[0].op, names, graph.outputs[:-1], outputs))


# **** the largest shapes: those of the outputs that do not depend on data, and those of the outputs before them ****

_Types = tuple[Sequence[TensorType], Sequence[TensorType]]


def _selected(node: Node, attributes: Mapping[str, Any], constants: Mapping[Value, Array]) -> _Types:
    images, classes, boxes = _input(node, 1).shape
    limit = node.inputs[2] if len(node.inputs) > 2 else None
    known = np.zeros(1) if limit is None else constants.get(limit)
    if known is not None and known.size == 1:
        boxes = min(boxes, max(int(known.reshape(())), 0))
    return [], [TensorType(I64, (images * classes * boxes, 3))]


def _detections(node: Node, attributes: Mapping[str, Any], constants: Mapping[Value, Array]) -> _Types:
    boxes, scores = _input(node, 0), _input(node, 1)
    in_regions = len(scores.shape) == 2
    classes = scores.shape[1]
    images = _input(node, 2).shape[0] if in_regions else scores.shape[0]
    rows = scores.shape[0] if in_regions else scores.shape[2]
    if 0 <= attributes["background_label"] < classes:
        classes -= 1
    if attributes["nms_top_k"] >= 0 and not in_regions:
        rows = min(rows, attributes["nms_top_k"])
    most = classes * rows * (1 if in_regions else images)
    if attributes["keep_top_k"] >= 0:
        most = min(most, attributes["keep_top_k"] * images)
    return [TensorType(I32, (images,))], [TensorType(boxes.dtype, (most, 6)), TensorType(I32, (most, 1))]


def _proposals(node: Node, attributes: Mapping[str, Any], constants: Mapping[Value, Array]) -> _Types:
    scores = _input(node, 0)
    images, anchors, height, width = scores.shape
    limits = [n for n in (attributes["pre_nms_top_n"], attributes["post_nms_top_n"]) if n > 0]
    most = images * max(min([anchors * height * width, *limits]), 1)
    return [TensorType(I32, (images,))], [TensorType(scores.dtype, (most, n)) for n in (4, 1)]


def _input(node: Node, number: int) -> Any:
    """Return an input that is given; its dimensions are integers."""
    return node.inputs[number]


_LARGEST: Mapping[str, Callable[[Node, Mapping[str, Any], Mapping[Value, Array]], _Types]] = {
    "NonMaxSuppression": _selected,
    "lite.GenerateProposals": _proposals,
    "lite.MatrixNms": _detections,
    "lite.MulticlassNms": _detections,
}
