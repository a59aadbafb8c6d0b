"""Every element type of operands that are not computed with: indices, depths, regions."""

from __future__ import annotations

from math import nan

from lite_conformance.cases.op_cases import table_of
from lite_conformance.cases.operators import generate, resize  # noqa: F401 - they create the tables extended here
from lite_conformance.cases.tensors import integers, ints, short_name, t, values
from lite_core.ir import DType

_one_hot = table_of("OneHot")
for _parameter, _what in ((_one_hot.definition.inputs[0], "indices"), (_one_hot.definition.inputs[1], "depth")):
    for _dtype in map(DType.of, _one_hot.definition.types[_parameter.type]):
        _indices, _depth = ("int64", _dtype.value) if _what == "depth" else (_dtype.value, "int64")
        _one_hot(f"{_what}-{short_name(_dtype)}", t(3, 4, init=integers(0, 5), dtype=_indices),
                 values(5, _depth, constant=True), values([3, 7]), dtypes=["float32"])  # fmt: skip

_one_hot("not-a-number", t(3, init=integers(0, 5), dtype="int64"), values(5, "int64", constant=True), values([nan, 1]),
         dtypes=["float32"])  # fmt: skip

for _type in ("float16", "float64"):
    table_of("Resize")(
        f"cropped,region-{short_name(_type)}", t(1, 1, 5, 6), values([0, 0, 0.25, 0.25, 1, 1, 0.75, 0.75], _type), None,
        ints(1, 1, 4, 5), coordinate_transformation_mode="tf_crop_and_resize", mode="linear", dtypes=["float32"],
    )  # fmt: skip
