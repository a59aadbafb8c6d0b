"""The operators of plugins in level 2: cases that their packages bring, generated ones, and operators without cases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

from lite_conformance.cases.case import Case, Context
from lite_conformance.cases.op_cases import OpTable, registered_tables, tables
from lite_conformance.cases.op_table_cases import cases_of_tables
from lite_conformance.cases.plugins.brought import BrokenCases, import_cases
from lite_conformance.cases.plugins.generated import generated_table
from lite_conformance.cases.plugins.importing import imported_plugins
from lite_conformance.cases.plugins.references import ReferenceRefusal, reference_cases
from lite_conformance.judge.outcome import Outcome, PackageCasesError, Skipped
from lite_core.errors import LiteError
from lite_core.ops import OpDef
from lite_core.ops.evaluate import evaluate_graph
from lite_core.plugins import PluginManager, PluginRecord

__all__ = [
    "broken_cases",
    "cases_without_own_table",
    "operator_cases",
    "operators_of",
    "own_tables",
    "reference_cases_of",
    "tables_of",
]


def operators_of(plugins: PluginManager | None = None) -> list[tuple[PluginRecord, OpDef]]:
    """Return the operators of plugins with the plugins that provide them, by domain and name."""
    found = (plugins or imported_plugins()).ask("lite_ops")
    return sorted(found, key=lambda pair: (pair[1].domain, pair[1].name))


def own_tables(definitions: Sequence[OpDef]) -> list[OpTable]:
    """Return the tables that packages bring for operators; an empty table counts as none."""
    return [table for definition in definitions if (table := _own_table(definition))]


def operator_cases() -> Iterator[Case]:
    """Yield the cases of the operators of all plugins: those that packages bring, and generated ones."""
    import_cases()
    yield from cases_of_tables(table for table in tables() if table.is_of_plugin)
    yield from cases_without_own_table()


def tables_of(definitions: Sequence[OpDef]) -> Iterator[OpTable]:
    """Yield the tables that packages bring for operators, or else those that are generated for them."""
    for definition in definitions:
        table = _own_table(definition) or _generated(definition)
        if isinstance(table, OpTable):
            yield table


def reference_cases_of(definitions: Sequence[OpDef]) -> Iterator[Case]:
    """Yield the checks of the references of operators, with the tables of their packages, or else generated ones."""
    for table in tables_of(definitions):
        is_generated = _own_table(table.definition) is None
        for case in reference_cases(table):
            yield replace(case, run=partial(_skip_refusal, run=case.run)) if is_generated else case


def cases_without_own_table(plugins: PluginManager | None = None, distribution: str | None = None) -> Iterator[Case]:
    """Yield generated cases of operators whose package brings none, and a case that names each without cases.

    Args:
        plugins: the plugins; those of the process by default.
        distribution: only the operators of this package.
    """
    for record, definition in operators_of(plugins):
        if (distribution is not None and record.distribution != distribution) or _own_table(definition):
            continue
        table = _generated(definition)
        name = definition.qualified_name
        if isinstance(table, OpTable):
            for case in cases_of_tables([table]):
                yield replace(case, run=partial(_run_generated, table=table, run=case.run))
        else:
            reason = f"operator {name} is not tested: package {record.distribution} brings no cases for it, and none "
            reason += f"can be generated, because {table}"
            yield Case(f"{name}[no-cases]", 2, "ops", partial(_skip, reason=reason), name)


def broken_cases(distribution: str | None = None) -> Iterator[Case]:
    """Yield a case that ends with an error for each package whose cases cannot be used.

    Args:
        distribution: only this package. Then every selection has the case: without it, a run of the package would pass
            because nothing is left to run.
    """
    for broken in import_cases():
        if distribution in (None, broken.distribution):
            level, run = 2 if distribution is None else 0, partial(_fail, broken=broken)
            yield Case(f"cases[{broken.distribution}]", level, "plugins", run, always=distribution is not None)


def _own_table(definition: OpDef) -> OpTable | None:
    registered: Mapping[tuple[str, str], OpTable] = registered_tables()
    table = registered.get((definition.domain, definition.name))
    return table if table is not None and (any(table.cases()) or any(table.drawers())) else None


# A definition cannot be hashed, because its attributes are in dictionaries.
_generated_tables: dict[int, tuple[OpDef, OpTable | str]] = {}


def _generated(definition: OpDef) -> OpTable | str:
    found = _generated_tables.get(id(definition))
    if found is None:
        found = _generated_tables[id(definition)] = (definition, generated_table(definition))
    return found[1]


def _run_generated(context: Context, table: OpTable, run: Callable[[Context], Outcome]) -> Outcome:
    if problem := _problem_of_reference(table):
        name = table.definition.qualified_name
        raise Skipped(f"operator {name} has no cases, and its reference refuses generated operands: {problem}")
    return run(context)


def _skip_refusal(context: Context, run: Callable[[Context], Outcome]) -> Outcome:
    try:
        return run(context)
    except ReferenceRefusal as refusal:
        raise Skipped(f"the package brings no cases, and its reference refuses generated operands: {refusal}") from None


@cache
def _problem_of_reference(table: OpTable) -> str:
    """Return the error of an operator's reference for generated operands; empty if it takes them."""
    for _, dtype, case in table.cases():
        graph, inputs = case.build(dtype, 0)
        try:
            evaluate_graph(graph, inputs)
        except LiteError as error:
            return str(error)
    return ""


def _skip(context: Context, reason: str) -> Outcome:
    raise Skipped(reason)


def _fail(context: Context, broken: BrokenCases) -> Outcome:
    raise PackageCasesError(broken.reason, broken.details)
