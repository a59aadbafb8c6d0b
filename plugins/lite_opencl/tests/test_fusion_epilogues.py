"""Fusion of element-wise nodes into the kernel before them: all families, both kinds of devices, all element types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from opencl_agreement import KINDS, labels_of, run_for
from tiers import in_part

from lite_core.builder import GraphBuilder
from lite_core.ir import DType, Graph, Value
from lite_core.ops.evaluate import evaluate_graph

Array = np.ndarray[Any, Any]


class Family(NamedTuple):
    """A node of an operator family that element-wise nodes follow.

    Attributes:
        add: adds the node to a graph, for an input.
        shape: the shape of the input.
        elementwise: number of element-wise kernels and copies that remain.
    """

    add: Callable[[GraphBuilder, Value], Value]
    shape: tuple[int, ...]
    elementwise: int = 0


def node(op: str, *more: Array, **attributes: Any) -> Callable[[GraphBuilder, Value], Value]:
    """Return a function that adds a node; ``more`` are constants that it reads after its input."""

    def add(builder: GraphBuilder, x: Value) -> Value:
        return builder.add(op, [x, *(builder.constant(a) for a in more)], attributes)

    return add


def gathered(op: str, indices: Array, **attributes: Any) -> Callable[[GraphBuilder, Value], Value]:
    """Return a function that adds a node with indices that are not known before the run."""

    def add(builder: GraphBuilder, x: Value) -> Value:
        given = builder.input("indices", "int64", indices.shape)
        return builder.add(op, [x, given], attributes)

    return add


def ints(*numbers: int) -> Array:
    return np.array(numbers, np.int64)


def vectors(count: int, size: int) -> list[Array]:
    return [np.linspace(0.5, 1.5 + i, size, dtype=np.float32) for i in range(count)]


INDICES = {
    "gather": ints(2, 0, -1),
    "gather nd": ints(1, 0, 0, 2).reshape(2, 2),
    "gather elements": ints(*[0, 2, 1] * 10),
}
INDICES["gather elements"] = INDICES["gather elements"].reshape(2, 3, 5)

FAMILIES = {
    "softmax of rows": Family(node("Softmax", axis=-1), (2, 3, 37)),
    "softmax of channels": Family(node("Softmax", axis=1), (2, 19, 4, 5)),
    "log softmax of short rows": Family(node("LogSoftmax", axis=1), (70, 3)),
    "layer": Family(node("LayerNormalization", *vectors(2, 40), axis=-1), (3, 2, 40)),
    "instance": Family(node("InstanceNormalization", *vectors(2, 6)), (2, 6, 5, 7)),
    "group": Family(node("GroupNormalization", *vectors(2, 6), num_groups=3), (2, 6, 5, 7)),
    "mean variance": Family(node("MeanVarianceNormalization", axes=(0, 2, 3)), (2, 6, 5, 7)),
    "axes that are no neighbours": Family(node("MeanVarianceNormalization", axes=(0, 2, 4)), (3, 2, 4, 3, 5, 2), 2),
    "norm": Family(node("LpNormalization", axis=1), (2, 19, 5)),
    "response": Family(node("LRN", size=3), (2, 6, 5, 7)),
    "batch": Family(node("BatchNormalization", *vectors(4, 6)), (2, 6, 5, 7), 1),
    "mean": Family(node("ReduceMean", ints(2, 3)), (2, 6, 5, 7)),
    "maximum of rows": Family(node("ReduceMax", ints(1), keepdims=0), (9, 40)),
    "sum of columns": Family(node("ReduceSum", ints(0), keepdims=0), (9, 43)),
    "sum of everything": Family(node("ReduceSumSquare"), (9, 43)),
    "global pool": Family(node("GlobalAveragePool"), (2, 6, 5, 7)),
    "pool of lines": Family(node("MaxPool", kernel_shape=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1)), (2, 3, 9, 37)),
    "pool of pixels": Family(node("AveragePool", kernel_shape=(2, 2)), (2, 3, 6, 7)),
    "nearest": Family(node("Resize", np.zeros(0, np.float32), np.float32([1, 1, 2, 2])), (2, 3, 4, 5)),
    "linear": Family(node("Resize", np.zeros(0, np.float32), np.float32([1, 1, 2, 2]), mode="linear"), (2, 3, 4, 5)),
    "gather": Family(gathered("Gather", INDICES["gather"], axis=1), (2, 3, 5)),
    "gather of a view": Family(node("Gather", ints(2, 0), axis=1), (2, 3, 5), 1),
    "gather nd": Family(gathered("GatherND", INDICES["gather nd"]), (2, 3, 5)),
    "gather elements": Family(gathered("GatherElements", INDICES["gather elements"], axis=1), (2, 3, 5)),
}
#: One of each kind of kernel.
QUICK = ["softmax of rows", "mean", "pool of lines", "linear", "gather"]

UNARY, BINARY = ("Relu", "Abs", "Neg", "Sigmoid", "Tanh", "HardSwish"), ("Add", "Sub", "Mul", "Max", "Min")
UNARY_OF_INTEGERS = ("Abs", "Neg")


def operand_shape(random: np.random.Generator, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape that can be broadcast to another one: some dimensions are 1, leading ones may be left out."""
    sizes = [1 if random.random() < 0.4 else n for n in shape]
    return tuple(sizes[int(random.integers(len(shape) + 1)) :])


def with_chain(family: Family, dtype: str, seed: int) -> Graph:
    """Return a family's node and a random chain of element-wise nodes, whose operands are inputs or numbers."""
    random = np.random.default_rng(seed)
    builder = GraphBuilder("chain")
    y = family.add(builder, builder.input("x", dtype, family.shape))
    is_float = "float" in dtype
    for number in range(int(random.integers(1, 6))):
        op = str(random.choice([*BINARY, *(UNARY if is_float else UNARY_OF_INTEGERS)]))
        if op not in BINARY:
            y = builder.add(op, [y])
            continue
        if random.random() < 0.3:
            other = builder.constant(np.array(2, y.dtype.numpy))
        else:
            other = builder.input(f"x{number}", str(y.dtype), operand_shape(random, tuple(y.shape)))
        y = builder.add(op, [y, other] if random.random() < 0.5 else [other, y])
    if random.random() < 0.3:
        y = builder.add("Cast", [y], {"to": DType.INT32 if is_float else DType.FLOAT32})
    builder.output(y, "y")
    return builder.build()


def inputs_of(graph: Graph, name: str, seed: int) -> list[Array]:
    """Return random inputs; integers are small."""
    random = np.random.default_rng(seed)

    def drawn(value: Value) -> Array:
        if value.name == "indices":
            return INDICES[name]
        if value.dtype.is_floating:
            return random.standard_normal(value.shape).astype(value.dtype.numpy)
        return random.integers(-9, 10, tuple(value.shape)).astype(value.dtype.numpy)

    return [drawn(v) for v in graph.inputs]


def check(kind: str, name: str, graph: Graph, inputs: list[Array], tolerance: float) -> None:
    kernels = labels_of(kind, graph)
    assert sum(k in ("elementwise", "copy") for k in kernels) == FAMILIES[name].elementwise, kernels
    (actual,), (expected,) = run_for(kind, graph, inputs), evaluate_graph(graph, inputs)
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    if expected.dtype.kind == "i" and tolerance:  # a number just below an integer may be truncated differently
        tolerance = 1.0
    largest = max(1.0, np.abs(expected.astype(np.float64)).max(initial=0.0))
    np.testing.assert_allclose(
        actual.astype(np.float64), expected.astype(np.float64), rtol=0, atol=tolerance * largest, err_msg=str(kernels)
    )


@pytest.mark.parametrize("kind", in_part("opencl", ["CPU", "GPU"], ["CPU"]))
@pytest.mark.parametrize("name", in_part("opencl", FAMILIES, QUICK))
def test_random_chains_are_fused_into_the_kernel_before_them(kind: str, name: str) -> None:
    seed = 10 * list(FAMILIES).index(name) + (kind == "GPU")
    graph = with_chain(FAMILIES[name], "float32", seed)
    check(kind, name, graph, inputs_of(graph, name, seed), 1e-5)


@pytest.mark.full("opencl")
@pytest.mark.parametrize(("kind", "dtype"), [("CPU", "float16"), ("GPU", "float16"), ("CPU", "float64")])
@pytest.mark.parametrize(
    "name", ["softmax of rows", "instance", "mean", "maximum of rows", "pool of lines", "nearest", "gather"]
)
def test_chains_in_other_float_types(kind: str, name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "instance":
        scales = [v.astype(dtype) for v in vectors(2, 6)]
        monkeypatch.setitem(FAMILIES, name, FAMILIES[name]._replace(add=node("InstanceNormalization", *scales)))
    graph = with_chain(FAMILIES[name], dtype, seed=3)
    check(kind, name, graph, inputs_of(graph, name, seed=3), {"float16": 4e-3, "float64": 1e-12}[dtype])


@pytest.mark.full("opencl")
@KINDS
@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *(("maximum of rows", dtype) for dtype in ("int8", "uint8", "int64")),
        *((name, dtype) for name in ("sum of columns", "mean") for dtype in ("int32", "int64")),
        ("gather", "int8"),
    ],
)
def test_chains_of_integers_wrap_around(kind: str, name: str, dtype: str) -> None:
    builder = GraphBuilder("integers")
    y = FAMILIES[name].add(builder, builder.input("x", dtype, FAMILIES[name].shape))
    y = builder.add("Mul", [y, builder.input("factors", dtype, tuple(y.shape))])
    builder.output(builder.add("Sub", [y, builder.constant(np.array(3, dtype))]), "y")
    graph, random = builder.build(), np.random.default_rng(5)
    inputs = [
        INDICES[name] if v.name == "indices" else random.integers(0, 127, tuple(v.shape)).astype(dtype)
        for v in graph.inputs
    ]
    check(kind, name, graph, inputs, 0.0)


@pytest.mark.full("opencl")
@KINDS
def test_further_outputs_of_a_fused_head_are_stored(kind: str) -> None:
    builder = GraphBuilder("statistics")
    x = builder.input("x", "float32", (3, 40))
    scale = builder.constant(vectors(1, 40)[0])
    y, mean, factor = builder.add_node("LayerNormalization", [x, scale], {"axis": 1}, outputs=3)
    z, indices = builder.add_node("MaxPool", [builder.input("image", "float32", (1, 2, 6, 9))], POOL, outputs=2)
    results = [builder.add("Tanh", [y]), mean, factor, builder.add("Neg", [z]), indices]
    for number, value in enumerate(results):
        builder.output(value, f"y{number}")
    graph = builder.build()
    inputs = [np.random.default_rng(0).standard_normal(v.shape).astype(np.float32) for v in graph.inputs]
    assert labels_of(kind, graph) == ["Standardize", "MaxPool"]
    for actual, expected in zip(run_for(kind, graph, inputs), evaluate_graph(graph, inputs)):
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


POOL = {"kernel_shape": (2, 2)}


@pytest.mark.full("opencl")
@KINDS
def test_reduction_over_no_axes_is_the_identity(kind: str) -> None:
    builder = GraphBuilder("no axes")
    x = builder.input("x", "float32", (3, 4))
    y = builder.add("ReduceSum", [x, builder.constant(ints())], {"noop_with_empty_axes": 1})
    builder.output(builder.add("Mul", [y, x]), "y")
    graph, array = builder.build(), np.float32(np.arange(12)).reshape(3, 4)
    assert labels_of(kind, graph) == ["elementwise"]
    np.testing.assert_array_equal(run_for(kind, graph, [array])[0], array * array)
