"""The cases of level 2 that tables of operators describe."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from lite_conformance.cases.case import Case, Context, Example, Settings
from lite_conformance.cases.op_cases import Drawer, OpCase, OpTable
from lite_conformance.cases.op_runner import drawn_cases, example_of, run_drawn, run_op_case
from lite_conformance.judge.outcome import Outcome
from lite_core.ir import DType

__all__ = ["cases_of_tables"]


def cases_of_tables(tables: Iterable[OpTable]) -> Iterator[Case]:
    """Yield the hand-written and the drawn cases of tables, in their order."""
    for table in tables:
        op = table.definition.qualified_name
        for name, dtype, case in table.cases():
            run, examples = partial(_run_op_case, case=case, dtype=dtype), partial(_examples, case=case, dtype=dtype)
            yield Case(name, 2, "ops", run, op, dtype.value, examples=examples)
        for name, dtype, drawer in table.drawers():
            examples = partial(_drawn_examples, drawer=drawer, dtype=dtype)
            run = partial(_run_drawn, drawer=drawer, dtype=dtype)
            yield Case(name, 2, "ops", run, op, dtype.value, examples=examples)


def _run_op_case(context: Context, case: OpCase, dtype: DType) -> Outcome:
    return run_op_case(context.subject, case, dtype, context.allowance, context.settings.seed)


def _examples(settings: Settings, case: OpCase, dtype: DType) -> Iterator[Example]:
    yield example_of(case, dtype, settings.seed)


def _drawn_examples(settings: Settings, drawer: Drawer, dtype: DType) -> Iterator[Example]:
    for case in drawn_cases(drawer, dtype, settings.seed, settings.examples):
        yield example_of(case, dtype, settings.seed)


def _run_drawn(context: Context, drawer: Drawer, dtype: DType) -> Outcome:
    settings = context.settings
    return run_drawn(context.subject, drawer, dtype, context.allowance, settings.seed, settings.examples)
