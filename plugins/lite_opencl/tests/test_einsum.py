"""The choice of matrix products of views for Einsum; the conformance suite tests most of its results."""

from __future__ import annotations

import pytest
from opencl_agreement import KINDS, agree, normal, single_node, steps_of

Shape = tuple[int, ...]


@KINDS
@pytest.mark.parametrize(
    ("equation", "left", "right"),
    [
        ("ij,jk->ik", (3, 5), (5, 7)),
        ("ij,jk->ki", (3, 5), (5, 7)),
        ("bihd,bjhd->bhij", (2, 4, 3, 5), (2, 6, 3, 5)),
        ("bhij,bjhd->bihd", (2, 3, 4, 6), (2, 6, 3, 5)),
        ("abcd,cdef->abef", (2, 3, 4, 5), (4, 5, 6, 7)),
        ("acbd,cefd->abef", (2, 4, 3, 5), (4, 6, 7, 5)),
        ("bij,bjk->bik", (1, 3, 5), (4, 5, 7)),
        ("...ij,...jk->...ik", (2, 1, 9, 5), (3, 5, 7)),
        ("ij,jk->ik", (3, 0), (0, 7)),
    ],
)
def test_sums_over_shared_letters_are_matrix_products(kind: str, equation: str, left: Shape, right: Shape) -> None:
    kernels = steps_of(kind, single_node("Einsum", [normal(*left), normal(*right)], {"equation": equation}))
    assert any(name.startswith("matmul") for name in kernels)


@pytest.mark.full("opencl")
@pytest.mark.parametrize("constants", [0, 1])
def test_batch_of_one_is_broadcast(constants: int) -> None:
    """ONNX does not specify that a letter may stand for sizes 1 and n."""
    arrays = [normal(1, 3, 5), normal(4, 5, 7, seed=1)]
    agree("CPU", "Einsum", arrays, {"equation": "bij,bjk->bik"}, constants=constants, tolerance=4e-6)
