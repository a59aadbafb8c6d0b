"""Indices, lengths and counts out of range, given at run time and as constants.

ONNX calls most of them errors. The backend raises an error that names the node, or computes some value; in both cases
it reads and writes nothing outside its tensors, elements at other indices are right, and the next run is right, as are
runs in other threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from lite_conformance.cases.case import Case, Context
from lite_conformance.cases.op_cases import OpCase, table_of
from lite_conformance.cases.operators import all_tables
from lite_conformance.cases.stress_threads import in_threads
from lite_conformance.cases.tensors import Array, Tensor, const, short_name, t, values
from lite_conformance.drive.guard_pages import PageGuardedStorage
from lite_conformance.drive.guards import GuardedStorage, Storage
from lite_conformance.drive.subject import Compiled, Run, require_same, same_bits
from lite_conformance.judge.checks import check_expected, check_outcome
from lite_conformance.judge.oracle import expect
from lite_conformance.judge.outcome import Failure, Outcome
from lite_core.backend import Memory
from lite_core.errors import LiteError
from lite_core.ir import DType, Graph, TensorType

__all__ = ["cases", "require_intact"]

#: Takes the wrong operand and the first output's shape; returns True where the output may have any value.
Affected = Callable[[Array, tuple[int, ...]], Array]

# The data of most cases fill one page, so that guard pages lie on both sides.
_ROWS, _COLUMNS = 64, 16
_DATA = t(_ROWS, _COLUMNS)
#: Just outside on both sides, far outside, and numbers whose lower 32 bits are an index or 0.
_WRONG = (_ROWS, -_ROWS - 1, 4096, -4096, 2**31 - 1, -(2**31), 2**32 + 1, -(2**63), 2**63 - 1)


_RUNS_PER_THREAD = 8


@dataclass(frozen=True, slots=True)
class _Misuse:
    """An operator with an operand that may be out of range.

    Attributes:
        label: the rest of the case's name.
        case: the operator with a valid operand.
        position: the number of that operand among the node's inputs.
        wrong: operands that are out of range.
        affected: which elements of the output may then have any value; None for all.
    """

    label: str
    case: OpCase
    position: int
    wrong: Sequence[Array]
    affected: Affected | None = None

    @property
    def dtype(self) -> DType:
        """The element type of the case."""
        return DType.FLOAT32


def cases() -> Iterator[Case]:
    """Yield the cases, named ``out-of-range[Gather,axis0]``."""
    all_tables()
    for misuse in _misuses():
        op = misuse.case.op if not misuse.case.domain else f"{misuse.case.domain}.{misuse.case.op}"
        name = f"out-of-range[{op},{misuse.label}]"
        yield Case(name, 2, "out of range", partial(_at_run_time, misuse=misuse), op, misuse.dtype.value)
        constant = f"out-of-range[{op},{misuse.label},constant]"
        yield Case(constant, 2, "out of range", partial(_as_constant, misuse=misuse), op, misuse.dtype.value)


# **** the operators ****


def _op(name: str, *inputs: Tensor | None, domain: str = "", outputs: int = 1, **attributes: Any) -> OpCase:
    return table_of(name, domain).case(*inputs, outputs=outputs, **attributes)


def _among(right: Sequence[int], dtype: str, numbers: Sequence[int] = _WRONG) -> list[Array]:
    """Return copies of a vector of indices whose last but one element is one of ``numbers``, if the type has it."""
    limits = np.iinfo(dtype)
    found = []
    for number in numbers:
        if limits.min <= number <= limits.max:
            wrong = np.array(right, dtype)
            wrong[-2] = number
            found.append(wrong)
    return found


def _is_outside(size: int) -> Callable[[Array], Array]:
    return lambda indices: np.asarray((indices < -size) | (indices >= size))


_outside = _is_outside(_ROWS)
_INDICES = [3, -1, 0, 5, 63]


def _misuses() -> Iterator[_Misuse]:
    yield from _gathers()
    yield from _scatters()
    yield from _lengths_and_counts()


def _gathers() -> Iterator[_Misuse]:
    for dtype in ("int64", "int32"):
        indices = values(_INDICES, dtype)
        yield _Misuse(
            f"axis0,{short_name(dtype)}",
            _op("Gather", _DATA, indices),
            1,
            _among(_INDICES, dtype),
            lambda wrong, shape: _outside(wrong)[:, np.newaxis],
        )
        yield _Misuse(
            f"axis1,{short_name(dtype)}",
            _op("Gather", t(_COLUMNS, _ROWS), indices, axis=1),
            1,
            _among(_INDICES, dtype),
            lambda wrong, shape: _outside(wrong)[np.newaxis],
        )
        yield _Misuse(
            f"axis0,{short_name(dtype)}",
            _op("GatherElements", _DATA, values(np.reshape(_INDICES, (5, 1)), dtype)),
            1,
            [wrong.reshape(5, 1) for wrong in _among(_INDICES, dtype)],
            lambda wrong, shape: _outside(wrong),
        )
    rows = np.stack([_INDICES, [2, -1, 3, 15, 0]], axis=1)
    for column in (0, 1):
        wrong = [rows.copy() for _ in _WRONG]
        for array, number in zip(wrong, _WRONG):
            array[3, column] = number
        yield _Misuse(
            f"index{column}-of-2",
            _op("GatherND", _DATA, values(rows, "int64")),
            1,
            wrong,
            lambda wrong, shape: np.arange(5) == 3,
        )
    regions = values([[0, 0, 4, 4], [1, 0, 5, 6], [0, 2, 7, 7]])
    yield _Misuse(
        "image",
        _op("RoiAlign", t(4, 4, 8, 8), regions, values([0, 3, 1], "int64"), output_height=2, output_width=2),
        2,
        _among([0, 3, 1], "int64", (4, -1, -4, -5, 1000, -1000, 2**32 + 1, -(2**63))),
        lambda wrong, shape: ((wrong < 0) | (wrong > 3)).reshape(3, 1, 1, 1),
    )


def _scatters() -> Iterator[_Misuse]:
    distinct, updates = [3, -1, 0, 5, 61], t(5, _COLUMNS)
    for reduction in ("none", "add"):
        for dtype in ("int64", "int32"):
            spread = np.repeat(np.reshape(distinct, (5, 1)), _COLUMNS, axis=1)
            yield _Misuse(
                f"{reduction},{short_name(dtype)}",
                _op("ScatterElements", _DATA, values(spread, dtype), updates, reduction=reduction),
                1,
                [np.repeat(w.reshape(5, 1), _COLUMNS, axis=1) for w in _among(distinct, dtype)],
            )
        yield _Misuse(
            f"{reduction},rows",
            _op("ScatterND", _DATA, values(np.reshape(distinct, (5, 1)), "int64"), updates, reduction=reduction),
            1,
            [wrong.reshape(5, 1) for wrong in _among(distinct, "int64")],
        )
        pairs = np.stack([distinct, [2, -1, 3, 15, 0]], axis=1)
        beyond = pairs.copy()
        beyond[3, 1] = _COLUMNS  # the last element of a row, then the first of the next one
        yield _Misuse(
            f"{reduction},elements",
            _op("ScatterND", _DATA, values(pairs, "int64"), t(5), reduction=reduction),
            1,
            [beyond, np.where(pairs == 15, 2**40, pairs), np.where(pairs == 15, -_COLUMNS - 1, pairs)],
        )
    yield _Misuse(
        "indices",
        _op("MaxUnpool", t(1, 1, 16, 16), values(np.arange(256).reshape(1, 1, 16, 16) * 4, "int64"),
            kernel_shape=(2, 2), strides=(2, 2)),
        1,
        [_one_wrong(np.arange(256).reshape(1, 1, 16, 16) * 4, n) for n in (1024, -1, 10**6, 2**32 + 1, -(2**63))],
    )  # fmt: skip


def _one_wrong(right: Array, number: int) -> Array:
    wrong: Array = right.copy()
    wrong.flat[7] = number
    return wrong


def _lengths_and_counts() -> Iterator[_Misuse]:
    lengths = values([1, 9, 16, 3], "int64")
    too_long = (17, -1, 4096, 2**32 + 1, -(2**63))
    yield _Misuse(
        "sequence_lens",
        _op("ReverseSequence", t(16, 4, 16), lengths),
        1,
        _among([1, 9, 16, 3], "int64", too_long),
        lambda wrong, shape: ((wrong < 0) | (wrong > 16)).reshape(1, 4, 1),
    )
    for name, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
        yield _Misuse(
            "sequence_lens",
            _op(name, t(4, 3, 2), const(1, gates * 4, 2), const(1, gates * 4, 4), None, values([4, 2, 1], "int32"),
                hidden_size=4),
            4,
            _among([4, 2, 1], "int32", (5, -1, 4096, 2**31 - 1, -(2**31))),
            lambda wrong, shape: ((wrong < 0) | (wrong > 4)).reshape(1, 1, 3, 1),
        )  # fmt: skip
    yield _Misuse(
        "lengths",
        _op("ViterbiDecode", t(3, 4, 5), const(5, 5), None, None, values([4, 2, 1], "int64"), domain="lite"),
        4,
        _among([4, 2, 1], "int64", (5, -1, 4096, 2**31 - 1, 2**32 + 1, -(2**63))),
        lambda wrong, shape: (wrong < 0) | (wrong > 4),
    )
    yield _Misuse(
        "condition",
        _op("Compress", _DATA, values([False] * 63 + [True] + [False] * 5, "bool"), axis=0),
        1,
        [np.arange(69) % 65 > 61],
    )
    yield _Misuse("axis", _op("CumSum", _DATA, values(0, "int64")), 1, [np.array(n) for n in (2, -3, 1000, 2**32)])
    yield _Misuse("k", _op("TopK", _DATA, values([3], "int64"), outputs=2), 1,
                  [np.array([n]) for n in (_COLUMNS + 1, -1, 4096, 2**32 + 3)])  # fmt: skip
    for name, more in (("RoiPool", {}), ("PsRoiPool", {"output_channels": 4})):
        yield _Misuse(
            "boxes_num",
            _op(name, t(2, 16, 8, 8), values([[0, 0, 4, 4], [1, 0, 5, 6], [0, 2, 7, 7]]), values([1, 2], "int32"),
                domain="lite", pooled_height=2, pooled_width=2, **more),
            2,
            [np.array(counts, np.int32) for counts in ([1, 1], [2, 2], [-1, 4], [1000, -997])],
        )  # fmt: skip


# **** the checks ****


def _at_run_time(context: Context, misuse: _Misuse) -> Outcome:
    """Run with each wrong operand between guard zones and between guard pages, and with the right one after it."""
    graph, inputs = misuse.case.build(misuse.dtype, context.settings.seed)
    position = [value.name for value in graph.inputs].index(f"input_{misuse.position}")
    compiled = context.subject.compile(graph)
    storages: list[Callable[[Memory, TensorType], Storage]] = [GuardedStorage]
    if context.subject.memory.space == "host":
        storages.append(PageGuardedStorage)
    for wrong in misuse.wrong:
        given = [*inputs[:position], wrong, *inputs[position + 1 :]]
        for storage in storages:
            run = Run(compiled, given, storage)
            if _ends_with_error(run, compiled, wrong):
                require_intact(run, given)
            else:
                _check_unaffected(context, misuse, graph, inputs, position, wrong, run.finish())
        check_outcome(graph, inputs, compiled.run(inputs), misuse.case.numerics, context.allowance)
    wrong = misuse.wrong[0]
    _check_other_threads(compiled, inputs, [*inputs[:position], wrong, *inputs[position + 1 :]])
    return Outcome(examples=len(misuse.wrong) * (len(storages) + 1))


def _check_other_threads(compiled: Compiled, right: Sequence[Array], wrong: Sequence[Array]) -> None:
    """Require that an error reaches the thread whose operand is wrong, and no other."""
    expected = compiled.run(right)

    def work(number: int) -> None:
        is_wrong = number % 4 == 0
        run = Run(compiled, wrong if is_wrong else right)
        for _ in range(_RUNS_PER_THREAD):
            if is_wrong:
                with suppress(Failure):
                    run.start()
            else:
                run.start()
                require_same(expected, run.read(), "a run while others have an operand out of range")

    in_threads(work)


def _as_constant(context: Context, misuse: _Misuse) -> Outcome:
    """Compile with each wrong operand as a constant, and run if that succeeds."""
    operands = list(misuse.case.inputs)
    for wrong in misuse.wrong:
        operands[misuse.position] = values(wrong, str(wrong.dtype), constant=True)
        try:
            graph, inputs = replace(misuse.case, inputs=tuple(operands)).build(misuse.dtype, context.settings.seed)
        except LiteError:
            continue  # inference, which no backend can avoid, finds this error
        try:
            compiled = context.subject.compile(graph)
        except Failure as failure:
            _require_named(failure, graph, wrong)
            continue
        run = Run(compiled, inputs)
        if _ends_with_error(run, compiled, wrong):
            require_intact(run, inputs)
        else:
            run.finish()
    return Outcome(examples=len(misuse.wrong))


def _ends_with_error(run: Run, compiled: Compiled, wrong: Array) -> bool:
    """Run; return True if the backend raised an error that names the node, and False if it raised nothing."""
    try:
        run.start()
    except Failure as failure:
        _require_named(failure, compiled.graph, wrong)
        return True
    return False


def _require_named(failure: Failure, graph: Graph, wrong: Array) -> None:
    """Raise the failure again unless it is an error of Lite that names the node."""
    node = graph.nodes[0].name
    if not isinstance(failure.__cause__, LiteError):
        raise failure
    if node not in str(failure.__cause__):
        raise Failure(
            f"the error for the operand {_shown(wrong)} does not name the node {node!r}: {failure.__cause__}"
        ) from failure


def require_intact(run: Run, given: Sequence[Array]) -> None:
    """Raise a Failure if a run that ended with an error wrote outside its tensors, or to its inputs."""
    for (what, storage), array in zip(run.storages().items(), [*given, *(None,) * len(run.storages())]):
        breach = storage.breach()
        if breach:
            raise Failure(f"run() ended with an error, and wrote outside {what} before: {breach}")
        if array is not None and not same_bits(storage.read(), array):
            raise Failure(f"run() ended with an error, and changed its {what} before")


def _check_unaffected(
    context: Context,
    misuse: _Misuse,
    graph: Graph,
    inputs: Sequence[Array],
    position: int,
    wrong: Array,
    actual: Sequence[Array],
) -> None:
    """Compare the elements that do not depend on what is out of range."""
    if misuse.affected is None:
        return
    expected = expect(graph, inputs, misuse.case.numerics)[:1]
    affected = np.broadcast_to(misuse.affected(wrong, expected[0].array.shape), expected[0].array.shape)
    try:
        masked = [replace(expected[0], unspecified=affected)]
        check_expected(graph, inputs, actual[:1], masked, misuse.case.numerics, context.allowance)
    except Failure as failure:
        failure.reason = f"with the operand {_shown(wrong)}: {failure.reason}"
        raise


def _shown(wrong: Array) -> str:
    return str(wrong.reshape(-1).tolist()[:8])
