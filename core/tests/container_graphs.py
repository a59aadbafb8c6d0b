"""Small graphs for the tests of the model file, which together have everything that a graph can hold.

The golden files are written from these graphs. Never change a graph that has a golden file; add another one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from lite_core.builder import GraphBuilder
from lite_core.container import PartitionRecord, PlanRecord, TargetRecord
from lite_core.ir import Dim, DType, Graph, Node, Origin, SymbolicDim, TensorType, Value
from lite_core.ir.dims import broadcast, maximum

F32 = DType.FLOAT32


def empty() -> Graph:
    return Graph("empty")


def passed_through() -> Graph:
    x = Value("x", TensorType(F32, (2,)))
    return Graph("passed", inputs=[x], outputs=[x, x])


def chain() -> Graph:
    b = GraphBuilder("chain")
    x = b.input("x", "float32", ["batch", 4])
    b.origin = Origin("reshape2", "r0")
    y = b.add("Reshape", [x, b.constant(np.array([0, 2, 2]), "split_shape")], name="split")
    b.origin = Origin("transpose2")
    b.output(b.add("Transpose", [y], {"perm": [0, 2, 1]}, name="swap"), "y")
    graph = b.build()
    graph.metadata = {"producer": "a test", "naïve": "ü"}
    return graph


def attributes() -> Graph:
    """An unknown operator with attributes of every kind."""
    every: dict[str, Any] = {
        "int": -(2**63),
        "huge": 2**70,
        "zero": 0,
        "float": 0.1,
        "whole": 1.0,
        "negative_zero": -0.0,
        "smallest": 5e-324,
        "nan": math.nan,
        "infinite": -math.inf,
        "text": 'a "quoted" line\nand \x00 another',
        "empty_text": "",
        "dtype": DType.BFLOAT16,
        "dtype_name": "bfloat16",
        "ints": (1, -2, 3),
        "nothing": (),
        "floats": (1.0, 2.5, math.inf, math.nan),
        "texts": ("a", "", "ß"),
        "scalar": np.array(1.5),
        "tensor": np.arange(6, dtype=np.int16).reshape(2, 3),
    }
    x, y = Value("x", TensorType(F32, (1,))), Value("y", TensorType(F32))
    node = Node("Mystery", [None, x, None], [None, y, None], every, domain="com.example", origin=Origin("m", "n"))
    return Graph("attributes", inputs=[x], outputs=[y], nodes=[node])


def dtypes() -> Graph:
    """A constant of every element type, among them scalars, empty tensors and tensors of rank 5."""
    graph = Graph("dtypes")
    for number, dtype in enumerate(d for d in DType if not d.is_narrow and d is not DType.STRING):
        shape = [(), (0,), (3,), (2, 0, 3), (1, 2, 1, 2, 1)][number % 5]
        array = np.arange(math.prod(shape)).reshape(shape).astype(dtype.numpy)
        graph.outputs.append(graph.add_constant(f"c_{dtype.value}", array))
    graph.outputs.append(graph.add_constant("again", graph.constants[graph.outputs[-1]]))
    graph.outputs.append(graph.add_constant("nan", np.array([math.nan, -0.0], np.float32)))
    return graph


def dimensions() -> Graph:
    """Symbolic dimensions of every kind except fresh symbols."""
    n, h, w = (SymbolicDim.named(name) for name in ("n", "height", "größe in px"))
    dims: list[Dim] = [n, 3 * n, n - 1, n * n * h, (h + 3) // 4, (h + 1) // 2 * w, h % 2, n // h, maximum(n, h - w)]
    dims += [broadcast(h, w), -n, ((h // w + n) % 5) * maximum(h, 2), (2 * h + 3 * w + 1) // 6 - 7]
    inputs = [Value(f"x{k}", TensorType(F32, (2, dim))) for k, dim in enumerate(dims)]
    return Graph("dimensions", inputs=[*inputs, Value("unranked", TensorType(F32))])


def names() -> Graph:
    b = GraphBuilder("a graph\n'named' \\ oddly")
    x = b.input("x/y:0 %", "float32", [1])
    y = b.add("Relu", [x], output="  ", name="\x00\ud800")
    b.output(b.add("Relu", [y], name='"}],[{'), "🦙, 名前")
    return b.build()


def branches() -> Graph:
    """An If whose branches capture values, one of them through a nested If, and share names."""
    b = GraphBuilder("branches")
    condition, x = b.input("condition", "bool", []), b.input("x", "float32", ["n"])
    outer = b.add("Identity", [x], output="outer")

    def branch(builder: GraphBuilder, op: str) -> Graph:
        inner = GraphBuilder(op.lower(), outer=builder)
        inner.output(inner.add("Add", [inner.add(op, [outer]), inner.constant(np.array([2.5], np.float32))]))
        return inner.build()

    middle = GraphBuilder("middle", outer=b)
    both = {"then_branch": branch(middle, "Abs"), "else_branch": branch(middle, "Relu")}
    middle.output(middle.add("If", [condition], both))
    captured_only = GraphBuilder("captured", outer=b)
    captured_only.output(outer)
    b.output(b.add("If", [condition], {"then_branch": middle.build(), "else_branch": captured_only.build()}), "y")
    return b.build()


def loop() -> Graph:
    """A Loop that captures a constant and whose scan output has an unknown length."""
    b = GraphBuilder("loop")
    x, step = b.input("x", "float32", [2]), b.constant(np.array([1, 2], np.float32), "step")
    inner = GraphBuilder("body", outer=b)
    inner.input("iteration", "int64", [])
    condition, carried = inner.input("condition", "bool", []), inner.input("carried", "float32", [2])
    total = inner.add("Add", [carried, step])
    for value in (inner.add("Identity", [condition]), total, inner.add("Identity", [total])):
        inner.output(value)
    trips = b.input("trips", "int64", [])
    for value in b.add_node("Loop", [trips, None, x], {"body": inner.build()}, outputs=2):
        b.output(value)
    return b.build()


#: The graphs that have golden files, by name.
GRAPHS: dict[str, Callable[[], Graph]] = {
    maker.__name__: maker
    for maker in (empty, passed_through, chain, attributes, dtypes, dimensions, names, branches, loop)
}


def records(graph: Graph) -> tuple[tuple[TargetRecord, ...], dict[str, bytes]]:
    """Return two targets for a graph as a converter could write them, and the sections that they saved."""
    count = len(graph.nodes)
    outputs = tuple((v.name, v.type) for v in graph.outputs if v in graph.producers())
    whole = PartitionRecord(
        name="part_0",
        backend="toy",
        nodes=tuple(range(count)),
        inputs=tuple(v.name for v in graph.inputs),
        outputs=outputs,
        compatibility="toy 1",
        sections=("code/0", "weights/0"),
    )
    plain = PartitionRecord("part_1", "host", (), (), ())
    refusals = tuple((("toy", f"no {node.op}"), ("other", "")) if k % 2 else () for k, node in enumerate(graph.nodes))
    shapes = {v.name: (1,) * (v.type.rank or 0) for v in graph.inputs}
    plans = tuple(PlanRecord(shapes, threads, (whole, plain)) for threads in (1, 4))
    kernels = (PartitionRecord("lite convert m", "toy", (), (), (), "toy 1", ("code/0",)),)
    toy = TargetRecord(
        "toy", "lite-toy 0.1.0", "float16", True, ("toy",) * count, ((),) * count, plans, kernels=kernels
    )
    other = TargetRecord("other", "lite-other 1", "float32", False, ("host",) * count, refusals)
    return (toy, other), {"code/0": b"machine code", "weights/0": b"weights"}
