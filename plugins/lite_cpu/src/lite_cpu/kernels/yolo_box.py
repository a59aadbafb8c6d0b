"""Boxes and class scores of a YOLOv3 head (operator YoloBox), with vectors along the classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Params, Pointer, Val
from lite_cpu.kernels.base import Kernel
from lite_cpu.vector_math import exp, log, sigmoid

__all__ = ["YoloBox", "YoloSizes"]

F32, I64 = DType.FLOAT32, DType.INT64


class YoloSizes(NamedTuple):
    """The first parameters of the kernel: integers for a call, and values in the kernel.

    Attributes:
        height: rows of the head.
        width: columns of the head.
        anchors: number of anchors.
        classes: number of classes.
        stride_n: distance between images, in elements.
        stride_y: distance between rows.
        stride_x: distance between columns.
        downsample: pixels of the network's input for each row and column of the head.
    """

    height: Any
    width: Any
    anchors: Any
    classes: Any
    stride_n: Any
    stride_y: Any
    stride_x: Any
    downsample: Any


class _Axis(NamedTuple):
    """The numbers that decide the corners of a box along an axis: a cell of the head, cells, pixels, and the anchor."""

    cell: Val
    cells: Val
    pixels: Val
    anchor: Val


@dataclass(frozen=True)
class YoloBox(Kernel):
    """Boxes [images, anchors * rows * columns, 4] and scores [images, anchors * rows * columns, classes].

    Both are 0 where the confidence is below a threshold. Pointers: the head, whose channels are contiguous, the sizes
    of the images (int32), boxes, scores. Parameters: :class:`YoloSizes`, then, as float32, the threshold, the factor
    and the addend of the centres, the weight of the overlap, and width and height of each anchor. A work item is a row
    of cells.

    Attributes:
        clip: corners are moved into the image.
        iou_aware: the confidence is a weighted geometric mean with a predicted overlap.
    """

    clip: bool
    iou_aware: bool

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, _):
            sizes = YoloSizes(*(params[i] for i in range(len(YoloSizes._fields))))
            head, images = pointers.tensor(0, F32), pointers.tensor(1, DType.INT32)
            boxes, scores = pointers.tensor(2, F32), pointers.tensor(3, F32)
            first, channels = len(sizes), sizes.classes + 5
            threshold = params.number(first, F32)
            with k.loop(begin, end) as item:
                image, row = item / sizes.height, item % sizes.height
                line = head[image * sizes.stride_n + row * sizes.stride_y]
                extents = [images[image * 2 + i].load().to(F32) for i in (1, 0)]
                with k.loop(0, sizes.anchors) as anchor, k.loop(0, sizes.width) as column:
                    pixel = line[column * sizes.stride_x]
                    cell = pixel[anchor * channels + (sizes.anchors if self.iou_aware else 0)]
                    confidence = self._confidence(params, cell[4].load(), pixel[anchor].load())
                    index = ((image * sizes.anchors + anchor) * sizes.height + row) * sizes.width + column
                    box, labels = boxes[index * 4], scores[index * sizes.classes]
                    ratios = [params.number(first + 4 + anchor * 2 + i, F32) for i in range(2)]
                    axes = [
                        _Axis(at, size, extent, ratio)
                        for at, size, extent, ratio in zip((column, row), (sizes.width, sizes.height), extents, ratios)
                    ]
                    k.if_else(
                        confidence >= threshold,
                        lambda: self._emit_cell(k, params, sizes, axes, cell, confidence, box, labels),
                        lambda: self._clear(k, sizes, box, labels),
                    )

    def _confidence(self, params: Params, logit: Val, overlap: Val) -> Val:
        confidence = sigmoid(logit)
        if not self.iou_aware:
            return confidence
        weight = params.number(len(YoloSizes._fields) + 3, F32)
        return exp((1.0 - weight) * log(confidence) + weight * log(sigmoid(overlap)))

    def _emit_cell(
        self,
        k: Emitter,
        params: Params,
        sizes: YoloSizes,
        axes: list[_Axis],
        cell: Pointer,
        confidence: Val,
        box: Pointer,
        labels: Pointer,
    ) -> None:
        factor, addend = (params.number(len(sizes) + i, F32) for i in (1, 2))
        for number, axis in enumerate(axes):
            cells = axis.cells.to(F32)
            center = (axis.cell.to(F32) + sigmoid(cell[number].load()) * factor + addend) * axis.pixels / cells
            input_size = (sizes.downsample * axis.cells).to(F32)
            half = exp(cell[2 + number].load()) * axis.anchor * axis.pixels / input_size / 2.0
            low, high = center - half, center + half
            if self.clip:  # NaN stays
                low, high = k.maximum(low, 0.0), k.minimum(high, axis.pixels - 1.0)
            box[number].store(low)
            box[2 + number].store(high)

        def body(index: Val, lanes: int) -> None:
            labels[index].store(sigmoid(cell[5 + index].load(lanes)) * confidence)

        k.span(sizes.classes, k.machine.lanes(), body, narrow=True)

    @staticmethod
    def _clear(k: Emitter, sizes: YoloSizes, box: Pointer, labels: Pointer) -> None:
        box.store(k.constant(0.0, F32, 4))
        lanes = k.machine.lanes()
        k.span(sizes.classes, lanes, lambda i, n: labels[i].store(k.constant(0.0, F32, n)), narrow=True)
