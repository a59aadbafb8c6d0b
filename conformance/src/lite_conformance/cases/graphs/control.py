"""If, Loop and Scan: branches, trip counts, carried values, captured values."""

from __future__ import annotations

from lite_conformance.cases.graphs.draft import Draft, GraphTable
from lite_conformance.judge.tolerances import EXACT
from lite_core.ir import Graph, Value

__all__ = ["graphs"]

graphs = GraphTable()

_TYPES = ("float32", "float64", "float16", "int64")
_TRUTHS = (True, False)


@graphs.case("if-branches", _TYPES, op="If")
def _(g: Draft) -> None:
    """Both branches, in successive runs, on captured values."""
    x = g.input(3, 5)
    condition = g.input_of(*_TRUTHS, dtype="bool")
    then = g.branch("then", lambda b: b("Add", x, x))
    other = g.branch("else", lambda b: b("Neg", x))
    g.output(g("If", condition, then_branch=then, else_branch=other))


@graphs.case("if-vector-condition", op="If")
def _(g: Draft) -> None:
    """The condition is a vector of one element."""
    x = g.input(3, 5)
    then = g.branch("then", lambda b: b("Tanh", x))
    other = g.branch("else", lambda b: b("Neg", x))
    g.output(g("If", g.input_of([False], [True], dtype="bool"), then_branch=then, else_branch=other))


@graphs.case("if-computed-condition", op="If")
def _(g: Draft) -> None:
    """The condition is computed from the input, and the result is used by other nodes."""
    x = g.input_of([1.0, 2.0, 3.0], [-1.0, -2.0, -3.0], [5.0, -4.0, 1.0])
    total = g("ReduceSum", x, (0,), keepdims=0)
    then = g.branch("then", lambda b: b("Sqrt", total))
    other = g.branch("else", lambda b: b("Mul", total, 10.0))
    result = g("If", g("Greater", total, 0.0), then_branch=then, else_branch=other)
    g.output(g("Add", x, result), result)


@graphs.case("if-two-outputs", _TYPES, op="If")
def _(g: Draft) -> None:
    """Two outputs; one branch returns a captured value, and uses its own constant."""
    x, y = g.input(2, 4), g.input(2, 4)
    condition = g.input_of(*_TRUTHS, dtype="bool")
    then = g.branch("then", lambda b: [b("Add", x, y), b("Sub", x, y)])
    other = g.branch("else", lambda b: [b("Identity", y), b("Mul", x, b.constant([[2] * 4, [3] * 4]))])
    g.output(*g.several("If", 2, condition, then_branch=then, else_branch=other))


@graphs.case("if-sizes-differ", op="If")
def _(g: Draft) -> None:
    """The branches give results of different sizes, so that the size is known only at run time."""
    x = g.input(4, 3)
    condition = g.input_of(*_TRUTHS, dtype="bool")
    then = g.branch("then", lambda b: b("Concat", x, x, axis=0))
    other = g.branch("else", lambda b: b("Slice", x, (1,), (2,), (0,)))
    result = g("If", condition, then_branch=then, else_branch=other)
    g.output(g("Relu", result), g("Shape", result))


@graphs.case("if-in-if", _TYPES, op="If")
def _(g: Draft) -> None:
    """All four combinations of two conditions, with captured values of both enclosing graphs."""
    x = g.input(2, 3)
    outer = g.input_of(True, True, False, False, dtype="bool")
    inner = g.input_of(True, False, True, False, dtype="bool")
    shifted = g("Add", x, g.constant(3))

    def nested(b: Draft) -> Value:
        doubled = b("Add", x, x)
        then = b.branch("inner_then", lambda c: c("Add", doubled, shifted))
        other = b.branch("inner_else", lambda c: c("Sub", doubled, shifted))
        return b("If", inner, then_branch=then, else_branch=other)

    g.output(g("If", outer, then_branch=g.branch("then", nested), else_branch=g.branch("else", lambda b: b("Neg", x))))


@graphs.case("if-guards-a-chain", op="If")
def _(g: Draft) -> None:
    """Layers with weights inside the branches."""
    x = g.linear(g.input(3, 6), 5)
    condition = g.input_of(*_TRUTHS, dtype="bool")
    then = g.branch("then", lambda b: b("Relu", b.linear(x, 4)))
    other = g.branch("else", lambda b: b("Sigmoid", b.linear(b("Tanh", x), 4)))
    g.output(g("Softmax", g("If", condition, then_branch=then, else_branch=other), axis=-1))


def _body(g: Draft, carried: tuple[int, ...]) -> tuple[Draft, Value, Value, Value]:
    """Return a loop body with one carried value: draft, iteration number, condition, carried value."""
    b = g.body("body")
    return b, b.argument("int64"), b.argument("bool"), b.argument(g.dtype, *carried)


def _accumulating(g: Draft, x: Value) -> Graph:
    """Return a body that adds a captured value to the state; the scan output is the square of each state."""
    b, _, condition, state = _body(g, (2, 3))
    after = b("Add", state, x)
    b.output(b("Identity", condition), after, b("Mul", after, after))
    return b.builder.build()


@graphs.case("loop-trip-count", ("float32", "float64", "int64"), op="Loop")
def _(g: Draft) -> None:
    """A constant trip count; a carried value, a scan output and a captured value."""
    body = _accumulating(g, g("Neg", g.input(2, 3)))
    trips, always = g.constant(5, "int64"), g.constant(True, "bool")
    g.output(*g.several("Loop", 2, trips, always, g.input(2, 3), body=body))


@graphs.case("loop-trips-at-run-time", op="Loop")
def _(g: Draft) -> None:
    """The trip count is an input: four, none, one."""
    body = _accumulating(g, g.input(2, 3))
    trips, go = g.input_of(4, 0, 1, dtype="int64"), g.input_of(True, dtype="bool")
    g.output(*g.several("Loop", 2, trips, go, g.input(2, 3), body=body))


@graphs.case("loop-never-entered", op="Loop")
def _(g: Draft) -> None:
    """The condition is false before the first iteration, in every other run."""
    body = _accumulating(g, g.input(2, 3))
    go = g.input_of(False, True, dtype="bool")
    g.output(*g.several("Loop", 2, g.constant(3, "int64"), go, g.input(2, 3), body=body))


@graphs.case("loop-while", op="Loop")
def _(g: Draft) -> None:
    """The value doubles until the sum is large enough; only the condition ends the loop."""
    b, _, _, state = _body(g, (3,))
    after = b("Add", state, state)
    b.output(b("Less", b("ReduceSum", after, (0,), keepdims=0), 100.0), after)
    start = g.input_of([1.0, 2.0, 3.0], [30.0, 30.0, 30.0], [0.5, 0.0, 0.0])
    g.output(g("Loop", None, g.constant(True, "bool"), start, body=b.builder.build()))


@graphs.case("loop-iteration-number", ("float32", "int64"), numerics=EXACT, op="Loop")
def _(g: Draft) -> None:
    """The iteration number selects a row; one carried value stays unchanged, another changes."""
    rows = g.input(4, 3)
    b = g.body("body")
    number, condition = b.argument("int64"), b.argument("bool")
    kept, sum_ = b.argument(g.dtype, 3), b.argument(g.dtype, 3)
    row = b("Gather", rows, number, axis=0)
    b.output(
        b("Identity", condition), b("Identity", kept), b("Max", sum_, row), b("Max", row, kept), b("Identity", number)
    )
    go = g.constant(True, "bool")
    first = g.input(3)
    g.output(*g.several("Loop", 4, g.constant(4, "int64"), go, first, g("Neg", first), body=b.builder.build()))


@graphs.case("loop-stops-and-collects", ("float32", "float64", "float16", "int64", "uint8"), op="Loop")
def _(g: Draft) -> None:
    """The condition ends the loop before the limit, or before it begins; outputs of two types are stacked."""
    x, last = g.input(2, 3), g.input_of(2, 5, 0, dtype="int64")
    b, number, _, state = _body(g, (2, 3))
    after = b("Max", state, x)
    b.output(b("Less", number, last), after, b("Add", after, state), b("Greater", after, x))
    go = g.input_of(True, True, False, dtype="bool")
    g.output(*g.several("Loop", 3, g.constant(4, "int64"), go, x, body=b.builder.build()))


@graphs.case("loop-updates-a-table", ("float32", "int64", "uint8"), numerics=EXACT, op="Loop")
def _(g: Draft) -> None:
    """A row of a carried table is replaced in each iteration, and another row is read."""
    row = g.input(3)
    b, number, condition, table = _body(g, (5, 3))
    at = b("Reshape", number, (1, 1))
    updated = b("ScatterND", table, at, b("Unsqueeze", b("Max", row, b("Gather", table, number)), (0,)))
    b.output(b("Identity", condition), updated, b("Gather", updated, b.constant(4, "int64")))
    trips = g.constant(4, "int64")
    g.output(*g.several("Loop", 2, trips, g.constant(True, "bool"), g.input(5, 3), body=b.builder.build()))


@graphs.case("loop-replaces", op="Loop")
def _(g: Draft) -> None:
    """The body does not read a carried value, and gives it another rank; without an iteration it stays."""
    x = g.input(2, 3)
    b = g.body("body")
    _, condition = b.argument("int64"), b.argument("bool")
    state, _ = b.argument(g.dtype, 2, 3), b.argument(g.dtype, "length")
    after = b("Add", state, x)
    b.output(b("Identity", condition), after, b("Unsqueeze", after, (0,)))
    trips = g.input_of(2, 0, 1, dtype="int64")
    g.output(*g.several("Loop", 2, trips, g.constant(True, "bool"), x, g.constant([1, 2]), body=b.builder.build()))


@graphs.case("loop-grows", op="Loop")
def _(g: Draft) -> None:
    """The carried value has a different size in each iteration."""
    b = g.body("body")
    _, condition, state = b.argument("int64"), b.argument("bool"), b.argument(g.dtype, "length")
    b.output(b("Identity", condition), b("Concat", state, b("Mul", b("Slice", state, (0,), (1,), (0,)), 2.0), axis=0))
    trips = g.input_of(3, 1, dtype="int64")
    g.output(g("Loop", trips, g.constant(True, "bool"), g.input(2), body=b.builder.build()))


@graphs.case("loop-in-loop", ("float32", "int64"), op="Loop")
def _(g: Draft) -> None:
    """The inner loop captures values of the outer body and of the graph."""
    x = g.input(2, 3)
    outer, number, condition, state = _body(g, (2, 3))
    inner = outer.body("inner")
    inner.argument("int64")
    going, inside = inner.argument("bool"), inner.argument(g.dtype, 2, 3)
    inner.output(inner("Identity", going), inner("Add", inner("Sub", inside, x), state))
    trips = outer("Add", number, outer.constant(1, "int64"))
    start = outer("Neg", state)
    after = outer("Loop", trips, outer.constant(True, "bool"), start, body=inner.builder.build())
    outer.output(outer("Identity", condition), after)
    g.output(g("Loop", g.constant(3, "int64"), g.constant(True, "bool"), x, body=outer.builder.build()))


@graphs.case("if-in-loop", op="Loop")
def _(g: Draft) -> None:
    """The iterations alternate between the branches."""
    x = g.input(2, 3)
    b, number, condition, state = _body(g, (2, 3))
    even = b("Equal", b("Mod", number, b.constant(2, "int64")), b.constant(0, "int64"))
    then = b.branch("then", lambda c: c("Add", state, x))
    other = b.branch("else", lambda c: c("Mul", state, 0.5))
    after = b("If", even, then_branch=then, else_branch=other)
    b.output(b("Identity", condition), after, after)
    g.output(*g.several("Loop", 2, g.constant(5, "int64"), g.constant(True, "bool"), x, body=b.builder.build()))


@graphs.case("loop-in-if", op="If")
def _(g: Draft) -> None:
    x = g.input(2, 3)
    condition = g.input_of(*_TRUTHS, dtype="bool")

    def looping(b: Draft) -> Value:
        body = _accumulating(b, x)
        return b.several("Loop", 2, b.constant(3, "int64"), b.constant(True, "bool"), b("Tanh", x), body=body)[0]

    other = g.branch("else", lambda b: b("Neg", x))
    g.output(g("If", condition, then_branch=g.branch("then", looping), else_branch=other))


@graphs.case("scan-running-sum", ("float32", "float64"), op="Scan")
def _(g: Draft) -> None:
    b = g.body("body")
    state, element = b.argument(g.dtype, 3), b.argument(g.dtype, 3)
    after = b("Add", state, element)
    b.output(after, b("Mul", after, element))
    g.output(*g.several("Scan", 2, g.input(3), g.input(6, 3), body=b.builder.build(), num_scan_inputs=1))
