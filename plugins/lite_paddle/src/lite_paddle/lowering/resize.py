"""Interpolation: all of Paddle's ``*_interp`` operators, of the first and the second generation."""

from __future__ import annotations

import math

import numpy as np

from lite_core.ir import DType, Value
from lite_paddle.lowering.context import Context, Unlowerable, lowers
from lite_paddle.lowering.dynamic import dimension, integer_vector, shape_vector
from lite_paddle.lowering.layout import in_channels_first
from lite_paddle.source import SourceOp

_METHODS = ("linear", "bilinear", "trilinear", "nearest", "bicubic")

# The sizes that attributes give, outermost first.
_SIZE_ATTRIBUTES = ("out_d", "out_h", "out_w")


def _mode(op: SourceOp) -> dict[str, str | float]:
    """Attributes of Resize for the way in which Paddle places and mixes elements."""
    method = op.type.split("_interp")[0]
    corners = bool(op.attrs["align_corners"])
    place = "align_corners" if corners else "half_pixel"
    if method == "nearest":
        # NOTE: without align_corners the index is int(ratio * i), with it int(ratio * i + 0.5).
        return {
            "mode": "nearest",
            "coordinate_transformation_mode": place if corners else "asymmetric",
            "nearest_mode": "round_prefer_ceil" if corners else "floor",
        }
    if method == "bicubic":
        return {"mode": "cubic", "coordinate_transformation_mode": place, "cubic_coeff_a": -0.75}
    if not corners and int(op.attrs["align_mode"]) == 1:
        place = "asymmetric"
    return {"mode": "linear", "coordinate_transformation_mode": place}


@lowers(*(f"{method}_interp{generation}" for method in _METHODS for generation in ("", "_v2")))
def interpolate(op: SourceOp, context: Context) -> None:
    def compute(x: Value) -> Value:
        axes = context.rank(x, "it is resized along its spatial axes") - 2
        if axes < 1:
            raise Unlowerable(f"its input has rank {axes + 2}, expected 3 or more")
        attributes = _mode(op)
        sizes = _wanted_sizes(op, context, axes)
        scales = _scales(op, context, axes)
        if op.type.endswith("_v2") and scales is not None:
            if sizes is not None and not op.attrs["align_corners"]:
                _refuse_contradiction(context, x, sizes, scales)
            elif sizes is None:
                return context.node("Resize", [x, None, _full_scales(context, scales)], attributes)
        if sizes is None and scales is not None:
            # NOTE: the first generation takes in/out as the ratio, which is not 1/scale where the size was rounded.
            if isinstance(scales, list) and all(s == int(s) for s in scales):
                return context.node("Resize", [x, None, _full_scales(context, scales)], attributes)
            sizes = _scaled_sizes(context, x, scales)
        if sizes is None:
            sizes = _attribute_sizes(op, axes)
        return _resize_to(context, x, sizes, attributes)

    layout = str(op.attrs["data_layout"])
    context.bind(op, "Out", in_channels_first(context, context.input(op, "X"), layout, compute))


def _wanted_sizes(op: SourceOp, context: Context, axes: int) -> list[int] | Value | None:
    """Sizes that a tensor gives; None where there is none."""
    listed = context.inputs(op, "SizeTensor")
    if listed:
        # A PIR model may have one vector where a legacy one has a list of scalars.
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
    """A factor for each spatial axis, outermost first; None where the model gives none."""
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
    """Factors for all axes: batch and channels stay."""
    if isinstance(scales, list):
        return context.builder.constant(np.array([1.0, 1.0, *scales], dtype=np.float32))
    ones = context.builder.constant(np.ones(2, np.float32))
    return context.node("Concat", [ones, scales], {"axis": 0})


def _refuse_contradiction(context: Context, x: Value, sizes: list[int] | Value, scales: list[float] | Value) -> None:
    """The second generation keeps the ratio of a scale even where a tensor gives other sizes.

    Raises:
        Unlowerable: the two differ, or cannot be compared before the model runs.
    """
    if isinstance(sizes, list) and isinstance(scales, list):
        old = x.shape[2:]
        if all(isinstance(d, int) and math.isclose(n / d, s, rel_tol=1e-6) for d, n, s in zip(old, sizes, scales)):
            return
    raise Unlowerable(
        "it has both a scale and a size that the scale does not follow from",
        "give paddle.nn.functional.interpolate only one of size and scale_factor",
    )


def _scaled_sizes(context: Context, x: Value, scales: list[float] | Value) -> list[int] | Value:
    """``floor(size * scale)`` for each spatial axis, in float32 as Paddle computes it."""
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
    # Only the spatial axes are named, so that nothing has to compute batch and channels.
    spatial = sizes if isinstance(sizes, Value) else context.builder.ints(*sizes)
    axes = tuple(range(2, context.rank(x, "it is resized along its spatial axes")))
    return context.node("Resize", [x, None, None, spatial], {**attributes, "axes": axes})
