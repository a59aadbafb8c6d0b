"""MaxPool, AveragePool, LpPool, their global forms, and MaxUnpool."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, OpTable, table
from lite_conformance.cases.operators.initializers import with_elements
from lite_conformance.cases.operators.layer_initializers import negative, unbounded
from lite_conformance.cases.operators.spatial import sliding_window
from lite_conformance.cases.tensors import Tensor, big, distinct, ints, normal, special, t, tiny, values
from lite_conformance.judge.tolerances import EXACT, MOVED, SUM
from lite_core.ir import DType

REAL = ("float64", "float32", "float16", "bfloat16")


def _add_windowed(pool: OpTable) -> None:
    """Add the cases of every pool with windows."""
    pool("n1c3h8w8,k2s2", t(1, 3, 8, 8), kernel_shape=(2, 2), strides=(2, 2))
    pool("n2c3h7w9,k3s2p1", t(2, 3, 7, 9), kernel_shape=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1))
    pool("n1c33h5w5,k3", t(1, 33, 5, 5), kernel_shape=(3, 3))
    pool("n1c3h5w5,k1", t(1, 3, 5, 5), kernel_shape=(1, 1))
    pool("n1c3h5w5,k1s2x3", t(1, 3, 5, 5), kernel_shape=(1, 1), strides=(2, 3))
    pool("n1c3h5w7,k5x7,whole", t(1, 3, 5, 7), kernel_shape=(5, 7))
    pool("n1c3h7w6,k2x3s1x2,pads-differ", t(1, 3, 7, 6), kernel_shape=(2, 3), strides=(1, 2),
         pads=(0, 1, 1, 2))  # fmt: skip
    pool("n1c3h7w7,k2s3,gaps", t(1, 3, 7, 7), kernel_shape=(2, 2), strides=(3, 3))
    pool("n1c3h9w7,k3p1,dilation2x1", t(1, 3, 9, 7), kernel_shape=(3, 3), dilations=(2, 1),
         pads=(1, 1, 1, 1))  # fmt: skip
    pool("n1c3h7w8,k2s2,ceil", t(1, 3, 7, 8), kernel_shape=(2, 2), strides=(2, 2), ceil_mode=1)
    pool("n1c3h6w9,k3s2p1,ceil", t(1, 3, 6, 9), kernel_shape=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1),
         ceil_mode=1)  # fmt: skip
    # The last window would start in the padding after the input; it is not computed.
    pool("n1c2h5w5,k2s3p1,ceil,none-in-padding", t(1, 2, 5, 5), kernel_shape=(2, 2), strides=(3, 3),
         pads=(1, 1, 1, 1), ceil_mode=1)  # fmt: skip
    pool("n1c3h9w9,k2x4s3x1,pads-differ,ceil,nothing-left-over", t(1, 3, 9, 9), kernel_shape=(2, 4), strides=(3, 1),
         pads=(0, 2, 0, 2), ceil_mode=1)  # fmt: skip
    pool("n1c3h7w7,k3s2,same-upper", t(1, 3, 7, 8), kernel_shape=(3, 3), strides=(2, 2),
         auto_pad="SAME_UPPER")  # fmt: skip
    pool("n1c3h7w7,k2x4,same-lower", t(1, 3, 7, 7), kernel_shape=(2, 4), auto_pad="SAME_LOWER")
    pool("n1c3h7w8,k3s2,valid", t(1, 3, 7, 8), kernel_shape=(3, 3), strides=(2, 2), auto_pad="VALID")
    pool("n2c2w257,k3s2p1,1d", t(2, 2, 257), kernel_shape=(3,), strides=(2,), pads=(1, 1))
    pool("n1c2d5h4w3,k2,3d", t(1, 2, 5, 4, 3), kernel_shape=(2, 2, 2), strides=(2, 1, 1), pads=(1, 0, 0, 0, 1, 1))
    pool("n0c3h8w8,empty-batch", t(0, 3, 8, 8), kernel_shape=(2, 2))


maximum = table("MaxPool", EXACT)
_add_windowed(maximum)
maximum("n1c3h5w7,k3p1,negative", t(1, 3, 5, 7, init=negative), kernel_shape=(3, 3), pads=(1, 1, 1, 1))
maximum("n1c3h5w5,k2s2,infinite", t(1, 3, 6, 6, init=with_elements(-np.inf, -np.inf, np.inf)), dtypes=REAL,
        kernel_shape=(2, 2), strides=(2, 2))  # fmt: skip
maximum("n1c2h3w5,k3p1,all-minus-infinity", t(1, 2, 3, 5, init=lambda r, s, d: np.full(s, -np.inf, d.numpy)),
        dtypes=REAL, kernel_shape=(3, 3), pads=(1, 1, 1, 1))  # fmt: skip
maximum("big", t(1, 3, 5, 7, init=big), kernel_shape=(2, 3))
maximum("n2c3h5w4,k2,indices", t(2, 3, 5, 4, init=distinct), outputs=2, kernel_shape=(2, 2))
maximum("n2c2h7w5,k3s2p1,indices", t(2, 2, 7, 5, init=distinct), outputs=2, kernel_shape=(3, 3), strides=(2, 2),
        pads=(1, 1, 1, 1))  # fmt: skip
maximum("n2c3h5w4,k2,indices,column-major", t(2, 3, 5, 4, init=distinct), outputs=2, kernel_shape=(2, 2),
        storage_order=1)  # fmt: skip
maximum("n1c2h7w6,k2,dilation3x2,indices", t(1, 2, 7, 6, init=distinct), outputs=2, kernel_shape=(2, 2),
        dilations=(3, 2))  # fmt: skip
maximum("n2c3w33,k4s3,ceil,indices,1d", t(2, 3, 33, init=distinct), outputs=2, kernel_shape=(4,), strides=(3,),
        ceil_mode=1)  # fmt: skip
maximum("n2c2d3h4w3,k2,indices,3d", t(2, 2, 3, 4, 3, init=distinct), outputs=2, kernel_shape=(2, 2, 2))


@maximum.drawn
def draw_maximum(draw: Draw, dtype: DType) -> OpCase:
    rank = draw(st.integers(1, 2))
    size, window = sliding_window(draw, rank)
    indices = draw(st.booleans())
    # An 8-bit type has at most 256 distinct elements.
    channels = 1 if indices and rank == 2 else draw(st.integers(1, 3))
    x = t(1 if indices else draw(st.integers(1, 3)), channels, *size, init=distinct if indices else normal)
    ceil = draw(st.integers(0, 1)) if "auto_pad" not in window else 0
    order = draw(st.integers(0, 1)) if indices else 0
    return maximum.case(x, outputs=1 + indices, ceil_mode=ceil, storage_order=order, **window)


average = table("AveragePool", SUM)
_add_windowed(average)
average("n1c3h5w7,k3p1,counting-padding", t(1, 3, 5, 7), kernel_shape=(3, 3), pads=(1, 1, 1, 1), count_include_pad=1)
average("n1c3h5w6,k3s2,pads-differ,counting-padding", t(1, 3, 5, 6), kernel_shape=(3, 3), strides=(2, 2),
        pads=(0, 2, 1, 0), count_include_pad=1)  # fmt: skip
average("n1c2h6w6,k3s2p1,ceil,counting-padding", t(1, 2, 6, 6), kernel_shape=(3, 3), strides=(2, 2),
        pads=(1, 1, 1, 1), ceil_mode=1, count_include_pad=1)  # fmt: skip
average("n1c2h5w4,k2x3,same-upper,counting-padding", t(1, 2, 5, 4), kernel_shape=(2, 3), auto_pad="SAME_UPPER",
        count_include_pad=1)  # fmt: skip
average("unbounded", t(1, 2, 7, 9, init=unbounded), kernel_shape=(2, 2))
average("big", t(1, 3, 5, 7, init=big), kernel_shape=(2, 3))
average("tiny", t(1, 3, 5, 7, init=tiny), kernel_shape=(2, 3))


@average.drawn
def draw_average(draw: Draw, dtype: DType) -> OpCase:
    x, ceil, window = _draw_window(draw)
    return average.case(x, ceil_mode=ceil, count_include_pad=draw(st.integers(0, 1)), **window)


def _draw_window(draw: Draw) -> tuple[Tensor, int, dict[str, Any]]:
    """Draw an input, its ``ceil_mode``, and the attributes of the windows that slide over it."""
    size, window = sliding_window(draw, draw(st.integers(1, 2)))
    ceil = draw(st.integers(0, 1)) if "auto_pad" not in window else 0
    return t(draw(st.integers(1, 2)), draw(st.integers(1, 3)), *size), ceil, window


norm = table("LpPool", SUM)
_add_windowed(norm)
norm("n1c3h5w7,k3,p1", t(1, 3, 5, 7), kernel_shape=(3, 3), p=1)
norm("n1c3h5w7,k3s2p1,p3", t(1, 3, 5, 7), kernel_shape=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1), p=3)
norm("n1c3h5w7,k2,p4", t(1, 3, 5, 7), kernel_shape=(2, 2), p=4)
norm("big", t(1, 3, 5, 7, init=big), kernel_shape=(2, 3))
norm("tiny", t(1, 3, 5, 7, init=tiny), kernel_shape=(2, 3))


@norm.drawn
def draw_norm(draw: Draw, dtype: DType) -> OpCase:
    x, ceil, window = _draw_window(draw)
    return norm.case(x, ceil_mode=ceil, p=draw(st.integers(1, 3)), **window)


# **** global pools ****


def _add_global(pool: OpTable) -> None:
    """Add the cases of every global pool."""
    pool("n1c3h8w8", t(1, 3, 8, 8))
    pool("n2c33h7w7", t(2, 33, 7, 7))
    pool("n2c5h1w1", t(2, 5, 1, 1))
    pool("n1c3h1w257", t(1, 3, 1, 257))
    pool("n2c3w7,1d", t(2, 3, 7))
    pool("n2c2d3h4w5,3d", t(2, 2, 3, 4, 5))
    pool("n0c3h4w4,empty-batch", t(0, 3, 4, 4))
    pool("n1c3h5w5,negative", t(1, 3, 5, 5, init=negative))
    pool("big", t(2, 3, 3, 5, init=big))
    pool("tiny", t(2, 3, 3, 5, init=tiny))

    @pool.drawn
    def draw_everything(draw: Draw, dtype: DType) -> OpCase:
        size = [draw(st.integers(1, 9)) for _ in range(draw(st.integers(1, 3)))]
        return pool.case(t(draw(st.integers(1, 3)), draw(st.integers(1, 5)), *size))


global_average = table("GlobalAveragePool", SUM)
_add_global(global_average)
global_average("unbounded", t(2, 5, 3, 3, init=unbounded))
global_maximum = table("GlobalMaxPool", EXACT)
_add_global(global_maximum)
global_maximum("n1c3h3w5,infinite", t(1, 3, 3, 5, init=with_elements(-np.inf, -np.inf, np.inf)), dtypes=REAL)
global_norm = table("GlobalLpPool", SUM)
_add_global(global_norm)
global_norm("n2c3h5w7,p1", t(2, 3, 5, 7), p=1)
global_norm("n2c3h5w7,p3", t(2, 3, 5, 7), p=3)

# **** MaxUnpool ****

unpool = table("MaxUnpool", MOVED)
unpool("n1c1h2w2,k2s2", t(1, 1, 2, 2), values([[[[5, 7], [13, 15]]]], "int64"), kernel_shape=(2, 2), strides=(2, 2))
unpool("n1c2h2w2,k2s2,second-channel", t(1, 2, 2, 2), values([[[[0, 3], [9, 14]], [[17, 22], [24, 31]]]], "int64"),
       kernel_shape=(2, 2), strides=(2, 2))  # fmt: skip
unpool("n2c1w3,k3s2,1d", t(2, 1, 3), values([[[2, 0, 6]], [[8, 13, 7]]], "int64"), kernel_shape=(3,), strides=(2,))
unpool("n1c1h2w3,k2", t(1, 1, 2, 3), values([[[[0, 1, 2], [7, 9, 11]]]], "int64"), kernel_shape=(2, 2))
unpool("n1c1h2w3,k3x2s1x3,pads-differ", t(1, 1, 2, 3), values([[[[0, 4, 6], [12, 7, 13]]]], "int64"),
       kernel_shape=(3, 2), strides=(1, 3), pads=(1, 0, 0, 1))  # fmt: skip
unpool("n1c1h3w3,k3s2,pads-differ", t(1, 1, 3, 3), values([[[[0, 4, 6], [11, 12, 15], [20, 27, 29]]]], "int64"),
       kernel_shape=(3, 3), strides=(2, 2), pads=(0, 1, 2, 0))  # fmt: skip
unpool("n1c1h2w2,output-shape5x6", t(1, 1, 2, 2), values([[[[5, 7], [13, 15]]]], "int64"), ints(1, 1, 5, 6),
       kernel_shape=(2, 2), strides=(2, 2))  # fmt: skip
unpool("n1c1h2w2,output-shape5x5,at-run-time", t(1, 1, 2, 2), values([[[[5, 7], [13, 15]]]], "int64"),
       values([1, 1, 5, 5], "int64"), kernel_shape=(2, 2), strides=(2, 2))  # fmt: skip
unpool("n1c1d2h2w2,k2s2,3d", t(1, 1, 2, 2, 2), values([[[[[0, 2], [13, 31]], [[42, 37], [56, 63]]]]], "int64"),
       kernel_shape=(2, 2, 2), strides=(2, 2, 2))  # fmt: skip
unpool("special", t(1, 1, 2, 4, init=special), values([[[[0, 2, 4, 7], [16, 18, 21, 31]]]], "int64"),
       kernel_shape=(2, 2), strides=(2, 2))  # fmt: skip
unpool("n0c1h2w2,empty-batch", t(0, 1, 2, 2), t(0, 1, 2, 2, dtype="int64"), kernel_shape=(2, 2), strides=(2, 2))


@unpool.drawn
def draw_unpool(draw: Draw, dtype: DType) -> OpCase:
    rank = draw(st.integers(1, 2))
    kernel = [draw(st.integers(1, 3)) for _ in range(rank)]
    strides = [draw(st.integers(k, 3)) for k in kernel]  # windows that do not overlap
    size = [draw(st.integers(1, 4)) for _ in range(rank)]
    shape = (draw(st.integers(1, 2)), draw(st.integers(1, 2)), *size)
    natural = (*shape[:2], *((n - 1) * s + k for n, s, k in zip(size, strides, kernel)))
    elements = draw(st.permutations(range(int(np.prod(natural)))))[: int(np.prod(shape))]
    indices = values(np.reshape(elements, shape), "int64")
    larger = [ints(*natural[:2], *(n + draw(st.integers(0, 2)) for n in natural[2:]))] if draw(st.booleans()) else []
    return unpool.case(t(*shape), indices, *larger, kernel_shape=tuple(kernel), strides=tuple(strides))
