"""Resizing along one or two adjacent dimensions: weighted sums of a few elements, vectorized over the inner dimensions.

Small tables made before the run contain the indices and weights of the elements, so one kernel serves all modes of
interpolation and all rules for coordinates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lite_core.ir import DType
from lite_cpu.chains import Chain, Operand
from lite_cpu.emitter import Emitter, Params, Pointer, Val
from lite_cpu.kernels.base import Kernel

__all__ = ["Interpolate"]

#: Number of parameters before the strides: outer size, rows, columns, inner size.
_SIZES = 4


@dataclass(frozen=True)
class Interpolate(Kernel):
    """Interpolation along rows and columns.

    ``destination[o, y, x, :] = chain(sum over i, j of rw[y, i] * cw[x, j] * source[o, ri[y, i], ci[x, j], :])``.

    Pointers: source, destination, ``ri`` and ``ci`` (int32), ``rw`` and ``cw`` (of type :attr:`computed`), then the
    chain's operands. Without weights (one tap in each direction) elements are copied unchanged. Parameters: see
    :meth:`params`. A work item is a row of the destination.

    Attributes:
        source: element type of the source; the chain starts from it, or from float32 if it is a 16-bit float.
        chain: chain applied to each result.
        output: element type of the destination.
        row_taps: rows of the source in a sum.
        column_taps: columns of the source in a sum.
        weighted: there are weights.
    """

    source: DType
    output: DType
    chain: Chain
    row_taps: int = 1
    column_taps: int = 1
    weighted: bool = False

    @staticmethod
    def params(sizes: Sequence[int], strides: Sequence[Sequence[int]]) -> list[int]:
        """Return the parameters.

        Args:
            sizes: outer size, rows, columns, inner size.
            strides: (outer, row, column) strides of source, destination and operands.
        """
        return [*sizes, *(s for tensor in strides for s in tensor)]

    @property
    def computed(self) -> DType:
        """The element type of the weights and of the sum."""
        return DType.FLOAT32 if self.source.is_half else self.source

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, _):
            rows, columns, inside = params[1], params[2], params[3]
            source, destination = pointers.tensor(0, self.source), pointers.tensor(1, self.output)
            row_index, column_index = pointers.tensor(2, DType.INT32), pointers.tensor(3, DType.INT32)
            row_weight, column_weight = pointers.tensor(4, self.computed), pointers.tensor(5, self.computed)
            operands = [pointers.tensor(6 + i, o.dtype) for i, o in enumerate(self.chain.operands)]
            with k.loop(begin, end) as item:
                outer, y = item / rows, item % rows
                image = self._at(params, 0, source, outer=outer)
                taps = range(self.row_taps)
                source_rows = [row_index[y * self.row_taps + i].load() for i in taps]
                lines = [self._at(params, 0, image, row=index.to(DType.INT64)) for index in source_rows]
                row_weights = [row_weight[y * self.row_taps + i].load() for i in taps] if self.weighted else []
                target = self._at(params, 1, destination, outer=outer, row=y)
                beside = [self._at(params, 2 + i, p, outer=outer, row=y) for i, p in enumerate(operands)]
                with k.loop(0, columns) as x:
                    sources, weights = [], []
                    for j in range(self.column_taps):
                        at = x * self.column_taps + j
                        index = column_index[at].load().to(DType.INT64)
                        sources += [self._at(params, 0, line, column=index) for line in lines]
                        if self.weighted:
                            weight = column_weight[at].load()
                            weights += [weight * w for w in row_weights]
                    here = self._at(params, 1, target, column=x)
                    reads = [self._at(params, 2 + i, p, column=x) for i, p in enumerate(beside)]
                    self._emit_pixel(k, sources, weights, here, reads, inside)

    @staticmethod
    def _at(
        params: Params,
        tensor: int,
        pointer: Pointer,
        *,
        outer: Val | None = None,
        row: Val | None = None,
        column: Val | None = None,
    ) -> Pointer:
        for i, index in enumerate((outer, row, column)):
            if index is not None:
                pointer = pointer[index * params[_SIZES + 3 * tensor + i]]
        return pointer

    def _emit_pixel(
        self,
        k: Emitter,
        sources: Sequence[Pointer],
        weights: Sequence[Val],
        target: Pointer,
        operands: Sequence[Pointer],
        inside: Val,
    ) -> None:
        def body(i: Val, lanes: int) -> None:
            def load(o: int, operand: Operand) -> Val:
                return operands[o].load().splat(lanes) if operand.spread else operands[o][i].load(lanes)

            total = sources[0][i].load(lanes)
            if self.weighted:
                total = total.to(self.computed) * weights[0]
                for source, weight in zip(sources[1:], weights[1:]):
                    total = k.fma(source[i].load(lanes).to(self.computed), weight, total)
            target[i].store(self.chain.emit(k, total, load))

        types = [self.source, self.output, *(o.dtype for o in self.chain.operands)]
        k.span(inside, k.machine.lanes(max(4, *(t.itemsize for t in types))), body, narrow=True)
