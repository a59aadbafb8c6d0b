"""Cases of RMSNormalization."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, table
from lite_conformance.cases.operators.layer_initializers import with_infinity, with_nan, zeros
from lite_conformance.cases.operators.strategies import axis_of, shape
from lite_conformance.cases.tensors import big, const, t, tiny, uniform
from lite_conformance.judge.tolerances import SCALED
from lite_core.ir import DType

REAL = ("float32", "float16", "bfloat16")

offset = uniform(1, 5)
# NOTE: stash_type asks for a float32 mean even of float64 inputs; kernels that compute in float64 pass as well.
single = replace(SCALED, name="scaled, in float32", wide=(64 * 2.0**29, 64 * 2.0**29))

rms = table("RMSNormalization", SCALED)
rms("float64-3x7", t(3, 7), const(7), dtypes=("float64",), numerics=single)
rms("3x7", t(3, 7), const(7), dtypes=REAL)
rms("5x257", t(5, 257, init=offset), const(257), dtypes=REAL)
rms("1x1x64,one-row", t(1, 1, 64), const(64), dtypes=REAL)
rms("2x3x4x5,axis1", t(2, 3, 4, 5), const(3, 4, 5), dtypes=REAL, axis=1)
rms("2x3x4x5,axis-2", t(2, 3, 4, 5), const(4, 5), dtypes=REAL, axis=-2)
rms("2x3x4,axis0,scale-broadcast", t(2, 3, 4), const(3, 1), dtypes=REAL, axis=0)
rms("3x7,epsilon0.5", t(3, 7), const(7), dtypes=REAL, epsilon=0.5)
rms("3x8,zeros", t(3, 8, init=zeros), const(8), dtypes=REAL)
rms("3x7,all-at-run-time", t(3, 7), t(7), dtypes=REAL)
rms("3x7,scale-float32", t(3, 7), const(7, dtype="float32"), dtypes=("float16", "bfloat16"))
rms("0x7,empty", t(0, 7), const(7), dtypes=REAL)
rms("one-nan", t(7, 5, init=with_nan), const(5), dtypes=REAL)
rms("one-nan,scale", t(7, 5), const(5, init=with_nan), dtypes=REAL)
rms("one-infinity,scale", t(7, 5), const(5, init=with_infinity), dtypes=REAL)
rms("2x1x3x2x5,five-axes", t(2, 1, 3, 2, 5), const(3, 1, 5), dtypes=REAL, axis=2)
rms("2x66000,large", t(2, 66000), const(66000), dtypes=REAL)
rms("big", t(3, 7, init=big), const(7), dtypes=REAL)
rms("tiny", t(3, 7, init=tiny), const(7), dtypes=REAL)


@rms.drawn_for(REAL)
def draw_rms(draw: Draw, dtype: DType) -> OpCase:
    size = (*shape(draw, most=2, smallest=1), draw(st.integers(1, 19)))
    axis = axis_of(draw, len(size))
    of = draw(st.sampled_from((const, t)))
    return rms.case(t(*size), of(*size[axis:]), axis=axis, epsilon=draw(st.sampled_from((1e-6, 1e-5, 0.1))))
