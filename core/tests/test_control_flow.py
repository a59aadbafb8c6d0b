"""Control flow across devices: nodes in bodies of If, Loop and Scan run on devices and give the references' results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from lite_core.backend import Buffer, Device, Executable, No, Options, Partition, Yes
from lite_core.builder import GraphBuilder
from lite_core.errors import ExecutionError, InputError, LiteError, UnsupportedOperatorError
from lite_core.ir import Attribute, Graph, Node, TensorType, Value
from lite_core.kernel_backend import KernelBackend
from lite_core.ops.evaluate import evaluate_graph, evaluate_node
from lite_core.plugins import plugins_with
from lite_core.session import Session, load

Array = np.ndarray[Any, Any]


# **** a device with separate memory, and a backend with kernels ****


class Storage:
    """Storage in device memory. It is not an array, so code that uses it as an array fails."""

    def __init__(self, content: Array) -> None:
        self.content = content


class Memory:
    space = "toy"

    def allocate(self, type: TensorType) -> Storage:
        return Storage(np.empty([int(d) for d in type.shape or ()], type.dtype.numpy))  # type: ignore[arg-type]

    def upload(self, array: Array, data: Storage) -> None:
        assert array.flags.c_contiguous
        np.copyto(data.content, array)

    def download(self, data: Storage) -> Array:
        copy: Array = data.content.copy()
        return copy


class Toy:
    """A backend with separate memory that runs some operators; counts their runs and records compiled partitions."""

    name = "toy"

    def __init__(self, *ops: str) -> None:
        self._ops = set(ops)
        self._memory = Memory()
        self.runs: Counter[str] = Counter()
        self.compiled: list[Partition] = []
        self.fails_to_compile = False

    def probe(self) -> list[Device]:
        return [Device(self.name)]

    def supports(self, node: Node, device: Device) -> Yes | No:
        return Yes() if node.op in self._ops else No(f"toy has no {node.op}")

    def memory(self, device: Device) -> Memory:
        return self._memory

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        if self.fails_to_compile:
            raise RuntimeError("no compiler")
        self.compiled.append(part)
        return ToyRun(part.graph, self.runs)


class ToyRun:
    scratch_bytes = 0

    def __init__(self, graph: Graph, runs: Counter[str]) -> None:
        self._graph, self._runs = graph, runs

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        self._runs.update(node.op for node in self._graph.nodes)
        results = evaluate_graph(self._graph, [b.data.content for b in inputs])
        for buffer, result in zip(outputs, results):
            (buffer.data or buffer.allocate(result.shape)).content[...] = result


def kernels(*ops: str) -> tuple[KernelBackend, Counter[str]]:
    """Return a backend in main memory whose kernels are the references, and the counter of their runs."""
    backend, runs = KernelBackend("kernels"), Counter[str]()
    for op in ops:
        backend.kernel(op)(_counted(op, runs))
    return backend, runs


def _counted(op: str, runs: Counter[str]) -> Callable[..., Any]:
    def kernel(*inputs: Any, **attributes: Any) -> Any:
        runs[op] += 1
        values = [None if a is None else Value(f"x{i}", TensorType.of_array(a)) for i, a in enumerate(inputs)]
        given = {name: a for name, a in attributes.items() if a is not None}
        return tuple(evaluate_node(Node(op, values, [Value("y", TensorType.of_array(inputs[0]))], given), list(inputs)))

    return kernel


# **** graphs ****


def loop(
    outer: GraphBuilder,
    carried: Sequence[Value],
    body: Callable[..., Sequence[Value]],
    *,
    trips: Value | None = None,
    condition: Value | None = None,
    outputs: int = 1,
    name: str = "loop",
    shapes: Sequence[Any] | None = None,
) -> list[Value]:
    """Add a Loop; ``body(builder, iteration, condition, *carried)`` returns its outputs.

    ``shapes`` replaces the shapes of the carried values if they change.
    """
    inner = GraphBuilder("body", outer=outer)
    inputs = [inner.input(f"{name}_i", "int64", []), inner.input(f"{name}_c", "bool", [])]
    for number, value in enumerate(carried):
        shape = value.shape if shapes is None else shapes[number]
        inputs.append(inner.input(f"{name}_{number}", value.dtype, shape))
    for value in body(inner, *inputs):
        inner.output(value)
    return outer.add_node("Loop", [trips, condition, *carried], {"body": inner.build()}, outputs=outputs, name=name)


def branches(outer: GraphBuilder, condition: Value, then: Any, other: Any, name: str = "if", outputs: int = 1) -> Any:
    graphs = {}
    for key, make in (("then_branch", then), ("else_branch", other)):
        inner = GraphBuilder(key, outer=outer)
        for value in make(inner):
            inner.output(value)
        graphs[key] = inner.build()
    return outer.add_node("If", [condition], graphs, outputs=outputs, name=name)


def graph_of(make: Callable[[GraphBuilder], Sequence[Value]]) -> Graph:
    builder = GraphBuilder("control")
    for number, value in enumerate(make(builder)):
        builder.output(value, f"y{number}")
    return builder.build()


WEIGHT = np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3)


def power(b: GraphBuilder) -> list[Value]:
    """A matrix product and Tanh, ``n`` times, with all states stacked. The bias is captured, the weight a constant."""
    x, n, bias = b.input("x", "float32", ["rows", 3]), b.input("n", "int64", []), b.input("bias", "float32", [3])
    weight = b.constant(WEIGHT)
    scaled = b.add("Neg", [bias])  # captured from another partition

    def body(g: GraphBuilder, i: Value, c: Value, state: Value) -> list[Value]:
        state = g.add("Tanh", [g.add("Add", [g.add("MatMul", [state, weight]), scaled])])
        return [c, state, state, i]

    return [*loop(b, [x], body, trips=n, outputs=3), b.add("MatMul", [x, weight])]


def early_exit(b: GraphBuilder) -> list[Value]:
    """Double until the maximum reaches a limit, at most ``n`` times."""
    x, n, limit = b.input("x", "float32", [2]), b.input("n", "int64", []), b.input("limit", "float32", [])
    start = b.add("Less", [b.add("ReduceMax", [x], {"keepdims": 0}), limit])

    def body(g: GraphBuilder, i: Value, c: Value, state: Value) -> list[Value]:
        doubled = g.add("Add", [state, state])
        return [g.add("Less", [g.add("ReduceMax", [doubled], {"keepdims": 0}), limit]), doubled, doubled]

    return loop(b, [x], body, trips=n, condition=start, outputs=2)


def without_trip_count(b: GraphBuilder) -> list[Value]:
    """A Loop that only its condition ends, with a value that is passed on unchanged and the iteration number."""
    x, other = b.input("x", "float32", []), b.input("other", "float32", [4])
    ten = b.constant(np.float32(10))

    def body(g: GraphBuilder, i: Value, c: Value, state: Value, same: Value) -> list[Value]:
        state = g.add("Add", [state, state])
        return [g.add("Less", [state, ten]), state, same, i, same]

    return loop(b, [x, other], body, condition=b.constant(np.array(True)), outputs=4)


def growing(b: GraphBuilder) -> list[Value]:
    """A carried value that grows by a row in each iteration."""
    x, n = b.input("x", "float32", ["rows", 3]), b.input("n", "int64", [])
    weight = b.constant(WEIGHT)

    def body(g: GraphBuilder, i: Value, c: Value, state: Value) -> list[Value]:
        product = g.add("MatMul", [state, weight])
        row = g.add("ReduceMax", [product, g.ints(0)], {"keepdims": 1})
        return [c, g.add("Concat", [product, row], {"axis": 0}), row]

    return loop(b, [x], body, trips=n, outputs=2, shapes=[[None, 3]])


def data_dependent(b: GraphBuilder) -> list[Value]:
    """A body whose number of output elements depends on their values."""
    x, n = b.input("x", "float32", ["rows"]), b.input("n", "int64", [])

    def body(g: GraphBuilder, i: Value, c: Value, state: Value) -> list[Value]:
        halved = g.add("Sub", [state, g.constant(np.float32(1))])
        return [c, g.add("Compress", [halved, g.add("Greater", [halved, g.constant(np.float32(0))])])]

    return loop(b, [x], body, trips=n, shapes=[[None]])


def nested(b: GraphBuilder) -> list[Value]:
    """An If in a Loop in an If, which capture values of all enclosing graphs."""
    x, n, positive = b.input("x", "float32", ["rows", 3]), b.input("n", "int64", []), b.input("go", "bool", [])
    weight = b.constant(WEIGHT)

    def then(branch: GraphBuilder) -> list[Value]:
        start = branch.add("MatMul", [x, weight])

        def body(g: GraphBuilder, i: Value, c: Value, state: Value) -> list[Value]:
            odd = g.add("Equal", [g.add("Mod", [i, g.constant(np.int64(2))]), g.constant(np.int64(1))])
            (stepped,) = branches(
                g,
                odd,
                lambda t: [t.add("MatMul", [t.add("Add", [state, start]), weight])],
                lambda e: [e.add("Add", [state, x])],
                name="inner_if",
            )
            return [c, stepped]

        return [*loop(branch, [start], body, trips=n, name="inner_loop"), x]

    return list(branches(b, positive, then, lambda e: [x, e.add("Neg", [x])], name="outer_if", outputs=2))


def different_branches(b: GraphBuilder) -> list[Value]:
    """Branches with different output shapes; one returns captured values and a constant, the other computes."""
    x, go = b.input("x", "float32", ["rows", 3]), b.input("go", "bool", [])
    weight = b.constant(WEIGHT)
    results = branches(
        b,
        go,
        lambda t: [x, weight, x],
        lambda e: [e.add("MatMul", [x, weight]), e.add("ReduceMax", [x, e.ints(0)], {"keepdims": 0}), x],
        outputs=3,
    )
    return list(results)


def scanned(b: GraphBuilder) -> list[Value]:
    """A recurrence along the second axis, in reverse."""
    x, start = b.input("x", "float32", [3, "length"]), b.input("start", "float32", [3])
    weight = b.constant(WEIGHT)
    inner = GraphBuilder("body", outer=b)
    state, element = inner.input("state", "float32", [3]), inner.input("element", "float32", [3])
    after = inner.add("Tanh", [inner.add("MatMul", [inner.add("Add", [state, element]), weight])])
    for value in (after, after):
        inner.output(value)
    attributes: dict[str, Attribute] = {"body": inner.build(), "num_scan_inputs": 1, "scan_input_axes": (1,),
                                        "scan_input_directions": (1,), "scan_output_axes": (1,)}  # fmt: skip
    return b.add_node("Scan", [start, x], attributes, outputs=2, name="scan")


def scanned_scalars(b: GraphBuilder) -> list[Value]:
    """Running sums of a vector: each element is a scalar."""
    x, start = b.input("x", "float32", ["length"]), b.input("start", "float32", [])
    inner = GraphBuilder("body", outer=b)
    state, element = inner.input("state", "float32", []), inner.input("element", "float32", [])
    after = inner.add("Add", [state, element])
    for value in (after, after):
        inner.output(value)
    return b.add_node("Scan", [start, x], {"body": inner.build(), "num_scan_inputs": 1}, outputs=2, name="scan")


def halves(b: GraphBuilder) -> list[Value]:
    """Carried values in float16."""
    x, n = b.input("x", "float16", [3]), b.input("n", "int64", [])

    def body(g: GraphBuilder, i: Value, c: Value, state: Value) -> list[Value]:
        state = g.add("Add", [state, x])
        return [c, state, state]

    return loop(b, [x], body, trips=n, outputs=2)


def rows(n: int) -> Array:
    return np.linspace(-2, 2, n * 3, dtype=np.float32).reshape(n, 3)


def trips(n: int) -> Array:
    return np.array(n, np.int64)


BIAS = np.array([0.5, 0.25, -0.5], np.float32)
LIMIT = np.float32(20)
CASES: list[tuple[Any, Mapping[str, Any]]] = [
    *((power, {"x": rows(r), "n": trips(n), "bias": BIAS}) for r, n in ((2, 3), (2, 0), (1, 1), (0, 2), (2, -1))),
    *((early_exit, {"x": np.array([1, 2], np.float32), "n": trips(n), "limit": LIMIT}) for n in (0, 2, 99)),
    (early_exit, {"x": np.array([99, 2], np.float32), "n": trips(3), "limit": LIMIT}),
    (without_trip_count, {"x": np.float32(1), "other": np.arange(4, dtype=np.float32)}),
    *((growing, {"x": rows(r), "n": trips(n)}) for r, n in ((2, 4), (1, 0), (1, 20))),
    *((data_dependent, {"x": np.array([3, 1, 5, 2], np.float32), "n": trips(n)}) for n in (0, 2, 7)),
    *((nested, {"x": rows(2), "n": trips(n), "go": np.array(go)}) for n in (0, 1, 3) for go in (True, False)),
    *((different_branches, {"x": rows(2), "go": np.array(go)}) for go in (True, False)),
    *((scanned, {"x": rows(length).T.copy(), "start": BIAS}) for length in (0, 1, 4)),
    (scanned_scalars, {"x": BIAS, "start": np.float32(1)}),
    *((halves, {"x": np.array([1, 2048, 3], np.float16), "n": trips(n)}) for n in (0, 3)),
]
HEAVY = ("MatMul", "Add", "Tanh")


def expected(graph: Graph, inputs: Mapping[str, Any]) -> list[Array]:
    return evaluate_graph(graph, [np.asarray(inputs[v.name]) for v in graph.inputs])


def check(session: Session, graph: Graph, inputs: Mapping[str, Any]) -> None:
    """Check that the session's outputs equal those of the references and share memory with nothing else."""
    before = {name: np.array(array) for name, array in inputs.items()}
    outputs = session.run(inputs)
    arrays = list(outputs.values())
    for array, wanted in zip(arrays, expected(graph, inputs), strict=True):
        assert array.dtype == wanted.dtype
        assert array.shape == wanted.shape
        np.testing.assert_allclose(array, wanted, rtol=1e-6, atol=1e-6)
    shared = [*inputs.values(), *(a for scope in session.graph.walk() for a in scope.constants.values())]
    for index, array in enumerate(arrays):
        assert not any(np.shares_memory(array, other) for other in [*shared, *arrays[:index]])
        array[...] = 0
    for name, array in before.items():
        np.testing.assert_array_equal(inputs[name], array)


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize(("make", "inputs"), CASES, ids=lambda v: v.__name__ if callable(v) else "")
def test_results_equal_the_references(make: Any, inputs: Mapping[str, Any], optimize: bool) -> None:
    graph = graph_of(make)
    toy, (in_main_memory, _) = Toy(*HEAVY, "Compress"), kernels("Add", "Concat", "ReduceMax", "Less")
    for backend in (["toy"], ["kernels"], ["toy", "kernels"], ["kernels", "toy"], ["host"]):
        session = load(graph, backend=backend, plugins=plugins_with(toy, in_main_memory), optimize=optimize)
        for _ in range(2):
            check(session, graph, inputs)


# **** devices of nodes in bodies ****


def test_the_heavy_nodes_of_a_body_run_on_the_device() -> None:
    graph, toy = graph_of(power), Toy("MatMul", "Tanh")
    session = load(graph, backend="toy", plugins=plugins_with(toy))
    check(session, graph, {"x": rows(2), "n": trips(5), "bias": BIAS})
    assert toy.runs == {"MatMul": 6, "Tanh": 5}
    assert {"toy", "host"} == set(session.devices)
    assert {(a.op, a.device) for a in session.assignment()} == {
        ("Neg", "host"), ("Loop", "host"), ("MatMul", "toy"), ("Add", "host"), ("Tanh", "toy"),
    }  # fmt: skip
    add = next(a for a in session.assignment() if a.op == "Add")
    assert add.refusals == (("toy", "toy has no Add"),)
    assert "Loop 'loop'" in session.plan({"x": (2, 3)}).describe()


def test_nodes_of_the_innermost_bodies_run_on_the_device() -> None:
    graph = graph_of(nested)
    backend, runs = kernels("MatMul")
    session = load(graph, backend="kernels", plugins=plugins_with(backend))
    check(session, graph, {"x": rows(2), "n": trips(4), "go": np.array(True)})
    assert runs == {"MatMul": 3}, "once before the loop, and in every other iteration"
    assert [a.device for a in session.assignment() if a.op == "MatMul"] == ["kernels"] * 2


def test_constants_of_enclosing_graphs_are_the_same_arrays_for_every_plan() -> None:
    graph, toy = graph_of(power), Toy("MatMul")
    session = load(graph, backend="toy", plugins=plugins_with(toy))
    for count in (1, 2, 3):
        check(session, graph, {"x": rows(count), "n": trips(2), "bias": BIAS})
    weights = [array for part in toy.compiled for array in part.graph.constants.values()]
    assert len(weights) == 6, "three shapes, before the loop and in it"
    assert len({id(array) for array in weights}) == 1


def test_plans_of_bodies_are_cached() -> None:
    graph, toy = graph_of(growing), Toy("MatMul")
    session = load(graph, backend="toy", plugins=plugins_with(toy))
    for _ in range(3):
        check(session, graph, {"x": rows(2), "n": trips(4)})
    assert len(toy.compiled) == 4


def test_body_that_runs_on_host_only_has_no_plans() -> None:
    session = load(graph_of(power), backend="toy", plugins=plugins_with(Toy("Exp")))
    assert {a.op for a in session.assignment()} == {"Neg", "Loop", "MatMul"}
    assert [len(part.graph.nodes) for part, _ in session.plan({"x": (2, 3)}).partitions] == [3]


def test_pins_apply_to_nodes_in_bodies() -> None:
    graph = graph_of(power)
    toy = Toy(*HEAVY)
    tanh = next(n.name for scope in graph.walk() for n in scope.nodes if n.op == "Tanh")
    session = load(graph, backend="toy", plugins=plugins_with(toy), placement={tanh: "host"})
    check(session, graph, {"x": rows(2), "n": trips(3), "bias": BIAS})
    assert "Tanh" not in toy.runs
    with pytest.raises(UnsupportedOperatorError, match="toy has no Neg"):
        load(graph, backend="toy", plugins=plugins_with(toy), placement={tanh: "host", "*": "toy"})
    with pytest.raises(InputError, match="'unknown node'"):
        load(graph, backend="toy", plugins=plugins_with(toy), placement={"unknown node": "host"})


def test_backend_that_supports_loop_runs_the_whole_node() -> None:
    graph, toy = graph_of(power), Toy("Loop", "MatMul", "Tanh")
    session = load(graph, backend="toy", plugins=plugins_with(toy))
    check(session, graph, {"x": rows(2), "n": trips(5), "bias": BIAS})
    assert toy.runs == {"Loop": 1, "MatMul": 1}


def test_node_with_a_body_does_not_run_as_a_whole_if_a_node_inside_is_placed_elsewhere() -> None:
    graph, toy = graph_of(power), Toy("Loop", "MatMul", "Tanh")
    tanh = next(n.name for scope in graph.walk() for n in scope.nodes if n.op == "Tanh")
    session = load(graph, backend="toy", plugins=plugins_with(toy), placement={tanh: "host"})
    check(session, graph, {"x": rows(2), "n": trips(5), "bias": BIAS})
    assert not {"Loop", "Tanh"} & set(toy.runs)
    refusals = next(each.refusals for each in session.assignment() if each.op == "Loop")
    assert [label for label, _ in refusals] == ["toy"]
    assert repr(tanh) in refusals[0][1]
    with pytest.raises(UnsupportedOperatorError, match=f"'{tanh}' in its body is placed elsewhere"):
        load(graph, backend="toy", plugins=plugins_with(toy), placement={tanh: "host", "loop": "toy"})


def test_precision_inside_a_body_that_runs_as_a_whole_is_noted() -> None:
    graph, toy = graph_of(power), Toy("Loop", "MatMul", "Tanh")
    tanh = next(n.name for scope in graph.walk() for n in scope.nodes if n.op == "Tanh")
    session = load(graph, backend="toy", plugins=plugins_with(toy), precision={tanh: "float16"})
    assert any("body of 'loop' runs as a whole" in line for line in session.shortfalls)
    whole = load(graph, backend="toy", plugins=plugins_with(toy), precision={"loop": "float16", tanh: "float16"})
    assert not any("runs as a whole" in line for line in whole.shortfalls)


def test_bodies_fall_back_if_compiling_fails_on_an_automatic_device() -> None:
    graph, toy = graph_of(power), Toy("Tanh")
    inputs = {"x": rows(2), "n": trips(2), "bias": BIAS}
    toy.fails_to_compile = True
    session = load(graph, plugins=plugins_with(toy))
    check(session, graph, inputs)
    assert any("no compiler" in line for line in session.selection_log)
    with pytest.raises(ExecutionError, match=r"node 'loop' \(Loop.*no compiler"):
        load(graph, backend="toy", plugins=plugins_with(toy)).run(inputs)


# **** errors, profiles, threads ****


def test_errors_name_the_node() -> None:
    def make(b: GraphBuilder) -> list[Value]:
        x, n = b.input("x", "float32", [2]), b.input("n", "int64", [])

        def body(g: GraphBuilder, i: Value, c: Value, state: Value) -> list[Value]:
            return [c, g.add("Concat", [g.add("Add", [state, x], name="sum"), x], {"axis": 0})]

        return loop(b, [x], body, trips=n, shapes=[[None]])

    session = load(graph_of(make), backend="toy", plugins=plugins_with(Toy("Add")))
    check(session, graph_of(make), {"x": np.ones(2, np.float32), "n": trips(1)})
    with pytest.raises(LiteError, match=r"'loop' \(Loop\).*'sum' \(Add\).* \[4\] and \[2\]"):
        session.run({"x": np.ones(2, np.float32), "n": trips(2)})


def test_error_of_a_kernel_in_a_body_names_the_backend() -> None:
    backend = KernelBackend("broken")

    @backend.kernel("Tanh")
    def tanh(x: Array) -> Array:
        raise RuntimeError("out of order")

    session = load(graph_of(power), backend="broken", plugins=plugins_with(backend))
    with pytest.raises(ExecutionError, match=r"node 'loop' \(Loop.*backend 'broken'.*Tanh.*out of order"):
        session.run({"x": rows(2), "n": trips(2), "bias": BIAS})


def test_profile_sums_up_the_partitions_of_bodies() -> None:
    backend, _ = kernels(*HEAVY)
    session = load(graph_of(power), backend="kernels", plugins=plugins_with(backend))
    session.run({"x": rows(2), "n": trips(7), "bias": BIAS}, profile=True)
    profile = session.last_profile
    assert profile is not None
    assert [k.op for k in profile.kernels].count("Tanh") == 1
    names = [part.partition for part in profile.partitions]
    assert len(names) == len(set(names))
    assert any("body" in name and "kernels" in name for name in names)
    assert sum(profile.by_device().values()) <= profile.seconds


def test_eight_threads_on_one_session() -> None:
    graph, toy = graph_of(nested), Toy(*HEAVY)
    session = load(graph, backend="toy", plugins=plugins_with(toy))

    def work(number: int) -> None:
        for turn in range(6):
            count = (number + turn) % 4
            check(session, graph, {"x": rows(1 + count), "n": trips(turn), "go": np.array(turn % 3 > 0)})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
