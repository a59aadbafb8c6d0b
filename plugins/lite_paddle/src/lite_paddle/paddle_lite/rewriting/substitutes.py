"""Operators that Paddle-Lite lacks on some target, expressed by operators that it has there."""

from __future__ import annotations

import math
from collections.abc import Callable

from ...source import SourceType
from ..draft import element_type
from .rules import Rewriting, Rule

__all__ = ["SUBSTITUTES"]

SUBSTITUTES: dict[str, Rule] = {}

_RENAMED = {
    "bmm": "matmul_v2",
    "depthwise_conv2d_transpose": "conv2d_transpose",
    "mv": "matmul_v2",
    "reduce_amax": "reduce_max",
    "reduce_amin": "reduce_min",
    "sync_batch_norm": "batch_norm",
}


def _substitute(*types: str) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        SUBSTITUTES.update(dict.fromkeys(types, rule))
        return rule

    return register


@_substitute(*_RENAMED)
def _rename(r: Rewriting) -> None:
    op = r.op
    if op.type == "mv":
        op.inputs = {"X": op.inputs["X"], "Y": op.inputs["Vec"]}
    op.type = _RENAMED[op.type]
    if op.type == "matmul_v2":
        op.attrs = {"trans_x": False, "trans_y": False}


@_substitute("addmm")
def _addmm(r: Rewriting) -> None:
    product = r.make("matmul_v2", {"trans_x": False, "trans_y": False}, X=r.input("X"), Y=r.input("Y"))
    product = r.scale(product, float(r.op.attrs.get("Alpha", 1.0)))
    term = r.scale(r.input("Input"), float(r.op.attrs.get("Beta", 1.0)))
    r.make("elementwise_add", {"axis": -1}, result=r.result(), X=product, Y=term)


@_substitute("expand_as_v2")
def _expand_as(r: Rewriting) -> None:
    if "Y" in r.op.inputs:
        shape = r.make("shape", like=SourceType("int32", None), Input=r.input("Y"))
        r.make("expand_v2", {"shape": []}, result=r.result(), X=r.input("X"), Shape=shape)
    else:
        r.make("expand_v2", {"shape": r.op.attrs["target_shape"]}, result=r.result(), X=r.input("X"))


@_substitute("logsigmoid")
def _log_sigmoid(r: Rewriting) -> None:
    """Negate the softplus of the negated operand."""
    soft = r.make("softplus", {"threshold": 20.0, "beta": 1.0}, X=r.scale(r.input("X"), -1.0))
    r.scale(soft, -1.0, 0.0, r.result())


@_substitute("log1p")
def _log1p(r: Rewriting) -> None:
    r.make("log", result=r.result(), X=r.scale(r.input("X"), 1.0, 1.0))


@_substitute("log2")
def _log2(r: Rewriting) -> None:
    r.scale(r.make("log", X=r.input("X")), 1 / math.log(2), 0.0, r.result())


@_substitute("log10")
def _log10(r: Rewriting) -> None:
    r.scale(r.make("log", X=r.input("X")), 1 / math.log(10), 0.0, r.result())


@_substitute("expm1")
def _expm1(r: Rewriting) -> None:
    r.scale(r.make("exp", X=r.input("X")), 1.0, -1.0, r.result())


@_substitute("ceil")
def _ceil(r: Rewriting) -> None:
    r.scale(r.make("floor", X=r.scale(r.input("X"), -1.0)), -1.0, 0.0, r.result())


@_substitute("negative")
def _negative(r: Rewriting) -> None:
    r.scale(r.input("X"), -1.0, 0.0, r.result())


@_substitute("tan")
def _tan(r: Rewriting) -> None:
    sine, cosine = r.make("sin", X=r.input("X")), r.make("cos", X=r.input("X"))
    r.make("elementwise_div", {"axis": -1}, result=r.result(), X=sine, Y=cosine)


@_substitute("selu")
def _selu(r: Rewriting) -> None:
    value = r.make("elu", {"alpha": float(r.op.attrs.get("alpha", 1.6732632423543772))}, X=r.input("X"))
    r.scale(value, float(r.op.attrs.get("scale", 1.0507009873554805)), 0.0, r.result())


@_substitute("celu")
def _celu(r: Rewriting) -> None:
    """Scale the operand and the result of elu, which cancel each other where the operand is positive."""
    alpha = float(r.op.attrs.get("alpha", 1.0))
    r.scale(r.make("elu", {"alpha": 1.0}, X=r.scale(r.input("X"), 1 / alpha)), alpha, 0.0, r.result())


@_substitute("brelu")
def _hard_tanh(r: Rewriting) -> None:
    limits = {"min": float(r.op.attrs.get("t_min", 0.0)), "max": float(r.op.attrs.get("t_max", 24.0))}
    r.make("clip", limits, result=r.result(), X=r.input("X"))


@_substitute("stanh")
def _scaled_tanh(r: Rewriting) -> None:
    inner = r.scale(r.input("X"), float(r.op.attrs.get("scale_a", 0.67)))
    r.scale(r.make("tanh", X=inner), float(r.op.attrs.get("scale_b", 1.7159)), 0.0, r.result())


@_substitute("tanh_shrink")
def _tanh_shrink(r: Rewriting) -> None:
    part = r.make("tanh", X=r.input("X"))
    r.make("elementwise_sub", {"axis": -1}, result=r.result(), X=r.input("X"), Y=part)


@_substitute("softshrink")
def _soft_shrink(r: Rewriting) -> None:
    limit = float(r.op.attrs.get("lambda", 0.5))
    above = r.make("relu", X=r.scale(r.input("X"), 1.0, -limit))
    below = r.make("relu", X=r.scale(r.input("X"), -1.0, -limit))
    r.make("elementwise_sub", {"axis": -1}, result=r.result(), X=above, Y=below)


@_substitute("softsign")
def _softsign(r: Rewriting) -> None:
    size = r.scale(r.make("abs", X=r.input("X")), 1.0, 1.0)
    r.make("elementwise_div", {"axis": -1}, result=r.result(), X=r.input("X"), Y=size)


@_substitute("arg_min")
def _arg_min(r: Rewriting) -> None:
    if element_type(r.input("X")) == "float32" and not r.op.attrs.get("flatten"):
        names = ("axis", "keepdims", "dtype")
        attrs = {name: r.op.attrs[name] for name in names if name in r.op.attrs}
        r.make("arg_max", attrs, result=r.result(), X=r.scale(r.input("X"), -1.0))


@_substitute("mean")
def _mean(r: Rewriting) -> None:
    value = r.input("X")
    axes = list(range(len(value.type.shape))) if value.type is not None and value.type.shape else [0]
    r.make("reduce_mean", {"dim": axes, "reduce_all": True, "keep_dim": False}, result=r.result(), X=value)


@_substitute("sum")
def _sum(r: Rewriting) -> None:
    total, *others = r.op.inputs["X"]
    if not others:
        r.make("assign", result=r.result(), X=total)
    for index, value in enumerate(others, 1):
        last = r.result() if index == len(others) else None
        total = r.make("elementwise_add", {"axis": -1}, result=last, X=total, Y=value)


@_substitute("size")
def _size(r: Rewriting) -> None:
    sizes = r.make("shape", like=SourceType("int32", (-1,)), Input=r.input("Input"))
    wide = r.make("cast", {"in_dtype": "int32", "out_dtype": "int64"}, like=SourceType("int64", (-1,)), X=sizes)
    r.make("reduce_prod", {"dim": [0], "reduce_all": True, "keep_dim": False}, result=r.result(), X=wide)


@_substitute("logsumexp")
def _log_sum_exp(r: Rewriting) -> None:
    """Subtract the maximum first, so that nothing overflows."""
    axes, everything = list(r.op.attrs.get("axis", [])), bool(r.op.attrs.get("reduce_all"))
    value = r.input("X")
    if everything and value.type is not None and value.type.shape:
        axes = list(range(len(value.type.shape)))
    kept = {"dim": axes or [0], "reduce_all": everything, "keep_dim": True}
    flat = {**kept, "keep_dim": bool(r.op.attrs.get("keepdim"))}
    largest = r.make("reduce_max", kept, X=value)
    shifted = r.make("elementwise_sub", {"axis": -1}, X=value, Y=largest)
    summed = r.make("log", X=r.make("reduce_sum", flat, X=r.make("exp", X=shifted)))
    term = largest if flat["keep_dim"] else r.make("reduce_max", flat, X=value)
    r.make("elementwise_add", {"axis": -1}, result=r.result(), X=summed, Y=term)
