"""Matrix product by a function of another library with the signature of ``cblas_sgemm``."""

from __future__ import annotations

from dataclasses import astuple, dataclass

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Pointer, Val
from lite_cpu.kernels.base import Kernel, Products

__all__ = ["ExternalProduct", "ExternalShape"]

F32, I32 = DType.FLOAT32, DType.INT32

# Constants of cblas.h.
_ROW_MAJOR, _NOT_TRANSPOSED, _TRANSPOSED = 101, 111, 112


@dataclass(frozen=True, slots=True)
class ExternalShape:
    """Sizes and strides of a product, in elements, and the function's address: the parameters of the kernel in order.

    Attributes:
        address: address of the function.
        rows: rows of A and C.
        columns: columns of B and C.
        depth: columns of A, rows of B.
        a_row: row stride of A, whose rows are contiguous.
        b_row: row stride of B, or its column stride if B is transposed.
        c_row: row stride of C.
        batches: number of products.
        a_batch: batch stride of A.
        b_batch: batch stride of B.
        c_batch: batch stride of C.
        row_block: rows of a work item.
    """

    address: int
    rows: int
    columns: int
    depth: int
    a_row: int
    b_row: int
    c_row: int
    batches: int
    a_batch: int
    b_batch: int
    c_batch: int
    row_block: int

    @property
    def flops(self) -> int:
        """Operations of all products; a multiply-add counts as two."""
        return 2 * self.batches * self.rows * self.columns * self.depth

    @property
    def items(self) -> int:
        """Number of work items, which are blocks of rows."""
        return self.batches * -(-self.rows // self.row_block)

    def params(self) -> list[int]:
        """Return the parameters of the kernel."""
        return list(astuple(self))


@dataclass(frozen=True)
class ExternalProduct(Kernel):
    """Matrix product by an external function.

    Pointers: C, A, B, all float32. A work item is a block of rows of one product; C is overwritten.

    Attributes:
        transposed: the columns of B are contiguous, not its rows.
        convention: calling convention, see :class:`~lite_cpu.external.ExternalSgemm`.
    """

    transposed: bool
    convention: str = ""

    @property
    def computes(self) -> Products:
        return Products("float32")

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, _):
            address, rows, columns, depth, a_row, b_row, c_row = (params[i] for i in range(7))
            _, a_batch, b_batch, c_batch, row_block = (params[i] for i in range(7, 12))
            c, a, b = (pointers.tensor(i, F32) for i in range(3))
            blocks = (rows + row_block - 1) // row_block
            with k.loop(begin, end) as item:
                batch, row = item // blocks, item % blocks * row_block
                order = [_ROW_MAJOR, _NOT_TRANSPOSED, _TRANSPOSED if self.transposed else _NOT_TRANSPOSED]
                sizes = [k.minimum(row_block, rows - row), columns, depth]
                arguments: list[Val | Pointer] = [
                    *(k.constant(number, I32) for number in order),
                    *(size.to(I32) for size in sizes),
                    k.constant(1.0, F32), a[batch * a_batch + row * a_row], a_row.to(I32),
                    b[batch * b_batch], b_row.to(I32),
                    k.constant(0.0, F32), c[batch * c_batch + row * c_row], c_row.to(I32),
                ]  # fmt: skip
                k.call_address(address, arguments, convention=self.convention)
