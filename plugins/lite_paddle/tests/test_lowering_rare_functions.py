"""Special functions, linear algebra, segments and graphs, rare operators on shapes: against Paddle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hand_made import run, run_single
from paddle_cases import Case, check, fixed_and_open, parametrize_cases, tensor_method

RNG = np.random.default_rng(12)
PIR = ("pir",)
X = RNG.standard_normal((3, 4, 5)).astype(np.float32)
SIGNED = np.array([-10.25, -2.5, -0.75, -1e-3, 1e-3, 0.4, 0.5, 1, 1.46, 2, 9.5, 1e3, 1e6], np.float32)
INNER = np.array([-1, -0.999, -0.5, -1e-4, 0, 0.3, 0.9, 0.99999, 1, 1.5], np.float32)
SQUARES = (RNG.standard_normal((2, 4, 4)) + 3 * np.eye(4)).astype(np.float32)
KNOWN = RNG.standard_normal((2, 4, 3)).astype(np.float32)
LEFT, RIGHT = (RNG.standard_normal((4, n)).astype(np.float32) for n in (5, 6))
NODES = RNG.standard_normal((5, 3)).astype(np.float32)
SOURCES, TARGETS = np.array([0, 1, 2, 0, 4, 4]), np.array([1, 2, 1, 0, 3, 1])
EDGES = RNG.uniform(1, 2, (6, 3)).astype(np.float32)
SEGMENTS = np.array([0, 0, 1, 3, 3])
BESSEL = np.array([-60, -16.5, -3, -1e-3, 0, 0.5, 2, 15.5, 16, 16.5, 40, 80], np.float32)
SHIFTED, SHIFTS = np.array([-9, -8, 0, 7, 1000], np.int32), np.array([1, 3, 2, 4, 5], np.int32)
ONES = np.ones((3, 1), np.float32)
RUNS = np.array([2, 2, 3, 1, 1, 1, 2], np.int64)


def _graph(name: str, *arguments: Any, **options: Any) -> Any:
    return lambda p: lambda *tensors: getattr(p.geometric, name)(*tensors, *arguments, **options)


def _shard(p: Any) -> Any:
    return lambda x: p.shard_index(x, index_num=20, nshards=3, shard_id=1, ignore_value=-5)


def _power(n: int) -> Any:
    return lambda p: lambda x: p.linalg.matrix_power(x, n)


def _distance(number: float) -> Any:
    return lambda p: lambda x, y: p.dist(x, y, number)


CASES = [
    *fixed_and_open("digamma", tensor_method("digamma"), SIGNED),
    *fixed_and_open("gammaln", tensor_method("gammaln"), np.abs(SIGNED)),
    *fixed_and_open("erfinv", tensor_method("erfinv"), INNER),
    *fixed_and_open("det", lambda p: lambda x: p.linalg.det(x), SQUARES),
    *fixed_and_open("slogdet", lambda p: lambda x: p.linalg.slogdet(x), SQUARES),
    Case("solve", lambda p: lambda x, y: p.linalg.solve(x, y), [SQUARES, KNOWN], kinds=PIR),
    Case("solve_vector", lambda p: lambda x, y: p.linalg.solve(x, y), [SQUARES[0], KNOWN[0, :, 0].copy()], kinds=PIR),
    Case("triangular_solve", lambda p: lambda x, y: p.linalg.triangular_solve(x, y), [SQUARES, KNOWN]),
    Case("triangular_solve_lower", lambda p: lambda x, y: p.linalg.triangular_solve(x, y, False, True),
         [SQUARES, KNOWN]),
    Case("cholesky_solve", lambda p: lambda x, y: p.linalg.cholesky_solve(x, y), [KNOWN, SQUARES], rtol=1e-3,
         atol=1e-4),
    *[Case(f"matrix_power_{n}", _power(n), [SQUARES], rtol=1e-3) for n in (1, 5, -2)],
    *[Case(f"dist_{number}", _distance(number), [X[:2].copy(), X[1:].copy()])
      for number in (0.0, 1.5, 2.0, float("inf"), float("-inf"))],
    Case("bilinear", lambda p: p.nn.Bilinear(5, 6, 7), [LEFT, RIGHT]),
    *[Case(f"segment_{kind}", _graph(f"segment_{kind}"), [NODES, SEGMENTS]) for kind in ("sum", "mean", "max", "min")],
    *[Case(f"send_u_recv_{kind}", _graph("send_u_recv", kind), [NODES, SOURCES, TARGETS])
      for kind in ("sum", "mean", "max", "min")],
    *fixed_and_open("send_u_recv_size", _graph("send_u_recv", "sum", 8), NODES, SOURCES, TARGETS),
    Case("send_ue_recv", _graph("send_ue_recv", "mul", "mean"), [NODES, EDGES, SOURCES, TARGETS]),
    Case("send_uv", _graph("send_uv", message_op="add"), [NODES, NODES + 1, SOURCES, TARGETS]),
    *fixed_and_open("shard_index", _shard, RNG.integers(0, 20, (6, 1))),
    *fixed_and_open("unique_consecutive", lambda p: lambda x: p.unique_consecutive(x, True, True), RUNS),
    *[case for name in ("i0", "i0e", "i1", "i1e") for case in fixed_and_open(name, tensor_method(name), BESSEL)],
    *fixed_and_open("empty", lambda p: lambda x: p.zeros_like(p.empty([3, 4])) + p.zeros_like(p.empty_like(x)), ONES),
    Case("empty_of_size", lambda p: lambda x: p.zeros_like(p.empty([p.shape(x)[0], 2])), [ONES]),
    Case("reduce_as", lambda p: lambda x, y: p.reduce_as(x, y), [X, X[0, :, :1].copy()]),
    Case("left_shift", lambda p: lambda x, y: p.bitwise_left_shift(x, y), [SHIFTED, SHIFTS]),
    Case("right_shift", lambda p: lambda x, y: p.bitwise_right_shift(x, y), [SHIFTED, SHIFTS]),
    Case("diagonal_scatter", lambda p: lambda x, y: p.diagonal_scatter(x, y, 1, 0, 2), [X, X[0, :, :3].copy()]),
    Case("diagonal_scatter_below", lambda p: lambda x, y: p.diagonal_scatter(x, y, -1), [X, X[0, :2].T.copy()]),
    *fixed_and_open("diagonal_scatter_matrix", lambda p: lambda x, y: p.diagonal_scatter(x, y), X[0], SIGNED[:4]),
    *fixed_and_open("constant_in_forward", lambda p: lambda x: x * p.to_tensor([[2.0], [3.0], [4.0]]), ONES),
    Case("logspace", lambda p: lambda x: p.logspace(0, 3, 7, 2) + x, [np.float32(1).reshape(1)]),
]  # fmt: skip


@parametrize_cases(CASES)
def test_matches_paddle(case: Case, kind: str, paddle_models: Any) -> None:
    check(case, paddle_models(kind), kind)


def test_parts_of_columns() -> None:
    parts = [LEFT[:, 1:3], RIGHT[:, 1:3]]
    attrs = {"start_index": 1, "length": 2}
    (joined,) = run("partial_concat", {"X": [LEFT, RIGHT]}, attrs)
    np.testing.assert_array_equal(joined, np.concatenate(parts, axis=1))
    (added,) = run("partial_sum", {"X": [LEFT, RIGHT]}, attrs)
    np.testing.assert_allclose(added, parts[0] + parts[1], rtol=1e-6)


@pytest.mark.parametrize("shape", [(4, 4), (9, 3), (3, 9)])
@pytest.mark.parametrize("wrap", [False, True])
def test_numbers_on_the_diagonal(shape: tuple[int, int], wrap: bool) -> None:
    """The operator works in place, and Paddle 3 exports it no longer."""
    expected = RNG.standard_normal(shape).astype(np.float32)
    (found,) = run("fill_diagonal", {"X": expected}, {"value": 9.0, "offset": 0, "wrap": wrap})
    np.fill_diagonal(expected, 9, wrap=wrap)
    np.testing.assert_array_equal(found, expected)


def test_numbers_beside_the_diagonal() -> None:
    (found,) = run("fill_diagonal", {"X": X[0]}, {"value": 9.0, "offset": 1, "wrap": False})
    np.testing.assert_array_equal(found, np.where(np.eye(4, 5, 1), 9, X[0]))


def test_views() -> None:
    found = run_single("as_strided", {"input": X}, {"dims": [2, 3], "stride": [1, 4], "offset": 2}, outputs=["out"])
    np.testing.assert_array_equal(found, np.lib.stride_tricks.as_strided(X.reshape(-1)[2:], (2, 3), (4, 16)))
    found = run_single("tensor_unfold", {"input": X}, {"axis": 1, "size": 2, "step": 2}, outputs=["out"])
    np.testing.assert_array_equal(found, np.lib.stride_tricks.sliding_window_view(X, 2, axis=1)[:, ::2])
    found = run_single("view_shape", {"input": X}, {"dims": [4, 15]}, outputs=["out"])
    np.testing.assert_array_equal(found, X.reshape(4, 15))
    halves = np.array([-1.5, -0.5, 0.5, 1.5, 2.4], np.float32)
    np.testing.assert_array_equal(run_single("rint", {"x": halves}, outputs=["out"]), np.rint(halves))


def _attention(q: Any, k: Any, v: Any, seen: Any) -> Any:
    scores = np.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(q.shape[-1])
    scores = np.where(seen, scores, -np.inf) if seen.dtype == bool else scores + seen
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("bhqk,bkhd->bqhd", weights / weights.sum(-1, keepdims=True), v)


@pytest.mark.parametrize(("queries", "causal", "masked"), [(6, 0, 0), (6, 1, 0), (4, 1, 0), (4, 0, 1), (4, 1, 1)])
def test_attention_of_gpus(queries: int, causal: int, masked: int) -> None:
    """Paddle computes the operator on GPUs only: with ``causal``, the last query sees every key."""
    q, k, v = (RNG.standard_normal((2, n, 3, 8)).astype(np.float32) for n in (queries, 6, 6))
    mask = RNG.standard_normal((2, 1, queries, 6)).astype(np.float32)
    seen = np.tri(queries, 6, 6 - queries, dtype=bool) if causal else np.ones((queries, 6), bool)
    expected = _attention(q, k, v, np.where(seen, mask, -np.inf) if masked else seen)
    inputs = {"q": q, "k": k, "v": v, **({"attn_mask": mask} if masked else {})}
    found = run_single("flash_attn", inputs, {"causal": bool(causal)}, outputs=["out"])
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_parts_of_attention_of_gpus() -> None:
    scores, mask = (RNG.standard_normal((2, 3, 4, 4)).astype(np.float32) for _ in range(2))

    def softmax(x: Any) -> Any:
        weights = np.exp(x - x.max(-1, keepdims=True))
        return weights / weights.sum(-1, keepdims=True)

    found = run_single("fused_softmax_mask", {"X": scores, "Mask": mask})
    np.testing.assert_allclose(found, softmax(scores + mask), rtol=1e-5, atol=1e-6)
    found = run_single("fused_softmax_mask_upper_triangle", {"X": scores})
    np.testing.assert_allclose(found, softmax(np.where(np.tri(4, dtype=bool), scores, -np.inf)), rtol=1e-5, atol=1e-6)
    for mode, factor in (("upscale_in_train", 1), ("downgrade_in_infer", 0.75)):
        attrs = {"p": 0.25, "is_test": True, "mode": mode}
        found = run_single("fused_dropout_add", {"x": scores, "y": mask}, attrs, outputs=["out"])
        np.testing.assert_allclose(found, scores * factor + mask, rtol=1e-5, atol=1e-6)
