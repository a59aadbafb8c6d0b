"""Cases of BoxCoder, BoxClip, IouSimilarity (domain ``lite``)."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, table
from lite_conformance.cases.operators.box_initializers import boxes, on_grid
from lite_conformance.cases.tensors import Tensor, const, t, uniform, values
from lite_conformance.judge.tolerances import EXACT, FUNCTION, SCALED
from lite_core.ir import DType

_corners = boxes()
_infinite = values([[[-np.inf, 3, np.inf, 4], [5, -np.inf, 6, np.inf]]])

# **** BoxCoder ****

_DECODE: dict[str, Any] = {"code_type": "decode_center_size"}
_VARIANCE = (0.125, 0.25, 0.5, 0.1875)
#: Corners are differences and codes are their quotients: errors are relative to the largest coordinate or code.
coder = table("BoxCoder", SCALED, domain="lite")


def _priors(many: int) -> Tensor:
    return t(many, 4, init=_corners)


def _variances(many: int) -> Tensor:
    return t(many, 4, init=on_grid(0.125, 1, 0.125))


def _codes(rows: int, columns: int) -> Tensor:
    return t(rows, columns, 4, init=uniform(-1, 1))


coder("encode,n3,m5", _priors(5), None, t(3, 4, init=_corners))
coder("encode,n3,m5,variances", _priors(5), _variances(5), t(3, 4, init=_corners))
coder("encode,n3,m5,variance", _priors(5), None, t(3, 4, init=_corners), variance=_VARIANCE)
coder("encode,n3,m5,pixels", _priors(5), _variances(5), t(3, 4, init=_corners), box_normalized=0)
coder("encode,n1,m33", _priors(33), None, t(1, 4, init=_corners))
coder("encode,n257,m1", _priors(1), _variances(1), t(257, 4, init=_corners))
coder("encode,n0,m3,no-target", _priors(3), None, t(0, 4))
coder("encode,n3,m0,no-prior", t(0, 4), None, t(3, 4, init=_corners))
coder("decode,n3,m5", _priors(5), None, _codes(3, 5), **_DECODE)
coder("decode,n3,m5,variances", _priors(5), _variances(5), _codes(3, 5), **_DECODE)
coder("decode,n3,m5,variance", _priors(5), None, _codes(3, 5), variance=_VARIANCE, **_DECODE)
coder("decode,n3,m5,pixels", _priors(5), _variances(5), _codes(3, 5), box_normalized=0, **_DECODE)
coder("decode,n5,m3,axis1", _priors(5), None, _codes(5, 3), axis=1, **_DECODE)
coder("decode,n5,m3,axis1,variances", _priors(5), _variances(5), _codes(5, 3), axis=1, **_DECODE)
coder("decode,n4,m4,axis1,pixels", _priors(4), _variances(4), _codes(4, 4), axis=1, box_normalized=0, **_DECODE)
coder("decode,n4,m4,axis1,variance", _priors(4), None, _codes(4, 4), axis=1, variance=_VARIANCE, **_DECODE)
coder("decode,n257,m1", _priors(1), None, _codes(257, 1), **_DECODE)
coder("decode,n0,m3,no-code", _priors(3), None, _codes(0, 3), **_DECODE)
coder("decode,constant-priors", const(5, 4, init=_corners), None, _codes(3, 5), variance=_VARIANCE, **_DECODE)


@coder.drawn
def draw_coder(draw: Draw, dtype: DType) -> OpCase:
    many, others = draw(st.integers(1, 6)), draw(st.integers(0, 6))
    attributes: dict[str, Any] = {"box_normalized": draw(st.integers(0, 1))}
    chosen = draw(st.sampled_from(["none", "tensor", "attribute"]))
    if chosen == "attribute":
        attributes["variance"] = _VARIANCE
    target = t(others, 4, init=_corners)
    if draw(st.booleans()):
        axis = draw(st.integers(0, 1))
        attributes |= {**_DECODE, "axis": axis}
        target = _codes(many, others) if axis else _codes(others, many)
    return coder.case(_priors(many), _variances(many) if chosen == "tensor" else None, target, **attributes)


# **** BoxClip ****

clip = table("BoxClip", EXACT, domain="lite")


def _boxes_beyond(*shape: int) -> Tensor:
    return t(*shape, 4, init=on_grid(-30, 90, 0.5))


def _image_info(*rows: tuple[float, float, float]) -> Tensor:
    return values(rows)


clip("n1m5", _boxes_beyond(1, 5), _image_info((40, 50, 1)))
clip("n2m7,images-differ", _boxes_beyond(2, 7), _image_info((40, 60, 1), (30, 20, 1)))
clip("m5,one-image", _boxes_beyond(5), _image_info((20, 50, 1)))
clip("n3m5,scales", _boxes_beyond(3, 5), _image_info((80, 100, 2), (20, 25, 0.5), (60, 90, 1.5)))
clip("n2m9,scaled-sizes-are-rounded", _boxes_beyond(2, 9), _image_info((81, 41, 2), (50, 31, 3)))
clip("scaled-to-below-a-pixel", _boxes_beyond(1, 9), _image_info((1, 2, 9)))
clip("smallest-image", _boxes_beyond(1, 3), _image_info((1, 1, 1)))
clip("n1m257,odd", _boxes_beyond(1, 257), _image_info((33, 47, 1)))
clip("infinite", _infinite, _image_info((20, 30, 1)))
clip("n2m0,no-box", _boxes_beyond(2, 0), _image_info((40, 60, 1), (30, 20, 1)))
clip("n0,no-image", _boxes_beyond(0, 4), t(0, 3))
clip("constant-info", _boxes_beyond(2, 5), values([(40, 60, 1), (30, 20, 1)], constant=True))


@clip.drawn
def draw_clip(draw: Draw, dtype: DType) -> OpCase:
    images, many = draw(st.integers(1, 3)), draw(st.integers(0, 7))
    sizes = st.tuples(st.integers(1, 60), st.integers(1, 60), st.sampled_from([1.0, 2.0, 0.5]))
    info = _image_info(*[draw(sizes) for _ in range(images)])
    return clip.case(_boxes_beyond(many) if images == 1 and draw(st.booleans()) else _boxes_beyond(images, many), info)


# **** IouSimilarity ****

_box = values([[1, 1, 5, 4]])
iou = table("IouSimilarity", FUNCTION, domain="lite")
iou("n5,m7", t(5, 4, init=_corners), t(7, 4, init=_corners))
iou("n5,m7,pixels", t(5, 4, init=_corners), t(7, 4, init=_corners), box_normalized=0)
iou("n33,m3", t(33, 4, init=_corners), t(3, 4, init=_corners))
iou("n1,m257", t(1, 4, init=_corners), t(257, 4, init=_corners))
iou("the-same,apart,touching,inside", _box, values([[1, 1, 5, 4], [6, 6, 8, 9], [5, 1, 7, 4], [2, 2, 3, 3]]))
iou("pixels,less-than-one-apart", _box, values([[5, 4, 6, 6], [6, 1, 7, 4], [5.5, 1, 7, 4]]), box_normalized=0)
iou("apart-on-both-axes", _box, values([[7, 7, 8, 9], [7, 1, 9, 4], [1, 7, 5, 9]]))
iou("apart-on-both-axes,pixels", _box, values([[7, 7, 8, 9], [7, 1, 9, 4], [1, 7, 5, 9]]), box_normalized=0)
iou("negative-coordinates", values([[-4, -5, -1, -1]]), values([[-5, -4, -2, -2], [-2, -3, 6, 7]]))
iou("fractions-of-one", values([[0.125, 0.25, 0.5, 0.75]]), values([[0.25, 0.125, 0.625, 0.5], [0, 0, 1, 1]]))
iou("n0,m3", t(0, 4), t(3, 4, init=_corners))
iou("n3,m0", t(3, 4, init=_corners), t(0, 4))
iou("constant-boxes", t(3, 4, init=_corners), const(4, 4, init=_corners))


@iou.drawn
def draw_iou(draw: Draw, dtype: DType) -> OpCase:
    one, other = draw(st.integers(0, 9)), draw(st.integers(0, 9))
    normalized = draw(st.integers(0, 1))
    return iou.case(t(one, 4, init=_corners), t(other, 4, init=_corners), box_normalized=normalized)
