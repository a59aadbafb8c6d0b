"""All cases of the suite, in the order of the levels, generated in parts.

A run of few cases generates only the parts whose names can match: the name of a case begins with the head of its part,
before a bracket: ``contract[...]``, or an operator's name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from lite_conformance.cases.case import Case, Settings
from lite_conformance.cases.patterns import literal_start, matches

__all__ = ["CaseFinder", "all_cases", "operator_names", "possible_cases"]

#: Tells whether the cases of an operator are wanted, given its name with its domain.
OpFilter = Callable[[str], bool]


def all_cases(settings: Settings) -> Iterator[Case]:
    """Yield all cases for these settings; their names are unique."""
    return possible_cases(settings)


def possible_cases(
    settings: Settings, levels: range = range(6), patterns: Sequence[str] = ("*",), ops: Sequence[str] = ("*",)
) -> Iterator[Case]:
    """Yield the cases of some levels in the parts of the suite that patterns can match.

    Cases that match no pattern, but are in such a part, are yielded as well. If the settings name a package, its cases
    are the whole suite. A case that is always selected is yielded for any levels.

    Args:
        settings: settings of the run.
        levels: the levels.
        patterns: patterns of names, with the wildcards ``*`` and ``?``.
        ops: patterns of operators; limits only the cases of operators in level 2.
    """
    if settings.plugin:
        from lite_conformance.cases.plugins.package import cases_of_package

        yield from (case for case in cases_of_package(settings.plugin) if case.always or case.level in levels)
        return

    def is_wanted_op(op: str) -> bool:
        return any(_may_begin(pattern, op) for pattern in patterns) and any(matches(pattern, op) for pattern in ops)

    for part in _PARTS:
        if part.level in levels and any(part.may_match(pattern) for pattern in patterns):
            yield from part.cases(settings, is_wanted_op)


class CaseFinder:
    """The cases of a run by name; a part of the suite is generated when its first case is asked for.

    Args:
        settings: settings of the run.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._known: dict[str, Case] = {}

    def __getitem__(self, name: str) -> Case:
        """Return a case. Raises a KeyError if there is none."""
        if name not in self._known:
            part = name.partition("[")[0] + "["
            self._known.update((case.name, case) for case in possible_cases(self._settings, patterns=[part]))
        return self._known[name]


@cache
def operator_names() -> tuple[str, ...]:
    """Return the names of all operators that have cases, with their domain."""
    from lite_conformance.cases.operators import all_tables
    from lite_conformance.cases.plugins.operators import operators_of

    names = [table.definition.qualified_name for table in all_tables()]
    return tuple(dict.fromkeys([*names, *(definition.qualified_name for _, definition in operators_of())]))


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of the suite.

    Attributes:
        level: the level of its cases.
        head: the text before the bracket in the names of its cases; empty if it is the name of each case's operator.
        cases: yields the cases, those of operators as far as the filter wants them.
        of_plugins: True for the operators of plugins, whose names have a domain. Finding them imports the plugins.
    """

    level: int
    head: str
    cases: Callable[[Settings, OpFilter], Iterator[Case]]
    of_plugins: bool = False

    def may_match(self, pattern: str) -> bool:
        """Return True if a pattern may match the name of a case."""
        if self.of_plugins:
            start, bracket, _ = literal_start(pattern).partition("[")
            return "." in start or not bracket
        return not self.head or _may_begin(pattern, self.head)


def _probe(settings: Settings, wanted: OpFilter) -> Iterator[Case]:
    from lite_conformance.cases import probe

    return probe.cases()


def _contract(settings: Settings, wanted: OpFilter) -> Iterator[Case]:
    from lite_conformance.cases import contract

    return contract.cases()


def _operators(settings: Settings, wanted: OpFilter) -> Iterator[Case]:
    from lite_conformance.cases.op_table_cases import cases_of_tables
    from lite_conformance.cases.operators import all_tables

    return cases_of_tables(table for table in all_tables() if wanted(table.definition.qualified_name))


def _plugin_operators(settings: Settings, wanted: OpFilter) -> Iterator[Case]:
    from lite_conformance.cases.plugins.operators import operator_cases

    return (case for case in operator_cases() if wanted(case.op))


def _broken_packages(settings: Settings, wanted: OpFilter) -> Iterator[Case]:
    from lite_conformance.cases.plugins.operators import broken_cases

    return broken_cases()


def _out_of_range(settings: Settings, wanted: OpFilter) -> Iterator[Case]:
    from lite_conformance.cases import out_of_range

    return out_of_range.cases()


def _nothing_to_choose(settings: Settings, wanted: OpFilter) -> Iterator[Case]:
    from lite_conformance.cases import nothing_to_choose

    return nothing_to_choose.cases()


def _random(settings: Settings, wanted: OpFilter) -> Iterator[Case]:
    from lite_conformance.cases import random_numbers

    return random_numbers.cases()


def _products(settings: Settings, wanted: OpFilter) -> Iterator[Case]:
    from lite_conformance.cases import products

    return products.cases(settings)


def _node_data(settings: Settings, wanted: OpFilter) -> Iterator[Case]:
    from lite_conformance.cases.onnx_node_data import running

    return running.cases(settings)


def _graphs(settings: Settings, wanted: OpFilter) -> Iterator[Case]:
    from lite_conformance.cases import graphs

    return graphs.cases()


def _plugin_graphs(settings: Settings, wanted: OpFilter) -> Iterator[Case]:
    from lite_conformance.cases.plugins.passes import graph_cases_of_packages

    return graph_cases_of_packages()


def _models(settings: Settings, wanted: OpFilter) -> Iterator[Case]:
    from lite_conformance.cases import models

    return models.cases(settings)


def _stress(settings: Settings, wanted: OpFilter) -> Iterator[Case]:
    from lite_conformance.cases import stress

    return stress.cases()


_PARTS = (
    _Part(0, "probe", _probe),
    _Part(1, "contract", _contract),
    _Part(2, "", _operators),
    _Part(2, "", _plugin_operators, of_plugins=True),
    _Part(2, "cases", _broken_packages),
    _Part(2, "out-of-range", _out_of_range),
    _Part(2, "nothing-to-choose", _nothing_to_choose),
    _Part(2, "random", _random),
    _Part(2, "precision", _products),
    _Part(2, "onnx", _node_data),
    _Part(3, "graph", _graphs),
    _Part(3, "graph", _plugin_graphs),
    _Part(4, "model", _models),
    _Part(5, "stress", _stress),
)


def _may_begin(pattern: str, head: str) -> bool:
    """Return True if a name that begins with this head and a bracket may match the pattern."""
    start, bracket, _ = literal_start(pattern).partition("[")
    return head == start if bracket else head.startswith(start)
