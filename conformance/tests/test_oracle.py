"""The oracle: the truth, and the magnitudes that tolerances are relative to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lite_conformance.judge.oracle import expect, in_float64
from lite_conformance.judge.tolerances import ARITHMETIC, EXACT, FUNCTION, SCALED, SUM, Numerics
from lite_core.builder import GraphBuilder
from lite_core.ir import DType, Graph

Array = np.ndarray[Any, Any]


def single(op: str, arrays: list[Array], constants: list[Array] | None = None, **attributes: Any) -> Graph:
    builder = GraphBuilder("g")
    given = [builder.input(f"x{i}", a.dtype, a.shape) for i, a in enumerate(arrays)]
    given += [builder.constant(a) for a in constants or []]
    builder.output(builder.add(op, given, attributes), "y")
    return builder.build()


def truth(graph: Graph, arrays: list[Array], numerics: Numerics) -> tuple[Array, float | Array]:
    (found,) = expect(graph, arrays, numerics)
    return found.array, found.magnitude


def test_truth_is_computed_in_float64() -> None:
    x, w = np.array([1, 2.0**-30], np.float32), np.array([1, 1], np.float32)
    graph = single("MatMul", [x], [w])
    array, _ = truth(graph, [x], SUM)
    assert array.dtype == np.float64
    assert array == 1 + 2.0**-30  # not representable in float32
    assert graph.outputs[0].dtype is DType.FLOAT32  # the graph itself is unchanged
    assert next(iter(graph.constants.values())).dtype == np.float32


def test_exact_operator_is_computed_in_its_own_type() -> None:
    x = np.array([0.1, 2.7], np.float16)
    array, magnitude = truth(single("Floor", [x]), [x], EXACT)
    assert array.tolist() == [0.0, 2.0]
    assert magnitude == 0.0


def test_type_attribute_is_widened() -> None:
    x = np.array([1, 3], np.int32)
    array, _ = truth(single("Cast", [x], to=DType.FLOAT16), [x], ARITHMETIC)
    assert array.dtype == np.float64


def test_input_of_fixed_type_stays_float32() -> None:
    x = np.arange(4, dtype=np.float16).reshape(1, 1, 2, 2)
    scales = np.array([1, 1, 1.5, 1.5], np.float32)
    builder = GraphBuilder("g")
    image = builder.input("x", "float16", x.shape)
    builder.output(builder.add("Resize", [image, None, builder.constant(scales)], {"mode": "linear"}), "y")
    graph = builder.build()
    wide = in_float64(graph)
    assert sorted(a.dtype.name for a in wide.constants.values()) == ["float32"]
    assert wide.inputs[0].dtype is wide.outputs[0].dtype is DType.FLOAT64
    assert truth(graph, [x], FUNCTION)[0].shape == (1, 1, 3, 3)


def test_branches_are_widened() -> None:
    builder = GraphBuilder("g")
    condition = builder.input("c", "bool", ())
    x = builder.input("x", "float32", (1,))
    branches = {}
    for name, constant in (("then_branch", 2.0**-30), ("else_branch", 1.0)):
        body = GraphBuilder(name, outer=builder)
        body.output(body.add("Add", [x, body.constant(np.array([constant], np.float32))]))
        branches[name] = body.build()
    builder.output(builder.add("If", [condition], branches), "y")
    array, _ = truth(builder.build(), [np.array(True), np.array([1], np.float32)], ARITHMETIC)
    assert array.tolist() == [1 + 2.0**-30]


def test_operator_without_float64_is_computed_in_its_own_type() -> None:
    x = np.array([0.4, 1.6, -3.0], np.float32)
    scale, zero = np.array(0.5, np.float32), np.array(3, np.uint8)
    array, magnitude = truth(single("QuantizeLinear", [x], [scale, zero]), [x], SUM)
    assert (array.dtype, array.tolist()) == (np.uint8, [4, 6, 0])
    assert magnitude == 0.0


def test_magnitude_of_a_sum_is_the_sum_of_absolute_terms() -> None:
    x = np.array([[1, -2, 3], [0, 0, 0]], np.float32)
    w = np.array([[1], [1], [-1]], np.float32)
    array, magnitude = truth(single("MatMul", [x], [w]), [x], SUM)
    assert array.tolist() == [[-4.0], [0.0]]
    assert np.asarray(magnitude).tolist() == [[6.0], [0.0]]


def test_infinite_and_nan_terms_have_magnitude_zero() -> None:
    x = np.array([[np.inf, 1.0], [np.nan, 1.0], [1.0, 1.0]], np.float32)
    _, magnitude = truth(single("ReduceSum", [x], [np.array([1])], keepdims=0), [x], SUM)
    assert np.asarray(magnitude).tolist() == [0.0, 0.0, 2.0]


@pytest.mark.parametrize(
    ("numerics", "magnitude"), [(EXACT, 0.0), (ARITHMETIC, 0.0), (FUNCTION, 1.0), (SCALED, 7.0)], ids=lambda n: str(n)
)
def test_magnitude_of_each_kind_of_operator(numerics: Numerics, magnitude: float) -> None:
    x = np.array([-7.0, np.inf, np.nan, 2.0], np.float32)
    assert truth(single("Identity", [x]), [x], numerics)[1] == magnitude


def test_bfloat16_in_and_float64_out() -> None:
    x = np.array([1.5, -2.25], DType.BFLOAT16.numpy)
    array, _ = truth(single("Mul", [x, x]), [x, x], ARITHMETIC)
    assert (array.dtype, array.tolist()) == (np.float64, [2.25, 5.0625])
