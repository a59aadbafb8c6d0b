"""Conditionals, loops and tensor arrays, against Paddle and by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from paddle_cases import Case, check, parametrize_cases

from lite_core.errors import UnsupportedOperatorError
from lite_core.ops.evaluate import evaluate_graph
from lite_paddle.lowering import lower
from lite_paddle.reader import read
from lite_paddle.reader.attributes import complete_attributes
from lite_paddle.source import SourceBlock, SourceOp, SourceProgram, SourceType, SourceValue

RNG = np.random.default_rng(4)
X = RNG.standard_normal((2, 3)).astype(np.float32)
THREE = np.array(3, np.int64)
PIR = ("pir",)  # Paddle 3 can no longer export these as legacy files


def _cond(p: Any) -> Any:
    return lambda x: p.static.nn.cond(p.mean(x) > 0, lambda: x + 1.0, lambda: p.tanh(x) - x)


def _cond_outer(p: Any) -> Any:
    def function(x: Any) -> Any:
        y = x * 2.0
        return p.static.nn.cond(p.max(x) > 100, lambda: (y, x), lambda: (x, x))

    return function


def _loop(p: Any) -> Any:
    def function(x: Any, n: Any) -> Any:
        i = p.zeros([1], "int64")
        _, total, _ = p.static.nn.while_loop(
            lambda i, total, scale: i < n,
            lambda i, total, scale: [i + 1, total * 0.5 + x * scale, scale],
            [i, x * 1.0, p.full([1], 2.0)],  # Paddle changes the initial values in dynamic mode
        )
        return total

    return function


def _growing(p: Any) -> Any:
    def function(x: Any, n: Any) -> Any:
        def body(i: Any, grown: Any) -> list[Any]:
            row = p.reshape(p.sum(grown, axis=0), [1, -1])
            return [i + 1, p.concat([grown, row], axis=0)]

        return p.static.nn.while_loop(lambda i, grown: i < n, body, [p.zeros([1], "int64"), x])[1]

    return function


def _nested(p: Any) -> Any:
    def function(x: Any, n: Any) -> Any:
        def inner(j: Any, y: Any) -> list[Any]:
            return [j + 1, y + x]

        def outer(i: Any, y: Any) -> list[Any]:
            y = p.static.nn.while_loop(lambda j, y: j < i, inner, [p.zeros([1], "int64"), y * 1.0])[1]
            y = p.static.nn.cond(p.sum(y) > 5, lambda: y * 0.5, lambda: y + 1.0)
            return [i + 1, y]

        return p.static.nn.while_loop(lambda i, y: i < n, outer, [p.zeros([1], "int64"), x * 1.0])[1]

    return function


def _list(join: str, axis: int) -> Callable[[Any], Any]:
    def build(p: Any) -> Any:
        def function(x: Any) -> Any:
            found = [x * float(i) for i in range(3)]
            return getattr(p, join)(found, axis=axis)

        return function

    return build


def _array(p: Any) -> Any:
    def function(x: Any) -> Any:
        array = p.tensor.create_array("float32")
        zero, one = p.full([1], 0, "int64"), p.full([1], 1, "int64")
        array = p.tensor.array_write(x, zero, array)
        array = p.tensor.array_write(x * 2.0, one, array)
        array = p.tensor.array_write(x * 3.0, zero, array)
        return p.tensor.array_read(array, zero) - p.tensor.array_read(array, one), p.tensor.array_length(array) + zero

    return function


def _appending(join: str, axis: int, first: bool) -> Callable[[Any], Any]:
    def build(p: Any) -> Any:
        def function(x: Any, n: Any) -> Any:
            array = p.tensor.create_array("float32")
            if first:
                array = p.tensor.array_write(x, p.full([1], 0, "int64"), array)
            i = p.full([1], 1 if first else 0, "int64")
            y = x * 1.0

            def body(i: Any, y: Any) -> list[Any]:
                y = y * 0.5 + 1.0
                p.tensor.array_write(y, i, array)
                return [i + 1, y]

            p.static.nn.while_loop(lambda i, y: i < n, body, [i, y])
            joined, _ = p.tensor.manipulation.tensor_array_to_tensor(array, axis=axis, use_stack=join == "stack")
            return joined

        return function

    return build


# Paddle turns Python's own loops and lists into operators only in functions of modules.


def loop_appends(x: Any, n: Any) -> Any:
    import paddle

    found = []
    y = x * 1.0
    for _ in range(n):
        y = y * 0.5 + 1.0
        found.append(y)
    return paddle.stack(found, axis=1)


def loop_appends_behind(x: Any, n: Any) -> Any:
    import paddle

    found = [x]
    y = x * 1.0
    for _ in range(n):
        y = y * 0.5 + 1.0
        found.append(y)
    return paddle.concat(found, axis=-1)


def loop_breaks(x: Any, n: Any) -> Any:
    y = x * 1.0
    for _ in range(n):
        y = y + 1.0
        if y.sum() > 8:
            break
    return y


def loop_sets_columns(x: Any, n: Any) -> Any:
    y = x * 1.0
    for i in range(n):
        y[:, i] = y[:, i] * 2.0
    return y


CASES = [
    Case("loop_appends", lambda p: loop_appends, [X, THREE], kinds=PIR),
    Case("loop_appends_behind", lambda p: loop_appends_behind, [X, THREE], kinds=PIR),
    Case("loop_breaks", lambda p: loop_breaks, [X, THREE], kinds=PIR),
    Case("loop_fills", lambda p: loop_sets_columns, [X, THREE], kinds=PIR),
    Case("cond", _cond, [X], kinds=PIR),
    Case("cond_negative", _cond, [-np.abs(X)], shapes=[(None, 3)], kinds=PIR),
    Case("cond_outer", _cond_outer, [X], kinds=PIR),
    Case("loop", _loop, [X, THREE], kinds=PIR),
    Case("loop_none", _loop, [X, THREE * 0], kinds=PIR),
    Case("loop_growing", _growing, [X, THREE], kinds=PIR),
    Case("loop_nested", _nested, [X, THREE], kinds=PIR),
    Case("list_concat", _list("concat", 1), [X]),
    Case("list_stack", _list("stack", -1), [X]),
    Case("array", _array, [X], kinds=PIR),
    Case("appending_stack", _appending("stack", 1, True), [X, THREE + 1], kinds=PIR),
    Case("appending_concat", _appending("concat", 1, False), [X, THREE], kinds=PIR),
    Case("appending_concat_first", _appending("concat", 0, True), [X, THREE], kinds=PIR),
]


@parametrize_cases(CASES)
def test_matches_paddle(case: Case, kind: str, paddle_models: Callable[[str], Path]) -> None:
    check(case, paddle_models(kind), kind)


# **** by hand ****


class Model:
    """A program built operator by operator."""

    def __init__(self) -> None:
        self.program = SourceProgram("legacy", 2_006_002, [], [], {}, {}, SourceBlock(), Path("hand_made"))
        self.feeds: list[Any] = []

    def input(self, name: str, array: Any) -> SourceValue:
        value = SourceValue(name, SourceType(array.dtype.name, array.shape))
        self.program.inputs.append((name, value))
        self.feeds.append(array)
        return value

    def run(self, *outputs: SourceValue) -> list[Any]:
        self.program.outputs[:] = [(v.name, v) for v in outputs]
        graph = lower(self.program)
        return evaluate_graph(graph, self.feeds)


def add(
    block: SourceBlock, op_type: str, inputs: dict[str, list[SourceValue]], attrs: Any = None, slot: str = "Out"
) -> SourceValue:
    out = SourceValue(f"{op_type}_{len(block.ops)}_{id(block) % 1000}")
    block.ops.append(SourceOp(op_type, inputs, {slot: [out]}, complete_attributes(op_type, attrs or {})))
    return out


def number(block: SourceBlock, value: int, dtype: str = "int64") -> SourceValue:
    return add(block, "fill_constant", {}, {"shape": [1], "dtype": dtype, "value": value})


def loop_with_array(model: Model, body_of: Callable[..., list[SourceValue]], first: int = 1) -> list[SourceValue]:
    """Build ``while i < 4`` with an array; ``body_of`` returns the new i and array; i starts at ``first``."""
    main = model.program.block
    x = model.input("x", X)
    array = add(main, "create_array", {})
    for i in range(first):
        array = add(main, "write_to_array", {"Array": [array], "X": [x], "I": [number(main, i)]})
    start, limit = number(main, first), number(main, 4)
    condition = add(main, "less_than", {"X": [start], "Y": [limit]})
    body = SourceBlock(arguments=[SourceValue("i@loop"), SourceValue("array@loop")])
    results = body_of(body, x, *body.arguments)
    body.results = [add(body, "less_than", {"X": [results[0]], "Y": [limit]}), *results]
    outs = [SourceValue("i_end"), SourceValue("array_end")]
    inputs = {"Condition": [condition], "X": [start, array]}
    main.ops.append(SourceOp("while", inputs, {"Out": outs}, {}, [body]))
    return outs


def test_reading_the_last_element_in_a_loop() -> None:
    """A recurrent network of Paddle 1 reads its previous state from the array's last element."""

    def body_of(body: SourceBlock, x: SourceValue, i: SourceValue, array: SourceValue) -> list[SourceValue]:
        one_less = add(body, "increment", {"X": [i]}, {"step": -1.0})
        before = add(body, "read_from_array", {"X": [array], "I": [one_less]})
        after = add(body, "elementwise_add", {"X": [before], "Y": [x]})
        written = add(body, "write_to_array", {"Array": [array], "X": [after], "I": [i]})
        return [add(body, "increment", {"X": [i]}), written]

    model = Model()
    _, array = loop_with_array(model, body_of)
    main = model.program.block
    stacked = add(main, "tensor_array_to_tensor", {"X": [array]}, {"use_stack": True})
    second = add(main, "read_from_array", {"X": [array], "I": [number(main, 1)]})
    length = add(main, "lod_array_length", {"X": [array]})
    results = model.run(stacked, second, length)
    np.testing.assert_allclose(results[0], np.stack([X, 2 * X, 3 * X, 4 * X]), rtol=1e-6)
    np.testing.assert_allclose(results[1], 2 * X, rtol=1e-6)
    np.testing.assert_array_equal(results[2], [4])


def test_appending_at_the_length() -> None:
    def body_of(body: SourceBlock, x: SourceValue, i: SourceValue, array: SourceValue) -> list[SourceValue]:
        length = add(body, "lod_array_length", {"X": [array]})
        scaled = add(
            body, "elementwise_mul", {"X": [x], "Y": [add(body, "cast", {"X": [length]}, {"out_dtype": "float32"})]}
        )
        written = add(body, "write_to_array", {"Array": [array], "X": [scaled], "I": [length]})
        return [add(body, "increment", {"X": [i]}), written]

    model = Model()
    _, array = loop_with_array(model, body_of, first=2)
    joined = add(model.program.block, "tensor_array_to_tensor", {"X": [array]}, {"axis": 1})
    np.testing.assert_allclose(model.run(joined)[0], np.concatenate([X, X, 2 * X, 3 * X], axis=1), rtol=1e-6)


def test_writing_to_a_fixed_index_in_a_loop_is_refused() -> None:
    def body_of(body: SourceBlock, x: SourceValue, i: SourceValue, array: SourceValue) -> list[SourceValue]:
        written = add(body, "write_to_array", {"Array": [array], "X": [x], "I": [number(body, 0)]})
        return [add(body, "increment", {"X": [i]}), written]

    model = Model()
    _, array = loop_with_array(model, body_of)
    out = add(model.program.block, "tensor_array_to_tensor", {"X": [array]})
    with pytest.raises(UnsupportedOperatorError, match="appending one element per iteration"):
        model.run(out)


def test_unchanged_values_are_not_carried() -> None:
    def body_of(body: SourceBlock, x: SourceValue, i: SourceValue, array: SourceValue) -> list[SourceValue]:
        return [add(body, "increment", {"X": [i]}), array]

    model = Model()
    end, array = loop_with_array(model, body_of)
    model.program.outputs[:] = [("end", end)]
    graph = lower(model.program)
    (loop,) = [n for n in graph.nodes if n.op == "Loop"]
    assert len(loop.outputs) == 1
    np.testing.assert_array_equal(evaluate_graph(graph, model.feeds)[0], [4])
    del array


def test_slices_and_dynamic_reads_of_arrays() -> None:
    model = Model()
    main, x, index = model.program.block, model.input("x", X), model.input("place", np.array([1], np.int64))
    array = add(main, "create_array", {})
    for i in range(3):
        scaled = add(main, "scale", {"X": [x]}, {"scale": float(i)})
        array = add(main, "write_to_array", {"Array": [array], "X": [scaled], "I": [number(main, i)]})
    read = add(main, "read_from_array", {"X": [array], "I": [index]})
    attrs = {"axes": [0], "starts": [-1], "ends": [2**31 - 1], "decrease_axis": [0]}
    last = add(main, "slice", {"Input": [array]}, attrs)
    part = add(main, "slice", {"Input": [array]}, {"axes": [0], "starts": [1], "ends": [3]})
    joined = add(main, "tensor_array_to_tensor", {"X": [part]}, {"axis": 0})
    results = model.run(read, last, joined)
    np.testing.assert_array_equal(results[0], X)
    np.testing.assert_array_equal(results[1], 2 * X)
    np.testing.assert_array_equal(results[2], np.concatenate([X, 2 * X]))


@pytest.mark.parametrize("empty", [False, True])
def test_non_scalar_condition_asks_for_elements(empty: bool) -> None:
    """A condition without is_scalar_condition asks in Paddle 1 if the tensor has elements."""
    model = Model()
    main, x, condition_tensor = (
        model.program.block,
        model.input("x", X),
        model.input("asked", np.zeros((0 if empty else 2, 1), bool)),
    )
    then = SourceBlock()
    then.results = [add(then, "scale", {"X": [x]}, {"scale": 2.0})]
    out = SourceValue("out")
    blocks = [then, SourceBlock(results=[x])]
    attrs = {"is_scalar_condition": False}
    main.ops.append(SourceOp("if", {"Cond": [condition_tensor]}, {"Out": [out]}, attrs, blocks))
    model.program.inputs[1][1].type = SourceType("bool", (-1, 1))
    np.testing.assert_array_equal(model.run(out)[0], X if empty else 2 * X)


def test_known_condition_needs_no_branch() -> None:
    model = Model()
    main, x = model.program.block, model.input("x", X)
    condition = add(main, "fill_constant", {}, {"shape": [1], "dtype": "bool", "value": 0})
    then, otherwise = SourceBlock(), SourceBlock()
    then.results = [add(then, "set_value", {"Input": [x]})]  # cannot be lowered, and need not be
    otherwise.results = [add(otherwise, "scale", {"X": [x]}, {"scale": 3.0})]
    out = SourceValue("out")
    main.ops.append(SourceOp("if", {"Cond": [condition]}, {"Out": [out]}, {}, [then, otherwise]))
    model.program.outputs[:] = [("out", out)]
    assert all(node.op != "If" for node in lower(model.program).nodes)
    np.testing.assert_allclose(model.run(out)[0], 3 * X, rtol=1e-6)


def test_select_input() -> None:
    model = Model()
    main, x, y = model.program.block, model.input("x", X), model.input("y", X[:1])
    mask = model.input("mask", np.array([1], np.int32))
    out = add(main, "select_input", {"X": [x, y], "Mask": [mask]})
    np.testing.assert_array_equal(model.run(out)[0], X[:1])


def test_a_placeholder_of_another_element_type() -> None:
    """Paddle 2.6 carries a float placeholder for a variable that only the body defines."""
    model = Model()
    main, limit = model.program.block, model.input("limit", np.array([3], np.int64))
    start, placeholder = number(main, 0), add(main, "fill_constant", {}, {"shape": [1], "value": 1e27})
    condition = add(main, "less_than", {"X": [start], "Y": [limit]})
    body = SourceBlock(arguments=[SourceValue("i@loop"), SourceValue("own@loop")])
    after = add(body, "increment", {"X": [body.arguments[0]]})
    own = add(body, "scale", {"X": [after]}, {"scale": 2.0})
    body.results = [add(body, "less_than", {"X": [after], "Y": [limit]}), after, own]
    outs = [SourceValue("i_end"), SourceValue("own_end")]
    inputs = {"Condition": [condition], "X": [start, placeholder]}
    main.ops.append(SourceOp("while", inputs, {"Out": outs}, {}, [body]))
    np.testing.assert_array_equal(model.run(*outs), [[3], [6]])
    assert model.run(outs[1])[0].dtype == np.int64
    # If the body reads it, the two types are a contradiction.
    body.ops[1].inputs["X"] = [body.arguments[1]]
    body.ops.append(SourceOp("cast", {"X": [own]}, {"Out": [cast := SourceValue("cast")]}, {"out_dtype": "int64"}))
    body.results[2] = cast
    with pytest.raises(UnsupportedOperatorError, match="float32 before the loop and int64 after"):
        model.run(outs[1])


@pytest.mark.parametrize("folder", ["legacy_2.6", "pir_3.3"])
def test_decoder_with_a_break(folder: str) -> None:
    graph = lower(read(Path(__file__).parent / "fixtures" / folder / "decoder"))
    scores = np.array([[0, 3, 2, 1, 0, 2], [2, 2.5, 5, 4, 6, 2]], np.float32)
    for limit in (0, 2, 9):
        tokens, i = np.zeros((2, 1), np.int64), 0
        while i < limit:
            counts = (tokens[:, :, None] == np.arange(6)).sum(1)
            tokens = np.concatenate([tokens, np.argmax(scores - counts, 1)[:, None]], axis=1)
            if tokens.sum() > 20:
                break
            i += 1
        assert limit < 9 or i < 9  # the last loop ends by the break
        feeds = {"scores": scores, "limit": np.array([limit])}
        found = evaluate_graph(graph, [feeds[v.name] for v in graph.inputs])
        np.testing.assert_array_equal(found[0], tokens)
        np.testing.assert_array_equal(found[1], [i])
