"""Cases of Pad, Col2Im."""

from __future__ import annotations

from math import prod

from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, table
from lite_conformance.cases.operators.operands import (
    EACH_SIZE,
    FLOATS,
    NUMERIC,
    data,
    run_time_ints,
    some_ints,
    whole_range,
)
from lite_conformance.cases.operators.strategies import axes_of, shape
from lite_conformance.cases.tensors import big, const, ints, special, t, tiny, values
from lite_conformance.judge.tolerances import MOVED, SUM
from lite_core.ir import DType

_INF, _NAN = float("inf"), float("nan")
_MODES = ("constant", "reflect", "edge", "wrap")

pad = table("Pad", MOVED)
pad("3x4,pads1x2x3x4", data(3, 4), ints(1, 2, 3, 4))
pad("3x4,value", data(3, 4), ints(0, 1, 2, 0), const(init=whole_range))
pad("3x4,value-at-run-time", data(3, 4), ints(2, 0, 0, 3), data())
pad("n1c2h5w6,images", data(1, 2, 5, 6), ints(0, 0, 1, 2, 0, 0, 2, 1), const(init=whole_range))
pad("2x3x4,axes1+-1", data(2, 3, 4), ints(1, 2, 0, 3), None, ints(1, -1))
pad("2x3x4,axes2+0,unsorted,value", data(2, 3, 4), ints(1, 2, 0, 3), data(), ints(2, 0))
pad("2x3x4,axes-int32", data(2, 3, 4), ints(1, 2), None, values([1], "int32", constant=True))
pad("5x6,cropped", data(5, 6), ints(-1, 2, -2, -3), data())
pad("5,cropped-and-padded", data(5), ints(-4, 6), data())
pad("3x4,nothing", data(3, 4), ints(0, 0, 0, 0))
pad("0x3,pad-of-nothing", data(0, 3), ints(1, 0, 1, 1), data())
pad("scalar", data(), values([], "int64", constant=True))
pad("3x33,pads7,odd", data(3, 33), ints(0, 7, 0, 7))
pad("2x1x2x1x2,rank5", data(2, 1, 2, 1, 2), ints(1, 0, 1, 0, 0, 0, 1, 0, 2, 1))
for _mode in _MODES:
    pad(f"4x5,pads3x4x2x1,{_mode}", data(4, 5), ints(3, 4, 2, 1), mode=_mode)
    pad(f"2x3x5x6,images,{_mode}", data(2, 3, 5, 6), ints(0, 0, 2, 1, 0, 0, 3, 2), mode=_mode)
    pad(f"6x7,cropped,{_mode}", data(6, 7), ints(-1, 2, 0, -2), mode=_mode)
    pad(f"4x5,axis-1,{_mode}", data(4, 5), ints(2, 3), None, ints(-1), mode=_mode)
    pad(f"4x5,at-run-time,{_mode}", data(4, 5), run_time_ints(1, 0, 2, 3), mode=_mode)
    pad(f"5x7,special,{_mode}", t(5, 7, init=special), ints(1, 2, 3, 4), mode=_mode)
pad("1x3,one-row,edge", data(1, 3), ints(2, 0, 1, 0), mode="edge")
pad("1x3,one-row,wrap", data(1, 3), ints(1, 0, 1, 2), mode="wrap")
pad("4x5,axes-at-run-time", data(4, 5), ints(2, 3), None, run_time_ints(1))


@pad.drawn_for(EACH_SIZE)
def draw_pad(draw: Draw, dtype: DType) -> OpCase:
    mode = draw(st.sampled_from(_MODES))
    sizes = shape(draw, 1, 4, smallest=0 if mode == "constant" else 1, largest=6)
    axes = axes_of(draw, len(sizes)) or (0,)
    ends: list[tuple[int, int]] = []
    for axis in axes:
        # Implementations of reflect differ for padding longer than one period.
        most = {"reflect": sizes[axis] - 1, "wrap": sizes[axis]}.get(mode, 4)
        least = 0 if mode != "constant" else -(sizes[axis] // 2)
        ends.append((draw(st.integers(least, most)), draw(st.integers(least, most))))
    pads = some_ints(draw, [*(b for b, _ in ends), *(e for _, e in ends)])
    value = data() if mode == "constant" and draw(st.booleans()) else None
    return pad.case(data(*sizes), pads, value, ints(*axes), mode=mode)


col2im = table("Col2Im", SUM, dtypes=NUMERIC)
col2im("n1c5l5,image5x5,block1x5", t(1, 5, 5), ints(5, 5), ints(1, 5))
col2im("n2c12l9,image4x4,block2x2,overlapping", t(2, 12, 9), ints(4, 4), ints(2, 2))
col2im("n1c8l6,image4x6,block2x2,s2", t(1, 8, 6), ints(4, 6), ints(2, 2), strides=(2, 2))
col2im("n1c4l4,image5x5,block2x2,s3", t(1, 4, 4), ints(5, 5), ints(2, 2), strides=(3, 3))
col2im("n1c9l25,image5x5,block3x3,p1", t(1, 9, 25), ints(5, 5), ints(3, 3), pads=(1, 1, 1, 1))
col2im("n1c6l20,image4x5,block2x3,pads-differ", t(1, 6, 20), ints(4, 5), ints(2, 3), pads=(0, 1, 1, 1))
col2im("n1c4l15,image6x5,block2x2,dilation3x2", t(1, 4, 9), ints(6, 5), ints(2, 2), dilations=(3, 2))
col2im("n1c8l8,image3x3x3,block2x2x2,3d", t(1, 8, 8), ints(3, 3, 3), ints(2, 2, 2))
col2im("n0c4l4,empty", t(0, 4, 4), ints(3, 3), ints(2, 2))
col2im("n1c4l4,image-at-run-time", t(1, 4, 4), run_time_ints(3, 3), ints(2, 2))
col2im("n1c4l4,block-at-run-time", t(1, 4, 4), ints(3, 3), run_time_ints(2, 2))
col2im("n1c4l4,big", t(1, 4, 4, init=big), ints(3, 3), ints(2, 2))
col2im("n1c6l6,image5x3,block3x2,s2x1,p1x0", t(1, 6, 6), ints(5, 3), ints(3, 2), strides=(2, 1), pads=(1, 0, 1, 0))
col2im("n1c1l5,not-finite", values([[[1, _INF, 2, _NAN, -_INF]]]), ints(1, 5), ints(1, 1), dtypes=FLOATS)
col2im("n1c4l4,tiny", t(1, 4, 4, init=tiny), ints(3, 3), ints(2, 2))


@col2im.drawn
def draw_col2im(draw: Draw, dtype: DType) -> OpCase:
    rank = draw(st.integers(2, 3))
    each = st.tuples(*[st.integers(1, 3)] * rank)
    block, dilations, strides = draw(each), draw(st.tuples(*[st.integers(1, 2)] * rank)), draw(each)
    pads = draw(st.tuples(*[st.integers(0, 1)] * (2 * rank)))
    spans = [(b - 1) * d + 1 for b, d in zip(block, dilations)]
    image = [max(1, span + draw(st.integers(0, 4)) - pads[i] - pads[rank + i]) for i, span in enumerate(spans)]
    padded = [n + pads[i] + pads[rank + i] for i, n in enumerate(image)]
    blocks = prod((n - span) // s + 1 for n, span, s in zip(padded, spans, strides))
    columns = t(draw(st.integers(1, 2)), draw(st.integers(1, 3)) * prod(block), blocks)
    return col2im.case(columns, ints(*image), ints(*block), dilations=dilations, strides=strides, pads=pads)
