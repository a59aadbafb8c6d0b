"""Spaces of reductions, searches along an axis, and running sums."""

from __future__ import annotations

from scan.drawing import Case, Draw, space


@space(
    "reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod", "reduce_all", "reduce_any", "reduce_amax",
    "reduce_amin", "frobenius_norm",
)  # fmt: skip
def reductions(draw: Draw) -> Case:
    shape = draw.shape(1, 4)
    kinds = {
        "reduce_all": ("bool",),
        "reduce_any": ("bool",),
        "reduce_mean": ("float32",),
        "frobenius_norm": ("float32",),
    }
    dtype = draw.one(*kinds.get(draw.op, ("float32", "float32", "int32", "int64", "float64")))
    axes = draw.subset(range(len(shape)), least=1)
    axes = [axis - len(shape) if draw.chance(0.3) else axis for axis in axes]
    # Paddle reads only the axes of an amax or amin.
    everything = draw.chance(0.3) if "_am" not in draw.op else len(axes) == len(shape)
    attrs = {"dim": axes, "keep_dim": draw.chance(), "reduce_all": everything}
    array = draw.numbers(shape, dtype)
    return draw.case({"X": array}, attrs)


@space("mean")
def mean(draw: Draw) -> Case:
    return draw.case({"X": draw.floats(draw.shape(1, 4))})


@space("logsumexp")
def logsumexp(draw: Draw) -> Case:
    shape = draw.shape(1, 4)
    attrs = {"axis": draw.subset(range(len(shape)), 1), "keepdim": draw.chance(), "reduce_all": draw.chance(0.3)}
    return draw.case({"X": draw.floats(shape)}, attrs)


@space("arg_max", "arg_min")
def arg(draw: Draw) -> Case:
    shape = draw.shape(1, 4)
    attrs = {
        "axis": draw.integer(-len(shape), len(shape) - 1),
        "keepdims": draw.chance(),
        "flatten": draw.chance(0.2),
        "dtype": draw.one("int64", "int32"),
    }
    return draw.case({"X": draw.distinct(shape, draw.one("float32", "int32", "int64"))}, attrs)


@space("argsort")
def argsort(draw: Draw) -> Case:
    shape = draw.shape(1, 4, 5)
    attrs = {"axis": draw.integer(-len(shape), len(shape) - 1), "descending": draw.chance()}
    return draw.case({"X": draw.distinct(shape, draw.one("float32", "int64"))}, attrs, ["Out", "Indices"])


@space("top_k")
def top_k(draw: Draw) -> Case:
    shape = draw.shape(1, 4, 5)
    return draw.case({"X": draw.distinct(shape)}, {"k": draw.integer(1, shape[-1])}, ["Out", "Indices"])


@space("top_k_v2")
def top_k_v2(draw: Draw) -> Case:
    shape = draw.shape(1, 4, 5)
    axis = draw.integer(-len(shape), len(shape) - 1)
    attrs = {"k": draw.integer(1, shape[axis]), "axis": axis, "largest": draw.chance(0.7), "sorted": True}
    return draw.case({"X": draw.distinct(shape, draw.one("float32", "int64"))}, attrs, ["Out", "Indices"])


@space("kthvalue", "mode")
def kth(draw: Draw) -> Case:
    shape = draw.shape(1, 3, 5)
    axis = draw.integer(-len(shape), len(shape) - 1)
    attrs = {"axis": axis, "keepdim": draw.chance()}
    if draw.op == "kthvalue":
        attrs["k"] = draw.integer(1, shape[axis])
    return draw.case({"X": draw.distinct(shape)}, attrs, ["Out", "Indices"])


@space("median", "nanmedian")
def median(draw: Draw) -> Case:
    shape = draw.shape(1, 3, 5)
    attrs = {"axis": [draw.integer(0, len(shape) - 1)], "keepdim": draw.chance(), "mode": "avg"}
    slots = ("x", ["out"]) if draw.op == "median" else ("X", ["Out"])
    return draw.case({slots[0]: draw.distinct(shape)}, attrs, slots[1])


@space("cumsum", "logcumsumexp")
def cumsum(draw: Draw) -> Case:
    shape = draw.shape(1, 4)
    flat = draw.chance(0.2)
    attrs = {
        "axis": -1 if flat else draw.integer(-len(shape), len(shape) - 1),
        "flatten": flat,
        # Paddle passes a single element through, without making it 0.
        "exclusive": draw.chance(0.3) and max(shape) > 1,
        "reverse": draw.chance(0.3),
    }
    dtype = draw.one("float32", "int32", "int64") if draw.op == "cumsum" else "float32"
    return draw.case({"X": draw.numbers(shape, dtype)}, attrs)


@space("cumprod")
def cumprod(draw: Draw) -> Case:
    shape = draw.shape(1, 4)
    return draw.case({"X": draw.floats(shape)}, {"dim": draw.integer(-len(shape), len(shape) - 1)})


@space("cummax", "cummin")
def cummax(draw: Draw) -> Case:
    shape = draw.shape(1, 3)
    attrs = {"axis": draw.integer(-len(shape), len(shape) - 1), "dtype": draw.one("int64", "int32")}
    return draw.case({"x": draw.distinct(shape)}, attrs, ["out", "indices"])


@space("p_norm")
def p_norm(draw: Draw) -> Case:
    shape = draw.shape(1, 4)
    attrs = {
        "porder": draw.one(2.0, 1.0, 3.0, 0.0, float("inf"), float("-inf")),
        "axis": draw.integer(-len(shape), len(shape) - 1),
        "keepdim": draw.chance(),
        "asvector": draw.chance(0.2),
        "epsilon": 1e-12,
    }
    return draw.case({"X": draw.floats(shape)}, attrs)


@space("norm")
def l2_normalize(draw: Draw) -> Case:
    shape = draw.shape(2, 4)
    return draw.case(
        {"X": draw.floats(shape)}, {"axis": draw.integer(-1, len(shape) - 1), "epsilon": draw.one(1e-10, 0.1)}
    )


@space("renorm")
def renorm(draw: Draw) -> Case:
    shape = draw.shape(2, 4)
    attrs = {"p": draw.one(2.0, 1.0), "axis": draw.integer(0, len(shape) - 1), "max_norm": draw.real(0.5, 3)}
    return draw.case({"X": draw.floats(shape)}, attrs)


@space("is_empty", "size", "shape")
def of_shapes(draw: Draw) -> Case:
    return draw.case({"X" if draw.op == "is_empty" else "Input": draw.floats(draw.shape(1, 4))})


@space("histogram", "bincount")
def counts(draw: Draw) -> Case:
    if draw.op == "bincount":
        return draw.case({"X": draw.integers([draw.integer(1, 9)], 0, 5)}, {"minlength": draw.one(0, 8)})
    attrs = {"bins": draw.integer(1, 6), "min": draw.one(0.0, -1.0), "max": draw.one(0.0, 1.0)}
    return draw.case({"X": draw.floats(draw.shape(1, 3))}, attrs)


@space("unique", "unique_consecutive", "unique_with_counts")
def unique(draw: Draw) -> Case:
    array = draw.integers([draw.integer(1, 9)], 0, 3, draw.one("int64", "int32", "float32"))
    if draw.op == "unique_with_counts":
        return draw.case({"X": array}, {"dtype": draw.one("int64", "int32")}, ["Out", "Index", "Count"])
    attrs = {"return_inverse": True, "return_counts": True, "axis": draw.one([], [0]), "dtype": "int64"}
    if draw.op == "unique_consecutive":
        return draw.case({"X": array}, attrs, ["Out", "Index", "Counts"])
    attrs |= {"return_index": True, "is_sorted": True}
    return draw.case({"X": array}, attrs, ["Out", "Indices", "Index", "Counts"])
