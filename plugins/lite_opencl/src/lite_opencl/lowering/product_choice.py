"""Candidate kernels and tile sizes for a matrix product.

As in convolution_choice.py, the first candidate is the one with the best estimate.
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
_MAX_ROWS = 6
#: Vectors of a tile by its rows, so that there are enough independent sums; 2 for tiles of more rows.
_VECTORS_OF_FEW_ROWS = {1: 8, 2: 4, 3: 3}
#: Below this number of rows, copying a transposed right operand costs more than it gains.
_FEW_ROWS = 8

#: More tiles of ``matmul_panels``: rows and vectors.
_MORE_PANELS = ((6, 2), (5, 2), (4, 3), (4, 2), (3, 3), (2, 5), (1, 8), (8, 3))
#: Work groups of ``matmul_split``: columns, and parts of the depth; powers of two.
_SPLITS = ((32, 8, 1), (64, 4, 1), (64, 8, 1), (16, 16, 1))
#: Work group sizes of ``matmul_dot``: powers of two.
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
    """A kernel of a matrix product with its tile sizes.

    Attributes:
        kernel: ``matmul_panels``, ``matmul_local``, ``matmul_split``, ``matmul_dot`` or ``matmul_plain``.
        local: its work group.
        rows, vectors, width: the register block of a work item: rows, vectors in each row, and elements of a vector.
        depth: the part of the depth that a work group loads at a time.
    """

    kernel: str
    local: tuple[int, int, int] = (1, 1, 1)
    rows: int = 1
    vectors: int = 1
    width: int = 1
    depth: int = 1


@dataclass(frozen=True, slots=True)
class ProductShape:
    """Sizes and strides of two matrices [rows, depth] and [depth, columns]."""

    rows: int
    columns: int
    depth: int
    a_row: int
    a_depth: int
    b_depth: int
    b_column: int

    @staticmethod
    def of(a: Tensor, b: Tensor) -> ProductShape:
        """Return the shape of the product over the last two dimensions of two tensors."""
        rows, depth = a.shape[-2:]
        return ProductShape(rows, b.shape[-1], depth, *_strides(a), *_strides(b))

    @property
    def strides(self) -> tuple[int, int, int, int]:
        return self.a_row, self.a_depth, self.b_depth, self.b_column

    @property
    def along_depth(self) -> bool:
        """True if both operands are contiguous along the depth."""
        return self.a_depth == 1 and self.b_depth == 1


def product_forms(shape: ProductShape, dtype: DType, device: FoundDevice, *, is_constant: bool) -> list[ProductForm]:
    """Return the forms that can compute a product, the one with the best estimate first.

    Args:
        shape: sizes and strides of the operands.
        dtype: the type of the sums.
        device: the device that computes the product.
        is_constant: True if the right operand can be packed before the run.
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
    # If a kernel is expected to be slow, measuring one of its forms is enough to verify that.
    forms = [_forms(kernel, shape, dtype, device)[0] for kernel in others if kernel != usual]
    return [*_forms(usual, shape, dtype, device), *forms]


def _forms(kernel: str, shape: ProductShape, dtype: DType, device: FoundDevice) -> list[ProductForm]:
    """Return the usual form of a kernel, then its other forms that fit a product and a device."""
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
    """Return True if the device supports such work groups and has enough local memory for them."""
    shared = 1
    if form.kernel == "matmul_local":
        shared = form.depth * (form.local[0] * form.vectors + form.local[1] * form.rows + 2)
    elif form.kernel == "matmul_split":
        shared = prod(form.local)
    is_small = shared * max(dtype.itemsize, 4) <= device.local_memory_bytes
    return is_small and prod(form.local) <= device.largest_group


def _usual_kernel(shape: ProductShape, device: FoundDevice, is_constant: bool) -> str:
    """Return the name of the kernel that is estimated to be fastest."""
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
    """Return rows, vectors and vector width of a tile of ``matmul_panels``, limited by the size of the result."""
    width = min(widest_vector(dtype), 1 << (shape.columns.bit_length() - 1))
    tiles = -(-shape.rows // _MAX_ROWS)
    rows = -(-shape.rows // tiles)
    return rows, min(_VECTORS_OF_FEW_ROWS.get(rows, 2), shape.columns // width), width


def widest_vector(dtype: DType) -> int:
    """Return the number of sums of type ``dtype`` that fit into a vector."""
    return _VECTOR_BYTES // max(dtype.itemsize, 4)


def _strides(matrix: Tensor) -> tuple[int, int]:
    """Return the strides of the last two dimensions; 1 for a dimension of one element, which suits every kernel."""
    row, column = (1 if n == 1 else s for n, s in zip(matrix.shape[-2:], matrix.strides[-2:]))
    return row, column
