"""Coordinates near the limits of Resize and GridSample, and large results of control flow, regions and priors."""

from __future__ import annotations

from math import inf, nan
from typing import Any

from lite_conformance.cases.op_cases import table_of
from lite_conformance.cases.operators import (  # noqa: F401 - these modules create the tables extended here
    control,
    generate,
    grid_sample,
    lite_detection,
    lite_priors,
    lite_regions,
    resize,
)
from lite_conformance.cases.operators.bodies import Scope, branch, loop_body, scan_body
from lite_conformance.cases.tensors import Tensor, ints, t, uniform, values
from lite_conformance.judge.tolerances import EXACT
from lite_core.ir import Value
from lite_core.ops.dtypes import FLOATS

_FLOAT32 = ["float32"]

# **** Resize ****

_resize = table_of("Resize")
# The coordinate of element 1 is 201/400 or 199/400: near the half, but far enough for every arithmetic.
for _old, _mode in ((201, "round_prefer_floor"), (199, "round_prefer_ceil")):
    _resize(f"nearest,close-to-half,{_mode}", t(1, 1, 1, _old), None, None, ints(1, 1, 1, 400), numerics=EXACT,
            dtypes=_FLOAT32, nearest_mode=_mode, coordinate_transformation_mode="asymmetric")  # fmt: skip
_resize("linear,not-larger,above-the-half", t(3, 5), None, None, ints(99, 6), mode="linear", dtypes=_FLOAT32,
        keep_aspect_ratio_policy="not_larger")  # fmt: skip
_resize("linear,crop,less-than-1-outside", t(1, 1, 6), values([0, 0, -0.1, 1, 1, 1.1], "float32"), None, ints(1, 1, 9),
        mode="linear", dtypes=_FLOAT32, coordinate_transformation_mode="tf_crop_and_resize",
        extrapolation_value=9.0)  # fmt: skip
_resize("linear,align-corners,to2", t(1, 1, 5, 7), None, None, ints(1, 1, 2, 2), mode="linear", dtypes=_FLOAT32,
        coordinate_transformation_mode="align_corners")  # fmt: skip
_resize("cubic,integers-saturate", values([[[[0, 127, 127, 0, 0, 127]]]]), None, None, ints(1, 1, 1, 12), mode="cubic",
        dtypes=("int8", "int64"))  # fmt: skip

# **** GridSample, mode cubic, outside ****

_points = values([[[[x, y] for x in (-1.4, -1.1, 0.95, 1.08)] for y in (-1.08, 0.1, 1.35)]])
for _padding in ("zeros", "border", "reflection"):
    # NOTE: as in ONNX's reference, a point is moved to the border before its neighbours are chosen.
    for _align in (0, 1):
        table_of("GridSample")(f"cubic,outside,{_padding},align{_align}", t(1, 2, 5, 4), _points, mode="cubic",
                               padding_mode=_padding, align_corners=_align, dtypes=_FLOAT32)  # fmt: skip

# **** control flow: tensors with five axes, with more than 65,536 elements, with NaN and infinities ****


def _add_captured(scope: Scope) -> list[Value]:
    total = scope.combine(scope.carried[0], scope.captured[0])
    return [scope.copy(scope.counters[1]), total]


def _add_slice(scope: Scope) -> list[Value]:
    total = scope.combine(scope.carried[0], scope.slices[0])
    return [total, scope.copy(total)]


_true = values(True, "bool")
for _label, _shape in (("five-axes", (2, 1, 2, 1, 3)), ("beyond-16-bits", (263, 257))):
    _state = t(*_shape)
    table_of("If")(_label, _true, captured=(_state, t(2)), dtypes=_FLOAT32,
                   then_branch=branch(lambda scope: [scope.combine(scope.captured[0], scope.captured[0])]),
                   else_branch=branch(lambda scope: [scope.copy(scope.captured[1])]))  # fmt: skip
    table_of("Loop")(_label, values(2, "int64"), _true, _state, captured=(t(*_shape),), dtypes=_FLOAT32,
                     body=loop_body(_add_captured, _state))  # fmt: skip
    table_of("Scan")(_label, _state, t(2, *_shape), outputs=2, dtypes=_FLOAT32, num_scan_inputs=1,
                     body=scan_body(_add_slice, [_shape], [_shape]))  # fmt: skip
_odd = values([nan, inf, -inf, 1.0])
table_of("Loop")("not-finite", values(2, "int64"), _true, _odd, captured=(values([1.0, 2, 3, 4]),), dtypes=FLOATS,
                 body=loop_body(_add_captured, Tensor((4,))))  # fmt: skip

# **** more than 65,536 elements ****

_regions = values([[0.0, 0, 118, 117], [3, 4, 100, 90]])
_large: dict[str, Any] = {"dtypes": _FLOAT32}
table_of("RoiPool", "lite")("beyond-16-bits", t(1, 5, 120, 121), _regions, values([2], "int32"), pooled_height=83,
                            pooled_width=83, **_large)  # fmt: skip
table_of("PsRoiPool", "lite")("beyond-16-bits", t(1, 9 * 5, 60, 61), _regions, values([2], "int32"), pooled_height=3,
                              pooled_width=3, output_channels=5, spatial_scale=0.5, **_large)  # fmt: skip
_maps = (t(1, 1, 131, 130), t(1, 3, 262, 260))
table_of("PriorBox", "lite")("beyond-16-bits", *_maps, outputs=2, min_sizes=(8.0,), clip=0, **_large)
table_of("DensityPriorBox", "lite")("beyond-16-bits", *_maps, outputs=2, fixed_sizes=(8.0,), fixed_ratios=(1.0,),
                                    densities=(1,), clip=0, **_large)  # fmt: skip
table_of("AnchorGenerator", "lite")("beyond-16-bits", t(1, 1, 131, 130), outputs=2, anchor_sizes=(32.0,),
                                    aspect_ratios=(1.0,), **_large)  # fmt: skip
table_of("YoloBox", "lite")(
    "beyond-16-bits", t(1, 14, 97, 95, init=uniform(1, 2)), values([[96, 160]], "int32"), outputs=2,
    anchors=(10, 13, 16, 30), class_num=2, conf_thresh=0.4, **_large,
)  # fmt: skip
