"""Spaces of operators on every element of one tensor."""

from __future__ import annotations

from scan.drawing import Case, Draw, space


@space(
    "abs", "asin", "acos", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "erf", "erfinv", "exp", "expm1", "floor",
    "logsigmoid", "relu", "relu6", "round", "sigmoid", "sign", "silu", "sin", "sinh", "softsign", "square",
    "tan", "tanh",
    "tanh_shrink", "trunc", "selu", "stanh", "isfinite_v2", "isinf_v2", "isnan_v2", "angle", "rint", "soft_relu",
)  # fmt: skip
def plain(draw: Draw) -> Case:
    # Halves are rounded differently, and a step of a floor in another place is no error of the last digit.
    low, high = (-0.9, 0.9) if draw.op in ("asin", "acos", "atanh", "erfinv") else (-2.2, 2.3)
    array = draw.floats(draw.shape(0, 4), low, high, draw.one("float32", "float32", "float64"))
    if draw.op in ("abs", "square", "sign") and draw.chance(0.3):
        array = draw.numbers(draw.shape(0, 4), draw.one("int32", "int64"))
    return draw.case({"x": array}, outputs=["out"]) if draw.op == "rint" else draw.case({"X": array})


@space("acosh", "digamma", "lgamma", "log", "log10", "log1p", "log2", "reciprocal", "rsqrt", "sqrt")
def of_positive(draw: Draw) -> Case:
    dtype = draw.one("float32", "float32", "float64")
    return draw.case({"X": draw.floats(draw.shape(0, 4), 1.1, 5.0, dtype)})


@space("i0", "i0e", "i1", "i1e", "gammaln")
def special(draw: Draw) -> Case:
    return draw.case({"x": draw.floats(draw.shape(1, 3), 0.2, 6.0)}, outputs=["out"])


@space(
    "brelu", "celu", "elu", "gelu", "hard_shrink", "hard_sigmoid", "hard_swish", "leaky_relu", "logit", "mish",
    "softplus", "softshrink", "swish", "thresholded_relu",
)  # fmt: skip
def with_parameters(draw: Draw) -> Case:
    attrs = {
        "brelu": {"t_min": draw.real(-1, 0), "t_max": draw.real(0.5, 2)},
        "celu": {"alpha": draw.real(0.2, 3)},
        "elu": {"alpha": draw.real(0.2, 3)},
        "gelu": {"approximate": draw.chance()},
        "hard_shrink": {"threshold": draw.real(0, 1)},
        "hard_sigmoid": {"slope": draw.real(0.1, 0.5), "offset": draw.real(0.2, 0.8)},
        "hard_swish": {"threshold": draw.real(3, 7), "scale": draw.real(4, 8), "offset": draw.real(1, 4)},
        "leaky_relu": {"alpha": draw.real(0, 1)},
        "logit": {"eps": draw.one(1e-6, 0.1)},
        "mish": {"threshold": 20.0},
        "softplus": {"beta": draw.real(0.5, 3), "threshold": draw.one(20.0, 1.5)},
        "softshrink": {"lambda": draw.real(0, 1)},
        "swish": {"beta": draw.one(1.0, 1.0, 1.5)},
        "thresholded_relu": {"threshold": draw.real(-1, 1)},
    }[draw.op]
    if draw.op in ("hard_sigmoid", "hard_swish", "leaky_relu", "gelu") and draw.chance(0.3):
        attrs = {}  # the defaults
    low, high = (0.01, 0.99) if draw.op == "logit" else (-4.0, 4.0)
    dtype = draw.one("float32", "float32", "float64")
    return draw.case({"X": draw.floats(draw.shape(1, 4), low, high, dtype)}, attrs)


@space("prelu")
def prelu(draw: Draw) -> Case:
    mode, layout = draw.one("all", "channel", "element"), draw.one("NCHW", "NHWC")
    shape = draw.shape(3, 4)
    alpha = {
        "all": [1],
        "channel": [1, shape[1], *[1] * (len(shape) - 2)] if layout == "NCHW" else [*[1] * (len(shape) - 1), shape[-1]],
        "element": [1, *shape[1:]],
    }[mode]
    inputs = {"X": draw.floats(shape), "Alpha": draw.floats(alpha)}
    return draw.case(inputs, {"mode": mode, "data_format": layout}, parameters=("Alpha",))


@space("clip")
def clip(draw: Draw) -> Case:
    dtype = draw.one("float32", "float32", "int32", "int64")
    inputs = {"X": draw.numbers(draw.shape(0, 4), dtype)}
    if draw.chance(0.3):
        inputs["Min"] = draw.numbers([1], dtype) * 0 - 1
    if draw.chance(0.3):
        inputs["Max"] = draw.numbers([1], dtype) * 0 + 1
    return draw.case(inputs, {"min": draw.real(-2, 0), "max": draw.real(0, 2)})


@space("pow")
def power(draw: Draw) -> Case:
    inputs = {"X": draw.floats(draw.shape(0, 4), 0.2, 3.0)}
    if draw.chance(0.3):
        inputs["FactorTensor"] = draw.floats([1])
    return draw.case(inputs, {"factor": draw.one(0.5, 2.0, -1.0, 3.0, 0.0)})


@space("scale")
def scale(draw: Draw) -> Case:
    dtype = draw.one("float32", "float32", "float64", "int32", "int64")
    inputs = {"X": draw.numbers(draw.shape(0, 4), dtype)}
    whole = dtype.startswith("int")
    attrs = {
        "scale": float(draw.integer(-3, 3)) if whole else draw.real(-3, 3),
        "bias": float(draw.integer(-3, 3)) if whole else draw.real(-3, 3),
        "bias_after_scale": draw.chance(0.7),
    }
    if draw.chance(0.3):
        inputs["ScaleTensor"] = draw.numbers([1], dtype)
    return draw.case(inputs, attrs)


@space("cast")
def cast(draw: Draw) -> Case:
    known = ("float32", "int32", "int64", "bool", "float64", "uint8", "int8", "int16", "float16")
    source, target = draw.one(*known), draw.one(*known)
    # A negative number has no value in an unsigned type.
    array = draw.numbers(draw.shape(0, 4), source)
    array = abs(array) if target == "uint8" and source != "bool" else array
    # Paddle 2.6 rounds float64 to float16 in two steps.
    rtol = 1e-3 if target == "float16" else 1e-4
    return draw.case({"X": array}, {"in_dtype": source, "out_dtype": target}, rtol=rtol)


@space("increment")
def increment(draw: Draw) -> Case:
    return draw.case(
        {"X": draw.numbers([1], draw.one("float32", "int32", "int64"))}, {"step": float(draw.integer(-3, 3))}
    )


@space("softmax", "log_softmax")
def softmax(draw: Draw) -> Case:
    shape = draw.shape(1, 4)
    array = draw.floats(shape, dtype=draw.one("float32", "float32", "float64"))
    return draw.case({"X": array}, {"axis": draw.integer(-len(shape), len(shape) - 1)})


@space("assign", "share_data", "memcpy", "memcpy_d2h", "memcpy_h2d", "print")
def copies(draw: Draw) -> Case:
    array = draw.numbers(draw.shape(0, 4), draw.one("float32", "int64", "bool", "int32"))
    slot = "In" if draw.op == "print" else "X"
    attrs = {"first_n": -1, "message": "", "summarize": 1} if draw.op == "print" else {}
    attrs = {"dst_place_type": 0} if draw.op.startswith("memcpy") else attrs
    return draw.case({slot: array}, attrs)


@space("io_copy", "io_copy_once", "layout", "layout_once", "depend", "share_buffer")
def copies_between_devices(draw: Draw) -> Case:
    slot = "X" if draw.op in ("depend", "share_buffer") else "Input"
    array = draw.numbers(draw.shape(1, 4), draw.one("float32", "int64"))
    return draw.case({slot: array}, paddle_op="assign", paddle_slots={slot: "X"})


@space("label_smooth", "clip_by_norm", "l1_norm", "squared_l2_norm", "dropout", "maxout", "rrelu")
def others(draw: Draw) -> Case:
    attrs = {
        "label_smooth": {"epsilon": draw.real(0, 1)},
        "clip_by_norm": {"max_norm": draw.one(0.5, 100.0)},
        "dropout": {
            "dropout_prob": draw.real(0, 0.9),
            "dropout_implementation": draw.one("downgrade_in_infer", "upscale_in_train"),
            "is_test": True,
        },
        "maxout": {"groups": 2, "axis": draw.one(1, -1)},
        "rrelu": {"lower": 0.1, "upper": draw.real(0.2, 0.5), "is_test": True},
    }.get(draw.op, {})
    shape = [2, 4, 3, 4] if draw.op == "maxout" else draw.shape(2, 3)
    return draw.case({"X": draw.floats(shape)}, attrs)


@space("bernoulli")
def bernoulli(draw: Draw) -> Case:
    # Other probabilities draw random numbers.
    return draw.case({"X": draw.integers(draw.shape(1, 3), 0, 1, "float32")})
