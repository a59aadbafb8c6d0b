"""If, Loop and Scan: operators whose attributes are graphs."""

from __future__ import annotations

from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, table
from lite_conformance.cases.operators.bodies import Scope, branch, loop_body, scan_body
from lite_conformance.cases.operators.operands import ALL, EACH_SIZE, data, whole_range
from lite_conformance.cases.operators.strategies import shape
from lite_conformance.cases.tensors import Tensor, const, special, t, values
from lite_conformance.judge.tolerances import EXACT, SCALED
from lite_core.builder import GraphBuilder
from lite_core.ir import DType, Value

# **** If ****


def _first(scope: Scope) -> list[Value]:
    return [scope.copy(scope.captured[0])]


def _second(scope: Scope) -> list[Value]:
    return [scope.copy(scope.captured[1])]


def _both(scope: Scope) -> list[Value]:
    return [scope.combine(scope.captured[0], scope.captured[1]), scope.op("Shape", scope.captured[0])]


def _both_swapped(scope: Scope) -> list[Value]:
    return [scope.op("Transpose", scope.captured[1]), scope.op("Shape", scope.captured[1])]


def _constant(scope: Scope) -> list[Value]:
    return [scope.body.constant([[1, 0], [0, 1]], dtype=scope.dtype)]


def _nested(scope: Scope) -> list[Value]:
    """Build an If inside a branch; both inner branches capture values of the outermost graph."""
    branches = {}
    for name, function in (("then_branch", _second), ("else_branch", _first)):
        inner = GraphBuilder(f"inner_{name}", outer=scope.body)
        for value in function(Scope(inner, scope.dtype, scope.captured)):
            inner.output(value)
        branches[name] = inner.build()
    return [scope.body.add("If", [scope.captured[2]], branches)]


def _condition(truth: bool, constant: bool = False) -> Tensor:
    return values(truth, "bool", constant=constant)


_FIRST, _SECOND, _NESTED = branch(_first), branch(_second), branch(_nested)
_PAIR = (data(2, 3), data(2, 3))

if_ = table("If", EXACT, dtypes=ALL)
for _truth in (True, False):
    _word = str(_truth).lower()
    if_(_word, _condition(_truth), captured=_PAIR, then_branch=_FIRST, else_branch=_SECOND)
    if_(f"{_word},constant", _condition(_truth, True), captured=_PAIR, then_branch=_FIRST, else_branch=_SECOND)
    if_(f"{_word},vector", values([_truth], "bool"), captured=_PAIR, then_branch=_FIRST, else_branch=_SECOND)
    if_(
        f"{_word},shapes-differ",
        _condition(_truth),
        captured=(data(2, 3), data(5, 3)),
        then_branch=_FIRST,
        else_branch=_SECOND,
    )
    if_(
        f"{_word},ranks-differ",
        _condition(_truth),
        captured=(data(2, 3), data(7)),
        then_branch=_FIRST,
        else_branch=_SECOND,
    )
    if_(
        f"{_word},two-outputs",
        _condition(_truth),
        captured=(t(3, 3), t(3, 3)),
        outputs=2,
        then_branch=branch(_both),
        else_branch=branch(_both_swapped),
    )
    if_(
        f"{_word},nested",
        _condition(True),
        captured=(data(2, 3), data(2, 3), _condition(_truth)),
        then_branch=_NESTED,
        else_branch=_FIRST,
    )
    if_(
        f"{_word},constants",
        _condition(_truth),
        captured=(const(2, 2, init=whole_range),),
        then_branch=branch(_constant),
        else_branch=_FIRST,
    )
if_("true,empty", _condition(True), captured=(data(0, 3), data(0, 3)), then_branch=_FIRST, else_branch=_SECOND)
if_("false,special", _condition(False), captured=(data(9), t(9, init=special)), then_branch=_FIRST, else_branch=_SECOND)


@if_.drawn_for(EACH_SIZE)
def draw_if(draw: Draw, dtype: DType) -> OpCase:
    condition = _condition(draw(st.booleans()), draw(st.booleans()))
    pair = (data(*shape(draw, 0, 3)), data(*shape(draw, 0, 3)))
    return if_.case(condition, captured=pair, then_branch=_FIRST, else_branch=_SECOND)


# **** Loop ****


def _trips(number: int, constant: bool = False) -> Tensor:
    return values(number, "int64", constant=constant)


def _accumulate(scope: Scope) -> list[Value]:
    """Add the captured value to the carried one; the sum is also a scan output."""
    total = scope.combine(scope.carried[0], scope.captured[0])
    return [scope.copy(scope.counters[1]), total, scope.copy(total)]


def _until_third(scope: Scope) -> list[Value]:
    """Do what :func:`_accumulate` does, and set the condition to false in iteration 2."""
    _, total, shown = _accumulate(scope)
    return [scope.op("Less", scope.counters[0], scope.body.constant(2, dtype="int64")), total, shown]


def _stop_immediately(scope: Scope) -> list[Value]:
    """Do what :func:`_accumulate` does, and set the condition to false in every iteration."""
    return [scope.op("Not", scope.op("Equal", scope.counters[0], scope.counters[0])), *_accumulate(scope)[1:]]


def _swap(scope: Scope) -> list[Value]:
    """Exchange the carried values: outputs of a body must not overwrite inputs that have later uses."""
    one, other = scope.carried
    return [scope.copy(scope.counters[1]), scope.copy(other), scope.combine(one, other)]


def _without_carried(scope: Scope) -> list[Value]:
    """Carry no values; the scan outputs are the iteration number and a captured value."""
    return [scope.copy(scope.counters[1]), scope.copy(scope.counters[0]), scope.copy(scope.captured[0])]


def _grow(scope: Scope) -> list[Value]:
    """Lengthen the carried value in each iteration."""
    grown = scope.op("Concat", scope.carried[0], scope.captured[0], axis=0)
    return [scope.copy(scope.counters[1]), grown]


def _with_counter(scope: Scope) -> list[Value]:
    """Carry a value of the case's type and an int64 counter; the scan output is the counter before it changes."""
    value, count = scope.carried
    more = scope.op("Add", count, scope.op("Add", scope.counters[0], scope.body.constant(1, dtype="int64")))
    return [scope.copy(scope.counters[1]), scope.combine(value, scope.captured[0]), more, scope.copy(count)]


def _inner_loop(scope: Scope) -> list[Value]:
    """Build a Loop in the body that captures from both graphs; the outer iteration number is its trip count."""
    inner = GraphBuilder("inner", outer=scope.body)
    counters = [inner.input("inner_iteration", DType.INT64, ()), inner.input("inner_condition", DType.BOOL, ())]
    state = inner.input("inner_carried", scope.dtype, (2, 3))
    deeper = Scope(inner, scope.dtype, scope.captured, counters, [state])
    inner.output(deeper.copy(counters[1]))
    inner.output(deeper.combine(deeper.combine(state, scope.carried[0]), scope.captured[0]))
    true = scope.body.constant(True)
    result = scope.body.add("Loop", [scope.counters[0], true, scope.carried[0]], {"body": inner.build()})
    return [scope.copy(scope.counters[1]), result, scope.op("Transpose", result)]


_STATE = t(2, 3)
_ACCUMULATE = loop_body(_accumulate, _STATE)
_UNTIL_THIRD = loop_body(_until_third, _STATE)
_ONE = (t(2, 3),)
_TRUE = _condition(True, constant=True)

loop = table("Loop", SCALED, dtypes=ALL)
loop("trips4", _trips(4, True), _TRUE, _STATE, captured=_ONE, outputs=2, body=_ACCUMULATE)
loop("trips4,at-run-time", _trips(4), _condition(True), _STATE, captured=_ONE, outputs=2, body=_ACCUMULATE)
loop("trips1", _trips(1, True), _TRUE, _STATE, captured=_ONE, outputs=2, body=_ACCUMULATE)
loop("trips0", _trips(0, True), _TRUE, _STATE, captured=_ONE, outputs=2, body=_ACCUMULATE)
loop("trips0,at-run-time", _trips(0), _condition(True), _STATE, captured=_ONE, outputs=2, body=_ACCUMULATE)
loop("false-at-first", _trips(4, True), _condition(False), _STATE, captured=_ONE, outputs=2, body=_ACCUMULATE)
loop("without-limit,stops", None, _condition(True), _STATE, captured=_ONE, outputs=2, body=_UNTIL_THIRD)
loop("limit9,stops", _trips(9), _condition(True), _STATE, captured=_ONE, outputs=2, body=_UNTIL_THIRD)
loop("limit2,before-it-stops", _trips(2), _condition(True), _STATE, captured=_ONE, outputs=2, body=_UNTIL_THIRD)
loop(
    "without-condition,never-stops",
    _trips(4),
    None,
    _STATE,
    captured=_ONE,
    outputs=2,
    body=loop_body(_stop_immediately, _STATE),
)
loop("stops-at-once", _trips(4), _TRUE, _STATE, captured=_ONE, outputs=2, body=loop_body(_stop_immediately, _STATE))
loop("two-swapped", _trips(4), _TRUE, _STATE, _STATE, outputs=2, body=loop_body(_swap, _STATE, _STATE))
loop("scan-outputs-only", _trips(3), _TRUE, captured=_ONE, outputs=2, body=loop_body(_without_carried), numerics=EXACT)
loop("growing", _trips(3), _TRUE, data(1, 3), captured=(data(2, 3),), body=loop_body(_grow, Tensor((1, 3))))
loop(
    "element-types-differ",
    _trips(4),
    _TRUE,
    _STATE,
    values(10, "int64"),
    captured=_ONE,
    outputs=3,
    body=loop_body(_with_counter, _STATE, t(dtype="int64")),
)
loop("nested", _trips(3), _TRUE, _STATE, captured=_ONE, outputs=2, body=loop_body(_inner_loop, _STATE))
loop("captured-constant", _trips(4), _TRUE, _STATE, captured=(const(2, 3),), outputs=2, body=_ACCUMULATE)
loop("initial-constant", _trips(4), _TRUE, const(2, 3), captured=_ONE, outputs=2, body=_ACCUMULATE)
loop(
    "vectors-of-one",
    values([3], "int64"),
    values([True], "bool"),
    _STATE,
    captured=_ONE,
    outputs=2,
    body=loop_body(_accumulate, _STATE, counter_shape=(1,)),
)
loop("empty", _trips(3), _TRUE, t(0, 3), captured=(t(0, 3),), outputs=2, body=loop_body(_accumulate, t(0, 3)))


@loop.drawn_for(EACH_SIZE)
def draw_loop(draw: Draw, dtype: DType) -> OpCase:
    state = t(*shape(draw, 0, 3, largest=4))
    function = draw(st.sampled_from([_accumulate, _until_third, _stop_immediately]))
    trips = _trips(draw(st.integers(0, 4)), draw(st.booleans()))
    condition = draw(st.sampled_from([None, _condition(True), _condition(True, True), _condition(False)]))
    return loop.case(trips, condition, state, captured=(state,), outputs=2, body=loop_body(function, state))


# **** Scan ****


def _running_sum(scope: Scope) -> list[Value]:
    """Compute a running sum."""
    total = scope.combine(scope.carried[0], scope.slices[0])
    return [total, scope.copy(total)]


def _running_sum_only(scope: Scope) -> list[Value]:
    return _running_sum(scope)[:1]


def _merge_slices(scope: Scope) -> list[Value]:
    """Carry no values; concatenate the slices of two inputs."""
    return [scope.op("Concat", scope.slices[0], scope.slices[1], axis=0)]


def _two_each(scope: Scope) -> list[Value]:
    """Use two carried values, two slices, two scan outputs, and a captured value."""
    one, other = scope.carried
    left, right = scope.slices
    return [
        scope.combine(other, left),
        scope.copy(one),
        scope.combine(one, right),
        scope.combine(left, scope.captured[0]),
    ]


_RUNNING = scan_body(_running_sum, [(3,)], [(3,)])
_MERGE = scan_body(_merge_slices, [], [(3,), (2,)])

scan = table("Scan", SCALED, dtypes=ALL)
scan("time5", t(3), t(5, 3), outputs=2, body=_RUNNING, num_scan_inputs=1)
scan("time5,backwards", t(3), t(5, 3), outputs=2, body=_RUNNING, num_scan_inputs=1, scan_input_directions=(1,))
scan("time5,output-backwards", t(3), t(5, 3), outputs=2, body=_RUNNING, num_scan_inputs=1, scan_output_directions=(1,))
scan(
    "time5,both-backwards",
    t(3),
    t(5, 3),
    outputs=2,
    body=_RUNNING,
    num_scan_inputs=1,
    scan_input_directions=(1,),
    scan_output_directions=(1,),
)
scan(
    "time5,axis1,output-axis1",
    t(3),
    t(3, 5),
    outputs=2,
    body=_RUNNING,
    num_scan_inputs=1,
    scan_input_axes=(1,),
    scan_output_axes=(1,),
)
scan(
    "time4,axis-1,output-axis-2",
    t(2, 3),
    t(2, 3, 4),
    outputs=2,
    body=scan_body(_running_sum, [(2, 3)], [(2, 3)]),
    num_scan_inputs=1,
    scan_input_axes=(-1,),
    scan_output_axes=(-2,),
)
scan("time5,state-only", t(3), t(5, 3), body=scan_body(_running_sum_only, [(3,)], [(3,)]), num_scan_inputs=1)
scan("time5,scalars", t(), t(5), outputs=2, body=scan_body(_running_sum, [()], [()]), num_scan_inputs=1)
scan("time5,no-state", data(5, 3), data(5, 2), body=_MERGE, num_scan_inputs=2)
scan(
    "time5,no-state,axes+directions-differ",
    data(5, 3),
    data(2, 5),
    body=_MERGE,
    num_scan_inputs=2,
    scan_input_axes=(0, 1),
    scan_input_directions=(1, 0),
    scan_output_axes=(1,),
)
scan(
    "time4,two-of-everything,captured",
    t(3),
    t(3),
    t(4, 3),
    t(4, 3),
    captured=(t(3),),
    outputs=4,
    body=scan_body(_two_each, [(3,), (3,)], [(3,), (3,)]),
    num_scan_inputs=2,
    scan_output_directions=(0, 1),
    scan_output_axes=(0, 1),
)
scan("time1", t(3), t(1, 3), outputs=2, body=_RUNNING, num_scan_inputs=1)
scan("time0", t(3), t(0, 3), outputs=2, body=_RUNNING, num_scan_inputs=1)
scan("time5,constants", const(3), const(5, 3), outputs=2, body=_RUNNING, num_scan_inputs=1)
scan("time5,special", t(5, 3, init=special), t(5, 2, init=special), body=_MERGE, num_scan_inputs=2, numerics=EXACT)


@scan.drawn_for(EACH_SIZE)
def draw_scan(draw: Draw, dtype: DType) -> OpCase:
    state = shape(draw, 0, 2, largest=4)
    axis, output_axis = draw(st.integers(0, len(state))), draw(st.integers(0, len(state)))
    sequence = (*state[:axis], draw(st.integers(0, 4)), *state[axis:])
    return scan.case(
        t(*state),
        t(*sequence),
        outputs=2,
        body=scan_body(_running_sum, [state], [state]),
        num_scan_inputs=1,
        scan_input_axes=(axis - draw(st.sampled_from([0, len(sequence)])),),
        scan_input_directions=(draw(st.integers(0, 1)),),
        scan_output_axes=(output_axis,),
        scan_output_directions=(draw(st.integers(0, 1)),),
    )
