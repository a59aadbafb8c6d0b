"""Scores of one image and class, decayed by the overlaps with better boxes (operator MatrixNms)."""

from __future__ import annotations

from dataclasses import dataclass

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Params, Pointer, Val
from lite_cpu.kernels.box_overlaps import Box, Corners
from lite_cpu.kernels.ranking import number_of
from lite_cpu.kernels.suppression import BoxesOfClass, ClassBoxes
from lite_cpu.vector_math import exp

__all__ = ["MatrixDecay"]

F32 = DType.FLOAT32


@dataclass(frozen=True)
class MatrixDecay(ClassBoxes):
    """Keep the boxes whose decayed score is above a threshold, in the order of the scores before.

    More parameters: the threshold of decayed scores and the factor in the exponent of Gaussian decay, both float32.
    Otherwise the decay is linear.
    """

    gaussian: bool = False

    def emit(self, k: Emitter) -> None:
        self._each_class(k, lambda boxes, pointers, params, offset: self._decay(k, boxes, params, offset))

    def _decay(self, k: Emitter, boxes: BoxesOfClass, params: Params, offset: Val) -> Val:
        least, sigma = params.number(self.PARAMETERS, F32), params.number(self.PARAMETERS + 1, F32)
        lanes = k.machine.lanes()
        largest = boxes.columns.start[boxes.columns.length * 5]  # the largest overlap of each box with a better one
        size = k.variable(k.index(0))
        with k.loop(0, boxes.count) as rank:
            box = boxes.box(k, rank, Corners.ORDERED, offset)
            boxes.columns.store(rank, box)
            most, factor = k.variable(k.constant(0.0, F32, lanes)), k.variable(k.constant(1.0, F32, lanes))

            def body(index: Val, valid: Val | None, box: Box = box) -> None:
                overlap, decay = self._pair(k, boxes, box, index, largest, sigma, offset)
                if valid is not None:
                    overlap, decay = valid.select(overlap, 0.0), valid.select(decay, 1.0)
                most.set(k.maximum(most.get(), overlap))
                factor.set(k.minimum(factor.get(), decay))

            whole = rank / lanes * lanes
            with k.loop(0, whole, lanes) as index:
                body(index, None)
            with k.if_(whole < rank):
                body(whole, k.first_lanes(rank - whole, lanes))
            largest[rank].store(k.max_lanes(most.get()))
            number = number_of(boxes.entries[rank].load())
            score = boxes.values[number].load() * k.fold_lanes(factor.get(), k.minimum)
            with k.if_(score > least):
                boxes.keep(size.get(), number, score)
                size.set(size.get() + 1)
        return size.get()

    def _pair(
        self, k: Emitter, boxes: BoxesOfClass, box: Box, index: Val, largest: Pointer, sigma: Val, offset: Val
    ) -> tuple[Val, Val]:
        """Return the overlaps with a vector of better boxes, and the factors that these cause; neither is NaN."""
        lanes = k.machine.lanes()
        overlap = box.overlap(boxes.columns.load(index, lanes), offset)
        overlap = overlap.is_nan().select(0.0, overlap)
        most = largest[index].load(lanes)
        if self.gaussian:
            return overlap, exp((most * most - overlap * overlap) * sigma)
        return overlap, k.minimum(k.constant(1.0, F32, lanes), (1.0 - overlap) / (1.0 - most))
