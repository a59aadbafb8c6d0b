"""Gemm, MatMul, Einsum, MatMulInteger, QLinearMatMul."""

from __future__ import annotations

import numpy as np
import pytest
from op_runner import infer_op, run_op

from lite_core.errors import GraphError
from lite_core.ir import DType, SymbolicDim, TensorType

RANDOM = np.random.default_rng(4)


def normal(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def typed(*dims, dtype="float32"):
    return TensorType(DType.of(dtype), tuple(SymbolicDim.named(d) if isinstance(d, str) else d for d in dims))


# **** Gemm ****


def test_gemm_with_one_bias_per_row():
    a, b, bias = normal(3, 4), normal(4, 5), normal(3, 1)
    result = run_op("Gemm", [a.T.copy(), b, bias], transA=1, alpha=0.5, beta=2.0)[0]
    np.testing.assert_allclose(result, 0.5 * (a.astype(np.float64) @ b) + 2 * bias, rtol=1e-4, atol=1e-5)


def test_gemm_element_types():
    a, b = np.array([[1, 2]]), np.array([[3], [4]])
    for dtype in (np.int32, np.uint64, np.float64):
        result = run_op("Gemm", [a.astype(dtype), b.astype(dtype), np.ones(1, dtype)], beta=2.0)[0]
        assert result.dtype == dtype
        assert result.astype(int).tolist() == [[13]]


def test_gemm_of_empty_matrices():
    assert run_op("Gemm", [normal(0, 3), normal(3, 4)])[0].shape == (0, 4)
    assert run_op("Gemm", [normal(2, 0), normal(0, 3), np.ones(3, np.float32)])[0].tolist() == [[1] * 3] * 2


def test_gemm_symbolic_shapes_and_errors():
    assert infer_op("Gemm", [typed("n", "k"), typed(10, "k"), typed(10)], transB=1) == ["float32[n, 10]"]
    assert infer_op("Gemm", [TensorType(DType.FLOAT32), typed(10, 5)])[0].endswith(", 5]")
    with pytest.raises(GraphError, match=r"A' \[2, 3\] and B' \[4, 5\] .*3 columns, 4 rows"):
        infer_op("Gemm", [typed(2, 3), typed(4, 5)])
    with pytest.raises(GraphError, match=r"A .*matrix.*\[1, 2, 3\]"):
        infer_op("Gemm", [typed(1, 2, 3), typed(3, 5)])
    with pytest.raises(GraphError, match=r"\[2\].*broadcast|broadcast.*\[2\]"):
        infer_op("Gemm", [typed(1, 3), typed(3, 5), typed(2)])
    with pytest.raises(GraphError, match=r"C \[7, 5\] .*\[1, 5\]"):
        infer_op("Gemm", [typed(1, 3), typed(3, 5), typed(7, 5)])


# **** MatMul ****


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((3,), (3,)), ((3,), (3, 4)), ((2, 3), (3,)), ((5, 2, 3), (3,)), ((3,), (5, 3, 4)),
        ((5, 1, 2, 3), (6, 3, 4)), ((1, 2, 3), (5, 3, 4)), ((0, 3), (3, 4)), ((2, 0), (0, 4)),
        ((0, 2, 3), (3, 4)),
    ],
)  # fmt: skip
def test_matmul_equals_numpy(a, b):
    x, y = normal(*a), normal(*b)
    result = run_op("MatMul", [x, y])[0]
    expected = np.matmul(x.astype(np.float64), y)
    assert result.shape == np.shape(expected)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


def test_matmul_of_views_without_a_unit_stride():
    a, b = normal(4, 6, 8)[:, ::2, ::2], normal(8, 10)[::2, ::2]
    np.testing.assert_allclose(run_op("MatMul", [a, b])[0], a.copy() @ b.copy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.int32, np.uint64])
def test_matmul_element_types(dtype):
    a, b = np.arange(6).reshape(2, 3).astype(dtype), np.arange(3).astype(dtype)
    result = run_op("MatMul", [a, b])[0]
    assert result.dtype == dtype
    assert result.astype(int).tolist() == [5, 14]


def test_matmul_symbolic_shapes_and_errors():
    assert infer_op("MatMul", [typed("b", "s", 64), typed(64, 10)]) == ["float32[b, s, 10]"]
    assert infer_op("MatMul", [typed("b", 1, "s", "k"), typed(12, "k", "t")]) == ["float32[b, 12, s, t]"]
    assert infer_op("MatMul", [typed("k"), typed("b", "k", "t")]) == ["float32[b, t]"]
    assert infer_op("MatMul", [TensorType(DType.FLOAT32), typed(64, 10)]) == ["float32[?]"]
    with pytest.raises(GraphError, match=r"A \[2, 3\] and B \[4, 5\] .*3 columns, 4 rows"):
        infer_op("MatMul", [typed(2, 3), typed(4, 5)])
    with pytest.raises(GraphError, match="A is a scalar"):
        infer_op("MatMul", [typed(), typed(4, 5)])
    with pytest.raises(GraphError, match="do not broadcast"):
        infer_op("MatMul", [typed(2, 3, 4), typed(3, 4, 5)])


# **** Einsum ****

_SIZES = {"a": 2, "b": 3, "c": 4, "d": 5, "i": 3, "j": 4, "k": 5, "A": 2}


@pytest.mark.parametrize(
    "equation",
    [
        "ij,jk->ik", "ij,jk", "bij,bkj->bik", "abij,abkj->abik", "i,j->ij", "ij->",
        "ij", "ii->i", "ii", "bii->b", "ij,ij->", "ij,ij->i", "ij,ij->ij", "ij,jk,k->i",
        "ab,bc,cd->ad", "aij,ak,akc->jc",
        "ij,kc->ik", "iij,jk->ki", "ba", "Aa,bA->ab", " i j , j k -> i k ", "ij,i,j->",
        "i,->i", "abi,cbi->bac",
    ],
)  # fmt: skip
def test_einsum_equals_numpy(equation):
    terms = equation.replace(" ", "").split("->")[0].split(",")
    arrays = [normal(*(_SIZES[letter] for letter in term)) for term in terms]
    arrays = [np.asarray(a, dtype=np.float32) for a in arrays]
    result = run_op("Einsum", list(arrays), equation=equation)[0]
    expected = np.einsum(equation.replace(" ", ""), *(a.astype(np.float64) for a in arrays))
    assert result.shape == np.shape(expected)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("...ij,...jk->...ik", [(2, 3, 4), (2, 4, 5)]),
        ("...ij,...jk", [(7, 1, 3, 4), (2, 4, 5)]),
        ("...ij,jk->...ik", [(6, 2, 3, 4), (4, 5)]),
        ("i...->...i", [(2, 3, 4)]),
        ("...->...", [(2, 3)]),
        ("...i,...i", [(3, 4), (4,)]),
        ("b...,b->b...", [(2, 3, 4), (2,)]),
        ("ij,j->i", [(2, 1), (4,)]),
        ("ij,jk->ik", [(2, 0), (0, 3)]),
        ("ij,jk->ik", [(0, 2), (2, 3)]),
    ],
)
def test_einsum_with_ellipsis_broadcasting_and_empty_operands(equation, shapes):
    arrays = [normal(*s) for s in shapes]
    result = run_op("Einsum", list(arrays), equation=equation)[0]
    expected = np.einsum(equation, *arrays)
    assert result.shape == expected.shape
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


def test_einsum_sums_over_an_ellipsis_missing_from_the_output():
    x = normal(2, 3, 4)
    np.testing.assert_allclose(run_op("Einsum", [x], equation="...i->i")[0], x.sum((0, 1)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.int8, np.int64])
def test_einsum_element_types(dtype):
    x = np.array([[1, 2], [3, 4]], dtype)
    assert run_op("Einsum", [x], equation="ij->i")[0].tolist() == [3, 7]
    result = run_op("Einsum", [x, x], equation="ij,jk->ik")[0]
    assert result.dtype == dtype
    assert result.tolist() == [[7, 10], [15, 22]]


def test_einsum_symbolic_shapes():
    assert infer_op("Einsum", [typed("b", "s", "d"), typed("b", "t", "d")], equation="bid,bjd->bij") == [
        "float32[b, s, t]"
    ]
    assert infer_op("Einsum", [typed("b", "s", "d"), typed("d", 8)], equation="...d,dk") == ["float32[b, s, 8]"]
    unranked = TensorType(DType.FLOAT32)
    assert infer_op("Einsum", [unranked, typed(4, 5)], equation="ij,jk->ki")[0].startswith("float32[5, size")
    assert infer_op("Einsum", [unranked], equation="...i->i...") == ["float32[?]"]


@pytest.mark.parametrize(
    ("equation", "shapes", "message"),
    [
        ("ij,jk->ik", [(2, 3)], "2 operands.*1 inputs"),
        ("ij,jk->ik", [(2, 3), (4, 5)], "'j' is 4 in input 1 .* 3 "),
        ("ijk->i", [(2, 3)], "input 0 has rank 2.*'ijk'"),
        ("...ijk->i", [(2, 3)], "input 0 has rank 2"),
        ("ii->i", [(2, 3)], "'i' is 2 and 3 in input 0"),
        ("ij->ik", [(2, 3)], "output names k"),
        ("ij->ii", [(2, 3)], "output .*twice"),
        ("i.j->i", [(2, 3)], "letters"),
        ("......i->i", [(2, 3)], "letters"),
    ],
)
def test_einsum_errors(equation, shapes, message):
    with pytest.raises(GraphError, match=message):
        infer_op("Einsum", [typed(*s) for s in shapes], equation=equation)


# **** quantized ****


def bytes_of(*shape, dtype):
    limits = np.iinfo(dtype)
    return RANDOM.integers(limits.min, limits.max + 1, shape).astype(dtype)


def test_matmul_integer_per_row_and_column():
    a, b = bytes_of(3, 4, dtype=np.uint8), bytes_of(4, 5, dtype=np.int8)
    rows, columns = bytes_of(3, dtype=np.uint8), bytes_of(5, dtype=np.int8)
    expected = (a.astype(int) - rows.astype(int)[:, None]) @ (b.astype(int) - columns.astype(int))
    result = run_op("MatMulInteger", [a, b, rows, columns])[0]
    np.testing.assert_array_equal(result, expected)
    assert result.dtype == np.int32
    stacked = run_op("MatMulInteger", [np.stack([a, a]), b, rows.reshape(1, 3, 1).repeat(2, 0), columns])[0]
    np.testing.assert_array_equal(stacked, [expected, expected])


def test_matmul_integer_sums_wrap_around():
    a, b = np.full((1, 40000), 255, np.uint8), np.full((40000, 1), 255, np.uint8)
    assert run_op("MatMulInteger", [a, b])[0].item() == 40000 * 255 * 255 - 2**32


def test_qlinear_matmul_saturates_and_rounds_to_even():
    one, zero = np.asarray(np.float32(1)), np.asarray(np.int8(0))
    half = np.asarray(np.float32(0.5))
    a, b = np.array([[1], [3], [5], [127], [-127]], np.int8), np.array([[1, 4]], np.int8)
    result = run_op("QLinearMatMul", [a, half, zero, b, one, zero, one, np.asarray(np.int8(1))])[0]
    assert result.tolist() == [[1, 3], [3, 7], [3, 11], [65, 127], [-63, -128]]


def test_qlinear_matmul_of_half_scales_and_per_row_results():
    a, b = bytes_of(2, 3, dtype=np.uint8), bytes_of(3, 2, dtype=np.int8)
    f = np.float16
    a_scale, b_scale = np.array([0.5, 0.25], f), np.array([0.125, 0.5], f)
    y_scale, y_zero = np.array([16, 8], f), np.array([100, 50], np.uint8)
    a_zero, b_zero = np.array([3, 200], np.uint8), np.array([-5, 9], np.int8)
    result = run_op("QLinearMatMul", [a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero])[0]
    real = ((a.astype(float) - a_zero[:, None]) * a_scale[:, None]) @ ((b.astype(float) - b_zero) * b_scale)
    expected = np.clip(np.rint(real / y_scale[:, None]) + y_zero[:, None], 0, 255)
    np.testing.assert_array_equal(result, expected)


def test_quantized_matmul_errors():
    a, b = typed(3, 4, dtype="uint8"), typed(4, 5, dtype="uint8")
    with pytest.raises(GraphError, match=r"a_zero_point .*per row, \[3\].*\[4\]"):
        infer_op("MatMulInteger", [a, b, typed(4, dtype="uint8")])
    with pytest.raises(GraphError, match=r"b_zero_point .*per column, \[1, 5\].*\[4, 1\]"):
        infer_op("MatMulInteger", [a, b, None, typed(4, 1, dtype="uint8")])
    with pytest.raises(GraphError, match="do not multiply"):
        infer_op("MatMulInteger", [b, b])
