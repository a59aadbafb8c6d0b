"""Slice, CenterCropPad, Pad, Col2Im."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from lite_core import ops
from lite_core.builder import GraphBuilder
from lite_core.errors import GraphError
from lite_core.ir import SymbolicDim
from lite_core.ops.evaluate import evaluate_op

INT64_MAX, INT64_MIN = 2**63 - 1, -(2**63)


def run(name, *inputs, **attributes):
    definition = ops.find(name)
    filled = {k: attributes.get(k, spec.default) for k, spec in definition.attributes.items()}
    arrays = [None if i is None else np.asarray(i) for i in inputs]
    return evaluate_op(definition, arrays, filled)[0]


def sliced(start, end, step=1, size="h"):
    """Return the inferred size of a slice of one symbolic axis."""
    b = GraphBuilder()
    x = b.input("x", "float32", [size])
    return b.add("Slice", [x, b.ints(start), b.ints(end), b.ints(0), b.ints(step)]).type.shape[0]


# **** Slice: symbols ****


@pytest.mark.parametrize(
    ("start", "end", "step", "expected"),
    [
        (0, INT64_MAX, 1, "h"),
        (0, 2**31 - 1, 2, "(h + 1)//2"),
        (1, INT64_MAX, 1, "max(h - 1, 0)"),
        (0, -1, 1, "max(h - 1, 0)"),
        (2, -3, 1, "max(h - 5, 0)"),
        (0, 3, 1, "h - max(h - 3, 0)"),
        (-3, INT64_MAX, 1, "h - max(h - 3, 0)"),
        (3, 3, 1, "0"),
        (-1, -2, 1, "0"),
        (-1, INT64_MIN, -1, "h"),
        (INT64_MAX, INT64_MIN, -2, "(h + 1)//2"),
    ],
)
def test_slice_of_a_symbolic_size(start, end, step, expected):
    assert str(sliced(start, end, step)) == expected


def test_symbolic_sizes_agree_with_real_slices():
    bounds = [INT64_MIN, -3, -1, 0, 2, 4, 9, INT64_MAX]
    exact = total = 0
    for start, end, step in itertools.product(bounds, bounds, [1, 2, 3, -1, -2]):
        dim = sliced(start, end, step)
        for size in range(7):
            total += 1
            real = run("Slice", np.arange(size), [start], [end], [0], [step]).shape[0]
            if isinstance(dim, int) or dim.symbols <= {"h"}:
                exact += 1
                assert (dim if isinstance(dim, int) else dim.evaluate({"h": size})) == real, (
                    start,
                    end,
                    step,
                    size,
                )
    assert exact > 0.7 * total  # most combinations have an exact expression


def test_the_parts_of_a_rolled_axis_add_up():
    b = GraphBuilder()
    x = b.input("x", "float32", ["n", "h"])
    tail = b.add("Slice", [x, b.ints(3), b.ints(INT64_MAX), b.ints(1)])
    head = b.add("Slice", [x, b.ints(0), b.ints(3), b.ints(1)])
    assert [str(d) for d in b.add("Concat", [tail, head], {"axis": 1}).type.shape] == ["n", "h"]


def test_slice_up_to_a_size_of_another_tensor():
    b = GraphBuilder()
    x, y = b.input("x", "float32", [10, "h"]), b.input("y", "float32", ["h", 7])
    size = b.add("Shape", [y], {"end": 1})
    whole = b.add("Slice", [x, b.ints(0), size, b.ints(1)])
    assert [str(d) for d in whole.type.shape] == ["10", "h"]
    cut = b.add("Slice", [x, b.ints(0), size, b.ints(0)])
    assert cut.type.shape[0].evaluate({"h": 4}) == 4
    assert cut.type.shape[0].evaluate({"h": 40}) == 10


def test_slice_with_unknown_bounds_changes_only_its_axes():
    b = GraphBuilder()
    x, start = b.input("x", "float32", ["n", "h"]), b.input("start", "int64", [1])
    known = b.add("Slice", [x, start, b.ints(5), b.ints(1)]).type.shape
    assert str(known[0]) == "n"
    assert str(known[1]) != "h"
    default = b.add("Slice", [x, start, b.ints(5)]).type.shape
    assert str(default[1]) == "h"
    axes = b.input("axes", "int64", [1])
    assert len(b.add("Slice", [x, start, b.ints(5), axes]).type.shape) == 2


def test_slice_of_a_shape_is_known():
    b = GraphBuilder()
    shape = b.add("Shape", [b.input("x", "float32", ["n", 3, "h", "w"])])
    tail = b.add("Slice", [shape, b.ints(INT64_MAX), b.ints(1), b.ints(0), b.ints(-1)])
    assert [str(e) for e in b.known(tail)] == ["w", "h"]


# **** Slice: values ****


def test_forward_slices_equal_numpy():
    x = np.arange(7)
    bounds = (-9, -7, -6, -1, 0, 1, 6, 7, 9)
    for start, end, step in itertools.product(bounds, bounds, [1, 2, 5]):
        np.testing.assert_array_equal(run("Slice", x, [start], [end], [0], [step]), x[start:end:step])


def test_backward_slice_clamps_a_start_before_the_axis():
    # ONNX clamps to [0, size - 1], where NumPy takes nothing
    assert run("Slice", np.arange(5), [-10], [INT64_MIN], [0], [-1]).tolist() == [0]


def test_slice_of_an_empty_axis():
    assert run("Slice", np.zeros((0, 3)), [-1], [INT64_MIN], [0], [-1]).shape == (0, 3)
    assert run("Slice", np.zeros((0, 3)), [0], [5], [0]).shape == (0, 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0], [1], [0], [0]), r"steps \[0\]"),
        (([0, 0], [1], [0, 1]), "starts, ends, axes and steps .*2, 1, 2 and 2"),
        (([0], [1], [2]), "axis 2 "),
        (([0, 0], [1, 1], [1, -1]), "axes .*twice"),
        (([0, 0, 0], [1, 1, 1]), "3 entries .*2 axes"),
    ],
)
def test_slice_errors(arguments, message):
    with pytest.raises(GraphError, match=message):
        run("Slice", np.zeros((2, 2)), *arguments)


# **** Pad ****


def test_pad_of_symbolic_sizes():
    b = GraphBuilder()
    x, y = b.input("x", "float32", ["h", "w"]), b.input("y", "float32", ["p", 2])
    assert [str(d) for d in b.add("Pad", [x, b.ints(1, -1, 2, 0)]).type.shape] == ["h + 3", "w - 1"]
    assert [str(d) for d in b.add("Pad", [x, b.ints(1, 2), None, b.ints(-1)]).type.shape] == ["h", "w + 3"]
    amounts = b.add("Shape", [y])
    assert [str(d) for d in b.add("Pad", [x, amounts, None, b.ints(0)]).type.shape] == ["h + p + 2", "w"]


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_repeating_modes_equal_numpy_even_beyond_the_size(mode, size):
    x = np.arange(size * 2).reshape(size, 2)
    if mode == "wrap":  # np.pad of NumPy 1.24 repeats a part of the data that is padded by more than its size
        expected = x.take(range(-7, size + 9), 0, mode="wrap").take(range(3), 1, mode="wrap")
    else:
        expected = np.pad(x, [(7, 9), (0, 1)], mode)
    np.testing.assert_array_equal(run("Pad", x, [7, 0, 9, 1], mode=mode), expected)


def test_negative_pads_crop():
    x = np.arange(5)
    assert run("Pad", x, [-2, 1]).tolist() == [2, 3, 4, 0]
    assert run("Pad", x, [-2, 1], mode="reflect").tolist() == [2, 3, 4, 3]
    assert run("Pad", x, [-7, 4], np.array(9)).tolist() == [9, 9]
    assert run("Pad", x, [-2, -3]).tolist() == []


@pytest.mark.parametrize("dtype", [np.bool_, np.uint8])
def test_pad_keeps_the_element_type(dtype):
    result = run("Pad", np.zeros(1, dtype=dtype), [1, 0], np.ones((), dtype=dtype))
    assert result.dtype == dtype
    assert result.astype(int).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("x", "pads", "mode", "message"),
    [
        (np.zeros((2, 2)), [1, 1], "constant", r"pads .*2 axes .*4 entries.* 2"),
        (np.zeros(2), [-2, -1], "constant", "pads -2 and -1 .*axis 0"),
        (np.zeros(0), [1, 0], "reflect", "mode reflect .*axis 0"),
    ],
)  # fmt: skip
def test_pad_errors(x, pads, mode, message):
    with pytest.raises(GraphError, match=message):
        run("Pad", x, pads, mode=mode)


# **** CenterCropPad, Col2Im ****


def test_center_crop_pad_with_odd_remainders():
    assert run("CenterCropPad", np.arange(1, 6), [2]).tolist() == [2, 3]
    assert run("CenterCropPad", np.arange(1, 3), [5]).tolist() == [0, 1, 2, 0, 0]
    assert run("CenterCropPad", np.zeros((2, 0)), [3, 0]).shape == (3, 0)


def test_center_crop_pad_to_the_shape_of_another_tensor():
    b = GraphBuilder()
    x, y = b.input("x", "float32", ["n", 5, 6]), b.input("y", "float32", ["h", "w"])
    result = b.add("CenterCropPad", [x, b.add("Shape", [y])], {"axes": (-2, -1)})
    assert [str(d) for d in result.type.shape] == ["n", "h", "w"]


def test_col2im_of_symbolic_sizes_and_errors():
    b = GraphBuilder()
    x = b.input("x", "float32", ["n", 27, "blocks"])
    assert [str(d) for d in b.add("Col2Im", [x, b.ints(8, 8), b.ints(3, 3)]).type.shape] == [
        "n",
        "3",
        "8",
        "8",
    ]
    with pytest.raises(GraphError, match=r"axis 1 .*27.*multiple.* 4 "):
        b.add("Col2Im", [x, b.ints(8, 8), b.ints(2, 2)])
    with pytest.raises(GraphError, match=r"5 blocks.*\[3, 3\].*\[2, 2\]"):
        run("Col2Im", np.zeros((1, 4, 5)), [3, 3], [2, 2])


def test_col2im_counts_how_often_each_pixel_is_covered():
    image = run("Col2Im", np.ones((1, 9, 9), dtype=np.float32), [3, 3], [3, 3], pads=(1, 1, 1, 1))
    assert image[0, 0].tolist() == [[4, 6, 4], [6, 9, 6], [4, 6, 4]]


def test_a_dimension_symbol_survives_a_slice_of_known_elements():
    b = GraphBuilder()
    shape = b.add("Shape", [b.input("x", "float32", ["n", 3])])
    (first,) = b.known(b.add("Slice", [shape, b.ints(0), b.ints(1)]))
    assert first == SymbolicDim.named("n")
