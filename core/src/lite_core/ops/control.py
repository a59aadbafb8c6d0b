"""The operators If, Loop and Scan, whose attributes are graphs.

Bodies can read the values of the enclosing graphs. A body's own inputs are the values that change from call to call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lite_core.deadline import check_time
from lite_core.errors import GraphError, RunTimeoutError
from lite_core.ir import Dim, DType, Graph, SymbolicDim, TensorType, Value, fresh_dim
from lite_core.ops.dtypes import MOVED
from lite_core.ops.inference import Inference, fail, normalize_axis
from lite_core.ops.registry import op, optional, required

Array = np.ndarray[Any, Any]
RunGraph = Callable[[Graph, Sequence[Array]], list[Array]]
InferOutputs = Callable[[], list[TensorType]]


def _as_declared(value: Value, array: Array) -> Array:
    """Convert an array to the element type that a body's input declares, and a scalar to its rank.

    NOTE: references receive float16 and bfloat16 as float32, but the body's other operands still have these types.
    """
    shape = value.type.shape
    if array.ndim == 0 and shape is not None and len(shape) == 1:
        array = array.reshape(1)  # a body may declare its counter and condition as vectors of one element
    return array.astype(value.type.dtype.numpy, copy=False)


def _truth(condition: Array) -> bool:
    if condition.size != 1:
        raise fail(f"the condition must be one element, has shape {list(condition.shape)}")
    return bool(condition.reshape(()))


def _known_truth(inference: Inference, index: int) -> bool | None:
    value = inference.value(index)
    if value is None or value.size != 1 or isinstance(value.reshape(-1)[0], SymbolicDim):
        return None
    return bool(value.reshape(-1)[0])


def _check_one_element(inference: Inference, index: int, name: str) -> None:
    shape = inference.shape(index) if inference.has(index) else None
    if shape is not None and any(isinstance(d, int) and d != 1 for d in shape):
        raise fail(f"{name} must be one element, has shape [{', '.join(map(str, shape))}]")


# **** If ****


def _merge_branches(a: TensorType, b: TensorType, index: int) -> TensorType:
    if a.dtype != b.dtype:
        raise fail(f"output {index} is {a.dtype} in then_branch and {b.dtype} in else_branch")
    if a.shape is None or b.shape is None or len(a.shape) != len(b.shape):
        return a.with_shape(None)
    return a.with_shape(tuple(m if m == n else fresh_dim() for m, n in zip(a.shape, b.shape)))


def _infer_if(inference: Inference) -> list[TensorType]:
    _check_one_element(inference, 0, "cond")
    branches: list[Graph] = [inference.attributes["then_branch"], inference.attributes["else_branch"]]
    for name, graph in zip(("then_branch", "else_branch"), branches):
        if graph.inputs:
            raise fail(f"{name} must have no inputs (it captures what it uses), has {len(graph.inputs)}")
        if len(graph.outputs) != inference.n_outputs:
            raise fail(f"{name} has {len(graph.outputs)} outputs, the node {inference.n_outputs}")
    taken = _known_truth(inference, 0)
    if taken is not None:
        # NOTE: the other branch is not inferred. The condition may exist because it does not fit these shapes.
        return inference.infer_graph(branches[0 if taken else 1], [])
    fitting = _infer_branches(inference, branches)
    if len(fitting) == 1:
        return fitting[0]
    return [_merge_branches(a, b, index) for index, (a, b) in enumerate(zip(*fitting))]


def _infer_branches(inference: Inference, branches: Sequence[Graph]) -> list[list[TensorType]]:
    """Infer the output types of both branches; one branch may fail if ``inference.branches_may_not_fit``.

    NOTE: a model with a branch for each sampling rate has inputs whose sizes fit only one of the branches. If the
    branch that does not fit is taken at run time, making its plan fails with the same message.
    """
    found: list[list[TensorType]] = []
    failure: GraphError | None = None
    for graph in branches:
        try:
            found.append(inference.infer_graph(graph, []))
        except GraphError as error:
            if failure is not None or not inference.branches_may_not_fit:
                raise
            failure = error
    return found


@op(
    "If",
    "cond: bool -> outputs: V**",
    types={"V": MOVED},
    attributes={"then_branch": required("graph"), "else_branch": required("graph")},
    infer=_infer_if,
)
def if_(cond: Array, *, then_branch: Graph, else_branch: Graph, run_graph: RunGraph) -> list[Array]:
    """The outputs of ``then_branch`` when ``cond`` is true, else those of ``else_branch``."""
    return run_graph(then_branch if _truth(cond) else else_branch, [])


# **** the cost of inferring nested loops ****

#: A loop's body is inferred up to this number of times, so each nested loop multiplies the time.
_ROUNDS = 3
#: The number of inferred nodes that a loop may cost, and the limit for large bodies as a multiple of their nodes.
_MOST_INFERRED, _MOST_TIMES = 300_000, 30


def _check_nesting(body: Graph) -> None:
    """Refuse a loop whose types take too long to infer, before they are inferred: some nest deeper than any model."""
    nodes, inferred = _cost(body)
    if inferred > max(_MOST_INFERRED, _MOST_TIMES * nodes):
        raise fail(f"loops in its body are nested too deep: types of {nodes} nodes would be inferred {inferred} times")


def _cost(graph: Graph) -> tuple[int, int]:
    """Return the number of nodes of a graph and its sub-graphs, and how often nodes are inferred."""
    nodes = inferred = len(graph.nodes)
    for node in graph.nodes:
        for inner in node.subgraphs:
            inner_nodes, inner_inferred = _cost(inner)
            nodes += inner_nodes
            inferred += inner_inferred * (1 if node.op == "If" else _ROUNDS)
    return nodes, inferred


# **** types that a body carries from one iteration to the next ****


class _CarriedTypes:
    """The types of loop-carried values, valid for the values of every iteration.

    They start as the initial types. A dimension or rank that an iteration changes is widened to an unknown
    one. A widened dimension does not change again, so :meth:`infer_body` terminates.
    """

    def __init__(self, names: Sequence[str], initial: Sequence[TensorType]) -> None:
        self._names = names
        self.types = list(initial)
        self._widened: set[SymbolicDim] = set()

    def infer_body(self, infer: Callable[[list[TensorType]], list[TensorType]]) -> list[TensorType]:
        """Infer the body until its carried outputs fit its inputs; return the types of its other outputs."""
        while True:
            outputs = infer(self.types)
            merged = [self._merge(name, old, new) for name, old, new in zip(self._names, self.types, outputs)]
            if merged == self.types:
                return outputs[len(self.types) :]
            self.types = merged

    def _merge(self, name: str, old: TensorType, new: TensorType) -> TensorType:
        if old.dtype != new.dtype:
            raise fail(f"{name} is {old.dtype} before and {new.dtype} after an iteration of the body")
        if old.shape is None or new.shape is None or len(old.shape) != len(new.shape):
            return old.with_shape(None)
        return old.with_shape(tuple(self._merge_dims(a, b) for a, b in zip(old.shape, new.shape)))

    def _merge_dims(self, old: Dim, new: Dim) -> Dim:
        if old == new or old in self._widened:
            return old
        widened = fresh_dim()
        self._widened.add(widened)
        return widened

    def outside(self, type: TensorType) -> TensorType:
        """Return a type as it is after the loop, where sizes that vary between iterations are unknown.

        NOTE: a widened symbol stands for a different size in each iteration, so it must not leave the body.
        """
        if type.shape is None:
            return type
        varying = frozenset().union(*(d.symbols for d in self._widened))
        return type.with_shape(
            tuple(fresh_dim() if isinstance(d, SymbolicDim) and d.symbols & varying else d for d in type.shape)
        )


def _invariant_values(inference: Inference, first_input: int, carried: Sequence[tuple[Value, Value]]) -> list[Any]:
    """Return the known elements of the carried values that the body passes on unchanged, None for the others."""
    return [inference.value(first_input + i) if a is b else None for i, (a, b) in enumerate(carried)]


# **** Loop ****


def _always_true(body: Graph) -> bool:
    """Return True if a Loop body never ends the loop: its condition is its condition input or a true constant."""
    producers, value = body.producers(), body.outputs[0]
    while (node := producers.get(value)) is not None and node.op == "Identity" and node.inputs[0] is not None:
        value = node.inputs[0]
    if value is body.inputs[1]:
        return True
    constant = body.constants.get(value)
    return constant is not None and constant.size == 1 and bool(constant.reshape(-1)[0])


def _trips(inference: Inference, body: Graph) -> int | None:
    """Return the number of iterations of a Loop, or None if it is unknown before the loop runs."""
    if inference.has(1) and _known_truth(inference, 1) is False:
        return 0
    counts = inference.ints(0) if inference.has(0) else None
    if counts is None or len(counts) != 1:
        return None
    count = max(counts[0], 0)
    if count == 0 or not inference.has(1):
        return count
    return count if _known_truth(inference, 1) and _always_true(body) else None


def _infer_loop(inference: Inference) -> list[TensorType]:
    body: Graph = inference.attributes["body"]
    _check_nesting(body)
    _check_one_element(inference, 0, "M")
    _check_one_element(inference, 1, "cond")
    initial = [inference.type(i) for i in range(2, len(inference.types))]
    if len(body.inputs) != 2 + len(initial):
        raise fail(
            f"the body must have {2 + len(initial)} inputs (iteration, condition and one for each of the "
            f"{len(initial)} loop-carried values), has {len(body.inputs)}"
        )
    if len(body.outputs) != 1 + inference.n_outputs or inference.n_outputs < len(initial):
        raise fail(
            f"the body must have {1 + inference.n_outputs} outputs (condition and one for each output of the "
            f"node, first the {len(initial)} loop-carried values), has {len(body.outputs)}"
        )
    carried = _CarriedTypes([v.name for v in body.inputs[2:]], initial)
    counters = [_scalar(body.inputs[0], DType.INT64), _scalar(body.inputs[1], DType.BOOL)]
    values = [None, None, *_invariant_values(inference, 2, list(zip(body.inputs[2:], body.outputs[1:])))]

    def infer(types: list[TensorType]) -> list[TensorType]:
        condition, *outputs = inference.infer_graph(body, [*counters, *types], values)
        if condition.dtype is not DType.BOOL:
            raise fail(f"the body's first output, the condition, must be bool, is {condition.dtype}")
        return outputs

    scanned = carried.infer_body(infer)
    trips = _trips(inference, body)
    finals = initial if trips == 0 else [carried.outside(t) for t in carried.types]
    length: Dim = fresh_dim("trips") if trips is None else trips
    stacked = [t if t.shape is None else t.with_shape((length, *t.shape)) for t in map(carried.outside, scanned)]
    return [*finals, *stacked]


def _scalar(declared: Value, dtype: DType) -> TensorType:
    shape = declared.type.shape
    return TensorType(dtype, (1,) if shape is not None and len(shape) == 1 else ())


@op(
    "Loop",
    "M: int64?, cond: bool?, v_initial: V** -> v_final_and_scan_outputs: V**",
    types={"V": MOVED},
    attributes={"body": required("graph")},
    infer=_infer_loop,
)
def loop(
    m: Array | None,
    cond: Array | None,
    *initial: Array,
    body: Graph,
    run_graph: RunGraph,
    infer_outputs: InferOutputs,
) -> list[Array]:
    """Run ``body`` while its condition holds, at most ``M`` times.

    The body takes (iteration, condition, carried values...) and returns (condition, carried values...,
    scan outputs...); scan outputs of all iterations are stacked along a new first axis. Without ``cond``
    the body's condition is ignored, without ``M`` there is no limit. The condition is checked before
    each iteration, so there may be no iteration.
    """
    limit = None if m is None else int(m.reshape(()))
    keep_going = True if cond is None else _truth(cond)
    carried, scanned, iteration = list(initial), [], 0
    count = len(body.outputs) - 1 - len(initial)
    while keep_going and (limit is None or iteration < limit):
        arguments = [np.array(iteration, np.int64), np.array(keep_going), *carried]
        condition, *outputs = _run_body(run_graph, body, arguments, iteration)
        carried = outputs[: len(initial)]
        if count:  # an endless loop must not fill the memory
            scanned.append(outputs[len(initial) :])
        keep_going = cond is None or _truth(condition)
        iteration += 1
    if iteration == 0:
        return [*carried, *_empty(infer_outputs()[len(initial) :])]
    return [*carried, *(np.stack([s[i] for s in scanned]) for i in range(count))]


def _run_body(run_graph: RunGraph, body: Graph, arguments: Sequence[Array], iteration: int) -> list[Array]:
    """Run one iteration of a loop if there is time left."""
    check_time("iteration {}".format, iteration)
    try:
        return run_graph(body, [_as_declared(v, a) for v, a in zip(body.inputs, arguments)])
    except RunTimeoutError as error:
        raise RunTimeoutError(f"iteration {iteration}: {error}") from error


def _empty(types: Sequence[TensorType]) -> list[Array]:
    """Return the scan outputs of a loop without iterations; unknown dimensions have size 0."""
    shapes = [tuple(d if isinstance(d, int) else 0 for d in t.shape or (0,)) for t in types]
    return [np.zeros(shape, t.dtype.numpy) for shape, t in zip(shapes, types)]


# **** Scan ****


def _scan_axes(given: tuple[int, ...] | None, count: int, name: str) -> tuple[int, ...]:
    if given is None:
        return (0,) * count
    if len(given) != count:
        raise fail(f"{name} has {len(given)} entries, expected {count}")
    return given


def _infer_scan(inference: Inference) -> list[TensorType]:
    attributes = inference.attributes
    body: Graph = attributes["body"]
    _check_nesting(body)
    types = [inference.type(i) for i in range(len(inference.types))]
    count = attributes["num_scan_inputs"]
    if not 1 <= count <= len(types):
        raise fail(f"num_scan_inputs must be 1 to the number of inputs, {len(types)}; is {count}")
    initial, scanned = types[:-count], types[-count:]
    outputs = inference.n_outputs - len(initial)
    if len(body.inputs) != len(types) or len(body.outputs) != inference.n_outputs or outputs < 0:
        raise fail(
            f"the body must have {len(types)} inputs and {inference.n_outputs} outputs, at least "
            f"{len(initial)}; has {len(body.inputs)} and {len(body.outputs)}"
        )
    _scan_axes(attributes["scan_input_directions"], count, "scan_input_directions")
    _scan_axes(attributes["scan_output_directions"], outputs, "scan_output_directions")
    axes = _scan_axes(attributes["scan_input_axes"], count, "scan_input_axes")
    elements, length = _scan_elements(scanned, axes)
    carried = _CarriedTypes([v.name for v in body.inputs], initial)
    values = _invariant_values(inference, 0, list(zip(body.inputs[: len(initial)], body.outputs)))
    values += [None] * count
    results = carried.infer_body(lambda states: inference.infer_graph(body, [*states, *elements], values))
    finals = initial if length == 0 else [carried.outside(t) for t in carried.types]
    output_axes = _scan_axes(attributes["scan_output_axes"], outputs, "scan_output_axes")
    return [*finals, *(_scan_output(carried.outside(t), a, length) for t, a in zip(results, output_axes))]


def _scan_elements(scanned: Sequence[TensorType], axes: Sequence[int]) -> tuple[list[TensorType], Dim]:
    """Return the types of one iteration's slices, and the number of iterations."""
    elements: list[TensorType] = []
    length: Dim | None = None
    for index, (type, axis) in enumerate(zip(scanned, axes)):
        if type.shape is None:
            elements.append(type)
            continue
        axis = normalize_axis(axis, len(type.shape), "scan input axis")
        size = type.shape[axis]
        if isinstance(size, int) and isinstance(length, int) and size != length:
            raise fail(f"scan input {index} has {size} elements along axis {axis}, another has {length}")
        length = size if not isinstance(length, int) else length
        elements.append(type.with_shape(type.shape[:axis] + type.shape[axis + 1 :]))
    return elements, fresh_dim("trips") if length is None else length


def _scan_output(type: TensorType, axis: int, length: Dim) -> TensorType:
    if type.shape is None:
        return type
    dims: list[Dim] = list(type.shape)
    dims.insert(normalize_axis(axis, len(dims) + 1, "scan output axis"), length)
    return type.with_shape(tuple(dims))


@op(
    "Scan",
    "initial_state_and_scan_inputs: V** -> final_state_and_scan_outputs: V**",
    types={"V": MOVED},
    attributes={
        "body": required("graph"),
        "num_scan_inputs": required("int"),
        "scan_input_axes": optional("ints"),
        "scan_input_directions": optional("ints"),
        "scan_output_axes": optional("ints"),
        "scan_output_directions": optional("ints"),
    },
    infer=_infer_scan,
)
def scan(
    *arrays: Array,
    body: Graph,
    num_scan_inputs: int,
    scan_input_axes: tuple[int, ...] | None,
    scan_input_directions: tuple[int, ...] | None,
    scan_output_axes: tuple[int, ...] | None,
    scan_output_directions: tuple[int, ...] | None,
    run_graph: RunGraph,
    infer_outputs: InferOutputs,
) -> list[Array]:
    """Run ``body`` over slices of the last ``num_scan_inputs`` inputs; the other inputs are the initial states.

    Slices are taken along ``scan_input_axes`` (default 0), from the end for direction 1. Scan outputs are
    stacked along ``scan_output_axes`` (default 0), the last iteration first for direction 1.
    """
    states, sequences = list(arrays[:-num_scan_inputs]), arrays[-num_scan_inputs:]
    count = len(body.outputs) - len(states)
    axes = _scan_axes(scan_input_axes, num_scan_inputs, "scan_input_axes")
    backwards = _scan_axes(scan_input_directions, num_scan_inputs, "scan_input_directions")
    sequences = tuple(
        np.moveaxis(a, axis, 0)[:: -1 if back else 1] for a, axis, back in zip(sequences, axes, backwards)
    )
    if len({len(s) for s in sequences}) != 1:
        raise fail(f"scan inputs differ in length: {[len(s) for s in sequences]}")
    collected = []
    for iteration, elements in enumerate(zip(*sequences)):
        outputs = _run_body(run_graph, body, (*states, *elements), iteration)
        states = outputs[: len(states)]
        collected.append(outputs[len(states) :])
    if not collected:
        return [*states, *_empty(infer_outputs()[len(states) :])]
    output_axes = _scan_axes(scan_output_axes, count, "scan_output_axes")
    directions = _scan_axes(scan_output_directions, count, "scan_output_directions")
    stacked = [
        np.stack([c[i] for c in collected][:: -1 if directions[i] else 1], axis) for i, axis in enumerate(output_axes)
    ]
    return [*states, *stacked]
