"""The operators If, Loop and Scan with bodies on the backend x86: the suite's graphs and random programs.

The suite itself runs whole graphs on a backend. Here sessions run them, also with loops that x86 leaves to host,
because sizes change from one iteration to the next: it then runs their bodies.
"""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lite_conformance.cases.graphs import control, dynamic
from lite_conformance.cases.graphs.draft import GraphCase
from lite_conformance.cases.op_cases import OpCase
from lite_conformance.cases.operators import all_tables
from lite_conformance.cases.tensors import short_name
from lite_conformance.judge.checks import Allowance, check_outcome
from lite_core import convert
from lite_core.ir import DType, Graph
from lite_core.session import Session, load

pytestmark = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="the backend x86 needs an x86-64 processor"
)

OPERATORS = ("If", "Loop", "Scan")
TABLES = {table.definition.name: table for table in all_tables() if table.definition.name in OPERATORS}
GRAPHS = [case for case in (*control.graphs, *dynamic.graphs) if case.op in OPERATORS]
DTYPES = (DType.FLOAT32, DType.INT64)


def session_of(graph: Graph) -> Session:
    return load(graph, backend="x86", threads=1)


def outputs_of(session: Session, graph: Graph, inputs: Sequence[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
    outputs = session.run({v.name: a for v, a in zip(graph.inputs, inputs, strict=True)})
    return [outputs[v.name] for v in graph.outputs]


@pytest.mark.parametrize("case", GRAPHS, ids=lambda case: f"{case.label}-{short_name(case.dtype)}")
def test_a_graph(case: GraphCase) -> None:
    drafted = case.draft(0)
    session = session_of(drafted.graph)
    for number, sizes in enumerate(case.signatures or [{}] * (drafted.rounds + 1)):
        inputs = drafted.arrays(number % max(drafted.rounds, 1), sizes)
        actual = outputs_of(session, drafted.graph, inputs)
        check_outcome(drafted.graph, inputs, actual, case.numerics, Allowance(), case.dtype)


def op_cases() -> Iterator[Any]:
    for op in OPERATORS:
        for name, dtype, case in TABLES[op].cases():
            if dtype in DTYPES:
                yield pytest.param(case, dtype, id=name)


@pytest.mark.parametrize(("case", "dtype"), list(op_cases()))
def test_an_operator(case: OpCase, dtype: DType) -> None:
    run(case, dtype)


def run(case: OpCase, dtype: DType) -> Session:
    graph, inputs = case.build(dtype, 0)
    session = session_of(graph)
    check_outcome(graph, inputs, outputs_of(session, graph, inputs), case.numerics, Allowance())
    return session


@pytest.mark.parametrize("op", OPERATORS)
def test_random_programs(op: str) -> None:
    """Most bodies run at least partly on x86, otherwise the test would prove nothing."""
    drawer = next(drawer for _, dtype, drawer in TABLES[op].drawers() if dtype is DType.FLOAT32)
    on_x86: Counter[bool] = Counter()

    @settings(max_examples=40, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def every_program_is_right(data: Any) -> None:
        session = run(drawer(data.draw, DType.FLOAT32), DType.FLOAT32)
        on_x86["x86" in session.devices] += 1

    every_program_is_right()
    assert on_x86[True] > on_x86[False]


@pytest.mark.parametrize("case", [c for c in GRAPHS if c.label in ("if-computed-condition", "loop-over-length")],
                         ids=lambda case: case.label)  # fmt: skip
def test_a_model_file(case: GraphCase, tmp_path: Path) -> None:
    """The partition with the node is used as it was prepared, or compiled again if its sizes depend on data."""
    drafted, sizes = case.draft(0), (case.signatures or [{}])[0]
    inputs = drafted.arrays(0, sizes)
    path = tmp_path / "model.lite"
    shapes = {v.name: a.shape for v, a in zip(drafted.graph.inputs, inputs, strict=True)}
    convert(drafted.graph, path, ["x86"], shapes=shapes, threads=1, allow_fallback=True)
    session = load(path, backend="x86", threads=1)
    actual = outputs_of(session, drafted.graph, inputs)
    check_outcome(drafted.graph, inputs, actual, case.numerics, Allowance(), case.dtype)
    assert not session.notes
    assert {a.device for a in session.assignment()} == {"x86"}
