"""NaN through operators that backends fuse: an epilogue must not hide the NaN of the operator before it.

One image, or row, of the input is NaN as a whole, so that an algorithm such as Winograd's, which computes neighbours
together, has the same result.
"""

from __future__ import annotations

from collections.abc import Callable
from math import nan

import numpy as np

from lite_conformance.cases.graphs.draft import NARROW, Draft, GraphTable
from lite_conformance.cases.tensors import Array, normal
from lite_core.ir import DType, Value

__all__ = ["graphs"]

graphs = GraphTable()


def _first_is_nan(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    array = normal(random, shape, dtype)
    array[0] = nan
    return array


_EPILOGUES: dict[str, Callable[[Draft, Value], Value]] = {
    "relu": lambda g, x: g("Relu", x),
    "relu6": lambda g, x: g("Clip", x, 0.0, 6.0),
    "clip-from-below": lambda g, x: g("Clip", x, -0.25),
    "leakyrelu": lambda g, x: g("LeakyRelu", x, alpha=0.25),
    "hardswish": lambda g, x: g("HardSwish", x),
    "hardsigmoid": lambda g, x: g("HardSigmoid", x, alpha=0.25),
    "max": lambda g, x: g("Max", x, 0.5),
    "min-on-the-right": lambda g, x: g("Min", g.constant(0.5), x),
}


def _add(label: str, write: Callable[[Draft], Value], op: str) -> None:
    for name, epilogue in _EPILOGUES.items():

        @graphs.case(f"nan-{label}-{name}", NARROW if name == "relu" else ("float32",), op=op)
        def _(g: Draft, epilogue: Callable[[Draft, Value], Value] = epilogue) -> None:
            g.output(epilogue(g, write(g)))


def _image(g: Draft, channels: int = 5) -> Value:
    return g.input(2, channels, 9, 11, init=_first_is_nan)


_add("conv", lambda g: g.conv(_image(g), 7, 3), "Conv")
_add("conv1x1", lambda g: g.conv(_image(g), 7, 1), "Conv")
_add("depthwise", lambda g: g.conv(_image(g), 5, 3, group=5), "Conv")
_add("wide-conv", lambda g: g.conv(g.input(2, 32, 16, 16, init=_first_is_nan), 32, 3), "Conv")
_add("matmul", lambda g: g.linear(g.input(5, 37, init=_first_is_nan), 19), "MatMul")
_add("add", lambda g: g("Add", g.input(3, 37, init=_first_is_nan), g.weight(37)), "Add")


@graphs.case("nan-conv-relu-maxpool", op="MaxPool")
def _(g: Draft) -> None:
    x = g("Relu", g.conv(_image(g), 7, 3))
    g.output(g("MaxPool", x, kernel_shape=(2, 2), strides=(2, 2)), g("GlobalMaxPool", x))


@graphs.case("nan-chain", NARROW, op="Relu")
def _(g: Draft) -> None:
    """A chain whose every operator would lose NaN by a comparison."""
    x = g.input(3, 257, init=_first_is_nan)
    y = g("Min", g("Max", g("Clip", g("Relu", x), 0.0, 6.0), 0.25), 3.0)
    g.output(g("Mul", y, 0.5), g("Max", g("LeakyRelu", x, alpha=0.5), g("Neg", x)))
