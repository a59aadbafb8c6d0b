"""Packing of the right operand of an 8-bit product at run time, with its zero points subtracted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lite_core.ir import DType
from lite_cpu.emitter import Emitter
from lite_cpu.kernels.base import Kernel
from lite_cpu.kernels.integer_dots import DotForm
from lite_cpu.kernels.tiles import gemm_tile

__all__ = ["PackInt8"]

I32 = DType.INT32


@dataclass(frozen=True)
class PackInt8(Kernel):
    """Packing of matrices, with their zero points subtracted, and the sums of their columns.

    Pointers: the matrices [batches, runs, depth, columns], their zero points, the panels, the sums of the columns.

    The panels are those of :func:`~lite_cpu.dot_panels.pack_dots`. A work item is a panel of one batch.
    The difference of an element and its zero point must fit ``form.right``.
    """

    stored: DType
    form: DotForm

    @staticmethod
    def params(
        shape: Sequence[int], strides: Sequence[int], zero_strides: tuple[int, int], packed_batch: int
    ) -> list[int]:
        """Return the parameters.

        Args:
            shape: shape of the matrices.
            strides: strides of the matrices.
            zero_strides: batch and column strides of the zero points.
            packed_batch: size of a packed batch.
        """
        return [*shape[1:], *strides, *zero_strides, packed_batch]

    def emit(self, k: Emitter) -> None:
        form, lanes, (_, vectors) = self.form, k.machine.lanes(), gemm_tile(k.machine)
        with k.kernel(self.symbol) as (pointers, params, begin, end, _):
            runs, depth, columns = (params[i] for i in range(3))
            by_batch, by_run, by_depth, by_column, zero_batch, zero_column, packed_batch = (
                params[i] for i in range(3, 10)
            )
            width = lanes * vectors
            panels = (columns + width - 1) / width
            steps = (depth + (form.group - 1)) / form.group
            with k.loop(begin, end) as item:
                batch, first = item / panels, item % panels * width
                here = k.minimum(width, (columns - first + lanes - 1) / lanes * lanes)
                panel = pointers.tensor(2, form.right)[batch * packed_batch + first * runs * steps * form.group]
                with k.loop(0, here) as c:
                    # The last vector is padded by repeating the last column; products with padding are never stored.
                    column = k.minimum(first + c, columns - 1)
                    source = pointers.tensor(0, self.stored)[batch * by_batch + column * by_column]
                    zero = pointers.tensor(1, self.stored)[batch * zero_batch + column * zero_column].load().to(I32)
                    total = k.variable(k.constant(0, I32))
                    with k.loop(0, runs) as run, k.loop(0, steps) as step:
                        target = panel[((run * steps + step) * here + c) * form.group]
                        for i in range(form.group):
                            d = step * form.group + i
                            element = source[run * by_run + k.minimum(d, depth - 1) * by_depth].load().to(I32) - zero
                            inside = (d < depth).select(element, 0)
                            target[i].store(inside.to(form.right))
                            total.set(total.get() + inside)
                    with k.if_(first + c < columns):
                        pointers.tensor(3, I32)[batch * columns + column].store(total.get())
