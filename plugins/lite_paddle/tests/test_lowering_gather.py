"""Reading and writing at indices, constants and casts, against Paddle and by hand for old files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hand_made import assert_same, graph_of, run_single
from paddle_cases import Case, check, fixed_and_open, parametrize_cases

from lite_core.errors import UnsupportedOperatorError

RNG = np.random.default_rng(3)
X = RNG.standard_normal((4, 3)).astype(np.float32)
IDS = np.array([2, 0, 2], np.int64)
GRID = RNG.integers(0, 3, (4, 2)).astype(np.int64)
PIR = ("pir",)  # Paddle 3 can no longer export these as legacy files


def _embedding(padding: int | None) -> Callable[[Any], Any]:
    return lambda p: p.nn.Embedding(5, 3, padding_idx=padding)


def _put(reduce: str, **options: Any) -> Callable[[Any], Any]:
    return lambda p: lambda x, i, v: p.put_along_axis(x, i, v, 1, reduce, **options)


VALUES = RNG.standard_normal((4, 2)).astype(np.float32)

CASES = [
    *fixed_and_open("gather", lambda p: lambda x, i: p.gather(x, i), X, IDS),
    *fixed_and_open("gather_axis", lambda p: lambda x, i: p.gather(x, i, axis=1), X, IDS.astype(np.int32)),
    Case("gather_scalar", lambda p: lambda x, i: p.gather(x, i), [X, IDS[0]], kinds=PIR),
    *fixed_and_open("gather_nd", lambda p: lambda x, i: p.gather_nd(x, i), X, np.array([[1, 2], [0, 0]], np.int64)),
    *fixed_and_open("gather_nd_rows", lambda p: lambda x, i: p.gather_nd(x, i), X, IDS[:, None].astype(np.int32)),
    *fixed_and_open("index_select", lambda p: lambda x, i: p.index_select(x, i, axis=1), X, IDS),
    *fixed_and_open("index_sample", lambda p: lambda x, i: p.index_sample(x, i), X, GRID),
    *fixed_and_open("take_along_axis", lambda p: lambda x, i: p.take_along_axis(x, i, 1), X, GRID, kinds=PIR),
    *[
        case
        for reduce in ("assign", "add", "multiply", "mean", "amax", "amin")
        for case in (
            Case(f"put_{reduce}", _put(reduce), [X, np.array([[0, 2]] * 4, np.int64), VALUES], kinds=PIR),
            *(
                []
                if reduce == "assign"
                else [Case(f"put_{reduce}_alone", _put(reduce, include_self=False), [X, GRID, VALUES], kinds=PIR)]
            ),
        )
    ],
    *fixed_and_open("scatter", lambda p: lambda x, i, u: p.scatter(x, i, u), X, IDS[:2], X[:2] + 1),
    *fixed_and_open("scatter_add", lambda p: lambda x, i, u: p.scatter(x, i, u, overwrite=False), X, IDS, X[:3] + 1),
    *fixed_and_open("scatter_nd_add", lambda p: lambda x, i, u: p.scatter_nd_add(x, i, u), X, IDS[:, None], X[:3])[:1],
    *fixed_and_open("masked_select", lambda p: lambda x: p.masked_select(x, x > 0), X),
    *fixed_and_open("where", lambda p: lambda x, y: p.where(x > y, x, y), X, X[:1]),
    *fixed_and_open("embedding", _embedding(None), IDS),
    *fixed_and_open("embedding_padded", _embedding(2), IDS),
    *fixed_and_open("one_hot", lambda p: lambda i: p.nn.functional.one_hot(i, 4), IDS),
    *fixed_and_open("zeros_like", lambda p: lambda x: p.zeros_like(x), X),
    *fixed_and_open("full_like", lambda p: lambda x: p.full_like(x, 3.0, dtype="int32"), X),
    *fixed_and_open("full_computed", lambda p: lambda x: p.full([p.shape(x)[0], 2], 1.5), X),
    Case("full", lambda p: lambda x: x + p.full([3], 2.0), [X]),
    Case("full_large", lambda p: lambda x: p.full([40, 40], 7, dtype="int64") + p.cast(x[0, 0], "int64"), [X]),
    Case("full_infinite", lambda p: lambda x: x + p.full([1], float("-inf")), [X]),
    Case("constant", lambda p: lambda x: x + p.to_tensor([1.0, 2.0, 3.0]), [X]),
    Case("arange", lambda p: lambda x: p.arange(0, 7, 2) + p.cast(x[0, 0], "int64"), [X]),
    Case("arange_float", lambda p: lambda x: p.arange(0.5, 3.0, 0.5, dtype="float32") + x[0, 0], [X]),
    *fixed_and_open("arange_computed", lambda p: lambda x: p.arange(0, p.shape(x)[0], 1, dtype="int64"), X, kinds=PIR),
    Case("linspace", lambda p: lambda x: p.linspace(-1.0, 2.0, 7) + x[0, 0], [X]),
    Case("linspace_int", lambda p: lambda x: p.linspace(0, 10, 5, dtype="int32") + p.cast(x[0, 0], "int32"), [X]),
    Case("linspace_one", lambda p: lambda x: p.linspace(4.0, 9.0, 1) + x[0, 0], [X]),
    Case("eye", lambda p: lambda x: p.eye(4, 3) + x, [X]),
    Case("eye_large", lambda p: lambda x: p.eye(40) * x[0, 0], [X]),
    *fixed_and_open("cast", lambda p: lambda x: p.cast(x * 3, "int32"), X),
    *fixed_and_open("cast_bool", lambda p: lambda x: p.cast(x, "bool"), X),
    *fixed_and_open("assign", lambda p: lambda x: p.assign(x) * 2.0, X),
    *fixed_and_open("sequence_mask", lambda p: lambda i: p.nn.functional.sequence_mask(i, 5, "float32"), IDS),
    *fixed_and_open("sequence_mask_longest", lambda p: lambda i: p.nn.functional.sequence_mask(i), IDS),
]


def _index_put(*indices: Any, accumulate: bool = False) -> Callable[[Any], Any]:
    return lambda p: lambda x, v: p.index_put(x, [p.to_tensor(i) for i in indices], v, accumulate)


CASES += [
    *fixed_and_open("index_put", _index_put(IDS), X, X[:1], kinds=PIR),
    *fixed_and_open("index_put_tuples", _index_put(IDS[:2, None], IDS[:2]), X, VALUES[:2], kinds=PIR),
    *fixed_and_open("index_put_added", _index_put(IDS, accumulate=True), X, X[:3], kinds=PIR),
    *fixed_and_open("index_put_mask", lambda p: lambda x, v: p.index_put(x, [x > 0], v), X, X[0, :1], kinds=PIR),
]


@parametrize_cases(CASES)
def test_matches_paddle(case: Case, kind: str, paddle_models: Callable[[str], Path]) -> None:
    check(case, paddle_models(kind), kind)


# **** old files, made by hand ****


def test_columns_of_indices() -> None:
    assert_same(run_single("gather", {"X": X, "Index": IDS[:, None]}), X[IDS])
    assert_same(
        run_single("gather", {"X": X, "Index": IDS, "Axis": np.array([1], np.int32)}, parameters=("Axis",)), X[:, IDS]
    )


def test_lookup_table_of_paddle_1() -> None:
    assert_same(run_single("lookup_table", {"W": X, "Ids": IDS[:, None]}), X[IDS])
    padded = X[IDS]
    padded[[0, 2]] = 0
    assert_same(run_single("lookup_table", {"W": X, "Ids": IDS[:, None]}, {"padding_idx": 2}), padded)
    assert_same(run_single("lookup_table_v2", {"W": X, "Ids": IDS.astype(np.int32)}, {"padding_idx": 2}), padded)


def test_one_hot_selects_nothing_outside_its_range() -> None:
    ids = np.array([[1], [-1], [9]], np.int64)
    expected = np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0]], np.float32)
    attrs = {"depth": 3, "allow_out_of_range": True}
    assert_same(run_single("one_hot", {"X": ids}, attrs), expected)
    assert_same(run_single("one_hot_v2", {"X": ids[:, 0]}, attrs), expected)
    assert_same(
        run_single("one_hot_v2", {"X": ids[:, 0], "depth_tensor": np.array([3], np.int32)}, {"depth": -1}), expected
    )


def test_scatter_clears_rows_once() -> None:
    expected = X.copy()
    expected[2] = X[0] + X[2]
    expected[0] = X[1]
    assert_same(run_single("scatter", {"X": X, "Ids": IDS[:, None], "Updates": X[:3]}, {"overwrite": False}), expected)


def test_fill_constant() -> None:
    assert_same(
        run_single("fill_constant", {}, {"shape": [2], "dtype": "int64", "str_value": "9007199254740993"}),
        [9007199254740993] * np.ones(2, np.int64),
    )
    listed = {"ShapeTensorList": [np.array([2], np.int32), np.array([1], np.int32)]}
    assert_same(run_single("fill_constant", listed, {"shape": [-1, 1], "value": 2.0}), np.full((2, 1), 2, np.float32))
    given = {"ValueTensor": np.array([4.0], np.float32), "ShapeTensor": np.array([2, 2], np.int64)}
    assert_same(run_single("fill_constant", given, {"value": 0.0}), np.full((2, 2), 4, np.float32))
    with pytest.raises(UnsupportedOperatorError, match="negative size"):
        graph_of("fill_constant", {}, {"shape": [-1, 2]})


def test_fill_constant_batch_size_like() -> None:
    attrs = {"shape": [-1, 2], "value": 1.0, "dtype": "int32", "input_dim_idx": 1}
    assert_same(run_single("fill_constant_batch_size_like", {"Input": X}, attrs), np.ones((3, 2), np.int32))
    open_sizes = {"Input": [-1, -1]}
    assert_same(
        run_single("fill_constant_batch_size_like", {"Input": X}, attrs, shapes=open_sizes), np.ones((3, 2), np.int32)
    )


def test_assign_value_of_every_version() -> None:
    for attrs in ({"fp32_values": [1.0, 0.0]}, {"values": [1.0, 0.0]}):
        assert_same(
            run_single("assign_value", {}, {"shape": [2], "dtype": "float32", **attrs}), np.array([1, 0], np.float32)
        )
    assert_same(
        run_single("assign_value", {}, {"shape": [2], "dtype": "bool", "bool_values": [1, 0]}), np.array([True, False])
    )


def test_range_of_vectors() -> None:
    ends = {k: np.array([v], np.int32) for k, v in (("Start", 1), ("End", 8), ("Step", 3))}
    assert_same(run_single("range", ends), np.array([1, 4, 7], np.int32))


def test_increment() -> None:
    assert_same(run_single("increment", {"X": IDS[:1]}, {"step": 2.0}), IDS[:1] + 2)


def test_operators_that_pass_their_input_through() -> None:
    assert_same(run_single("assign", {"X": X}), X)
    assert_same(run_single("fill_zeros_like", {"X": X}), np.zeros_like(X))
    assert_same(run_single("memcpy", {"X": X}), X)
    assert_same(run_single("print", {"In": X}), X)


def test_complex_numbers_are_refused() -> None:
    with pytest.raises(UnsupportedOperatorError, match="(?s)complex numbers.*as_real"):
        graph_of("cast", {"X": X}, {"out_dtype": "complex64"})
