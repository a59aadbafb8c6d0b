"""Matrix products against Paddle and against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hand_made import graph_of, run
from paddle_cases import Case, check, parametrize_cases

from lite_core.errors import UnsupportedOperatorError

RNG = np.random.default_rng(0)


def array(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.standard_normal(shape).astype(np.float32)


def api(name: str, *arguments: Any, **keywords: Any) -> Callable[[Any], Any]:
    return lambda p: lambda *tensors: getattr(p, name)(*tensors, *arguments, **keywords)


CASES = [
    Case("matrices", api("matmul"), [array(3, 4), array(4, 5)]),
    Case("open", api("matmul"), [array(3, 4), array(4, 5)], shapes=[(None, 4), (4, None)]),
    Case("batched", api("matmul"), [array(2, 1, 3, 4), array(5, 4, 6)]),
    Case("transposed_x", api("matmul", transpose_x=True), [array(2, 4, 3), array(2, 4, 5)]),
    Case("transposed_y", api("matmul", transpose_y=True), [array(2, 3, 4), array(2, 5, 4)]),
    Case("transposed_both", api("matmul", True, True), [array(4, 3), array(5, 4)]),
    Case("vectors", api("matmul"), [array(4), array(4)]),
    Case("vector_matrix", api("matmul"), [array(4), array(4, 5)]),
    Case("matrix_vector", api("matmul"), [array(2, 3, 4), array(4)]),
    Case("transposed_vector", api("matmul", True, True), [array(4), array(5, 4)]),
    Case("bmm", api("bmm"), [array(2, 3, 4), array(2, 4, 5)]),
    Case("mv", api("mv"), [array(3, 4), array(4)]),
    Case("dot", api("dot"), [array(4), array(4)]),
    Case("dot_rows", api("dot"), [array(3, 4), array(3, 4)]),
    Case("addmm", api("addmm", beta=0.5, alpha=2.0), [array(3, 5), array(3, 4), array(4, 5)]),
    Case("linear", lambda p: p.nn.Linear(4, 5), [array(2, 3, 4)], shapes=[(None, None, 4)]),
    Case("multi_dot", lambda p: lambda a, b, c: p.linalg.multi_dot([a, b, c]), [array(3, 4), array(4, 5), array(5, 2)]),
    Case("einsum", lambda p: lambda a, b: p.einsum("bij,bkj->bik", a, b), [array(2, 3, 4), array(2, 5, 4)]),
    Case("einsum_trace", lambda p: lambda a: p.einsum("bij->bji", a), [array(2, 3, 4)]),
]


@parametrize_cases(CASES)
def test_matches_paddle(case: Case, kind: str, paddle_models: Callable[[str], Path]) -> None:
    check(case, paddle_models(kind), kind)


def assert_close(actual: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> None:
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


def test_matmul_of_paddle_1() -> None:
    a, b, v, w = array(2, 3, 4), array(4, 5), array(4), array(6)
    rows = array(2, 5, 4)
    assert_close(run("matmul", {"X": a, "Y": b}, {"alpha": 0.5})[0], a @ b * 0.5)
    assert_close(run("matmul", {"X": a, "Y": rows}, {"transpose_Y": True})[0], a @ rows.swapaxes(1, 2))
    assert_close(run("matmul", {"X": v, "Y": b})[0], v @ b)
    assert_close(run("matmul", {"X": v, "Y": w}, {"transpose_X": True, "transpose_Y": True})[0], np.outer(v, w))
    assert_close(run("matmul", {"X": v, "Y": v}, version=1_008_000)[0], np.array([v @ v]))
    assert_close(run("matmul", {"X": v, "Y": v}, version=2_006_000)[0], np.array(v @ v))
    with pytest.raises(UnsupportedOperatorError, match="head_number"):
        run("matmul", {"X": a, "Y": b}, {"head_number": 2})


@pytest.mark.parametrize("shape", [None, (-1, 3, 4, 5), (2, -1, -1, 5)])
@pytest.mark.parametrize(("x_axes", "y_axes"), [(1, 1), (2, 1), (3, 1), (2, 2)])
def test_mul_flattens_both(x_axes: int, y_axes: int, shape: tuple[int, ...] | None) -> None:
    x = array(2, 3, 4, 5)
    columns = int(np.prod(x.shape[x_axes:]))
    y = array(columns, 6) if y_axes == 1 else array(4, columns // 4, 6)
    attrs = {"x_num_col_dims": x_axes, "y_num_col_dims": y_axes}
    (out,) = run("mul", {"X": x, "Y": y}, attrs, parameters=["Y"], shapes={"X": shape or x.shape})
    assert_close(out, (x.reshape(-1, columns) @ y.reshape(columns, 6)).reshape(*x.shape[:x_axes], 6))


def test_mul_on_the_last_axis_is_one_node() -> None:
    graph = graph_of("mul", {"X": array(2, 3, 4), "Y": array(4, 5)}, {"x_num_col_dims": 2})
    assert [n.op for n in graph.nodes] == ["MatMul"]


def test_fc_of_optimised_models() -> None:
    x, w, bias = array(3, 2, 4), array(8, 5), array(1, 5)
    (y,) = run("fc", {"Input": x, "W": w, "Bias": bias}, {"activation_type": "relu"})
    assert_close(y, np.maximum(x.reshape(3, 8) @ w + bias, 0))
    padded = np.full((12, 9), np.nan, np.float32)
    padded[:8, :5] = w
    (y,) = run("fc", {"Input": x, "W": padded}, {"padding_weights": True}, parameters=["W"])
    assert_close(y, x.reshape(3, 8) @ w)


def test_dot_kept_its_axis_before_2_5() -> None:
    a, b = array(3, 4), array(3, 4)
    assert_close(run("dot", {"X": a, "Y": b}, version=2_004_000)[0], (a * b).sum(-1, keepdims=True))
    assert_close(run("dot", {"X": a, "Y": b}, version=2_005_000)[0], (a * b).sum(-1))


def test_products_with_fused_bias() -> None:
    x, w, bias = array(3, 4), array(5, 4), array(5)
    inputs = {"X": x, "Y": w, "Bias": bias}
    (y,) = run("fused_gemm_epilogue", inputs, {"trans_y": True, "activation": "relu"})
    assert_close(y, np.maximum(x @ w.T + bias, 0))
    (y,) = run("linear_v2", {"input": x, "weight": w, "bias": bias}, {"transpose_weight": True}, outputs=["out"])
    assert_close(y, x @ w.T + bias)
