"""Cases for parts of formulas that other data never decides: rows far apart, roots of integers, steps of batches."""

from __future__ import annotations

from lite_conformance.cases.op_cases import table_of
from lite_conformance.cases.operators import (  # noqa: F401 - these modules create the tables extended here
    convolution,
    elementwise_binary,
    lite_detection,
    lite_regions,
    reduction,
    softmax,
)
from lite_conformance.cases.operators.layer_initializers import all_integers
from lite_conformance.cases.operators.spatial import scales
from lite_conformance.cases.tensors import const, integers, ints, t, values

# **** reductions ****

# The largest element of the whole tensor is no offset for the other row: its exponentials are all 0.
_far_apart = values([[-1000.0, -1001.0, -999.5], [1000.0, 1001.0, 999.5]])
table_of("ReduceLogSumExp")("rows-far-apart", _far_apart, ints(1), dtypes=("float32", "float64", "bfloat16"))
for _op in ("Softmax", "LogSoftmax"):
    table_of(_op)("rows-far-apart", _far_apart, axis=1, dtypes=("float32", "float64", "bfloat16"))

# **** integers ****

# No result is close to an integer, where an error of the root would decide about the truncation.
table_of("Pow")("roots-of-integers", values([2, 3, 5, 6, 7, 8, 10, 99]), values([0.5], "float32", constant=True),
                dtypes=("int32", "int64"))  # fmt: skip
table_of("ConvInteger")("n2c3h5w7,o4,k1s2x3", t(2, 3, 5, 7, init=all_integers), const(4, 3, 1, 1, init=all_integers),
                        strides=(2, 3))  # fmt: skip
_point = const(init=integers(3, 9))
table_of("QLinearConv")("n2c3h5w7,o4,k1s2x3", t(2, 3, 5, 7, init=all_integers), scales(0.5), _point,
                        const(4, 3, 1, 1, init=all_integers), scales(0.5), _point, scales(32), _point,
                        strides=(2, 3))  # fmt: skip

# **** detection: more equal scores than sorting algorithms treat as a short list ****

_apart = values([[[8 * i, 0, 8 * i + 4, 4] for i in range(40)]])
_two_scores = values([[[0.5 + 0.25 * (i % 2) for i in range(40)]]])
for _op in ("MulticlassNms", "MatrixNms"):
    table_of(_op, "lite")("many-ties", _apart, _two_scores, outputs=3, background_label=-1, score_threshold=0.1,
                          nms_top_k=30, keep_top_k=25, dtypes=["float32"])  # fmt: skip
_many_boxes = values([[[[8 * i, 0, 8 * i + 4, 4] for i in range(40)]]])
table_of("GenerateProposals", "lite")(
    "many-ties", values([[[[0.5 + 0.25 * (i % 2)]] for i in range(40)]]), values([[[[0.0]]] * 160]),
    values([[400.0, 400.0]]), _many_boxes, values([[[[1.0] * 4] * 40]]), outputs=3, dtypes=["float32"],
    nms_thresh=0.5, min_size=1.0, pre_nms_top_n=30, post_nms_top_n=25, pixel_offset=0,
)  # fmt: skip
_regions = values([[8 * i, 0, 8 * i + 4, 4] for i in range(20)])
_ranks = values([[0.5 + 0.25 * (i % 2)] for i in range(20)])
table_of("CollectFpnProposals", "lite")("many-ties", _regions, _regions, _ranks, _ranks, values([12, 8], "int32"),
                                        values([5, 15], "int32"), outputs=2, dtypes=["float32"],
                                        post_nms_top_n=25)  # fmt: skip
# Regions smaller than a pixel are dropped even where the limit is 0.
table_of("GenerateProposals", "lite")(
    "below-a-pixel", values([[[[0.75]], [[0.5]]]]), values([[[[0.0]]] * 8]), values([[64.0, 64.0]]),
    values([[[[0, 0, 0.5, 0.5], [8, 0, 12, 4]]]]), values([[[[1.0] * 4] * 2]]), outputs=3, dtypes=["float32"],
    nms_thresh=0.5, min_size=0.0, pre_nms_top_n=6, post_nms_top_n=6, pixel_offset=0,
)  # fmt: skip
