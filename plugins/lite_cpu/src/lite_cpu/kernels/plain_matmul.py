"""Matrix product by plain loops, for element types that models use only to compute indices and sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lite_core.ir import DType
from lite_cpu.emitter import Emitter
from lite_cpu.kernels.base import Kernel, Products

__all__ = ["PlainMatMul"]


@dataclass(frozen=True)
class PlainMatMul(Kernel):
    """Matrix product by plain loops.

    Pointers: C, A, B, with any strides. A work item is a row of C; there are ``outer`` loops over batches.
    """

    dtype: DType
    outer: int
    optimize = "vectorize"

    @property
    def computes(self) -> Products:
        return Products(str(self.dtype))

    @staticmethod
    def params(
        rows: int,
        columns: int,
        depth: int,
        inner: Sequence[tuple[int, int]],
        sizes: Sequence[int],
        outer: Sequence[Sequence[int]],
    ) -> list[int]:
        """Return the parameters.

        Args:
            rows: rows of C.
            columns: columns of C.
            depth: columns of A.
            inner: strides of the last two dimensions of C, A and B.
            sizes: sizes of the loops over batches, outermost first.
            outer: strides of C, A and B in these loops.
        """
        return [rows, columns, depth, *(s for pair in inner for s in pair), *sizes, *(s for t in outer for s in t)]

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, _):
            rows, columns, depth = (params[i] for i in range(3))
            strides = [(params[3 + 2 * t], params[4 + 2 * t]) for t in range(3)]
            tensors = [pointers.tensor(t, self.dtype) for t in range(3)]
            with k.loop(begin, end) as item:
                row, rest = item % rows, item / rows
                here = tensors
                for axis in reversed(range(self.outer)):
                    index = rest % params[9 + axis]
                    here = [p[index * params[9 + (1 + t) * self.outer + axis]] for t, p in enumerate(here)]
                    rest = rest / params[9 + axis]
                c, a, b = here
                c, a = c[row * strides[0][0]], a[row * strides[1][0]]
                with k.walk(columns, (c, strides[0][1]), (b, strides[2][1])) as (result, column):
                    total = k.variable(k.constant(0, self.dtype))
                    with k.walk(depth, (a, strides[1][1]), (column, strides[2][0])) as (left, right):
                        total.set(total.get() + left.load() * right.load())
                    result.store(total.get())
