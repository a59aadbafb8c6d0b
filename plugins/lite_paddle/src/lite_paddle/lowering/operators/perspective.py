"""Perspective transforms of quadrilateral regions, as readers of slanted text use them (Paddle 1.x)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from lite_core.ir import DType, Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.operators.detection import image_of_each_region, images_with_regions
from lite_paddle.lowering.registry import lowers
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.source import SourceOp

#: Coordinates closer than this are equal, in the comparisons of Paddle's operator.
_NEAR = 1e-4


class _Maths:
    """Arithmetic on values that broadcast against each other; numbers become constants of the type of ``like``."""

    def __init__(self, context: Context, like: Value) -> None:
        self._context = context
        self._like = like

    def __call__(self, type_: str, *inputs: Value | float) -> Value:
        values = [x if isinstance(x, Value) else self._context.scalar(x, self._like) for x in inputs]
        return self._context.node(type_, values)

    def product(self, a: Value, b: Value, c: Value, d: Value) -> Value:
        """Return ``a * b - c * d``."""
        return self("Sub", self("Mul", a, b), self("Mul", c, d))

    def near(self, a: Value | float, b: Value | float) -> Value:
        return self("Less", self("Abs", self("Sub", a, b)), _NEAR)

    def every(self, *conditions: Value) -> Value:
        return reduce(lambda a, b: self("And", a, b), conditions)

    def any(self, *conditions: Value) -> Value:
        return reduce(lambda a, b: self("Or", a, b), conditions)


Corners = Sequence[tuple[Value, Value]]


@lowers("roi_perspective_transform")
def roi_perspective_transform(op: SourceOp, context: Context) -> None:
    """Sample each region [R, 8], four corners clockwise, as an upright rectangle, and 0 outside the region.

    A region is stretched to the output's height; its width follows from its shape, up to the output's width.
    """
    x, regions = images_with_regions(op, context), context.input(op, "ROIs")
    height, width = int(op.attrs["transformed_height"]), int(op.attrs["transformed_width"])
    if min(height, width) < 1:
        raise Unlowerable(f"its result has the size {height} x {width}")
    maths = _Maths(context, regions)
    scaled = maths("Mul", regions, float(op.attrs["spatial_scale"]))
    parts = context.nodes("Split", [scaled], {"axis": 1, "num_outputs": 8}, outputs=8)
    numbers = [context.reshape(part, [-1, 1, 1]) for part in parts]
    corners = list(zip(numbers[::2], numbers[1::2]))
    matrix = _matrix(maths, corners, height, width)
    columns, rows = (
        context.builder.constant(np.arange(size).astype(regions.dtype.numpy).reshape(shape))
        for size, shape in ((width, (1, 1, -1)), (height, (1, -1, 1)))
    )
    terms = [
        maths("Add", maths("Add", maths("Mul", a, columns), maths("Mul", b, rows)), c)
        for a, b, c in (matrix[:3], matrix[3:6], matrix[6:])
    ]
    positions = [maths("Div", term, terms[2]) for term in terms[:2]]
    sizes = [context.node("Squeeze", [context.node("Shape", [x], {"start": axis, "end": axis + 1})]) for axis in (3, 2)]
    inside = _is_inside(maths, positions[0], positions[1], corners)
    for place, size in zip(positions, sizes):
        end = maths("Sub", context.cast(size, regions.dtype), 0.5 + _NEAR)
        inside = maths.every(inside, maths("GreaterOrEqual", place, -0.5 + _NEAR), maths("LessOrEqual", place, end))
    sampled = _sampled(context, x, image_of_each_region(op, context, regions), positions, sizes, inside)
    context.bind(op, "Out", sampled)
    mask = context.node("Unsqueeze", [context.cast(inside, DType.INT32), context.builder.ints(1)])
    context.bind(op, "Mask", mask)
    if context.is_used(op, "TransformMatrix"):
        flat = [context.reshape(entry, [-1, 1]) for entry in matrix]
        context.bind(op, "TransformMatrix", context.node("Concat", flat, {"axis": 1}))


def _matrix(maths: _Maths, corners: Corners, height: int, width: int) -> list[Value]:
    """Return the entries [R, 1, 1], row by row, of the matrices from positions in the result to the image."""
    (x0, y0), (x1, y1), (x2, y2), (x3, y3) = corners

    def length(a: int, b: int) -> Value:
        squares = [maths("Mul", d, d) for d in (maths("Sub", p, q) for p, q in zip(corners[a], corners[b]))]
        return maths("Sqrt", maths("Add", *squares))

    tall, wide = maths("Add", length(1, 2), length(3, 0)), maths("Add", length(0, 1), length(2, 3))
    steps_down = max(2, height) - 1
    fitting = maths("Floor", maths("Add", maths("Div", maths("Mul", wide, steps_down), tall), 0.5))
    steps_right = maths("Max", maths("Min", fitting, width - 1), 1)
    a, b = (maths("Sub", x1, x2), maths("Sub", y1, y2)), (maths("Sub", x3, x2), maths("Sub", y3, y2))
    c = [maths("Add", maths("Sub", p, q), maths("Sub", r, s)) for p, q, r, s in ((x0, x1, x2, x3), (y0, y1, y2, y3))]
    area = maths("Add", maths.product(a[0], b[1], b[0], a[1]), 1e-5)
    g = maths("Div", maths("Div", maths.product(c[0], b[1], b[0], c[1]), area), steps_right)
    h = maths("Div", maths("Div", maths.product(a[0], c[1], c[0], a[1]), area), float(steps_down))

    def toward(origin: Value, end: Value, slope: Value, steps: Value | float) -> Value:
        bent = maths("Mul", maths("Mul", slope, steps), end)
        return maths("Div", maths("Add", maths("Sub", end, origin), bent), steps)

    down = float(steps_down)
    return [
        toward(x0, x1, g, steps_right), toward(x0, x3, h, down), x0,
        toward(y0, y1, g, steps_right), toward(y0, y3, h, down), y0,
        g, h, maths("Add", maths("Mul", x0, 0), 1),
    ]  # fmt: skip


def _is_inside(maths: _Maths, x: Value, y: Value, corners: Corners) -> Value:
    """Return where points are inside a quadrilateral or on its edge, by the number of edges to their right."""
    on_edge, right_of = [], []
    for (xs, ys), (xe, ye) in zip(corners, [*corners[1:], corners[0]]):
        is_level = maths.near(ys, ye)
        low, high = maths("Min", ys, ye), maths("Max", ys, ye)
        within_level = maths.every(
            maths.near(y, ys),
            maths("GreaterOrEqual", x, maths("Sub", maths("Min", xs, xe), _NEAR)),
            maths("LessOrEqual", x, maths("Add", maths("Max", xs, xe), _NEAR)),
        )
        at = maths(
            "Add", maths("Div", maths("Mul", maths("Sub", y, ys), maths("Sub", xe, xs)), maths("Sub", ye, ys)), xs
        )
        within = maths.every(
            maths.near(at, x),
            maths("GreaterOrEqual", y, maths("Sub", low, _NEAR)),
            maths("LessOrEqual", y, maths("Add", high, _NEAR)),
        )
        on_edge.append(maths("Where", is_level, within_level, within))
        crossed = maths.every(
            maths("Not", is_level),
            maths("Greater", y, maths("Add", low, _NEAR)),
            maths("LessOrEqual", y, maths("Add", high, _NEAR)),
            maths("Greater", maths("Sub", at, x), _NEAR),
        )
        right_of.append(crossed)
    odd = reduce(lambda a, b: maths("Xor", a, b), right_of)
    return maths.any(odd, *on_edge)


def _sampled(
    context: Context, x: Value, images: Value, positions: list[Value], sizes: list[Value], inside: Value
) -> Value:
    """Return the elements [R, C, H, W] of images [N, C, h, w] at positions [R, H, W], interpolated; 0 if not inside."""
    maths = _Maths(context, positions[0])
    ints = context.builder.ints
    lows, highs, parts = [], [], []
    for place, size in zip(positions, sizes):
        last = maths("Sub", context.cast(size, place.dtype), 1)
        known = maths("Where", inside, place, 0)
        positive = maths("Where", maths("Less", known, _NEAR), 0, known)
        held = maths("Min", positive, last)
        low = maths("Floor", held)
        parts.append(maths("Sub", held, low))
        lows.append(context.cast(low, DType.INT64))
        highs.append(context.cast(maths("Min", maths("Add", low, 1), last), DType.INT64))
    pixels = context.transpose(x, (0, 2, 3, 1))
    channels = context.node("Shape", [x], {"start": 1, "end": 2})
    pixels = context.node("Reshape", [pixels, context.node("Concat", [ints(-1), channels], {"axis": 0})])
    image = context.reshape(context.cast(images, DType.INT64), [-1, 1, 1])
    rest = [maths("Sub", 1, part) for part in parts]
    terms = []
    for column, right in ((lows[0], rest[0]), (highs[0], parts[0])):
        for row, below in ((lows[1], rest[1]), (highs[1], parts[1])):
            line = context.node("Add", [context.node("Mul", [image, sizes[1]]), row])
            position = context.node("Add", [context.node("Mul", [line, sizes[0]]), column])
            weight = context.node("Unsqueeze", [maths("Mul", right, below), ints(-1)])
            found = context.node("Gather", [pixels, position], {"axis": 0})
            terms.append(context.node("Mul", [found, context.cast(weight, x.dtype)]))
    total = reduce(lambda a, b: context.node("Add", [a, b]), terms)
    shown = context.node("Where", [context.node("Unsqueeze", [inside, ints(-1)]), total, context.scalar(0, x)])
    return context.transpose(shown, (0, 3, 1, 2))
