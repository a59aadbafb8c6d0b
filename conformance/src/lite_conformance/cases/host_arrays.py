"""The cases of level 1 about arrays that a session gets: any strides and alignment, constants included."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from lite_conformance.cases.case import Context
from lite_conformance.cases.side_by_side import weighted_graphs
from lite_conformance.cases.supported import supported_case
from lite_conformance.cases.tensors import Array
from lite_conformance.drive.backend_call import backend_call
from lite_conformance.drive.subject import require_same
from lite_conformance.drive.watched import LentBytes
from lite_conformance.judge.outcome import Failure, Outcome
from lite_core.ir import Graph
from lite_core.session import load

__all__ = ["CHECKS"]


def _arrays_of_any_strides(context: Context) -> Outcome:
    """Require the same results of a session for inputs and constants that are strided, unaligned or read-only.

    Lite makes them contiguous and aligned before a backend sees them.
    """
    examples = 0
    for op, graph, inputs in weighted_graphs(context.subject, 0):
        for repeated in (False, True):
            plain_graph, plain_inputs = _with_equal_rows(graph, inputs) if repeated else (graph, inputs)
            expected = _run(context, plain_graph, plain_inputs, op)
            for name, form in (_REPEATED if repeated else _FORMS).items():
                strided = plain_graph.copy()
                for value, array in strided.constants.items():
                    strided.constants[value] = form(array)
                what = f"{op} in a session, with {name} constants and inputs,"
                require_same(expected, _run(context, strided, [form(a) for a in plain_inputs], what), what)
                examples += 1
    return Outcome(examples=examples)


def _run(context: Context, graph: Graph, inputs: Sequence[Array], what: str) -> list[Array]:
    label = context.subject.device.label
    with backend_call(f"{what} on {label!r}"):
        session = load(graph, label, fallback="never", optimize=False, plugins=context.subject.plugins)
        outputs = session.run(dict(zip((v.name for v in graph.inputs), inputs)))
    return [outputs[v.name] for v in graph.outputs]


def _with_equal_rows(graph: Graph, inputs: Sequence[Array]) -> tuple[Graph, list[Array]]:
    """Return the graph and inputs with the first row of each array in all its rows."""
    copy = graph.copy()
    for value, array in copy.constants.items():
        copy.constants[value] = np.ascontiguousarray(np.broadcast_to(array[:1], array.shape))
    return copy, [np.ascontiguousarray(np.broadcast_to(a[:1], a.shape)) for a in inputs]


def _every_second(array: Array) -> Array:
    strided: Array = np.repeat(np.repeat(array, 2, axis=0), 2, axis=1)[::2, ::2]
    return strided


def _unaligned(array: Array) -> Array:
    memory = np.zeros(array.nbytes + 1, np.uint8)
    copy: Array = memory[1:].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def _read_only(array: Array) -> Array:
    copy: Array = array.copy()
    copy.flags.writeable = False
    return copy


#: Ways to store the elements of a matrix.
_FORMS: dict[str, Callable[[Array], Array]] = {
    "column-major": np.asfortranarray,
    "reversed": lambda array: array[::-1, ::-1].copy()[::-1, ::-1],
    "strided": _every_second,
    "unaligned": _unaligned,
    "read-only": _read_only,
}
#: Ways to store a matrix of equal rows.
_REPEATED: dict[str, Callable[[Array], Array]] = {"broadcast": lambda array: np.broadcast_to(array[0], array.shape)}


def _session_arrays_not_kept(context: Context) -> Outcome:
    """Require that nothing refers to the arrays that a session got for its inputs and outputs, after the run."""
    case = supported_case(context.subject)
    graph, inputs = case.build(0)
    label = context.subject.device.label
    with backend_call(f"a session on {label!r}"):
        session = load(graph, label, fallback="never", optimize=False, plugins=context.subject.plugins)
        (output,) = session.run({v.name: a for v, a in zip(graph.inputs, inputs)}).values()
    lent = {v.name: _lend(a) for v, a in zip(graph.inputs, inputs)}
    result = _lend(np.zeros_like(output))
    with backend_call(f"a session on {label!r}, given arrays for outputs,"):
        given = {name: array for name, (_, array) in lent.items()}
        session.run(given, out={graph.outputs[0].name: result[1]})
    require_same([output], [result[1]], "a run that writes to an array of the caller")
    kept = {**{f"input {name!r}": memory for name, (memory, _) in lent.items()}, "output": result[0]}
    del given, lent, result
    for what, memory in kept.items():
        if memory.is_used():
            raise Failure(f"{case.name}: after a session ran, something still refers to the array of its {what}")
    return Outcome(examples=2)


def _lend(array: Array) -> tuple[LentBytes, Array]:
    memory = LentBytes(array.nbytes)
    assert memory.lent is not None
    lent: Array = memory.lent.view(array.dtype).reshape(array.shape)
    lent[...] = array
    memory.lent = None
    return memory, lent


CHECKS: Sequence[Callable[[Context], Outcome]] = (_arrays_of_any_strides, _session_arrays_not_kept)
