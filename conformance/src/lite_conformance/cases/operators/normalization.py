"""Normalisations: by given statistics, by statistics of the input, and by a norm."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, table
from lite_conformance.cases.operators.layer_initializers import unbounded, with_nan, zeros
from lite_conformance.cases.operators.strategies import axes_of, axis_of, shape
from lite_conformance.cases.tensors import big, const, positive, t, tiny, uniform, values
from lite_conformance.judge.tolerances import SCALED, SUM
from lite_core.ir import DType

REAL = ("float32", "float16", "bfloat16")

#: Numbers with a non-zero mean whose variance is accurate even as ``E[x^2] - E[x]^2``, the formula of ONNX.
offset = uniform(1, 5)

# **** by given statistics ****

batch = table("BatchNormalization", SCALED)
batch("n1c3h5w7", t(1, 3, 5, 7), const(3), const(3), const(3), const(3, init=positive))
batch("n2c33h3w3", t(2, 33, 3, 3), const(33), const(33), const(33), const(33, init=positive))
batch("n3c7,no-spatial-axes", t(3, 7), const(7), const(7), const(7), const(7, init=positive))
batch("n5,one-channel", t(5), const(1), const(1), const(1), const(1, init=positive))
batch("n2c3w257,1d", t(2, 3, 257), const(3), const(3), const(3), const(3, init=positive))
batch("n2c3d2h3w2,3d", t(2, 3, 2, 3, 2), const(3), const(3), const(3), const(3, init=positive))
batch("n2c4h4w4,square", t(4, 4, 4, 4), const(4), const(4), const(4), const(4, init=positive))
batch("n1c3h5w7,epsilon0.5,momentum0.1", t(1, 3, 5, 7), const(3), const(3), const(3), const(3, init=positive),
      epsilon=0.5, momentum=0.1)  # fmt: skip
batch("n1c3h5w7,variance-of-zero", t(1, 3, 5, 7), const(3), const(3), const(3), const(3, init=zeros))
batch("n1c3h5w7,all-at-run-time", t(1, 3, 5, 7), t(3), t(3), t(3), t(3, init=positive))
batch("n0c3h5w7,empty-batch", t(0, 3, 5, 7), const(3), const(3), const(3), const(3, init=positive))
batch("parameters-float32", t(2, 3, 5, 7), const(3, dtype="float32"), const(3, dtype="float32"),
      const(3, dtype="float32"), const(3, init=positive, dtype="float32"), dtypes=("float16", "bfloat16"))  # fmt: skip
batch("statistics-float32", t(2, 3, 5, 7), const(3), const(3), const(3, dtype="float32"),
      const(3, init=positive, dtype="float32"), dtypes=("float16", "bfloat16"))  # fmt: skip
batch("unbounded", t(1, 3, 3, 5, init=unbounded), const(3), const(3), const(3), const(3, init=positive))
batch("big", t(1, 3, 3, 5, init=big), const(3), const(3), const(3), const(3, init=positive))


@batch.drawn
def draw_batch(draw: Draw, dtype: DType) -> OpCase:
    size = shape(draw, least=2)
    channels = size[1]
    of = draw(st.sampled_from((const, t)))
    epsilon = draw(st.sampled_from((1e-5, 1e-3, 0.1)))
    parameters = (of(channels), of(channels), of(channels), of(channels, init=positive))
    return batch.case(t(*size), *parameters, epsilon=epsilon)


# **** by the statistics of the input ****

#: Counts large enough that the numbers are not all nearly equal, in which case the variance would be noise.
enough = st.integers(8, 19)

# NOTE: stash_type asks for float32 statistics even of float64 inputs; kernels that compute in float64 pass as well.
single = replace(SCALED, name="scaled, in float32", wide=(64 * 2.0**29, 64 * 2.0**29))
layer = table("LayerNormalization", SCALED)
layer("float64-3x7,bias", t(3, 7, init=offset), const(7), const(7), dtypes=("float64",), numerics=single)
layer("float64-2x3x5,axis1", t(2, 3, 5, init=offset), const(3, 5), const(3, 5), dtypes=("float64",), numerics=single,
      axis=1)  # fmt: skip
layer("3x7", t(3, 7), const(7), dtypes=REAL)
layer("3x7,bias", t(3, 7, init=offset), const(7), const(7), dtypes=REAL)
layer("5x257,bias", t(5, 257, init=offset), const(257), const(257), dtypes=REAL)
layer("2x3x33,bias", t(2, 3, 33), const(33), const(33), dtypes=REAL)
layer("2x3x4x5,axis1,bias", t(2, 3, 4, 5), const(3, 4, 5), const(3, 4, 5), dtypes=REAL, axis=1)
layer("2x3x4x5,axis-2,bias", t(2, 3, 4, 5), const(4, 5), const(4, 5), dtypes=REAL, axis=-2)
layer("2x3x4,axis0,bias", t(2, 3, 4), const(2, 3, 4), const(2, 3, 4), dtypes=REAL, axis=0)
layer("2x3x4,axis1,scale-broadcast", t(2, 3, 4), const(4), const(3, 1), dtypes=REAL, axis=1)
layer("2x3x4x5,three-outputs", t(2, 3, 4, 5, init=offset), const(5), const(5), outputs=3, dtypes=REAL)
layer("2x3x4x5,axis2,three-outputs", t(2, 3, 4, 5, init=offset), const(4, 5), None, outputs=3, dtypes=REAL, axis=2)
layer("3x7,two-outputs,no-bias", t(3, 7, init=offset), const(7), outputs=2, dtypes=REAL)
layer("3x7,stash-bfloat16", t(3, 7), const(7), outputs=3, dtypes=("bfloat16",), stash_type=16)
layer("3x7,epsilon0.5", t(3, 7), const(7), const(7), dtypes=REAL, epsilon=0.5)
layer("3x8,zeros", t(3, 8, init=zeros), const(8), const(8), dtypes=REAL)
layer("5x1,one-element", t(5, 1), const(1), const(1), dtypes=REAL, epsilon=0.25)
layer("3x7,all-at-run-time", t(3, 7), t(7), t(7), dtypes=REAL)
layer("0x7,empty", t(0, 7), const(7), const(7), dtypes=REAL)
layer("one-nan", t(7, 5, init=with_nan), const(5), const(5), dtypes=REAL)
layer("big", t(3, 7, init=big), const(7), const(7), dtypes=REAL)
layer("tiny", t(3, 7, init=tiny), const(7), dtypes=REAL)


@layer.drawn_for(REAL)
def draw_layer(draw: Draw, dtype: DType) -> OpCase:
    size = (*shape(draw, most=2, smallest=1), draw(enough))
    axis = axis_of(draw, len(size))
    of = draw(st.sampled_from((const, t)))
    bias = [of(*size[axis:])] if draw(st.booleans()) else []
    outputs = 1 if bias else draw(st.integers(1, 3))
    return layer.case(t(*size), of(*size[axis:]), *bias, outputs=outputs, axis=axis)


instance = table("InstanceNormalization", SCALED)
instance("n1c3h5w7", t(1, 3, 5, 7), const(3), const(3))
instance("n2c33h5w5", t(2, 33, 5, 5, init=offset), const(33), const(33))
instance("n2c3w257,1d", t(2, 3, 257, init=offset), const(3), const(3))
instance("n2c2d2h3w4,3d", t(2, 2, 2, 3, 4), const(2), const(2))
instance("n3c3h3w3,cube", t(3, 3, 3, 3), const(3), const(3))
instance("n1c3h5w7,epsilon0.5", t(1, 3, 5, 7), const(3), const(3), epsilon=0.5)
instance("n1c3h4w4,zeros", t(1, 3, 4, 4, init=zeros), const(3), const(3))
instance("n2c3h1w1,one-element", t(2, 3, 1, 1), const(3), const(3), epsilon=0.25)
instance("n0c3h5w7,empty-batch", t(0, 3, 5, 7), const(3), const(3))
instance("n2c3h5w7,all-at-run-time", t(2, 3, 5, 7), t(3), t(3))
instance("one-nan", t(3, 5, 2, 4, init=with_nan), const(5), const(5))
instance("big", t(2, 3, 3, 5, init=big), const(3), const(3))


@instance.drawn
def draw_instance(draw: Draw, dtype: DType) -> OpCase:
    size = (draw(st.integers(1, 3)), draw(st.integers(1, 5)), *shape(draw, most=2, smallest=1), draw(enough))
    of = draw(st.sampled_from((const, t)))
    epsilon = draw(st.sampled_from((1e-5, 1e-3, 0.1)))
    return instance.case(t(*size), of(size[1]), of(size[1]), epsilon=epsilon)


group = table("GroupNormalization", SCALED)
group("float64-n2c6h4w5,groups3", t(2, 6, 4, 5, init=offset), const(6), const(6), dtypes=("float64",), numerics=single,
      num_groups=3)  # fmt: skip
group("n2c6h4w5,groups3", t(2, 6, 4, 5, init=offset), const(6), const(6), dtypes=REAL, num_groups=3)
group("n2c6h4w5,groups2", t(2, 6, 4, 5), const(6), const(6), dtypes=REAL, num_groups=2)
group("n2c6h4w5,groups1", t(2, 6, 4, 5), const(6), const(6), dtypes=REAL, num_groups=1)
group("n2c6h4w5,groups6", t(2, 6, 4, 5), const(6), const(6), dtypes=REAL, num_groups=6)
group("n1c33h5w3,groups11", t(1, 33, 5, 3, init=offset), const(33), const(33), dtypes=REAL, num_groups=11)
group("n2c4w33,groups2,1d", t(2, 4, 33), const(4), const(4), dtypes=REAL, num_groups=2)
group("n2c4d2h3w2,groups2,3d", t(2, 4, 2, 3, 2), const(4), const(4), dtypes=REAL, num_groups=2)
group("n3c12,groups3,no-spatial-axes", t(3, 12), const(12), const(12), dtypes=REAL, num_groups=3)
group("n2c6h4w5,epsilon0.5", t(2, 6, 4, 5), const(6), const(6), dtypes=REAL, num_groups=3, epsilon=0.5)
group("n1c4h2w4,zeros", t(1, 4, 2, 4, init=zeros), const(4), const(4), dtypes=REAL, num_groups=2)
group("n0c6h4w5,empty-batch", t(0, 6, 4, 5), const(6), const(6), dtypes=REAL, num_groups=3)
group("n2c6h4w5,all-at-run-time", t(2, 6, 4, 5), t(6), t(6), dtypes=REAL, num_groups=3)
group("one-nan", t(3, 6, 2, 3, init=with_nan), const(6), const(6), dtypes=REAL, num_groups=3)
group("big", t(2, 6, 2, 3, init=big), const(6), const(6), dtypes=REAL, num_groups=3)


@group.drawn_for(REAL)
def draw_group(draw: Draw, dtype: DType) -> OpCase:
    groups, each = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    channels = groups * each
    size = (draw(st.integers(1, 3)), channels, *shape(draw, most=2, smallest=1), draw(enough))
    of = draw(st.sampled_from((const, t)))
    epsilon = draw(st.sampled_from((1e-5, 1e-3, 0.1)))
    return group.case(t(*size), of(channels), of(channels), num_groups=groups, epsilon=epsilon)


mean_variance = table("MeanVarianceNormalization", SCALED)
mean_variance("n2c3h5w7", t(2, 3, 5, 7, init=offset))
mean_variance("n2c3h5w7,axes2x3", t(2, 3, 5, 7, init=offset), axes=(2, 3))
mean_variance("n2c3h5w7,axes-of-all", t(2, 3, 5, 7), axes=(0, 1, 2, 3))
mean_variance("n2c33h5w3,axis1", t(2, 33, 5, 3), axes=(1,))
mean_variance("n2c3h5w7,negative-axes,unordered", t(2, 3, 5, 7), axes=(-1, -4))
mean_variance("257,axis0", t(257, init=offset), axes=(0,))
mean_variance("3x7x5,axis1", t(3, 7, 5), axes=(1,))
mean_variance("0x3x7,empty", t(0, 3, 7), axes=(2,))
mean_variance("one-nan", t(2, 7, 2, 5, init=with_nan))
mean_variance("big", t(2, 3, 3, 3, init=big))


@mean_variance.drawn
def draw_mean_variance(draw: Draw, dtype: DType) -> OpCase:
    size = shape(draw, least=1, most=3, smallest=8, largest=9)
    axes = axes_of(draw, len(size)) or (0,)
    return mean_variance.case(t(*size), axes=axes)


# **** by a norm ****

response = table("LRN", SCALED)
response("n1c7h3w5,size3", t(1, 7, 3, 5), size=3)
response("n1c7h3w5,size3,strong", t(1, 7, 3, 5), size=3, alpha=2.0, beta=0.6, bias=0.5)
response("n2c33h3w3,size5,strong", t(2, 33, 3, 3), size=5, alpha=1.5)
response("n1c7h3w5,size4,even", t(1, 7, 3, 5), size=4, alpha=2.0)
response("n1c7h3w5,size2,even", t(1, 7, 3, 5), size=2, alpha=2.0)
response("n1c7h3w5,size1", t(1, 7, 3, 5), size=1, alpha=2.0)
response("n1c3h3w5,size9,more-than-channels", t(1, 3, 3, 5), size=9, alpha=4.0)
response("n2c5h3w3,size3,beta2", t(2, 5, 3, 3), size=3, alpha=2.0, beta=2.0)
response("n2c7,size3,no-spatial-axes", t(2, 7), size=3, alpha=2.0)
response("n2c7w5,size3,1d", t(2, 7, 5), size=3, alpha=2.0)
response("n1c5d2h3w2,size3,3d", t(1, 5, 2, 3, 2), size=3, alpha=2.0)
response("big", t(1, 7, 3, 5, init=big), size=3, alpha=2.0)
response("tiny", t(1, 7, 3, 5, init=tiny), size=3, alpha=2.0)
response("n0c7h3w5,empty-batch", t(0, 7, 3, 5), size=3)


@response.drawn
def draw_response(draw: Draw, dtype: DType) -> OpCase:
    size = shape(draw, least=2)
    attributes = {
        "alpha": draw(st.sampled_from((1e-4, 0.5, 2.0))),
        "beta": draw(st.sampled_from((0.5, 0.75, 1.0, 2.0))),
        "bias": draw(st.sampled_from((0.5, 1.0, 2.0))),
    }
    return response.case(t(*size), size=draw(st.integers(1, 7)), **attributes)


lp = table("LpNormalization", SUM)
lp("3x7,default", t(3, 7))
for p in (1, 2):
    lp(f"3x7,p{p}", t(3, 7), p=p)
    lp(f"3x7,p{p},axis0", t(3, 7), p=p, axis=0)
    lp(f"2x3x4x5,p{p},axis1", t(2, 3, 4, 5), p=p, axis=1)
    lp(f"2x33x5,p{p},axis-2", t(2, 33, 5), p=p, axis=-2)
    lp(f"257,p{p}", t(257), p=p)
    lp(f"7x1,p{p},one-element", t(7, 1), p=p)
    lp(f"0x3,p{p},empty", t(0, 3), p=p)
    lp(f"3x4,p{p},zeros-stay-zero", values([[0, 0, 0, 0], [1, 2, 0, -2], [0, 0, 0, 0]]), p=p)
    lp(f"big,p{p}", t(3, 7, init=big), p=p)
    lp(f"tiny,p{p}", t(3, 7, init=tiny), p=p)


@lp.drawn
def draw_lp(draw: Draw, dtype: DType) -> OpCase:
    size = shape(draw, least=1, largest=9)
    return lp.case(t(*size), axis=axis_of(draw, len(size)), p=draw(st.integers(1, 2)))
