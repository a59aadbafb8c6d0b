"""The mutants of a campaign: all of them, or a selection that stays the same from run to run."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lite_conformance.cases.op_cases import OpTable
from lite_conformance.cases.operators import all_tables
from lite_conformance.judge.tolerances import MOVED
from lite_conformance.mutate.behaviour import behaviour_mutants
from lite_conformance.mutate.behaviour.numbers import SATURATE, SIGNED_ZERO, UNSIGNED
from lite_conformance.mutate.mutant import Mutant
from lite_conformance.mutate.source import source_mutants
from lite_conformance.mutate.state import state_mutants
from lite_conformance.run.expectations import matches
from lite_core.errors import InputError

__all__ = ["Plan"]


@dataclass(frozen=True, slots=True)
class Plan:
    """The selection of mutants and the settings of the suite.

    Attributes:
        ops: patterns of operators; all if empty.
        kinds: patterns of families and kinds; all if empty.
        shard: number and count of the part of the mutants to try; a hash of the id decides about the part.
        seed: seed of the suite's random numbers.
        examples: number of examples that hypothesis draws in each element type.
    """

    ops: Sequence[str] = ()
    kinds: Sequence[str] = ()
    shard: tuple[int, int] = (1, 1)
    seed: int = 0
    examples: int = 20

    def tables(self) -> list[OpTable]:
        """Return the tables of the operators.

        Raises:
            InputError: a pattern matches no operator.
        """
        tables = list(all_tables())
        for pattern in self.ops:
            if not any(matches(pattern, table.definition.qualified_name) for table in tables):
                raise InputError(f"no operator is called {pattern!r}; `lite ops` lists them")
        return [t for t in tables if not self.ops or any(matches(p, t.definition.qualified_name) for p in self.ops)]

    def mutants(self, table: OpTable) -> Iterator[Mutant]:
        """Yield the mutants of an operator that belong to the campaign."""
        definition = table.definition
        number, count = self.shard
        for source in (behaviour_mutants, source_mutants, state_mutants):
            for mutant in source(definition):
                named = not self.kinds or any(matches(p, mutant.kind) or matches(p, mutant.family) for p in self.kinds)
                if mutant.kind in _without_meaning(table):
                    continue
                if named and zlib.crc32(mutant.id.encode()) % count == number - 1:
                    yield mutant

    def ids(self) -> dict[str, list[str]]:
        """Return the ids of all mutants of the campaign, by operator."""
        return {t.definition.qualified_name: [m.id for m in self.mutants(t)] for t in self.tables()}

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON data, for :meth:`from_dict`."""
        return asdict(self)

    @staticmethod
    def from_dict(fields: dict[str, Any]) -> Plan:
        """Return the plan of :meth:`to_dict`."""
        return Plan(**{**fields, "shard": tuple(fields["shard"])})


def _without_meaning(table: OpTable) -> tuple[str, ...]:
    """Return the kinds of faults that an operator cannot have."""
    # Of the results of arithmetic, either zero is right.
    return (SATURATE, UNSIGNED) if table.numerics is MOVED else (SIGNED_ZERO,)
