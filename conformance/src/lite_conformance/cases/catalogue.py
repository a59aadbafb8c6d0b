"""All cases of the suite, in the order of the levels."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from lite_conformance.cases import contract, graphs, models, probe, stress
from lite_conformance.cases.case import Case, Context, Settings
from lite_conformance.cases.onnx_node_data import running as node_data
from lite_conformance.cases.op_cases import Drawer, OpCase
from lite_conformance.cases.op_runner import run_drawn, run_op_case
from lite_conformance.cases.operators import all_tables
from lite_conformance.judge.outcome import Outcome
from lite_core.ir import DType

__all__ = ["all_cases"]


def all_cases(settings: Settings) -> Iterator[Case]:
    """Yield all cases for these settings; their names are unique."""
    yield from probe.cases()
    yield from contract.cases()
    yield from _op_cases()
    yield from node_data.cases(settings)
    yield from graphs.cases()
    yield from models.cases(settings)
    yield from stress.cases()


def _op_cases() -> Iterator[Case]:
    for table in all_tables():
        op = table.definition.qualified_name
        for name, dtype, case in table.cases():
            yield Case(name, 2, "ops", partial(_run_op_case, case=case, dtype=dtype), op, dtype.value)
        for name, dtype, drawer in table.drawers():
            yield Case(name, 2, "ops", partial(_run_drawn, drawer=drawer, dtype=dtype), op, dtype.value)


def _run_op_case(context: Context, case: OpCase, dtype: DType) -> Outcome:
    return run_op_case(context.subject, case, dtype, context.allowance, context.settings.seed)


def _run_drawn(context: Context, drawer: Drawer, dtype: DType) -> Outcome:
    settings = context.settings
    return run_drawn(context.subject, drawer, dtype, context.allowance, settings.seed, settings.examples)
