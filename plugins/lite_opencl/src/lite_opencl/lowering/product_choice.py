"""Which kernels can compute a matrix product, and in tiles of what size.

As in convolution_choice.py: the first candidate is what is estimated to be fastest.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from lite_core.ir import DType
from lite_opencl.device.devices import FoundDevice
from lite_opencl.tensors import Tensor

__all__ = ["ProductForm", "ProductShape", "panel_tile", "product_forms", "widest_vector"]

#: Bytes of a vector. NOTE: some compilers fail on wider ones.
_VECTOR_BYTES = 32
#: Tiles of more rows spill the registers of a processor with 16 of them.
_MOST_ROWS = 6
#: Vectors of a tile by its rows, so that there are enough sums none of which waits for another; else 2.
_VECTORS_OF_FEW_ROWS = {1: 8, 2: 4, 3: 3}
#: Below so many rows, to copy a transposed right operand costs more than it gains.
_FEW_ROWS = 8

#: Other tiles of ``matmul_panels``, rows and vectors.
_MORE_PANELS = ((6, 2), (5, 2), (4, 3), (4, 2), (3, 3), (2, 5), (1, 8), (8, 3))
#: Work groups of ``matmul_split``: columns, and parts of the depth; powers of two.
_SPLITS = ((32, 8, 1), (64, 4, 1), (64, 8, 1), (16, 16, 1))
#: Work items of a group of ``matmul_dot``: powers of two.
_DOTS = (64, 32, 128, 256)
#: Tiles of ``matmul_local``: work group, rows and columns of a work item, and steps of the depth.
_LOCALS = (
    ((16, 16, 1), 4, 4, 16),
    ((16, 16, 1), 8, 8, 8),
    ((16, 16, 1), 8, 4, 16),
    ((16, 16, 1), 2, 2, 16),
    ((16, 8, 1), 8, 4, 16),
    ((32, 8, 1), 4, 4, 16),
    ((8, 8, 1), 8, 8, 8),
    ((8, 8, 1), 4, 4, 16),
)


class ProductForm(NamedTuple):
    """A kernel of a matrix product, by the name of its file, and what its work items compute.

    Attributes:
        kernel: ``matmul_panels``, ``matmul_local``, ``matmul_split``, ``matmul_dot`` or ``matmul_plain``.
        local: its work group.
        rows, vectors, width: of a work item's sums: rows, and in each of them vectors of a width.
        depth: steps along the depth that a work group takes at a time.
    """

    kernel: str
    local: tuple[int, int, int] = (1, 1, 1)
    rows: int = 1
    vectors: int = 1
    width: int = 1
    depth: int = 1


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


def product_forms(shape: ProductShape, dtype: DType, device: FoundDevice, *, is_constant: bool) -> list[ProductForm]:
    """Forms that compute a product.

    Args:
        shape: of the operands.
        dtype: in which is summed.
        device: that computes it.
        is_constant: whether the right operand can be packed before the run.
    """
    usual = _usual_kernel(shape, device, is_constant)
    others = []
    if shape.along_depth and (shape.columns == 1 or shape.rows < _FEW_ROWS):
        others.append("matmul_dot")
    if device.is_gpu:
        others += ["matmul_split"] if shape.rows < _FEW_ROWS else []
        others += ["matmul_local"]
    elif shape.depth:
        others += ["matmul_panels"]
    # Of a kernel that is expected to be slow, one form is enough to see whether it is.
    forms = [_forms(kernel, shape, dtype, device)[0] for kernel in others if kernel != usual]
    return [*_forms(usual, shape, dtype, device), *forms]


def _forms(kernel: str, shape: ProductShape, dtype: DType, device: FoundDevice) -> list[ProductForm]:
    """The tiles of a kernel that a product and a device have room for; the first, which is usual, anyway."""
    if kernel == "matmul_panels":
        rows, vectors, width = panel_tile(shape, dtype)
        tiles = [(r, v) for r, v in _MORE_PANELS if r <= shape.rows and v * width <= shape.columns]
        return [ProductForm(kernel, (1, 1, 1), *tile, width) for tile in dict.fromkeys([(rows, vectors), *tiles])]
    if kernel == "matmul_plain":
        return [ProductForm(kernel, (min(64, 1 << (shape.columns - 1).bit_length()), 1, 1))]
    if kernel == "matmul_dot":
        counts = _DOTS if device.is_gpu else (1,)
        forms = [ProductForm(kernel, (n, 1, 1), width=widest_vector(dtype)) for n in counts]
    elif kernel == "matmul_split":
        forms = [ProductForm(kernel, local, shape.rows) for local in _SPLITS]
    else:
        forms = [ProductForm(kernel, local, rows, columns, 1, depth) for local, rows, columns, depth in _LOCALS]
    return [forms[0], *(form for form in forms[1:] if _fits(form, dtype, device))]


def _fits(form: ProductForm, dtype: DType, device: FoundDevice) -> bool:
    """Whether the device has such work groups, and the local memory that they share."""
    shared = 1
    if form.kernel == "matmul_local":
        shared = form.depth * (form.local[0] * form.vectors + form.local[1] * form.rows + 2)
    elif form.kernel == "matmul_split":
        shared = prod(form.local)
    is_small = shared * max(dtype.itemsize, 4) <= device.local_memory_bytes
    return is_small and prod(form.local) <= device.largest_group


def _usual_kernel(shape: ProductShape, device: FoundDevice, is_constant: bool) -> str:
    """The name of the kernel that is estimated to be fastest."""
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
