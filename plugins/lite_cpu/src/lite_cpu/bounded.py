"""Operators whose number of results depends on data, run natively: with room for the most results, then cut.

Such a node is compiled with the largest shapes that its results can have, and with one more output, ``rows``: the
number of rows (the first dimension) of each result whose number of rows depends on data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lite_compiler.tracing.numbers import smallest
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
    first, sized, last = largest(node, ops.attributes_of(node), graph.constants)
    types = [*first, *sized, *last]
    given = [*node.outputs, *[None] * (len(types) - len(node.outputs))]
    values = [Value(v.name if v else f"{node.name}/unused{i}", types[i]) for i, v in enumerate(given)]
    rows = Value(f"{node.name}/rows", TensorType(I64, (len(sized),)))
    row_of = dict(zip(range(len(first), len(first) + len(sized)), range(len(sized))))
    copy = Node(
        node.op, node.inputs, [*values, rows], node.attributes, domain=node.domain, name=node.name, origin=node.origin
    )
    positions = [given.index(v) for v in graph.outputs]
    outputs = [*(values[i] for i in positions), rows]
    wide = Graph(graph.name, inputs=graph.inputs, outputs=outputs, nodes=[copy], constants=graph.constants)
    return Bounded(wide, [row_of.get(i) for i in positions])


class BoundedExecutable(CpuExecutable):
    """An executable of a bounded graph, which returns the rows that its node has found.

    Args:
        compiled: the program of the bounded graph.
        threads: maximum number of threads of a run.
        peak_flops: see :class:`CpuExecutable`.
        bounded: the graph.
        types: the types of its outputs if they have other shapes than in the graph.
        complete: see :class:`CpuExecutable`.
    """

    def __init__(
        self,
        compiled: CompiledProgram,
        threads: int,
        peak_flops: Callable[[], float],
        bounded: Bounded,
        types: Sequence[TensorType] = (),
        complete: Callable[[], CompiledProgram] | None = None,
    ) -> None:
        super().__init__(compiled, threads, peak_flops, complete)
        self._bounded = bounded
        self._types = types or [v.type for v in bounded.graph.outputs]

    def run(
        self,
        inputs: Sequence[Buffer],
        outputs: Sequence[Buffer],
        scratch: Buffer | None,
        times: Array | None = None,
    ) -> None:
        """Run the program, and copy the rows that it has found."""
        memory = HostMemory()
        # Results whose shapes do not depend on data are written where they belong, if there is memory for them.
        owned = [part is None and buffer.data is not None for part, buffer in zip(self._bounded.cut, outputs)]
        # Pages that are not written take no memory.
        wide = [
            buffer if own else Buffer(type, memory, memory.allocate(type))
            for type, own, buffer in zip(self._types, owned, outputs)
        ]
        found = Buffer(self._types[-1], memory, memory.allocate(self._types[-1]))
        super().run(inputs, [*wide, found], scratch, times)
        rows = found.data.tolist()
        for output, own, buffer, part in zip(outputs, owned, wide, self._bounded.cut):
            if not own:
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


# **** the largest shapes: of outputs that do not depend on data, of those whose rows do, and of further fixed ones ****

_Types = tuple[Sequence[TensorType], Sequence[TensorType], Sequence[TensorType]]


def _selected(node: Node, attributes: Mapping[str, Any], constants: Mapping[Value, Array]) -> _Types:
    images, classes, boxes = _input(node, 1).shape
    limit = node.inputs[2] if len(node.inputs) > 2 else None
    known = np.zeros(1) if limit is None else constants.get(limit)
    if known is not None and known.size == 1:
        boxes = min(boxes, max(int(known.reshape(())), 0))
    return [], [TensorType(I64, (images * classes * boxes, 3))], []


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
    return [], [TensorType(boxes.dtype, (most, 6)), TensorType(I32, (most, 1))], [TensorType(I32, (images,))]


def _local_detections(node: Node, attributes: Mapping[str, Any], constants: Mapping[Value, Array]) -> _Types:
    boxes, (images, classes, rows) = _input(node, 0), _input(node, 1).shape
    if 0 <= attributes["background_label"] < classes:
        classes -= 1
    if attributes["nms_top_k"] >= 0:
        rows = smallest(rows, attributes["nms_top_k"])
    most = images * classes * rows
    if attributes["keep_top_k"] >= 0:
        most = smallest(most, attributes["keep_top_k"] * images)
    return [], [TensorType(boxes.dtype, (most, boxes.shape[2] + 2))], [TensorType(I32, (images,))]


def _proposals(node: Node, attributes: Mapping[str, Any], constants: Mapping[Value, Array]) -> _Types:
    scores = _input(node, 0)
    images, anchors, height, width = scores.shape
    limits = [n for n in (attributes["pre_nms_top_n"], attributes["post_nms_top_n"]) if n > 0]
    most = images * max(min([anchors * height * width, *limits]), 1)
    return [], [TensorType(scores.dtype, (most, n)) for n in (4, 1)], [TensorType(I32, (images,))]


def _distributed(node: Node, attributes: Mapping[str, Any], constants: Mapping[Value, Array]) -> _Types:
    regions, rois_num = _input(node, 0), node.inputs[1] if len(node.inputs) > 1 else None
    levels = range(attributes["min_level"], attributes["max_level"] + 1)
    images = 1 if rois_num is None else rois_num.shape[0]
    return (
        [TensorType(I32, (regions.shape[0], 1))],
        [regions.type for _ in levels],
        [TensorType(I32, (images,)) for _ in levels],
    )


def _collected(node: Node, attributes: Mapping[str, Any], constants: Mapping[Value, Array]) -> _Types:
    given = sum(_input(node, i).shape[0] for i in range(len(node.inputs) // 3))
    regions, counts = _input(node, 0), _input(node, len(node.inputs) - 1)
    most = smallest(given, max(attributes["post_nms_top_n"], 0))
    return [], [TensorType(regions.dtype, (most, 4))], [TensorType(I32, counts.shape)]


def _input(node: Node, number: int) -> Any:
    """Return an input that is given; its dimensions are integers."""
    return node.inputs[number]


_LARGEST: Mapping[str, Callable[[Node, Mapping[str, Any], Mapping[Value, Array]], _Types]] = {
    "NonMaxSuppression": _selected,
    "lite.CollectFpnProposals": _collected,
    "lite.DistributeFpnProposals": _distributed,
    "lite.GenerateProposals": _proposals,
    "lite.LocalityAwareNms": _local_detections,
    "lite.MatrixNms": _detections,
    "lite.MulticlassNms": _detections,
}
