"""Transposed convolutions, with the output sizes of Paddle."""

from __future__ import annotations

from lite_core.ir import Dim, Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.dynamic import dimension, shape_vector
from lite_paddle.lowering.integers import int_vector
from lite_paddle.lowering.layout import in_channels_first
from lite_paddle.lowering.paddle_lite_fusions import convolution_ending, int8_factors, int8_result
from lite_paddle.lowering.registry import lowers
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.lowering.windows import Pads, explicit_pads, onnx_pads, per_axis, same_pads
from lite_paddle.source import SourceOp


class _Geometry:
    """The attributes of a transposed convolution, for each spatial axis."""

    def __init__(self, op: SourceOp, filter_: Value, axes: int) -> None:
        if filter_.type.rank != axes + 2 or not all(isinstance(d, int) for d in filter_.shape[2:]):
            raise Unlowerable("its filter has no fixed size")
        self.axes = axes
        self.kernel: list[int] = list(filter_.shape[2:])
        self.strides = per_axis(op.attrs.get("strides", 1), axes, "strides")
        self.dilations = per_axis(op.attrs.get("dilations", 1), axes, "dilations")
        self.padding_algorithm = op.attrs.get("padding_algorithm", "EXPLICIT")
        self.paddings = op.attrs.get("paddings", [0])
        self.output_padding = per_axis(op.attrs.get("output_padding") or 0, axes, "output_padding")
        if self.padding_algorithm == "SAME":
            self.dilations = [1] * axes  # as in the convolution, SAME ignores the attribute

    def pads(self, sizes: tuple[Dim, ...]) -> Pads | None:
        """Return the pads to cut off the full result; None if SAME depends on an unknown size.

        NOTE: SAME uses the formula of the convolution, with the size of this operator's *input*.
        """
        if self.padding_algorithm == "SAME":
            return same_pads(sizes, self.kernel, self.strides)
        if self.padding_algorithm == "VALID":
            return [(0, 0)] * self.axes
        return explicit_pads(self.paddings, self.axes)

    def natural_size(self, axis: int, size: Dim, pads: Pads) -> Dim:
        """Return the size of the result without ``output_padding``."""
        extent = self.dilations[axis] * (self.kernel[axis] - 1) + 1
        return (size - 1) * self.strides[axis] - sum(pads[axis]) + extent


@lowers("conv2d_transpose", "depthwise_conv2d_transpose", "conv3d_transpose")
def transposed_convolution(op: SourceOp, context: Context) -> None:
    axes = 3 if op.type == "conv3d_transpose" else 2
    filter_, bias = context.input(op, "Filter"), context.optional(op, "Bias")
    geometry = _Geometry(op, filter_, axes)

    def compute(x: Value) -> Value:
        context.rank(x, "its transposed convolution depends on the size")
        requested = _requested_size(op, context, axes)
        narrow = int8_factors(op, context, x, filter_, ("Input", "Filter"), axis=1)
        x, weights = narrow or (x, filter_)
        result = _emit_transposed(op, context, geometry, x, weights, bias, requested)
        if bias is not None and op.attrs.get("fuse_relu"):
            result = context.node("Relu", [result])
        return int8_result(op, context, convolution_ending(op, context, result))

    layout = str(op.attrs.get("data_format", "NCHW"))
    context.bind(op, "Output", in_channels_first(context, context.input(op, "Input"), layout, compute))


def _requested_size(op: SourceOp, context: Context, axes: int) -> list[int] | Value | None:
    """Return ``output_size`` from a tensor or the attribute; None if the result has its natural size."""
    if op.inputs.get("OutputSizeTensor") or op.inputs.get("OutputSizeTensorList"):
        vector = int_vector(op, context, "output_size", "OutputSizeTensor", "OutputSizeTensorList")
        known = context.known_ints(vector)
        return vector if known is None else per_axis(known, axes, "output_size")
    sizes = op.attrs.get("output_size")
    return per_axis(sizes, axes, "output_size") if sizes else None


def _emit_transposed(
    op: SourceOp,
    context: Context,
    geometry: _Geometry,
    x: Value,
    filter_: Value,
    bias: Value | None,
    requested: list[int] | Value | None,
) -> Value:
    sizes = x.shape[2:]
    pads = geometry.pads(sizes)
    extra = list(geometry.output_padding)
    cut = False
    if requested is not None and pads is not None:
        natural = [geometry.natural_size(a, s, pads) for a, s in enumerate(sizes)]
        if isinstance(requested, list) and all(isinstance(n, int) for n in natural):
            extra = [w - int(n) for w, n in zip(requested, natural)]  # type: ignore[arg-type]
            for w, n, e, s in zip(requested, natural, extra, geometry.strides):
                if not 0 <= e < s:
                    raise Unlowerable(f"its output_size {w} must be at least {n} and less than {n} + stride {s}")
        else:
            # Paddle allows up to stride - 1 more elements than the natural size.
            extra, cut = [s - 1 for s in geometry.strides], True
    attributes: dict[str, int | tuple[int, ...]] = {
        "strides": tuple(geometry.strides),
        "dilations": tuple(geometry.dilations),
        "group": int(op.attrs.get("groups", 1)),
        "kernel_shape": tuple(geometry.kernel),
        "pads": onnx_pads(pads or [(0, 0)] * geometry.axes),
        "output_padding": tuple(extra),
    }
    result = context.node("ConvTranspose", [x, filter_, bias], attributes)
    axes = context.builder.ints(*range(2, 2 + geometry.axes))
    starts = context.builder.ints(*[0] * geometry.axes)
    if pads is None:
        if requested is not None:
            raise Unlowerable("it has output_size, SAME padding and an input of unknown size")
        return _cut_same(context, geometry, x, result)
    if cut:
        ends = requested if isinstance(requested, Value) else context.builder.ints(*(requested or []))
        return context.node("Slice", [result, starts, ends, axes])
    return result


def _cut_same(context: Context, geometry: _Geometry, x: Value, full: Value) -> Value:
    """Cut the pads of SAME off a full result; they are computed when the model runs."""

    def ints(numbers: list[int]) -> Value:
        return context.builder.ints(*numbers)

    axes = geometry.axes
    size = shape_vector(context, [dimension(context, x, a) for a in range(2, 2 + axes)])
    stride, one = ints(geometry.strides), ints([1] * axes)
    steps = context.node("Div", [context.node("Add", [size, ints([s - 1 for s in geometry.strides])]), stride])
    covered = context.node("Mul", [context.node("Sub", [steps, one]), stride])
    needed = context.node("Add", [covered, ints(geometry.kernel)])
    total = context.node("Max", [context.node("Sub", [needed, size]), ints([0] * axes)])
    before = context.node("Div", [total, ints([2] * axes)])
    after = context.node("Sub", [total, before])
    whole = shape_vector(context, [dimension(context, full, a) for a in range(2, 2 + axes)])
    ends = context.node("Sub", [whole, after])
    return context.node("Slice", [full, before, ends, ints(list(range(2, 2 + axes)))])
