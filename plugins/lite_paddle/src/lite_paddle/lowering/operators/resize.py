"""Interpolation: all ``*_interp`` operators of Paddle, of the first and the second generation."""

from __future__ import annotations

import math

import numpy as np

from lite_core.ir import DType, Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.dynamic import dimension, integer_vector, shape_vector
from lite_paddle.lowering.layout import in_channels_first
from lite_paddle.lowering.registry import lowers
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.source import SourceOp

_METHODS = ("linear", "bilinear", "trilinear", "nearest", "bicubic")

# The attributes with output sizes, outermost axis first.
_SIZE_ATTRIBUTES = ("out_d", "out_h", "out_w")

# Since then, a single element of a trilinear result comes from the middle of the input.
_FIRST_WITH_TRILINEAR_MIDDLE = 3_000_000


def _mode(op: SourceOp, may_be_one: bool) -> dict[str, str | float]:
    """Return the attributes of Resize for the coordinates and weights that Paddle uses.

    Args:
        op: the operator.
        may_be_one: True if the result may have a single element along an axis, for which Paddle takes the first element
            of the input, not the middle one.
    """
    method = op.type.split("_interp")[0]
    corners = bool(op.attrs["align_corners"])
    transformation = "align_corners" if corners else "half_pixel"
    if method == "nearest":
        # NOTE: without align_corners the index is int(ratio * i), with it int(ratio * i + 0.5).
        return {
            "mode": "nearest",
            "coordinate_transformation_mode": transformation if corners else "asymmetric",
            "nearest_mode": "round_prefer_ceil" if corners else "floor",
        }
    if method == "bicubic":
        return {"mode": "cubic", "coordinate_transformation_mode": transformation, "cubic_coeff_a": -0.75}
    if not corners and int(op.attrs["align_mode"]) == 1:
        transformation = "asymmetric"
    elif not corners and may_be_one:
        transformation = "pytorch_half_pixel"
    return {"mode": "linear", "coordinate_transformation_mode": transformation}


@lowers(*(f"{method}_interp{generation}" for method in _METHODS for generation in ("", "_v2")))
def interpolate(op: SourceOp, context: Context) -> None:
    def compute(x: Value) -> Value:
        axes = context.rank(x, "it is resized along its spatial axes") - 2
        if axes < 1:
            raise Unlowerable(f"its input has rank {axes + 2}, expected 3 or more")
        sizes = _tensor_sizes(op, context, axes)
        scales = _scales(op, context, axes)
        if sizes is None and scales is None:
            sizes = _attribute_sizes(op, axes)
        if op.type.startswith("bicubic") and not op.attrs["align_corners"]:
            x, scales = _single_cubic_elements(context, x, sizes, scales)
        takes_first = not op.type.startswith("trilinear") or context.version < _FIRST_WITH_TRILINEAR_MIDDLE
        attributes = _mode(op, takes_first and _may_be_one(sizes, scales))
        if op.type.endswith("_v2") and scales is not None:
            if sizes is not None and not op.attrs["align_corners"]:
                _refuse_contradiction(context, x, sizes, scales)
            elif sizes is None:
                return context.node("Resize", [x, None, _full_scales(context, scales)], attributes)
        if sizes is None and scales is not None:
            # NOTE: the first generation uses in/out as the ratio, which differs from 1/scale if the size was rounded.
            if isinstance(scales, list) and all(s == int(s) for s in scales):
                return context.node("Resize", [x, None, _full_scales(context, scales)], attributes)
            sizes = _scaled_sizes(context, x, scales)
        assert sizes is not None, "without a size tensor and a scale, the attributes have the sizes"
        return _resize_to(context, x, sizes, attributes)

    layout = str(op.attrs["data_layout"])
    context.bind(op, "Out", in_channels_first(context, context.input(op, "X"), layout, compute))


def _may_be_one(sizes: list[int] | Value | None, scales: list[float] | Value | None) -> bool:
    if isinstance(sizes, list):
        return 1 in sizes
    return not (sizes is None and isinstance(scales, list) and all(s >= 2 for s in scales))


def _single_cubic_elements(
    context: Context, x: Value, sizes: list[int] | Value | None, scales: list[float] | Value | None
) -> tuple[Value, list[float] | Value | None]:
    """Reduce axes that bicubic interpolation shrinks to one element, so that Resize need not handle them.

    Paddle computes that element at the coordinate -0.5, half way between the first element and its repetition before
    the edge: with the kernel's weights for 0.5, (a / 8, 1/2 - a / 8, 1/2 - a / 8, a / 8), a = -0.75, and
    the edge repeated, the element is ``(1 - a / 8) * x[0] + a / 8 * x[1]``.
    """
    old = x.shape[2:]
    if isinstance(sizes, list):
        single = [n == 1 for n in sizes]
    elif sizes is None and isinstance(scales, list):
        single = [isinstance(d, int) and int(np.float32(d) * np.float32(s)) == 1 for d, s in zip(old, scales)]
    else:
        return x, scales
    ints = context.builder.ints
    for axis, (one, size) in enumerate(zip(single, old), start=2):
        if not one or size == 1:
            continue
        first = context.node("Slice", [x, ints(0), ints(1), ints(axis)])
        second = context.node("Slice", [x, ints(1), ints(2), ints(axis)])
        outer = -0.75 / 8
        x = context.node(
            "Add",
            [
                context.node("Mul", [first, context.scalar(1 - outer, x)]),
                context.node("Mul", [second, context.scalar(outer, x)]),
            ],
        )
        if isinstance(scales, list):
            scales = [1.0 if a == axis else s for a, s in enumerate(scales, start=2)]
    return x, scales


def _tensor_sizes(op: SourceOp, context: Context, axes: int) -> list[int] | Value | None:
    """Return the sizes that a tensor specifies, or None."""
    listed = context.inputs(op, "SizeTensor")
    if listed:
        # A PIR model may have one vector instead of a legacy model's list of scalars.
        vector = shape_vector(context, [integer_vector(context, v) for v in listed])
    else:
        tensor = context.optional(op, "OutSize")
        if tensor is None:
            return None
        vector = integer_vector(context, tensor)
    known = context.known_ints(vector)
    if known is None:
        return vector
    if len(known) != axes:
        raise Unlowerable(f"its size tensor has {len(known)} elements for {axes} spatial axes")
    return known


def _attribute_sizes(op: SourceOp, axes: int) -> list[int]:
    sizes = [int(op.attrs[name]) for name in _SIZE_ATTRIBUTES[3 - axes :]]
    if any(s <= 0 for s in sizes):
        raise Unlowerable(f"it has neither a scale nor sizes above 0 (they are {sizes})")
    return sizes


def _scales(op: SourceOp, context: Context, axes: int) -> list[float] | Value | None:
    """Return a factor for each spatial axis, outermost first; None if the model has no scale."""
    tensor = context.optional(op, "Scale")
    known = context.known(tensor)
    if tensor is not None and (known is None or known.dtype == object):
        vector = context.reshape(context.cast(tensor, DType.FLOAT32), [-1])
        return context.node("Expand", [vector, context.builder.ints(axes)])
    given = op.attrs.get("scale") or 0.0
    listed = given if isinstance(given, list | tuple) else [given]
    if known is not None:
        listed = known.reshape(-1).tolist()
    numbers = [float(np.float32(n)) for n in listed]
    if not numbers or any(n <= 0 for n in numbers):
        return None
    if len(numbers) not in (1, axes):
        raise Unlowerable(f"it has {len(numbers)} scales for {axes} spatial axes")
    return numbers * axes if len(numbers) == 1 else numbers


def _full_scales(context: Context, scales: list[float] | Value) -> Value:
    """Return factors for all axes, with 1 for batch and channels."""
    if isinstance(scales, list):
        return context.builder.constant(np.array([1.0, 1.0, *scales], dtype=np.float32))
    ones = context.builder.constant(np.ones(2, np.float32))
    return context.node("Concat", [ones, scales], {"axis": 0})


def _refuse_contradiction(context: Context, x: Value, sizes: list[int] | Value, scales: list[float] | Value) -> None:
    """Raise Unlowerable for a scale and a size tensor that differ: the second generation keeps the scale as the ratio.

    Raises:
        Unlowerable: the two differ, or cannot be compared before the model runs.
    """
    if isinstance(sizes, list) and isinstance(scales, list):
        old = x.shape[2:]
        if all(isinstance(d, int) and math.isclose(n / d, s, rel_tol=1e-6) for d, n, s in zip(old, sizes, scales)):
            return
    raise Unlowerable(
        "it has both a scale and a size that does not follow from the scale",
        "give paddle.nn.functional.interpolate only one of size and scale_factor",
    )


def _scaled_sizes(context: Context, x: Value, scales: list[float] | Value) -> list[int] | Value:
    """Return ``floor(size * scale)`` for each spatial axis, in float32 as Paddle computes it."""
    axes = context.rank(x, "it is resized along its spatial axes") - 2
    old = x.shape[2:]
    if isinstance(scales, list) and all(isinstance(d, int) for d in old):
        return [int(np.float32(d) * np.float32(s)) for d, s in zip(old, scales)]
    vector = shape_vector(context, [dimension(context, x, a) for a in range(2, 2 + axes)])
    factors = scales if isinstance(scales, Value) else context.builder.constant(np.array(scales, np.float32))
    product = context.node("Mul", [context.cast(vector, DType.FLOAT32), factors])
    return context.cast(context.node("Floor", [product]), DType.INT64)


def _resize_to(context: Context, x: Value, sizes: list[int] | Value, attributes: dict[str, str | float]) -> Value:
    outer = [dimension(context, x, axis) for axis in (0, 1)]
    if isinstance(sizes, list) and all(isinstance(d, int) for d in outer):
        full = shape_vector(context, [*outer, *sizes])
        return context.node("Resize", [x, None, None, full], attributes)
    # Only the spatial axes are named, so that no node has to compute batch and channels.
    spatial = sizes if isinstance(sizes, Value) else context.builder.ints(*sizes)
    axes = tuple(range(2, context.rank(x, "it is resized along its spatial axes")))
    return context.node("Resize", [x, None, None, spatial], {**attributes, "axes": axes})
