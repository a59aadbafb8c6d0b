"""Einsum: matrix products by views, everything else by the definition."""

from __future__ import annotations

import pytest
from opencl_agreement import KINDS, agree, normal, single_node, steps_of

Shape = tuple[int, ...]

PRODUCTS: list[tuple[str, Shape, Shape]] = [
    ("ij,jk->ik", (3, 5), (5, 7)),
    ("ij,jk->ki", (3, 5), (5, 7)),
    ("bihd,bjhd->bhij", (2, 4, 3, 5), (2, 6, 3, 5)),
    ("bhij,bjhd->bihd", (2, 3, 4, 6), (2, 6, 3, 5)),
    ("abcd,cdef->abef", (2, 3, 4, 5), (4, 5, 6, 7)),
    ("acbd,cefd->abef", (2, 4, 3, 5), (4, 6, 7, 5)),
    ("bij,bjk->bik", (1, 3, 5), (4, 5, 7)),
    ("...ij,...jk->...ik", (2, 1, 9, 5), (3, 5, 7)),
    ("ij,jk->ik", (3, 0), (0, 7)),
]


@KINDS
@pytest.mark.parametrize("constants", [0, 1])
@pytest.mark.parametrize(("equation", "left", "right"), PRODUCTS)
def test_products(kind: str, constants: int, equation: str, left: Shape, right: Shape) -> None:
    arrays = [normal(*left), normal(*right, seed=1)]
    agree(kind, "Einsum", arrays, {"equation": equation}, constants=constants, tolerance=4e-6)
    kernels = steps_of(kind, single_node("Einsum", arrays, {"equation": equation}))
    assert any(name.startswith("matmul") for name in kernels)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,ij->ij", [(3, 4), (3, 4)]),
        ("ii,ij->j", [(3, 3), (3, 4)]),
        ("ij,jk->i", [(3, 4), (4, 2)]),
        ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
        ("...ii->...i", [(2, 3, 3)]),
        ("ij->", [(3, 4)]),
        ("cab", [(2, 3, 4)]),
    ],
)
def test_by_definition(equation: str, shapes: list[Shape]) -> None:
    arrays = [normal(*shape, seed=i) for i, shape in enumerate(shapes)]
    agree("CPU", "Einsum", arrays, {"equation": equation}, tolerance=4e-6)
