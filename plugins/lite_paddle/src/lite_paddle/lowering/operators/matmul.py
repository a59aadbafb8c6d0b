"""Matrix products, in the forms of all versions of Paddle."""

from __future__ import annotations

from functools import reduce

from lite_core.ir import Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.dynamic import dimensions, reshape_to, static_dimension
from lite_paddle.lowering.operators.activation import activate
from lite_paddle.lowering.operators.quantization import integral_weights
from lite_paddle.lowering.paddle_lite_fusions import activated, int8_factors, int8_result
from lite_paddle.lowering.registry import lowers
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.source import SourceOp

# Results of rank 0 had shape [1] before this version.
_SCALARS_SINCE = 2_005_000

# Value of cross's attribute ``dim`` that names no axis.
_NO_AXIS = 9


def _factors(op: SourceOp, context: Context) -> tuple[Value, Value]:
    transposed = op.attrs.get("trans_y") or op.attrs.get("transpose_Y")
    x, y = context.input(op, "X"), context.input(op, "Y")
    narrow = int8_factors(op, context, x, y, ("X", "Y"), axis=0 if transposed else 1)
    return narrow or (x, integral_weights(context, x, y))


def _swapped(context: Context, value: Value) -> Value:
    """Transpose the last two axes; a vector is returned unchanged."""
    rank = context.rank(value, "its last axes must be exchanged")
    return value if rank < 2 else context.transpose(value, [*range(rank - 2), rank - 1, rank - 2])


@lowers("matmul_v2")
def matmul_v2(op: SourceOp, context: Context) -> None:
    """Compute NumPy's ``matmul``."""
    x, y = _factors(op, context)
    if op.attrs["trans_x"]:
        x = _swapped(context, x)
    if op.attrs["trans_y"]:
        y = _swapped(context, y)
    result = context.node("MatMul", [x, y])
    if result.type.rank == 0 and context.version < _SCALARS_SINCE:
        result = context.reshape(result, [1])
    context.bind(op, "Out", result)


@lowers("matmul")
def matmul_v1(op: SourceOp, context: Context) -> None:
    """Compute ``alpha * X @ Y``. A vector X is a row and a vector Y a column; transposed, they swap roles."""
    x, y = _factors(op, context)
    if int(op.attrs["head_number"]) > 1:
        raise Unlowerable("its head_number is above 1", "export the model without Paddle's CPU fusions")
    transposed_x, transposed_y = bool(op.attrs["transpose_X"]), bool(op.attrs["transpose_Y"])
    x_rank = context.rank(x, "a vector is treated as a row")
    y_rank = context.rank(y, "a vector is treated as a column")
    if x_rank == 1 and transposed_x:
        x = context.reshape(x, [-1, 1])
    elif transposed_x:
        x = _swapped(context, x)
    if y_rank == 1 and transposed_y:
        y = context.reshape(y, [1, -1])
    elif transposed_y:
        y = _swapped(context, y)
    result = context.node("MatMul", [x, y])
    if result.type.rank == 0 and context.version < _SCALARS_SINCE:
        result = context.reshape(result, [1])
    alpha = float(op.attrs["alpha"])
    if alpha != 1:
        result = context.node("Mul", [result, context.scalar(alpha, result)])
    context.bind(op, "Out", result)


def _matrix_product(context: Context, x: Value, y: Value, x_rows: int, y_rows: int) -> Value:
    """Multiply X, flattened to a matrix at axis ``x_rows``, by Y at ``y_rows``; the outer axes of both are kept."""
    x_rank = context.rank(x, "it is flattened to a matrix")
    y_rank = context.rank(y, "it is flattened to a matrix")
    if y_rank == 2 and y_rows == 1 and x_rows == x_rank - 1:
        return context.node("MatMul", [x, y])
    outer = [*dimensions(context, x, 0, x_rows), *dimensions(context, y, y_rows, y_rank)]
    left = x if x_rank == 2 and x_rows == 1 else context.node("Flatten", [x], {"axis": x_rows})
    right = y if y_rank == 2 and y_rows == 1 else context.node("Flatten", [y], {"axis": y_rows})
    product = context.node("MatMul", [left, right])
    return product if x_rows == 1 and len(outer) == 2 else reshape_to(context, product, outer)


@lowers("mul")
def mul(op: SourceOp, context: Context) -> None:
    x, y = _factors(op, context)
    result = _matrix_product(context, x, y, int(op.attrs["x_num_col_dims"]), int(op.attrs["y_num_col_dims"]))
    context.bind(op, "Out", result)


@lowers("fc")
def fully_connected(op: SourceOp, context: Context) -> None:
    """Compute ``activation(flat(Input) @ W + Bias)``."""
    weight, bias = context.input(op, "W"), context.optional(op, "Bias")
    if op.attrs["padding_weights"]:
        # NOTE: such weights are padded with 4 rows and columns, against cache conflicts.
        ends = [static_dimension(weight, a, "its weights carry padding") - 4 for a in (0, 1)]
        ints = context.builder.ints
        weight = context.node("Slice", [weight, ints(0, 0), ints(*ends), ints(0, 1)])
    x = context.input(op, "Input")
    x, weight = int8_factors(op, context, x, weight, ("Input", "W"), axis=1) or (x, weight)
    rows = int(op.attrs["in_num_col_dims"])
    if str(op.attrs.get("op_type", "")).startswith("matmul"):
        rows = -1  # Paddle-Lite made it of a product that keeps all axes but the last
    rows = rows if rows >= 0 else rows + context.rank(x, "it is flattened to a matrix")
    result = _matrix_product(context, x, weight, rows, 1)
    if bias is not None:
        flat = bias if bias.type.rank == 1 else context.reshape(bias, [-1])
        result = context.node("Add", [result, flat])
    parameters = {"threshold": op.attrs["alpha"], "alpha": op.attrs["alpha"]} if "alpha" in op.attrs else {}
    name = str(op.attrs["activation_type"])
    result = activated(op, context, result, name, parameters, slope_slot="Alpha")
    context.bind(op, "Out", int8_result(op, context, result))


@lowers("bmm")
def batched_product(op: SourceOp, context: Context) -> None:
    context.emit(op, "MatMul", [context.input(op, "X"), context.input(op, "Y")])


@lowers("mv")
def matrix_vector_product(op: SourceOp, context: Context) -> None:
    context.emit(op, "MatMul", [context.input(op, "X"), context.input(op, "Vec")])


@lowers("dot")
def dot(op: SourceOp, context: Context) -> None:
    """Compute the dot products of rows; before Paddle 2.5 the summed axis was kept, with size 1."""
    product = context.node("Mul", [context.input(op, "X"), context.input(op, "Y")])
    keep = int(context.version < _SCALARS_SINCE)
    context.emit(op, "ReduceSum", [product, context.builder.ints(-1)], {"keepdims": keep})


@lowers("addmm")
def addmm(op: SourceOp, context: Context) -> None:
    """Compute ``Beta * Input + Alpha * X @ Y``."""
    inputs = [context.input(op, slot) for slot in ("X", "Y", "Input")]
    context.emit(op, "Gemm", inputs, {"alpha": float(op.attrs["Alpha"]), "beta": float(op.attrs["Beta"])})


@lowers("multi_dot")
def multi_dot(op: SourceOp, context: Context) -> None:
    values = context.inputs(op, "X") or context.inputs(op, "0")
    result = reduce(lambda a, b: context.node("MatMul", [a, b]), values)
    context.bind(op, "Out", result)
    context.bind(op, "0", result)


@lowers("einsum")
def einsum(op: SourceOp, context: Context) -> None:
    operands = context.inputs(op, "Operands")
    context.emit(op, "Einsum", operands, {"equation": str(context.attribute(op, "equation"))})


@lowers("linear_v2")
def linear_v2(op: SourceOp, context: Context) -> None:
    x, weight, bias = (context.any_input(op, *slots) for slots in (("input", "0"), ("weight", "1"), ("bias", "2")))
    if op.attrs.get("transpose_weight"):
        weight = _swapped(context, weight)
    result = context.node("Add", [context.node("MatMul", [x, weight]), bias])
    context.bind(op, "out", result)
    context.bind(op, "0", result)


@lowers("fused_gemm_epilogue")
def fused_gemm_epilogue(op: SourceOp, context: Context) -> None:
    """Compute ``activation(X @ Y + Bias)``."""
    x, y, bias = (context.any_input(op, *slots) for slots in (("X", "0"), ("Y", "1"), ("Bias", "2")))
    if op.attrs.get("trans_x"):
        x = _swapped(context, x)
    if op.attrs.get("trans_y"):
        y = _swapped(context, y)
    result = context.node("Add", [context.node("MatMul", [x, y]), bias])
    name = str(op.attrs.get("activation", "none"))
    # NOTE: the GPU library's fused gelu is the tanh form.
    result = activate(context, result, "" if name == "none" else name, {"approximate": True})
    context.bind(op, "Out", result)
    context.bind(op, "0", result)


@lowers("baddbmm")
def baddbmm(op: SourceOp, context: Context) -> None:
    """Compute ``beta * input + alpha * x @ y`` for a batch of matrices."""
    added, x, y = (context.any_input(op, slot, slot.lower()) for slot in ("Input", "X", "Y"))
    alpha, beta = (float(op.attrs.get(name, op.attrs.get(name.lower(), 1))) for name in ("Alpha", "Beta"))
    product = context.node("Mul", [context.node("MatMul", [x, y]), context.scalar(alpha, x)])
    result = context.node("Add", [context.node("Mul", [added, context.scalar(beta, x)]), product])
    for slot in ("Out", "out"):
        context.bind(op, slot, result)


@lowers("kron")
def kron(op: SourceOp, context: Context) -> None:
    """Compute the blocks of every element of X times Y; missing leading axes have size 1."""
    values, ints = [context.input(op, "X"), context.input(op, "Y")], context.builder.ints
    ranks = [context.rank(v, "it is multiplied axis by axis") for v in values]
    rank = max(ranks)
    if rank == 0:
        context.emit(op, "Mul", values)
        return
    values = [context.node("Unsqueeze", [v, ints(*range(rank - r))]) if r < rank else v for v, r in zip(values, ranks)]
    # x of shape [a, 1, b, 1], y of shape [1, c, 1, d] give [a, c, b, d], which is [a * c, b * d].
    spread = [context.node("Unsqueeze", [v, ints(*range(1 - i, 2 * rank, 2))]) for i, v in enumerate(values)]
    shape = context.node("Mul", [context.node("Shape", [v]) for v in values])
    known = context.known_ints(shape)
    context.emit(op, "Reshape", [context.node("Mul", spread), shape if known is None else ints(*known)])


@lowers("cross")
def cross(op: SourceOp, context: Context) -> None:
    """Compute cross products along an axis of size 3; without ``dim``, the first axis of that size."""
    x, y = context.input(op, "X"), context.input(op, "Y")
    rank = context.rank(x, "vectors along an axis of it are multiplied")
    axis = int(op.attrs.get("dim", _NO_AXIS))
    if axis == _NO_AXIS:
        found = [a for a, size in enumerate(x.shape) if size == 3]
        if not found:
            raise Unlowerable("it names no axis, and none is known to have size 3")
        axis = found[0]
    if not -rank <= axis < rank:
        raise Unlowerable(f"axis {axis} is out of range for a tensor of rank {rank}")
    orders = [context.builder.ints(1, 2, 0), context.builder.ints(2, 0, 1)]
    (x1, x2), (y1, y2) = ([context.node("Gather", [v, order], {"axis": axis}) for order in orders] for v in (x, y))
    context.emit(op, "Sub", [context.node("Mul", [x1, y2]), context.node("Mul", [x2, y1])])
