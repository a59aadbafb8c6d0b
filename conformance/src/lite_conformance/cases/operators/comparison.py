"""Comparisons, logic, and Where; all of them broadcast."""

from __future__ import annotations

from math import inf, nan

from lite_conformance.cases.op_cases import Draw, OpCase, table
from lite_conformance.cases.operators.elementwise_shapes import add_binary_shapes, add_unary_shapes
from lite_conformance.cases.operators.initializers import few, neighbours, specials, with_elements
from lite_conformance.cases.operators.strategies import broadcastable
from lite_conformance.cases.tensors import big, const, t, tiny, values
from lite_conformance.judge.tolerances import MOVED
from lite_core.ir import DType
from lite_core.ops.dtypes import FLOATS, NUMERIC

for _name in ("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"):
    _comparison = table(_name)
    add_binary_shapes(_comparison, few, few)
    _comparison("11x1,1x11,special", t(11, 1, init=specials), t(1, 11, init=specials), dtypes=NUMERIC)
    _comparison("neighbours", t(9, 7, init=neighbours), t(9, 7, init=neighbours), dtypes=NUMERIC)
    _comparison("special,constant", t(33, init=specials), const(33, init=few), dtypes=NUMERIC)
    _comparison("big", t(4, 9, init=big), t(4, 9, init=big), dtypes=NUMERIC)
    _comparison("tiny", t(4, 9, init=tiny), t(4, 9, init=tiny), dtypes=NUMERIC)

for _name in ("And", "Or", "Xor"):
    _logic = table(_name)
    add_binary_shapes(_logic)
    _logic("truth-table", values([[False], [True]]), values([[False, True]]))

logical_not = table("Not")
add_unary_shapes(logical_not)
logical_not("both", values([False, True]))

# **** Where ****

_UNUSUAL = with_elements(nan, inf, -inf)

where = table("Where", MOVED)
where("2x3", t(2, 3, dtype="bool"), t(2, 3), t(2, 3))
where("scalar", t(dtype="bool"), t(), t())
where("true", values(True, "bool"), t(3, 5), t(3, 5))
where("false", values(False, "bool"), t(3, 5), t(3, 5))
where("4x1,1x5,3x1x1", t(4, 1, dtype="bool"), t(1, 5), t(3, 1, 1))
where("2x3x4x5,3x1x1,scalar", t(2, 3, 4, 5, dtype="bool"), t(3, 1, 1), t())
where("7,2x3x7,1x3x1,condition-is-smallest", t(7, dtype="bool"), t(2, 3, 7), t(1, 3, 1))
where("constant-mask", const(1, 1, 8, 8, dtype="bool"), t(2, 3, 8, 8), const())
where("constant-branches", t(33, dtype="bool"), const(33), const(33))
where("condition-at-the-right", t(5, dtype="bool"), t(3, 1), t(2, 1, 5))
where("1x257,odd", t(1, 257, dtype="bool"), t(1, 257), t(1, 257))
where("10007,long", t(10007, dtype="bool"), t(10007), t(10007))
where("2x1x2x1x3x2,rank6", t(2, 1, 2, 1, 3, 1, dtype="bool"), t(3, 2, 1, 3, 2), t(1, 2, 2, 1, 2))
where("0x3,1x3,empty", t(0, 3, dtype="bool"), t(1, 3), t())
where("special", t(7, 11, dtype="bool"), t(7, 11, init=specials), t(7, 11, init=specials))
# NaN and infinities of the operand that is not selected must not appear; kernels that multiply by the mask fail.
where("other-is-special", values([[True], [False]], "bool"), t(33), t(33, init=_UNUSUAL), dtypes=FLOATS)
where("first-is-special", values([[True], [False]], "bool"), t(33, init=_UNUSUAL), t(33), dtypes=FLOATS)
where("neighbours", t(63, dtype="bool"), t(63, init=neighbours), t(63, init=neighbours))


@where.drawn
def draw_where(draw: Draw, dtype: DType) -> OpCase:
    condition, one, other = broadcastable(draw, 3)
    return where.case(t(*condition, dtype="bool"), t(*one), t(*other))
