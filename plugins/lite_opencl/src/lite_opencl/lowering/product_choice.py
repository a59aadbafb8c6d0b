"""Which kernel computes a matrix product, and in tiles of what size."""

from __future__ import annotations

from dataclasses import dataclass

from lite_core.ir import DType
from lite_opencl.devices import FoundDevice
from lite_opencl.tensors import Tensor

__all__ = ["ProductShape", "choose_kernel", "panel_tile", "widest_vector"]

#: Bytes of a vector. NOTE: some compilers fail on wider ones.
_VECTOR_BYTES = 32
#: Tiles of more rows spill the registers of a processor with 16 of them.
_MOST_ROWS = 6
#: Vectors of a tile by its rows, so that there are enough sums none of which waits for another; else 2.
_VECTORS_OF_FEW_ROWS = {1: 8, 2: 4, 3: 3}
#: Below so many rows, to copy a transposed right operand costs more than it gains.
_FEW_ROWS = 8


@dataclass(frozen=True, slots=True)
class ProductShape:
    """Matrices [rows, depth] and [depth, columns], and the strides in which their elements lie."""

    rows: int
    columns: int
    depth: int
    a_row: int
    a_depth: int
    b_depth: int
    b_column: int

    @staticmethod
    def of(a: Tensor, b: Tensor) -> ProductShape:
        """Of the last two dimensions of two tensors."""
        rows, depth = a.shape[-2:]
        return ProductShape(rows, b.shape[-1], depth, *_strides(a), *_strides(b))

    @property
    def strides(self) -> tuple[int, int, int, int]:
        return self.a_row, self.a_depth, self.b_depth, self.b_column

    @property
    def along_depth(self) -> bool:
        """Both operands are contiguous along the depth."""
        return self.a_depth == 1 and self.b_depth == 1


def choose_kernel(shape: ProductShape, device: FoundDevice, *, is_constant: bool) -> str:
    """The name of the kernel, and of its file; ``is_constant``: the right operand can be packed before the run."""
    if shape.columns == 1 or (shape.rows < _FEW_ROWS and not is_constant):
        if shape.along_depth:
            return "matmul_dot"
        if shape.columns == 1:
            return "matmul_plain"
    if device.is_gpu:
        return "matmul_split" if shape.rows < _FEW_ROWS else "matmul_local"
    is_worth_a_copy = is_constant or shape.rows >= _FEW_ROWS or shape.b_column == 1
    return "matmul_panels" if shape.depth and is_worth_a_copy else "matmul_plain"


def panel_tile(shape: ProductShape, dtype: DType) -> tuple[int, int, int]:
    """Rows of a tile of ``matmul_panels``, its vectors and their width; no more rows and columns than there are."""
    width = min(widest_vector(dtype), 1 << (shape.columns.bit_length() - 1))
    tiles = -(-shape.rows // _MOST_ROWS)
    rows = -(-shape.rows // tiles)
    return rows, min(_VECTORS_OF_FEW_ROWS.get(rows, 2), shape.columns // width), width


def widest_vector(dtype: DType) -> int:
    """How many sums of numbers of ``dtype`` fit into a vector."""
    return _VECTOR_BYTES // max(dtype.itemsize, 4)


def _strides(matrix: Tensor) -> tuple[int, int]:
    """Strides of the last two dimensions; that of a dimension of one element is 1, which suits every kernel."""
    row, column = (1 if n == 1 else s for n, s in zip(matrix.shape[-2:], matrix.strides[-2:]))
    return row, column
