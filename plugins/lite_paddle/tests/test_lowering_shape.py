"""Changing shapes, joining, splitting, repeating and rearranging, against Paddle and by hand for old files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hand_made import assert_same, graph_of, run, run_single
from paddle_cases import Case, check, fixed_and_open, parametrize_cases, tensor_method

from lite_core.errors import UnsupportedOperatorError

RNG = np.random.default_rng(1)
X = RNG.standard_normal((2, 3, 4)).astype(np.float32)
IMAGE = RNG.standard_normal((2, 3, 7, 6)).astype(np.float32)
VECTOR = np.arange(5, dtype=np.float32)
INDEX = np.array([1], np.int64)
PIR = ("pir",)  # Paddle 3 can no longer export these as legacy files


def functional(method: str, *arguments: Any, **options: Any) -> Callable[[Any], Any]:
    return lambda p: lambda x: getattr(p.nn.functional, method)(x, *arguments, **options)


CASES = [
    *fixed_and_open("reshape", tensor_method("reshape", [0, -1, 2]), X),
    *fixed_and_open("reshape_computed", lambda p: lambda x: p.reshape(x, [p.shape(x)[0], 2, -1]), X),
    *fixed_and_open("transpose", tensor_method("transpose", [2, 0, 1]), X),
    *fixed_and_open("flatten", tensor_method("flatten", 1, -1), IMAGE),
    *fixed_and_open("flatten_middle", tensor_method("flatten", 1, 2), IMAGE),
    *fixed_and_open("flatten_first", tensor_method("flatten", 0, 1), IMAGE),
    *fixed_and_open("flatten_one", tensor_method("flatten", 1, 1), X),
    Case("squeeze_all", tensor_method("squeeze"), [X[:1, :, :1]]),
    *fixed_and_open("squeeze_axes", tensor_method("squeeze", [0, -1]), X[:1, :, :1]),
    Case("squeeze_kept", tensor_method("squeeze", [0, 1]), [X[:1]]),
    *fixed_and_open("unsqueeze", tensor_method("unsqueeze", [0, -1, 2]), X),
    *fixed_and_open("concat", lambda p: lambda x, y: p.concat([x, y, x], axis=-1), X, X),
    *fixed_and_open("split_number", lambda p: lambda x: p.split(x, 2, axis=2), X),
    *fixed_and_open("split_rest", lambda p: lambda x: p.split(x, [1, -1, 2], axis=-1), X),
    *fixed_and_open("stack", lambda p: lambda x, y: p.stack([x, y], axis=-1), X, X),
    Case("unstack", lambda p: lambda x: p.unstack(x, axis=1), [X]),
    Case("unbind", lambda p: lambda x: p.unbind(x, axis=-1), [X]),
    *fixed_and_open("slice", lambda p: lambda x: p.slice(x, [0, 2], [-1, 1], [10, -1]), X),
    *fixed_and_open("getitem", lambda p: lambda x: x[0, 1:, -1], X),
    *fixed_and_open("getitem_scalar", lambda p: lambda x: x[1, -1, 2], X),
    *fixed_and_open("getitem_none", lambda p: lambda x: x[:, None, ..., 1], X),
    *fixed_and_open("getitem_steps", lambda p: lambda x: x[:, ::2, 3:0:-2], X),
    *fixed_and_open("getitem_backwards", lambda p: lambda x: x[::-1, -1:-3:-1], X),
    Case("getitem_computed", lambda p: lambda x, i: x[i], [X, INDEX[0]], kinds=PIR),
    Case("slice_computed", lambda p: lambda x, i: p.slice(x, [1], [i], [i + 1]), [X, INDEX]),
    *fixed_and_open("strided_slice", lambda p: lambda x: p.strided_slice(x, [1, 2], [-1, 0], [0, 4], [-1, 3]), X),
    *fixed_and_open("expand", tensor_method("expand", [5, 2, 3, -1]), X),
    *fixed_and_open("expand_computed", lambda p: lambda x, y: p.expand(x, [p.shape(y)[0], -1, 4]), X[:1, :, :1], X),
    *fixed_and_open("expand_as", lambda p: lambda x, y: p.expand_as(x, y), X[:, :1], X, kinds=PIR),
    *fixed_and_open("tile", tensor_method("tile", [2, 1, 3, 1]), X),
    *fixed_and_open("tile_few", tensor_method("tile", [2]), X),
    *fixed_and_open("tile_computed", lambda p: lambda x, y: p.tile(x, [1, p.shape(y)[1], 1]), X, X),
    *fixed_and_open("meshgrid", lambda p: lambda x, y: p.meshgrid(x, y), VECTOR, VECTOR[:3]),
    *fixed_and_open("pad", functional("pad", [1, 0, 2, 1, 0, 3], value=1.5), X),
    *[
        case
        for mode in ("constant", "reflect", "replicate", "circular")
        for case in fixed_and_open(f"pad_{mode}", functional("pad", [1, 2, 3, 2], mode=mode), IMAGE)
    ],
    *fixed_and_open("pad_last", functional("pad", [1, 2, 1, 2], mode="reflect", data_format="NHWC"), IMAGE),
    *fixed_and_open("pad_cut", functional("pad", [-1, 2, 0, -2], value=2.0), IMAGE),
    *fixed_and_open("crop", tensor_method("crop", [2, -1, 2], [0, 1, 1]), X),
    *fixed_and_open("flip", tensor_method("flip", [0, -1]), X),
    *fixed_and_open("roll", tensor_method("roll", [1, -7], [0, 2]), X, kinds=PIR),
    *fixed_and_open("roll_flat", tensor_method("roll", 5), X, kinds=PIR),
    *fixed_and_open("tril", tensor_method("tril", -1), X, kinds=PIR),
    *fixed_and_open("triu", tensor_method("triu", 1), X, kinds=PIR),
    *fixed_and_open("unfold", functional("unfold", [3, 2], 2, 1), IMAGE),
    *fixed_and_open("unfold_dilated", functional("unfold", 2, [1, 2], [1, 0, 2, 1], [2, 1]), IMAGE),
    Case("fold", functional("fold", [5, 4], [2, 3], 1, [1, 0]), [np.ones((2, 12, 12), np.float32)]),
    Case("fold_overlap", functional("fold", [6, 5], 3, 2, 1), [RNG.standard_normal((2, 18, 9)).astype(np.float32)]),
    *fixed_and_open("shape", lambda p: lambda x: p.shape(x), X, kinds=PIR),
    *fixed_and_open("numel", lambda p: lambda x: p.numel(x), X),
    *fixed_and_open("is_empty", lambda p: lambda x: p.is_empty(x), X),
]


def _assign(change: Callable[[Any, Any, Any], None]) -> Callable[[Any], Any]:
    def build(p: Any) -> Any:
        def function(x: Any) -> Any:
            y = x * 1.0
            change(p, y, x)
            return y

        return function

    return build


def _set(index: Any, value: Any = 9.0) -> Callable[[Any], Any]:
    def change(p: Any, y: Any, x: Any) -> None:
        y[index] = value

    return _assign(change)


def _set_tensor(p: Any, y: Any, x: Any) -> None:
    y[:, 1, 1:3] = x[:, 0, :2] + 1.0


def _set_row(p: Any, y: Any, x: Any) -> None:
    y[0] = x[1, 0]


def _set_new_axis(p: Any, y: Any, x: Any) -> None:
    y[:, None, 1] = x[:, :1]


CASES += [
    *fixed_and_open("set_all", _set(slice(None)), X),
    *fixed_and_open("set_element", _set((1, 2, -1)), X),
    *fixed_and_open("set_slice", _set((slice(None), slice(1, 3))), X),
    *fixed_and_open("set_steps", _set((slice(None), slice(None), slice(3, 0, -2))), X),
    *fixed_and_open("set_tensor", _assign(_set_tensor), X),
    *fixed_and_open("set_row", _assign(_set_row), X),
    *fixed_and_open("set_new_axis", _assign(_set_new_axis), X),
]


@parametrize_cases(CASES)
def test_matches_paddle(case: Case, kind: str, paddle_models: Callable[[str], Path]) -> None:
    check(case, paddle_models(kind), kind)


# **** old files, made by hand ****


def test_scalars_are_vectors_before_2_5() -> None:
    attrs = {"axes": [0], "starts": [1], "ends": [2], "decrease_axis": [0]}
    assert run_single("slice", {"Input": VECTOR}, attrs, version=2_004_000).shape == (1,)
    assert run_single("slice", {"Input": VECTOR}, attrs, version=2_005_000).shape == ()
    assert run_single("size", {"Input": VECTOR}, version=1_008_005).shape == (1,)
    assert run_single("size", {"Input": VECTOR}, version=2_006_002).shape == ()


def test_shape_is_int32_in_old_files() -> None:
    assert_same(run_single("shape", {"Input": X}), np.array([2, 3, 4], np.int32))


def test_shape_operators_of_paddle_1() -> None:
    assert_same(run_single("flatten", {"X": X}, {"axis": 2}), X.reshape(6, 4))
    assert_same(run_single("flatten2", {"X": X}, {"axis": 0}), X.reshape(1, 24))
    assert_same(run_single("squeeze", {"X": X[:, :1]}, {"axes": [1]}), X[:, 0])
    assert_same(run_single("unsqueeze", {"X": X}, {"axes": [0, 0]}), X[None, None])
    assert_same(run_single("reshape", {"X": X}, {"shape": [0, -1]}), X.reshape(2, 12))
    assert_same(run_single("transpose", {"X": X}, {"axis": [1, 0, 2]}), X.transpose(1, 0, 2))


def test_tensors_take_precedence_over_attributes() -> None:
    shape = np.array([4, 6], np.int32)
    assert_same(run_single("reshape2", {"X": X, "Shape": shape}, {"shape": [2, -1]}), X.reshape(4, 6))
    listed = [np.array([4], np.int32), np.array([6], np.int32)]
    both_given = {"X": X, "Shape": np.array([24, 1], np.int32), "ShapeTensor": listed}
    assert_same(run_single("reshape2", both_given, {"shape": [-1, -1]}), X.reshape(4, 6))
    sections = {"X": X, "SectionsTensorList": [np.array([1], np.int32), np.array([-1], np.int32)]}
    axis = {"AxisTensor": np.array([2], np.int32)}
    first, second = run(
        "split", {**sections, **axis}, {"axis": 0}, outputs={"Out": 2}, parameters=("AxisTensor", "SectionsTensorList")
    )
    assert_same(first, X[:, :, :1])
    assert_same(second, X[:, :, 1:])
    starts = {"Input": X, "StartsTensor": np.array([1], np.int32), "EndsTensor": np.array([3], np.int32)}
    assert_same(run_single("slice", starts, {"axes": [1], "starts": [0], "ends": [1]}), X[:, 1:3])


def test_backward_slices_of_paddle_2() -> None:
    """The end -1 of a backward slice means the position before the first element in Paddle 2."""
    attrs = {"axes": [0], "starts": [2**31 - 1], "ends": [-1], "strides": [-1]}
    assert_same(run_single("strided_slice", {"Input": VECTOR}, attrs, version=2_006_002), VECTOR[::-1])
    assert run_single("strided_slice", {"Input": VECTOR}, attrs, version=3_000_000).shape == (0,)
    beyond = {**attrs, "ends": [-6]}
    assert_same(run_single("strided_slice", {"Input": VECTOR}, beyond, version=2_006_002), VECTOR[:0:-1])
    assert_same(run_single("strided_slice", {"Input": VECTOR}, beyond, version=3_000_000), VECTOR[::-1])
    steps = {**attrs, "strides": [-2]}
    with pytest.raises(UnsupportedOperatorError, match=r"before Paddle 2\.2"):
        graph_of("strided_slice", {"Input": VECTOR}, steps, version=2_001_000)


def test_expand_repeats_in_paddle_1() -> None:
    assert_same(run_single("expand", {"X": X}, {"expand_times": [1, 2, 1]}), np.tile(X, (1, 2, 1)))
    assert_same(run_single("expand_as", {"X": X[:1], "target_tensor": X}), np.tile(X[:1], (2, 1, 1)))
    times = [np.array([2], np.int32), np.array([1], np.int32), np.array([1], np.int32)]
    assert_same(
        run_single("expand", {"X": X, "expand_times_tensor": times}, {"expand_times": [-1, 1, 1]}),
        np.tile(X, (2, 1, 1)),
    )


def test_expand_v2_keeps_computed_sizes_of_minus_one() -> None:
    assert_same(
        run_single("expand_v2", {"X": X[:1], "Shape": np.array([3, -1, 4], np.int32)}), np.tile(X[:1], (3, 1, 1))
    )


@pytest.mark.parametrize(("mode", "numpy_mode"), [("constant", "constant"), ("reflect", "reflect"), ("edge", "edge")])
def test_pad2d(mode: str, numpy_mode: str) -> None:
    attrs = {"paddings": [1, 2, 3, 0], "mode": mode}
    assert_same(run_single("pad2d", {"X": IMAGE}, attrs), np.pad(IMAGE, [(0, 0), (0, 0), (1, 2), (3, 0)], numpy_mode))
    last = {**attrs, "data_format": "NHWC"}
    assert_same(run_single("pad2d", {"X": IMAGE}, last), np.pad(IMAGE, [(0, 0), (1, 2), (3, 0), (0, 0)], numpy_mode))
    given = {"X": IMAGE, "Paddings": np.array([1, 2, 3, 0], np.int32)}
    wrong = {**attrs, "paddings": [0, 0, 0, 0]}
    assert_same(run_single("pad2d", given, wrong), np.pad(IMAGE, [(0, 0), (0, 0), (1, 2), (3, 0)], numpy_mode))


def test_pad_constant_like() -> None:
    expected = np.pad(X[:1, :2], [(0, 1), (0, 1), (0, 0)], constant_values=2)
    assert_same(run_single("pad_constant_like", {"X": X, "Y": X[:1, :2]}, {"pad_value": 2.0}), expected)


def test_crop_of_paddle_1() -> None:
    assert_same(run_single("crop", {"X": X}, {"offsets": [0, 1, 1], "shape": [2, 2, 3]}), X[:, 1:, 1:])
    assert_same(run_single("crop", {"X": X, "Y": X[:1, :2, :2]}, {"offsets": [1, 0, 2]}), X[1:, :2, 2:])
    computed = {"X": X, "Shape": np.array([-1, 2, 2], np.int32), "Offsets": np.array([1, 0, 1], np.int32)}
    assert_same(run_single("crop_tensor", computed), X[1:, :2, 1:3])


def test_im2sequence() -> None:
    attrs = {"kernels": [3, 2], "strides": [2, 1], "paddings": [1, 0, 1, 1]}
    found = run_single("im2sequence", {"X": IMAGE}, attrs)
    padded = np.pad(IMAGE, [(0, 0), (0, 0), (1, 1), (0, 1)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 2), axis=(2, 3))[:, :, ::2, ::1]
    assert_same(found, windows.transpose(0, 2, 3, 1, 4, 5).reshape(-1, 18))


def test_set_value_of_every_version() -> None:
    target = {"axes": [0], "starts": [1], "ends": [2], "steps": [1], "decrease_axes": [0], "dtype": "float32"}
    expected = X.copy()
    expected[1] = 5
    for values in ({"fp32_values": [5.0]}, {"values": [5]}):
        assert_same(run_single("set_value", {"Input": X}, {**target, **values, "shape": [1]}), expected)
    backwards = {"axes": [0], "starts": [4], "ends": [-1], "steps": [-2], "shape": [3], "values": [1.0, 2.0, 3.0]}
    assert_same(run_single("set_value", {"Input": VECTOR}, backwards), np.array([3, 1, 2, 3, 1], np.float32))
    computed = {"Input": X, "StartsTensorList": [INDEX], "EndsTensorList": [INDEX + 1], "StepsTensorList": [INDEX]}
    attrs = {"axes": [0], "decrease_axes": [0], "shape": [1], "values": [5.0]}
    assert_same(run_single("set_value", computed, attrs, version=3_000_000), expected)


def test_squeeze_without_axes_needs_sizes() -> None:
    with pytest.raises(UnsupportedOperatorError, match="give squeeze its axes"):
        graph_of("squeeze2", {"X": X}, shapes={"X": [-1, 3, 4]})


def test_open_sizes_stay_symbolic() -> None:
    graph = graph_of("flatten_contiguous_range", {"X": X}, {"start_axis": 1, "stop_axis": 2}, shapes={"X": [-1, 3, 4]})
    assert [str(d) for d in graph.outputs[0].shape] == ["X_0_0", "12"]
    graph = graph_of("split", {"X": X}, {"axis": 0, "sections": [1, -1]}, outputs={"Out": 2}, shapes={"X": [-1, 3, 4]})
    assert str(graph.outputs[1].shape[0]) == "X_0_0 - 1"
