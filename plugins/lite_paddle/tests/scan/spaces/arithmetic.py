"""Spaces of operators on two tensors, and of sums of several."""

from __future__ import annotations

from scan.drawing import Array, Case, Draw, space


def _operands(draw: Draw, dtype: str) -> tuple[Array, Array, int]:
    """Return X, Y and the axis at which the dimensions of Y begin, as Paddle broadcasts them."""
    shape = draw.shape(1, 4)
    if draw.chance(0.3):
        return draw.numbers(shape, dtype), draw.numbers(shape, dtype), -1
    if draw.chance():
        start = draw.integer(0, len(shape) - 1)
        end = draw.integer(start + 1, len(shape))
        other = [1 if draw.chance(0.2) else size for size in shape[start:end]]
        return draw.numbers(shape, dtype), draw.numbers(other, dtype), start
    other = [1 if draw.chance(0.3) else size for size in shape]
    mine = [1 if draw.chance(0.2) else size for size in shape]
    return draw.numbers(mine, dtype), draw.numbers(other, dtype), -1


@space("elementwise_add", "elementwise_mul", "elementwise_sub", "elementwise_max", "elementwise_min")
def arithmetic(draw: Draw) -> Case:
    x, y, axis = _operands(draw, draw.one("float32", "float32", "int32", "int64", "float64"))
    return draw.case({"X": x, "Y": y}, {"axis": axis})


@space("elementwise_div", "elementwise_floordiv", "elementwise_mod")
def divisions(draw: Draw) -> Case:
    dtype = draw.one("float32", "int32", "int64")
    x, y, axis = _operands(draw, dtype)
    y = y + (y == 0).astype(dtype)
    if dtype == "float32":
        # A quotient that is nearly whole may be rounded to either side.
        y = abs(y) + 0.3 if draw.op != "elementwise_div" else y
    return draw.case({"X": x, "Y": y.astype(dtype)}, {"axis": axis})


@space("elementwise_pow")
def powers(draw: Draw) -> Case:
    x, y, axis = _operands(draw, "float32")
    return draw.case({"X": abs(x) + 0.1, "Y": y}, {"axis": axis})


@space("elementwise_fmax", "elementwise_fmin", "elementwise_heaviside")
def comparing(draw: Draw) -> Case:
    x, y, _ = _operands(draw, "float32")
    x[..., :1] = float("nan") if draw.op != "elementwise_heaviside" else 0.0
    return (
        draw.case({"X": x, "Y": y})
        if x.ndim >= y.ndim and x.ndim == y.ndim
        else draw.case({"X": x, "Y": x[::-1].copy()})
    )


@space("minus")
def minus(draw: Draw) -> Case:
    shape = draw.shape(1, 3)
    return draw.case({"X": draw.floats(shape), "Y": draw.floats(shape)})


@space("equal", "not_equal", "less_than", "less_equal", "greater_than", "greater_equal")
def comparisons(draw: Draw) -> Case:
    dtype = draw.one("float32", "int32", "int64", "float64")
    shape = draw.shape(1, 4)
    x = draw.integers(shape, -1, 1, dtype)
    if draw.chance(0.3):
        return draw.case({"X": x, "Y": draw.integers(shape[-1:], -1, 1, dtype)})
    return draw.case({"X": x, "Y": draw.integers(shape, -1, 1, dtype)}, {"axis": -1})


@space("logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor")
def logic(draw: Draw) -> Case:
    dtype = draw.one("bool", "int32", "int64", "uint8") if draw.op.startswith("bitwise") else "bool"
    x, y, _ = _operands(draw, dtype)
    return draw.case({"X": x, "Y": y if x.ndim == y.ndim else x.copy()})


@space("logical_not", "bitwise_not")
def negation(draw: Draw) -> Case:
    dtype = draw.one("bool", "int32", "int64") if draw.op.startswith("bitwise") else "bool"
    return draw.case({"X": draw.numbers(draw.shape(0, 4), dtype)})


@space("bitwise_left_shift", "bitwise_right_shift")
def shifts(draw: Draw) -> Case:
    dtype, shape = draw.one("int32", "int64", "uint8"), draw.shape(1, 3)
    inputs = {"x": draw.integers(shape, 0, 9, dtype), "y": draw.integers(shape, 0, 4, dtype)}
    return draw.case(inputs, {"is_arithmetic": True}, ["out"])


@space("sum")
def add_n(draw: Draw) -> Case:
    shape, dtype = draw.shape(1, 4), draw.one("float32", "int32", "int64")
    return draw.case({"X": [draw.numbers(shape, dtype) for _ in range(draw.integer(1, 3))]})


@space("atan2", "copysign", "lerp", "dist", "dot", "kron", "cross", "allclose", "isclose", "equal_all")
def pairs(draw: Draw) -> Case:
    shape = draw.shape(1, 3)
    x, y = draw.floats(shape), draw.floats(shape)
    if draw.op == "atan2":
        return draw.case({"X1": x, "X2": y})
    if draw.op == "copysign":
        return draw.case({"x": x, "y": y}, outputs=["out"])
    if draw.op == "lerp":
        return draw.case({"X": x, "Y": y, "Weight": draw.floats(draw.one([1], shape), 0, 1)})
    if draw.op == "dist":
        return draw.case({"X": x, "Y": y}, {"p": draw.one(2.0, 1.0, 0.0, float("inf"), 3.0)})
    if draw.op == "dot":
        return draw.case({"X": x, "Y": y} if len(shape) < 3 else {"X": x[0], "Y": y[0]})
    if draw.op == "cross":
        axis = draw.integer(0, len(shape) - 1)
        shape[axis] = 3
        return draw.case({"X": draw.floats(shape), "Y": draw.floats(shape)}, {"dim": axis})
    if draw.op in ("allclose", "isclose"):
        y = x + draw.one(0.0, 1e-3, 1e-7)
        attrs = {"rtol": "1e-05", "atol": draw.one("1e-08", "0.01"), "equal_nan": draw.chance()}
        return draw.case({"Input": x, "Other": y.astype("float32")}, attrs)
    return draw.case({"X": x, "Y": x.copy() if draw.op == "equal_all" and draw.chance() else y})


@space("mul")
def mul(draw: Draw) -> Case:
    left, inner, right = draw.shape(1, 2), draw.shape(1, 2), draw.shape(1, 2)
    attrs = {"x_num_col_dims": len(left), "y_num_col_dims": len(inner)}
    inputs = {"X": draw.floats([*left, *inner]), "Y": draw.floats([*inner, *right])}
    return draw.case(inputs, attrs, parameters=draw.one((), ("Y",)))


def _factors(draw: Draw, transpose_x: bool, transpose_y: bool) -> tuple[Array, Array]:
    m, k, n = draw.integers_of(3, 1, 5)
    batch = draw.one([], [], draw.shape(1, 2))
    x, y = ([k, m] if transpose_x else [m, k]), ([n, k] if transpose_y else [k, n])
    return draw.floats([*batch, *x]), draw.floats([*(batch if draw.chance(0.7) else []), *y])


@space("matmul")
def matmul(draw: Draw) -> Case:
    transpose_x, transpose_y = draw.chance(0.3), draw.chance(0.3)
    x, y = _factors(draw, transpose_x, transpose_y)
    attrs = {"transpose_X": transpose_x, "transpose_Y": transpose_y, "alpha": draw.one(1.0, 0.5)}
    return draw.case({"X": x, "Y": y}, attrs)


@space("matmul_v2")
def matmul_v2(draw: Draw) -> Case:
    transpose_x, transpose_y = draw.chance(0.3), draw.chance(0.3)
    x, y = _factors(draw, transpose_x, transpose_y)
    if draw.chance(0.2):
        size = y.shape[-1 if transpose_y else -2]
        x, transpose_x = draw.floats([size]), False
    return draw.case({"X": x, "Y": y}, {"trans_x": transpose_x, "trans_y": transpose_y})


@space("bmm", "mv", "addmm", "baddbmm", "multi_dot", "bilinear_tensor_product", "fc")
def products(draw: Draw) -> Case:
    b, m, k, n = draw.integers_of(4, 1, 4)
    if draw.op == "bmm":
        return draw.case({"X": draw.floats([b, m, k]), "Y": draw.floats([b, k, n])})
    if draw.op == "mv":
        return draw.case({"X": draw.floats([m, k]), "Vec": draw.floats([k])})
    if draw.op in ("addmm", "baddbmm"):
        batch = [b] if draw.op == "baddbmm" else []
        inputs = {"Input": [*batch, m, n], "X": [*batch, m, k], "Y": [*batch, k, n]}
        return draw.case(
            {s: draw.floats(shape) for s, shape in inputs.items()}, {"Alpha": draw.real(-2, 2), "Beta": 0.5}
        )
    if draw.op == "multi_dot":
        return draw.case({"X": [draw.floats([m, k]), draw.floats([k, n]), draw.floats([n, b])]})
    if draw.op == "fc":
        dims = draw.integer(1, 2)
        inputs = {"Input": draw.floats([*[2] * dims, k]), "W": draw.floats([k, n]), "Bias": draw.floats([n])}
        attrs = {"in_num_col_dims": dims, "activation_type": draw.one("", "relu")}
        return draw.case(inputs, attrs, parameters=("W", "Bias"))
    inputs = {"X": [m, k], "Y": [m, n], "Weight": [b, k, n], "Bias": [1, b]}
    return draw.case({slot: draw.floats(shape) for slot, shape in inputs.items()})


@space("einsum")
def einsum(draw: Draw) -> Case:
    equation, shapes = draw.one(
        ("ij,jk->ik", [[2, 3], [3, 4]]), ("bij,bjk->bik", [[2, 2, 3], [2, 3, 2]]), ("ij->ji", [[2, 3]]),
        ("ij,ij->i", [[2, 3], [2, 3]]), ("bhqd,bhkd->bhqk", [[1, 2, 3, 2], [1, 2, 4, 2]]), ("i,j->ij", [[2], [3]]),
    )  # fmt: skip
    return draw.case({"Operands": [draw.floats(shape) for shape in shapes]}, {"equation": equation})
