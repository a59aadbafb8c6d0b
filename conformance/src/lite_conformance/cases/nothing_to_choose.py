"""ArgMax and ArgMin along an axis that turns out to have no elements: an error that names the node, and no harm."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from lite_conformance.cases.case import Case, Context
from lite_conformance.cases.graphs.running import load_on_backend_only, session_outputs
from lite_conformance.cases.out_of_range import require_intact
from lite_conformance.cases.tensors import Array
from lite_conformance.drive.subject import Run
from lite_conformance.judge.checks import check_outcome
from lite_conformance.judge.outcome import Failure, Outcome
from lite_conformance.judge.tolerances import EXACT
from lite_core.builder import GraphBuilder
from lite_core.errors import LiteError
from lite_core.ir import DType, Graph

__all__ = ["cases"]

_OPS = ("ArgMax", "ArgMin")
_ROWS, _COLUMNS = 4, 33
_KEEPDIMS = (1, 0)


def cases() -> Iterator[Case]:
    """Yield the cases, named ``nothing-to-choose[ArgMax,size-of-input]``."""
    for op in _OPS:
        for label, run in (("size-of-input", _size_of_input), ("size-from-data", _size_from_data)):
            name = f"nothing-to-choose[{op},{label}]"
            yield Case(name, 2, "nothing to choose", partial(run, op=op), op, DType.FLOAT32.value)


def _size_of_input(context: Context, op: str) -> Outcome:
    """Run a session with inputs of some rows, of none, and of some again."""
    for keepdims in _KEEPDIMS:
        builder = GraphBuilder("some_rows")
        rows = builder.input("rows", "float32", ("n", _COLUMNS))
        chosen = builder.add_node(op, [rows], {"axis": 0, "keepdims": keepdims}, outputs=["chosen"])
        builder.output(chosen[0])
        graph = builder.build()
        session = load_on_backend_only(context, graph, optimize=True)
        for count in (_ROWS, 0, _ROWS):
            inputs = [_rows(context, count)]
            if count:
                check_outcome(graph, inputs, session_outputs(session, graph, inputs), EXACT, context.allowance)
                continue
            try:
                found = session.run({"rows": inputs[0]})
            except LiteError as error:
                _require_named(error, graph)
            else:
                raise Failure(f"a run without rows must end with an error, and returned {_shown(found.values())}")
    return Outcome(examples=3 * len(_KEEPDIMS))


def _size_from_data(context: Context, op: str) -> Outcome:
    """Run a partition in which a Slice, whose end is an input, leaves some rows, none, and some again."""
    for keepdims in _KEEPDIMS:
        builder = GraphBuilder("slice_of_rows")
        rows, end = builder.input("rows", "float32", (_ROWS, _COLUMNS)), builder.input("end", "int64", (1,))
        zero = builder.constant(np.zeros(1, np.int64), "zero")
        (left,) = builder.add_node("Slice", [rows, zero, end, zero], {}, outputs=["left"])
        chosen = builder.add_node(op, [left], {"axis": 0, "keepdims": keepdims}, outputs=["chosen"])
        builder.output(chosen[0])
        graph = builder.build()
        compiled = context.subject.compile(graph)
        for count in (_ROWS, 0, _ROWS - 1):
            inputs = [_rows(context, _ROWS), np.array([count], np.int64)]
            run = Run(compiled, inputs)
            if count:
                run.start()
                check_outcome(graph, inputs, run.finish(), EXACT, context.allowance)
                continue
            try:
                run.start()
            except Failure as failure:
                if not isinstance(failure.__cause__, LiteError):
                    raise
                _require_named(failure.__cause__, graph)
                require_intact(run, inputs)
            else:
                raise Failure(f"a run without rows must end with an error, and returned {_shown(run.finish())}")
    return Outcome(examples=3 * len(_KEEPDIMS))


def _rows(context: Context, count: int) -> Array:
    random = np.random.default_rng([context.settings.seed, count])
    return random.standard_normal((count, _COLUMNS)).astype(np.float32)


def _require_named(error: LiteError, graph: Graph) -> None:
    node = graph.nodes[-1].name
    if node not in str(error):
        raise Failure(f"the error of a run without rows does not name the node {node!r}: {error}") from error


def _shown(arrays: Any) -> str:
    return ", ".join(str(np.asarray(array).reshape(-1)[:4].tolist()) for array in arrays)
