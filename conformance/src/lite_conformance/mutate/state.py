"""Mutants of state: what a backend keeps between runs, executables and threads, and where it writes.

They are planted into a few operators: the fault is one of the backend, not of an operator. The cases of levels 1 and 5
must find them.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from lite_conformance.mutate.behaviour.fault import spoiled
from lite_conformance.mutate.mutant import Array, Mutant
from lite_core.backend import Buffer, Device, Executable, No, Options, Partition, Stale, Unavailable, Yes
from lite_core.builtin import HostBackend
from lite_core.ir import Graph, Node
from lite_core.ops import OpDef
from lite_core.ops.evaluate import evaluate_graph

__all__ = ["StateBackend", "state_mutants"]

#: The operators that the faults are planted into, in turn: element-wise, with weights, with two outputs.
REPRESENTATIVES = ("Add", "Conv", "MatMul", "Relu", "Softmax", "TopK")

_WITH_WEIGHTS = ("Add", "Conv", "MatMul")

#: Runs an executable of a :class:`StateBackend`, with the fault.
Work = Callable[["StateExecutable", Sequence[Buffer], Sequence[Buffer], "Buffer | None"], None]


class StateBackend(HostBackend):
    """A backend that supports one operator, and keeps something that it must not keep.

    Args:
        op: the operator's qualified name.
        work: runs an executable.
        scratch_bytes: what its executables ask for.
        restored: runs an executable that was restored; None if they cannot be saved.
    """

    name = "mutant"

    def __init__(self, op: str, work: Work, scratch_bytes: int = 0, restored: Work | None = None) -> None:
        self.op = op
        self.work = work
        self.scratch_bytes = scratch_bytes
        self.restored = restored
        #: What the faults keep beyond the life of an executable.
        self.kept: dict[Any, Any] = {}

    def become(self, other: StateBackend) -> None:
        """Take over the fault of another backend for the same operator, and forget what was kept."""
        self.__dict__.update(other.__dict__, kept={})

    def probe(self) -> Sequence[Device] | Unavailable:
        return [Device("mutant", name=f"one operator, {self.op}, with a fault of state")]

    def supports(self, node: Node, device: Device) -> Yes | No:
        return Yes() if node.qualified_op == self.op else No(f"the mutant has no {node.qualified_op}")

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        kind = StateExecutable if self.restored is None else _SavedExecutable
        return kind(self, part.graph, self.work)

    def restore(
        self, pieces: Sequence[memoryview], part: Partition, device: Device, options: Options
    ) -> Executable | Stale:
        """Restore an executable; only backends with ``restored`` save any."""
        if [bytes(p) for p in pieces] != [_described(part.graph)]:
            return Stale("these pieces are not those of this partition")
        assert self.restored is not None
        return _SavedExecutable(self, part.graph, self.restored)


class StateExecutable:
    """An executable that computes by the references, run by a function with the fault."""

    def __init__(self, backend: StateBackend, graph: Graph, work: Work) -> None:
        self.backend = backend
        self.graph = graph
        self.scratch_bytes = backend.scratch_bytes
        #: What the faults keep from run to run.
        self.kept: dict[Any, Any] = {}
        self._work = work

    def results(self, inputs: Sequence[Buffer]) -> list[Array]:
        """Return the right results, in arrays of their own."""
        return [np.array(a) for a in evaluate_graph(self.graph, [b.data for b in inputs])]

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        self._work(self, inputs, outputs, scratch)


class _SavedExecutable(StateExecutable):
    def save(self) -> Sequence[bytes]:
        return [_described(self.graph)]


def _described(graph: Graph) -> bytes:
    constants = b"".join(array.tobytes() for array in graph.constants.values())
    return b"\n".join([str(graph).encode(), constants]) * 2


def state_mutants(definition: OpDef) -> Iterator[Mutant]:
    """Yield the mutants of state of an operator; none unless it is one of the few representatives."""
    op = definition.qualified_name
    if op not in REPRESENTATIVES:
        return
    faults: list[tuple[str, int, Callable[[str], StateBackend]]] = [
        *((_kind(work), level, partial(StateBackend, work=work)) for level, works in _WORKS.items() for work in works),
        ("scratch assumed to be zero", 1, partial(StateBackend, work=_scratch_added, scratch_bytes=256)),
        ("scratch overrun", 1, partial(StateBackend, work=_scratch_overrun, scratch_bytes=256)),
        ("restored, the last output wrong", 1, partial(StateBackend, work=_right, restored=_last_output_wrong)),
        ("restored, the first result repeated", 1, partial(StateBackend, work=_right, restored=_first_result)),
        ("restored, the second run wrong", 1, partial(StateBackend, work=_right, restored=_second_run_wrong)),
    ]
    if op in _WITH_WEIGHTS:
        with_state = partial(StateBackend, work=_right_once, restored=_first_constants)
        faults.append(("restored, with the constants of another", 1, with_state))
    else:
        faults = [fault for fault in faults if "constant" not in fault[0]]
    for kind, level, make in faults:
        yield Mutant(f"{op}: {kind}", op, "state", kind, level, partial(make, op))


def _kind(work: Work) -> str:
    return work.__name__.strip("_").replace("_", " ")


# **** results that are kept ****


def _store(results: Sequence[Array], outputs: Sequence[Buffer]) -> None:
    for buffer, result in zip(outputs, results):
        buffer.store(result)


def _right(executable: StateExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Any) -> None:
    _store(executable.results(inputs), outputs)


def _first_result(
    executable: StateExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Any
) -> None:
    _store(executable.kept.setdefault("result", executable.results(inputs)), outputs)


def _result_by_shape(
    executable: StateExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Any
) -> None:
    key = (str(executable.graph), *(b.data.shape for b in inputs))
    _store(executable.backend.kept.setdefault(key, executable.results(inputs)), outputs)


def _result_by_address(
    executable: StateExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Any
) -> None:
    key = tuple(b.data.ctypes.data for b in inputs)
    _store(executable.kept.setdefault(key, executable.results(inputs)), outputs)


def _second_run_wrong(
    executable: StateExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Any
) -> None:
    results = executable.results(inputs)
    if executable.kept.setdefault("runs", 0):
        results = [spoiled(a) for a in results]
    executable.kept["runs"] += 1
    _store(results, outputs)


def _first_constants(
    executable: StateExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Any
) -> None:
    """Use the constants of the first executable with constants of these shapes."""
    constants = executable.graph.constants
    key = tuple((a.shape, a.dtype.str) for a in constants.values())
    first = executable.backend.kept.setdefault(key, [np.array(a) for a in constants.values()])
    graph = executable.graph.copy()
    graph.constants = dict(zip(graph.constants, first))
    _store(evaluate_graph(graph, [b.data for b in inputs]), outputs)


def _right_once(executable: StateExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Any) -> None:
    """Compute rightly, and keep the constants of the first executable with constants of these shapes."""
    constants = executable.graph.constants
    key = tuple((a.shape, a.dtype.str) for a in constants.values())
    executable.backend.kept.setdefault(key, [np.array(a) for a in constants.values()])
    _right(executable, inputs, outputs, scratch)


def _last_output_wrong(
    executable: StateExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Any
) -> None:
    results = executable.results(inputs)
    results[-1] = spoiled(results[-1])
    _store(results, outputs)


# **** storage ****


def _buffers_kept(
    executable: StateExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Any
) -> None:
    """Write to the outputs of the run before."""
    results = executable.results(inputs)
    for old, result in zip(executable.kept.get("outputs", ()), results):
        if old.shape == result.shape:
            old[...] = result
    _store(results, outputs)
    executable.kept["outputs"] = [b.data for b in outputs]


def _inputs_kept(
    executable: StateExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Any
) -> None:
    """Read the inputs of the run before, wherever they are."""
    before = executable.kept.get("inputs", inputs)
    executable.kept["inputs"] = list(inputs)
    _store(executable.results(before), outputs)


def _storage_replaced(
    executable: StateExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Any
) -> None:
    for buffer, result in zip(outputs, executable.results(inputs)):
        buffer.data = result


def _input_written(
    executable: StateExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Any
) -> None:
    _right(executable, inputs, outputs, scratch)
    if inputs[0].data.size:
        ctypes.memset(inputs[0].data.ctypes.data, 1, 1)


def _constant_written(
    executable: StateExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Any
) -> None:
    _right(executable, inputs, outputs, scratch)
    for array in executable.graph.constants.values():
        if array.size:
            ctypes.memset(array.ctypes.data, 1, 1)


def _added_to_the_output(
    executable: StateExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Any
) -> None:
    """Assume that the output's storage is zero."""
    for buffer, result in zip(outputs, executable.results(inputs)):
        if buffer.data is None:
            buffer.store(result)
        else:
            with np.errstate(all="ignore"):
                buffer.data[...] += result


def _one_past_the_end(
    executable: StateExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Any
) -> None:
    _right(executable, inputs, outputs, scratch)
    data = outputs[-1].data
    ctypes.memset(data.ctypes.data + data.nbytes, 0, data.itemsize)


def _one_before_the_beginning(
    executable: StateExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Any
) -> None:
    _right(executable, inputs, outputs, scratch)
    data = outputs[-1].data
    ctypes.memset(data.ctypes.data - data.itemsize, 0, data.itemsize)


def _read_past_the_end(
    executable: StateExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Any
) -> None:
    data = inputs[0].data
    ctypes.string_at(data.ctypes.data + data.nbytes, 16)
    _right(executable, inputs, outputs, scratch)


def _scratch_added(
    executable: StateExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Any
) -> None:
    results = executable.results(inputs)
    if scratch.data[0]:
        results = [np.zeros_like(a) for a in results]
    _store(results, outputs)


def _scratch_overrun(
    executable: StateExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Any
) -> None:
    _right(executable, inputs, outputs, scratch)
    ctypes.memset(scratch.data.ctypes.data + scratch.data.nbytes, 0, 1)


# **** threads ****


def _shared_buffer(
    executable: StateExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Any
) -> None:
    """Keep intermediate results in one place for all threads."""
    for number, (buffer, result) in enumerate(zip(outputs, executable.results(inputs))):
        shared = executable.kept.setdefault(number, np.empty_like(result))
        shared[...] = result
        time.sleep(0)  # another thread may run here
        buffer.store(shared.copy())


def _first_run_unlocked(
    executable: StateExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Any
) -> None:
    """Initialise in the first run; other threads take what is there as initialised."""
    table = executable.kept.get("table")
    if table is None:
        table = executable.kept["table"] = np.zeros(1)
        time.sleep(0)
        table += 1
    _store([(a * a.dtype.type(table[0])).astype(a.dtype) for a in executable.results(inputs)], outputs)


def _inputs_of_the_latest_thread(
    executable: StateExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Any
) -> None:
    """Set the arguments of a run in the executable, and start it in a second step."""
    executable.kept["inputs"] = inputs
    time.sleep(0)
    _store(executable.results(executable.kept["inputs"]), outputs)


def _wrong_in_other_threads(
    executable: StateExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Any
) -> None:
    """Set up what a run needs only in the thread of the first run."""
    owner = executable.kept.setdefault("thread", threading.get_ident())
    results = executable.results(inputs)
    _store(results if owner == threading.get_ident() else [np.zeros_like(a) for a in results], outputs)


def _last_bit_of_every_fiftieth_run(
    executable: StateExecutable, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Any
) -> None:
    executable.kept["runs"] = executable.kept.get("runs", 0) + 1
    results = executable.results(inputs)
    if executable.kept["runs"] % 50 == 0:
        results = [np.nextafter(a, a.dtype.type(np.inf)) if a.dtype.kind == "f" else a for a in results]
    _store(results, outputs)


#: The faults of running, by the level whose cases must find them.
_WORKS: dict[int, tuple[Work, ...]] = {
    1: (
        _first_result,
        _result_by_shape,
        _result_by_address,
        _second_run_wrong,
        _first_constants,
        _buffers_kept,
        _inputs_kept,
        _storage_replaced,
        _input_written,
        _constant_written,
        _added_to_the_output,
        _one_past_the_end,
        _one_before_the_beginning,
    ),
    5: (
        _read_past_the_end,
        _shared_buffer,
        _first_run_unlocked,
        _inputs_of_the_latest_thread,
        _wrong_in_other_threads,
        _last_bit_of_every_fiftieth_run,
    ),
}
