"""Spaces of convolutions, pools, normalizations, and operators that change the size of images."""

from __future__ import annotations

from typing import Any

from scan.drawing import Array, Case, Draw, space


def _paddings(draw: Draw, axes: int, largest: int = 2) -> list[int]:
    """Return one padding for each axis, or one for each side of it."""
    return draw.integers_of(draw.one(axes, 2 * axes), 0, largest)


def _window(draw: Draw, axes: int) -> dict[str, Any]:
    return {
        "strides": draw.integers_of(axes, 1, 2),
        "paddings": _paddings(draw, axes),
        "padding_algorithm": draw.one("EXPLICIT", "EXPLICIT", "SAME", "VALID"),
        "dilations": draw.integers_of(axes, 1, 2),
    }


def _image(draw: Draw, channels: int, axes: int, last: bool, least: int = 5) -> Array:
    sizes = draw.integers_of(axes, least, least + 3)
    batch = draw.integer(1, 2)
    return draw.floats([batch, *sizes, channels] if last else [batch, channels, *sizes])


@space("conv2d", "depthwise_conv2d", "conv3d", "conv2d_fusion", "fused_conv2d")
def convolution(draw: Draw) -> Case:
    axes = 3 if draw.op == "conv3d" else 2
    groups = draw.one(1, 1, 2) if draw.op != "depthwise_conv2d" else draw.integer(1, 3)
    depth = 1 if draw.op == "depthwise_conv2d" else draw.integer(1, 2)
    channels, filters = groups * depth, groups * draw.integer(1, 2)
    last = draw.chance(0.25) and draw.op != "conv3d"
    layout = {2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}[axes][last]
    image = _image(draw, channels, axes, last)
    kernel = draw.floats([filters, depth, *draw.integers_of(axes, 1, 3)])
    attrs = {**_window(draw, axes), "groups": groups, "data_format": layout}
    # The fused ones run on other processors only.
    plain = "conv2d" if "fus" in draw.op else ""
    return draw.case({"Input": image, "Filter": kernel}, attrs, ["Output"], parameters=("Filter",), paddle_op=plain)


@space("conv2d_transpose", "depthwise_conv2d_transpose", "conv3d_transpose")
def transposed(draw: Draw) -> Case:
    axes = 3 if draw.op == "conv3d_transpose" else 2
    groups = draw.one(1, 1, 2)
    channels = groups * draw.integer(1, 2)
    groups = channels if draw.op == "depthwise_conv2d_transpose" else groups
    attrs = {**_window(draw, axes), "groups": groups, "data_format": "NCHW" if axes == 2 else "NCDHW"}
    if draw.chance(0.3):
        # An output padding is smaller than the stride.
        attrs["output_padding"] = [draw.integer(0, stride - 1) for stride in attrs["strides"]]
    filters = 1 if draw.op == "depthwise_conv2d_transpose" else draw.integer(1, 2)
    kernel = draw.floats([channels, filters, *draw.integers_of(axes, 2, 3)])
    return draw.case(
        {"Input": _image(draw, channels, axes, False, 3), "Filter": kernel}, attrs, ["Output"], parameters=("Filter",)
    )


@space("deformable_conv", "deformable_conv_v1")
def deformable(draw: Draw) -> Case:
    kernel, image = draw.integer(1, 3), _image(draw, 2, 2, False, 4)
    stride, padding, groups = draw.integer(1, 2), draw.integer(0, 1), draw.integer(1, 2)
    sizes = [(size + 2 * padding - kernel) // stride + 1 for size in image.shape[2:]]
    inputs = {
        "Input": image,
        "Offset": draw.floats([len(image), 2 * groups * kernel * kernel, *sizes], -1, 1),
        "Filter": draw.floats([2, 2, kernel, kernel]),
    }
    if draw.op == "deformable_conv":
        inputs["Mask"] = draw.floats([len(image), groups * kernel * kernel, *sizes], 0, 1)
    attrs = {
        "strides": [stride] * 2, "paddings": [padding] * 2, "dilations": [1, 1], "deformable_groups": groups,
        "groups": 1, "im2col_step": 1,
    }  # fmt: skip
    return draw.case(inputs, attrs, ["Output"], parameters=("Filter",))


@space("pool2d", "pool3d")
def pooling(draw: Draw) -> Case:
    axes = 2 if draw.op == "pool2d" else 3
    last = draw.chance(0.2)
    kind = draw.one("max", "avg")
    # Paddle's kernel takes ``adaptive`` of a maximum for an ordinary pool, in the shape of an adaptive one.
    adaptive = draw.chance(0.2) and kind == "avg"
    window = _window(draw, axes)
    attrs = {
        "pooling_type": kind,
        # A window with padding only is refused.
        "ksize": draw.integers_of(axes, 2, 3),
        "strides": window["strides"],
        "paddings": _paddings(draw, axes, 1),
        "padding_algorithm": window["padding_algorithm"],
        "ceil_mode": draw.chance(0.3),
        "exclusive": draw.chance(),
        # Of both together, Paddle makes a result in the shape of the input.
        "global_pooling": draw.chance(0.15) and not adaptive,
        "adaptive": adaptive,
        "data_format": {2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}[axes][last],
    }
    return draw.case({"X": _image(draw, 2, axes, last)}, attrs)


@space("max_pool2d_with_index", "max_pool3d_with_index")
def indexed_pooling(draw: Draw) -> Case:
    axes = 2 if draw.op.startswith("max_pool2d") else 3
    attrs = {
        "ksize": draw.integers_of(axes, 2, 3), "strides": draw.integers_of(axes, 1, 2),
        "paddings": draw.integers_of(axes, 0, 1), "global_pooling": draw.chance(0.2), "adaptive": False,
    }  # fmt: skip
    attrs["adaptive"] = not attrs["global_pooling"] and draw.chance(0.3)
    image = draw.distinct([draw.integer(1, 2), 2, *draw.integers_of(axes, 4, 6)])
    return draw.case({"X": image}, attrs, ["Out", "Mask"])


@space("lp_pool2d")
def lp_pooling(draw: Draw) -> Case:
    attrs = {
        "kernel_size": draw.integers_of(2, 2, 3), "strides": draw.integers_of(2, 1, 2), "paddings": [0, 0],
        "norm_type": draw.one(1.0, 2.0, 3.0), "pooling_type": "lp", "ceil_mode": draw.chance(),
    }  # fmt: skip
    return draw.case({"x": draw.floats([1, 2, 5, 6], 0.1, 2)}, attrs, ["out"])


@space("unpool")
def unpool(draw: Draw) -> Case:
    h, w = draw.integers_of(2, 2, 3)
    indices = draw.distinct([1, 1, h, w], "int32") * 4
    attrs = {
        "ksize": [2, 2], "strides": [2, 2], "paddings": [0, 0], "unpooling_type": "max", "output_size": [2 * h, 2 * w],
        "data_format": "NCHW",
    }  # fmt: skip
    return draw.case({"X": draw.floats([1, 1, h, w]), "Indices": indices}, attrs)


@space("batch_norm", "sync_batch_norm", "inplace_abn")
def batch_norm(draw: Draw) -> Case:
    channels, last = draw.integer(1, 4), draw.chance(0.3)
    shape = [2, *draw.integers_of(draw.integer(0, 2), 2, 3)]
    shape = [*shape, channels] if last else [shape[0], channels, *shape[1:]]
    inputs = {"X": draw.floats(shape), "Variance": draw.floats([channels], 0.2, 2)}
    inputs |= {slot: draw.floats([channels]) for slot in ("Scale", "Bias", "Mean")}
    attrs = {
        "epsilon": draw.one(1e-5, 1e-3), "momentum": 0.9, "data_layout": "NHWC" if last else "NCHW", "is_test": True,
        "use_global_stats": draw.chance(),
    }  # fmt: skip
    return draw.case(inputs, attrs, ["Y"], parameters=("Scale", "Bias", "Mean", "Variance"), paddle_op="batch_norm")


@space("layer_norm")
def layer_norm(draw: Draw) -> Case:
    shape = draw.shape(2, 4, 5)
    axis = draw.integer(1, len(shape) - 1)
    shape[-1] += 1
    size = 1
    for dim in shape[axis:]:
        size *= dim
    inputs = {"X": draw.floats(shape)}
    inputs |= {slot: draw.floats([size]) for slot in draw.subset(("Scale", "Bias"))}
    attrs = {"epsilon": draw.one(1e-5, 1e-3), "begin_norm_axis": axis}
    return draw.case(inputs, attrs, ["Y"])


@space("group_norm", "instance_norm")
def group_norm(draw: Draw) -> Case:
    groups = draw.integer(1, 3)
    channels = groups * draw.integer(1, 2)
    attrs: dict[str, Any] = {"epsilon": draw.one(1e-5, 1e-2)}
    last = False
    if draw.op == "group_norm":
        last = draw.chance(0.3)
        attrs |= {"groups": groups, "data_layout": "NHWC" if last else "NCHW"}
    image = draw.floats([2, 3, 3, channels] if last else [2, channels, *draw.integers_of(draw.integer(1, 3), 2, 3)])
    # Paddle's kernel has both or none.
    pair = draw.chance(0.7)
    inputs = {"X": image, **({slot: draw.floats([channels]) for slot in ("Scale", "Bias")} if pair else {})}
    return draw.case(inputs, attrs, ["Y"])


@space("lrn")
def lrn(draw: Draw) -> Case:
    attrs = {
        "n": draw.one(5, 3, 1), "k": draw.real(0.5, 2), "alpha": draw.real(0.01, 0.5), "beta": draw.one(0.75, 0.5),
        "data_format": draw.one("AnyLayout", "NCHW"),
    }  # fmt: skip
    return draw.case({"X": draw.floats([1, 6, 3, 2])}, attrs)


@space("data_norm")
def data_norm(draw: Draw) -> Case:
    c = draw.integer(1, 4)
    inputs = {"X": draw.floats([3, c]), "BatchSize": draw.floats([c], 5, 9)}
    inputs |= {"BatchSum": draw.floats([c]), "BatchSquareSum": draw.floats([c], 3, 9)}
    return draw.case(inputs, {"epsilon": 1e-4, "slot_dim": -1}, ["Y"])


@space("spectral_norm")
def spectral_norm(draw: Draw) -> Case:
    shape, dim = [3, 4, 2, 2], draw.integer(0, 1)
    inputs = {"Weight": draw.floats(shape), "U": draw.floats([shape[dim]]), "V": draw.floats([48 // shape[dim]])}
    return draw.case(inputs, {"dim": dim, "power_iters": draw.integer(1, 2), "eps": 1e-12})


@space("affine_channel")
def affine_channel(draw: Draw) -> Case:
    last = draw.chance()
    image = _image(draw, 3, 2, last)
    inputs = {"X": image, "Scale": draw.floats([3]), "Bias": draw.floats([3])}
    return draw.case(inputs, {"data_layout": "NHWC" if last else "NCHW"})


_AXES = {"linear": 1, "bilinear": 2, "nearest": 2, "bicubic": 2, "trilinear": 3}


@space(
    "linear_interp", "bilinear_interp", "nearest_interp", "bicubic_interp", "trilinear_interp", "linear_interp_v2",
    "bilinear_interp_v2", "nearest_interp_v2", "bicubic_interp_v2", "trilinear_interp_v2",
)  # fmt: skip
def resizing(draw: Draw) -> Case:
    method, _, version = draw.op.partition("_interp")
    axes = _AXES[method]
    last = draw.chance(0.2)
    layouts = {1: ("NCHW", "NHWC"), 2: ("NCHW", "NHWC"), 3: ("NCHW", "NHWC")}[axes]
    image = _image(draw, 2, axes, last, 2)
    names = ["out_d", "out_h", "out_w"][3 - axes :]
    attrs: dict[str, Any] = {
        "interp_method": method, "align_corners": draw.chance(), "align_mode": draw.integer(0, 1),
        "data_layout": layouts[last], "out_d": 0, "out_h": 0, "out_w": 0,
    }  # fmt: skip
    inputs: dict[str, Any] = {"X": image}
    how = draw.one("size", "scale", "OutSize", "SizeTensor")
    if how == "scale":
        # Of a rounded size, Paddle 3 takes another ratio for the first generation than Paddle 1 and 2.
        factor = draw.one(2.0, 1.5, 0.5, 3.0) if version else draw.one(2.0, 3.0)
        attrs["scale"] = [factor] * axes if version else factor
    else:
        sizes = draw.integers_of(axes, 1, 7)
        if how == "OutSize":
            # A size of 1 that only the run knows: two versions of Paddle take different elements.
            inputs["OutSize"] = draw.integers([axes], 2, 7, "int32")
            sizes = inputs["OutSize"].tolist()
        elif how == "SizeTensor":
            inputs["SizeTensor"] = [draw.integers([1], 2, 7, "int32") for _ in range(axes)]
        attrs |= dict(zip(names, sizes))
        attrs["scale"] = [] if version else 0.0
    return draw.case(inputs, attrs)


@space("grid_sampler")
def grid_sampler(draw: Draw) -> Case:
    attrs = {
        "mode": draw.one("bilinear", "nearest"), "padding_mode": draw.one("zeros", "border", "reflection"),
        "align_corners": draw.chance(),
    }  # fmt: skip
    grid = draw.floats([2, *draw.integers_of(2, 1, 4), 2], -1.3, 1.3)
    return draw.case({"X": _image(draw, 2, 2, False, 3)[:1].repeat(2, 0), "Grid": grid}, attrs, ["Output"])


@space("affine_grid")
def affine_grid(draw: Draw) -> Case:
    # Paddle divides by zero for a size of 1 with aligned corners.
    attrs = {"output_shape": [2, 1, *draw.integers_of(2, 2, 4)], "align_corners": draw.chance()}
    return draw.case({"Theta": draw.floats([2, 2, 3])}, attrs, ["Output"])


@space("pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "shuffle_channel", "temporal_shift")
def rearranging(draw: Draw) -> Case:
    last = draw.chance(0.3)
    shape = [4, 4, 6, 4] if last else [4, 4, 4, 6]
    layout = {"data_format": "NHWC" if last else "NCHW"}
    attrs = {
        "pixel_shuffle": {"upscale_factor": 2, **layout},
        "pixel_unshuffle": {"downscale_factor": 2, **layout},
        "channel_shuffle": {"groups": 2, **layout},
        "shuffle_channel": {"group": draw.one(1, 2, 4)},
        "temporal_shift": {"seg_num": draw.one(2, 4), "shift_ratio": draw.one(0.25, 0.4), **layout},
    }[draw.op]
    return draw.case({"X": draw.floats(shape)}, attrs)


@space("unfold", "im2sequence")
def windows(draw: Draw) -> Case:
    image = draw.floats([draw.integer(1, 2), 2, *draw.integers_of(2, 4, 6)])
    attrs = {"strides": draw.integers_of(2, 1, 2), "paddings": draw.integers_of(4, 0, 1)}
    if draw.op == "unfold":
        attrs |= {"kernel_sizes": draw.integers_of(2, 1, 2), "dilations": draw.integers_of(2, 1, 2)}
        return draw.case({"X": image}, attrs, ["Y"])
    return draw.case({"X": image}, {**attrs, "kernels": draw.integers_of(2, 1, 3)})


@space("fold")
def fold(draw: Draw) -> Case:
    kernel, stride, pad = draw.integers_of(2, 1, 2), draw.integer(1, 2), draw.integer(0, 1)
    size = draw.integers_of(2, 4, 5)
    count = [(s + 2 * pad - k) // stride + 1 for s, k in zip(size, kernel)]
    attrs = {
        "output_sizes": size, "kernel_sizes": kernel, "strides": [stride] * 2, "paddings": [pad] * 4,
        "dilations": [1, 1]
    }  # fmt: skip
    return draw.case({"X": draw.floats([2, 2 * kernel[0] * kernel[1], count[0] * count[1]])}, attrs, ["Y"])


@space("pad", "pad3d")
def padding(draw: Draw) -> Case:
    if draw.op == "pad":
        shape = draw.shape(1, 4)
        attrs: dict[str, Any] = {"paddings": draw.integers_of(2 * len(shape), 0, 2), "pad_value": draw.real(-1, 1)}
        return draw.case({"X": draw.floats(shape)}, attrs)
    last = draw.chance(0.3)
    attrs = {
        "paddings": draw.integers_of(6, 0, 2), "mode": draw.one("constant", "reflect", "replicate", "circular"),
        "value": draw.real(-1, 1), "data_format": "NDHWC" if last else "NCDHW",
    }  # fmt: skip
    return draw.case({"X": _image(draw, 2, 3, last, 3)}, attrs)
