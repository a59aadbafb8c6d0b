"""Padding chosen by ``auto_pad`` where both sides get two or more rows: halves and thirds of the total then differ."""

from __future__ import annotations

from typing import Any

from lite_conformance.cases.op_cases import table_of
from lite_conformance.cases.operators import (  # noqa: F401 - these modules create the tables extended here
    convolution,
    pooling,
    transposed_convolution,
)
from lite_conformance.cases.operators.layer_initializers import all_integers, negative
from lite_conformance.cases.operators.spatial import scales
from lite_conformance.cases.tensors import Tensor, const, integers, t


def _add(op: str, *inputs: Tensor, label: str, **attributes: Any) -> None:
    for where in ("upper", "lower"):
        mode = f"SAME_{where.upper()}"
        table_of(op)(f"same-{where},{label}", *inputs, auto_pad=mode, **attributes)


_add("Conv", t(1, 2, 9, 8), const(3, 2, 5, 6), label="k5x6")
_add("ConvInteger", t(1, 2, 9, 8, init=all_integers), const(3, 2, 5, 6, init=all_integers), label="k5x6")
_point = const(init=integers(3, 9))
_add("QLinearConv", t(1, 2, 9, 8, init=all_integers), scales(0.5), _point, const(3, 2, 5, 6, init=all_integers),
     scales(0.5), _point, scales(64), _point, label="k5x6")  # fmt: skip
_add("ConvTranspose", t(1, 2, 5, 4), const(2, 3, 5, 6), label="k5x6")
for _op in ("MaxPool", "AveragePool", "LpPool"):
    _add(_op, t(1, 2, 9, 8, init=negative), label="k5x6", kernel_shape=(5, 6))

# The strides leave nothing to pad, or step over more than the kernel reads: then nothing is cut off, either.
for _label, _kernel in (("k2s2,nothing-to-pad", 2), ("k1s2,steps-over", 1)):
    _k: dict[str, Any] = {"label": _label, "strides": (2, 2)}
    _add("Conv", t(1, 2, 8, 6), const(3, 2, _kernel, _kernel), **_k)
    _add("ConvInteger", t(1, 2, 8, 6, init=all_integers), const(3, 2, _kernel, _kernel, init=all_integers), **_k)
    _add("QLinearConv", t(1, 2, 8, 6, init=all_integers), scales(0.5), _point,
         const(3, 2, _kernel, _kernel, init=all_integers), scales(0.5), _point, scales(16), _point, **_k)  # fmt: skip
    _add("ConvTranspose", t(1, 2, 3, 4), const(2, 3, _kernel, _kernel), **_k)
    for _op in ("MaxPool", "AveragePool", "LpPool"):
        _add(_op, t(1, 2, 8, 6, init=negative), kernel_shape=(_kernel, _kernel), **_k)
