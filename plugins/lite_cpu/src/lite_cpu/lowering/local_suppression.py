"""Lowering of LocalityAwareNms, with bounded results (:mod:`lite_cpu.bounded`)."""

from __future__ import annotations

from lite_compiler.fusion import Group
from lite_core.ir import DType, Node
from lite_core.ops import attributes_of
from lite_cpu.emitter import float_bits
from lite_cpu.kernels.detections import CollectDetections
from lite_cpu.kernels.local_suppression import LocalSuppress, local_bytes
from lite_cpu.kernels.ranking import COUNTER_BYTES
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.registry import lowers
from lite_cpu.lowering.shape import required_input

__all__ = ["local_suppression"]

F32, F64, I32, I64 = DType.FLOAT32, DType.FLOAT64, DType.INT32, DType.INT64

#: More than any number of boxes.
_ALL = 2**31


def _refuse(node: Node) -> str | None:
    dtype = required_input(node).dtype
    return None if dtype is F32 else f"{node.op} has kernels for float32 only, not for {dtype}"


@lowers("lite.LocalityAwareNms", refuse=_refuse)
def local_suppression(lowering: Lowering, group: Group) -> None:
    """Emit the joining and suppression of the boxes of each image, then a step that collects the rows."""
    node, attributes = group.head, attributes_of(group.head)
    boxes, scores = (lowering.dense(lowering.tensor(required_input(node, i))) for i in (0, 1))
    images, many, numbers = boxes.shape
    classes = scores.shape[1]
    joined, values = lowering.allocate(boxes.shape, F32), lowering.allocate(scores.shape, F32)
    kept, found = lowering.allocate(scores.shape, I32), lowering.allocate(scores.shape, F32)
    counts = lowering.allocate((images, classes), I64)
    most, rows_of_image = (n if n >= 0 else _ALL for n in (attributes["nms_top_k"], attributes["keep_top_k"]))
    floats = (0.0 if attributes["normalized"] else 1.0, attributes["score_threshold"])
    doubles = (attributes["nms_threshold"], attributes["nms_eta"])
    lowering.step(
        LocalSuppress(int(numbers)),
        [boxes, scores, joined, values, kept, found, counts],
        [
            classes, many, most, attributes["background_label"], *(float_bits(n) for n in floats),
            *(float_bits(n, F64) for n in doubles),
        ],
        images,
        scratch_bytes=local_bytes(many, int(numbers)),
    )  # fmt: skip
    results = []
    for value in node.outputs:
        assert value is not None, "bounded nodes have all outputs"
        results.append(lowering.target(value))
    rows, of_images, total = results
    length = classes * many + 1
    entries, indices = lowering.allocate((2, length), DType.UINT64), lowering.allocate((rows.shape[0],), I32)
    lowering.step(
        CollectDetections(numbers=int(numbers), totals=1),
        [joined, kept, found, counts, entries, rows, indices, of_images, total],
        [images, classes, many, many, rows_of_image, length],
        1,
        scratch_bytes=COUNTER_BYTES,
    )
