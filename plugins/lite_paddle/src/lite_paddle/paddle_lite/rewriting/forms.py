"""Forms in which Paddle-Lite's operators expect what newer versions of Paddle write differently."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ...source import SourceType
from ..draft import element_type, rank
from .rules import Rewriting, Rule

__all__ = ["FORMS"]

FORMS: dict[str, Rule] = {}

_VALUES = {"float32": "fp32_values", "int32": "int32_values", "int64": "int64_values", "bool": "bool_values"}


def _form(*types: str) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        FORMS.update(dict.fromkeys(types, rule))
        return rule

    return register


@_form("cast")
def _cast(r: Rewriting) -> None:
    """State the type of the operand, which the operator reads."""
    r.op.attrs["in_dtype"] = element_type(r.input("X"))


@_form("fill_constant")
def _fill_constant(r: Rewriting) -> None:
    """Give a tensor without dimensions one of size 1: Paddle-Lite knows no others."""
    if not r.op.attrs.get("shape") and not r.op.inputs:
        r.op.attrs["shape"] = [1]


@_form("assign_value", "set_value")
def _assign_value(r: Rewriting) -> None:
    """Store the elements in the attribute of their type."""
    values, dtype = r.op.attrs.pop("values", []), r.op.attrs.get("dtype")
    if dtype in _VALUES:
        r.op.attrs[_VALUES[dtype]] = values
    if r.op.type == "assign_value" and not r.op.attrs.get("shape"):
        r.op.attrs["shape"] = [1]


@_form("shape")
def _shape(r: Rewriting) -> None:
    """Convert the sizes, which Paddle-Lite gives as int32."""
    if r.op.attrs.pop("dtype", "int32") == "int64":
        known = r.result().type
        sizes = r.make("shape", like=SourceType("int32", known.shape if known else None), Input=r.input("Input"))
        r.make("cast", {"in_dtype": "int32", "out_dtype": "int64"}, result=r.result(), X=sizes)


@_form("stack")
def _stack(r: Rewriting) -> None:
    """Join numbers without dimensions, which have one of size 1 in Paddle-Lite."""
    if all(rank(value) == 0 for value in r.op.inputs["X"]):
        r.make("concat", {"axis": 0}, result=r.result("Y"), X=r.op.inputs["X"])


@_form("reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod", "reduce_all", "reduce_any")
def _reduction(r: Rewriting) -> None:
    """Name all axes of a reduction of all axes, and count negative ones from the start."""
    known = rank(r.input("X")) or 1
    if r.op.attrs.get("reduce_all"):
        r.op.attrs["dim"] = list(range(known))
        return
    axes = r.op.attrs["dim"] = [axis + known if axis < 0 else axis for axis in r.op.attrs["dim"]]
    if r.op.type in ("reduce_all", "reduce_any") and len(axes) > 1:
        # These kernels take one axis at a time.
        value = r.input("X")
        for axis in sorted(axes, reverse=True):
            last = r.result() if axis == min(axes) else None
            attrs = {"dim": [axis], "keep_dim": r.op.attrs.get("keep_dim", False), "reduce_all": False}
            value = r.make(r.op.type, attrs, result=last, like=SourceType("bool", None), X=value)


@_form("arg_max")
def _arg_max(r: Rewriting) -> None:
    """Make a vector of an operand whose axes all count."""
    if r.op.attrs.get("flatten"):
        flat = r.make("reshape2", {"shape": [-1]}, like=_vector(r), X=r.input("X"))
        r.make("arg_max", {"axis": 0, "keepdims": False, "dtype": r.op.attrs.get("dtype")}, result=r.result(), X=flat)


@_form("scale")
def _scale(r: Rewriting) -> None:
    """Multiply by a factor that is a tensor."""
    if "ScaleTensor" in r.op.inputs:
        after, term = r.op.attrs.get("bias_after_scale", True), float(r.op.attrs["bias"])
        value = r.input("X") if after or not term else r.scale(r.input("X"), 1.0, term)
        last = None if after and term else r.result()
        product = r.make("elementwise_mul", {"axis": -1}, result=last, X=value, Y=r.input("ScaleTensor"))
        if last is None:
            r.scale(product, 1.0, term, r.result())


@_form("top_k_v2")
def _top_k(r: Rewriting) -> None:
    """Find the smallest elements as the largest of the negated ones."""
    if not r.op.attrs.get("largest", True) and element_type(r.input("X")) == "float32":
        negative = r.scale(r.input("X"), -1.0)
        largest = r.make("top_k_v2", {"k": r.op.attrs["k"], "axis": r.op.attrs.get("axis", -1)}, X=negative)
        r.ops[-1].outputs["Indices"] = r.op.outputs["Indices"]
        if "K" in r.op.inputs:
            r.ops[-1].inputs["K"] = r.op.inputs["K"]
        r.scale(largest, -1.0, 0.0, r.result())


@_form("transpose", "transpose2")
def _transpose(r: Rewriting) -> None:
    """Count negative axes from the start."""
    axes = r.op.attrs["axis"]
    r.op.attrs["axis"] = [axis + len(axes) if axis < 0 else axis for axis in axes]


@_form("instance_norm", "group_norm")
def _normalization(r: Rewriting) -> None:
    """Add a dimension to tensors that have three: the kernels need four."""
    if rank(r.input("X")) == 3 and r.op.attrs.get("data_layout", "NCHW") == "NCHW":
        inputs = {slot: values for slot, values in r.op.inputs.items() if slot != "X"}
        image = r.make("unsqueeze2", {"axes": [3]}, like=SourceType("float32", (-1, -1, -1, 1)), X=r.input("X"))
        normal = r.make(r.op.type, r.op.attrs, to="Y", X=image)
        r.ops[-1].inputs.update(inputs)
        r.make("squeeze2", {"axes": [3]}, result=r.result("Y"), X=normal)


@_form("layer_norm")
def _layer_norm(r: Rewriting) -> None:
    """Add a scale of ones or a bias of zeros: without them, the kernels end the process."""
    type_ = r.input("X").type
    sizes = type_.shape[r.op.attrs["begin_norm_axis"] :] if type_ is not None and type_.shape is not None else (-1,)
    count = math.prod(sizes) if all(size > 0 for size in sizes) else 0
    for slot in ("Scale", "Bias"):
        if slot in r.op.inputs and r.draft.constant(r.op, slot) is not None:
            count = r.draft.constants[r.input(slot)].size
    for slot, number in (("Scale", 1), ("Bias", 0)):
        if slot not in r.op.inputs and count:
            name = f"{r.result('Y').name}/{slot.lower()}"
            r.op.inputs[slot] = [r.draft.add_constant(name, np.full(count, number, np.float32))]


@_form("prelu")
def _prelu(r: Rewriting) -> None:
    """Express slopes for each element by relu: the kernel reads beyond their end in every image but the first."""
    if r.op.attrs.get("mode") == "element":
        positive = r.make("relu", X=r.input("X"))
        negative = r.make("relu", X=r.scale(r.input("X"), -1.0))
        scaled = r.make("elementwise_mul", {"axis": -1}, X=negative, Y=r.input("Alpha"))
        r.make("elementwise_sub", {"axis": -1}, result=r.result(), X=positive, Y=scaled)


@_form("elementwise_floordiv")
def _floor_division(r: Rewriting) -> None:
    """Round down: the kernels round towards zero."""
    axis = {"axis": r.op.attrs.get("axis", -1)}
    if element_type(r.input("X")) == "float32":
        r.make("floor", result=r.result(), X=r.make("elementwise_div", axis, X=r.input("X"), Y=r.input("Y")))
    else:
        rest = r.make("elementwise_mod", axis, X=r.input("X"), Y=r.input("Y"))
        multiple = r.make("elementwise_sub", {"axis": -1}, X=r.input("X"), Y=rest)
        r.make("elementwise_div", axis, result=r.result(), X=multiple, Y=r.input("Y"))


@_form("elementwise_mod")
def _remainder(r: Rewriting) -> None:
    """Express the remainder of floats, whose kernels compute integers: x - floor(x / y) * y."""
    if element_type(r.input("X")) == "float32":
        axis = {"axis": r.op.attrs.get("axis", -1)}
        quotient = r.make("floor", X=r.make("elementwise_div", axis, X=r.input("X"), Y=r.input("Y")))
        multiple = r.make("elementwise_mul", axis, X=quotient, Y=r.input("Y"))
        r.make("elementwise_sub", {"axis": -1}, result=r.result(), X=r.input("X"), Y=multiple)


@_form("unbind")
def _unbind(r: Rewriting) -> None:
    """Take slices: Paddle-Lite's kernel of this operator writes beyond the ends of its results."""
    axis = int(r.op.attrs.get("axis", 0))
    known = rank(r.input("X"))
    if axis < 0 and known is None:
        return
    axis += known or 0 if axis < 0 else 0
    for index, value in enumerate(r.op.outputs["Out"]):
        attrs = {"axes": [axis], "starts": [index], "ends": [index + 1], "decrease_axis": [axis], "infer_flags": [1]}
        r.make("slice", attrs, result=value, Input=r.input("X"))


@_form("depthwise_conv2d", "conv2d", "conv2d_transpose", "depthwise_conv2d_transpose", "pool2d")
def _window(r: Rewriting) -> None:
    """Leave out a list of sizes that is empty."""
    for name in ("output_size", "output_padding"):
        if not r.op.attrs.get(name):
            r.op.attrs.pop(name, None)


def _vector(r: Rewriting) -> SourceType:
    return SourceType(element_type(r.input("X")), (-1,))
