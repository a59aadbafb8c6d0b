"""The bench of an operator: its cases, prepared once, on which its mutants are tried until one fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property

import numpy as np

from lite_conformance.cases import random_numbers
from lite_conformance.cases.case import Context, Settings
from lite_conformance.cases.op_cases import Draw, Drawer, OpCase, OpTable
from lite_conformance.cases.op_runner import run_drawn, run_op_case
from lite_conformance.drive.subject import Subject, same_bits
from lite_conformance.judge.checks import Allowance, check_arrays
from lite_conformance.judge.compare import Expected
from lite_conformance.judge.outcome import Failure, Refused
from lite_conformance.mutate.backend import MutantBackend, evaluate_with
from lite_conformance.mutate.deadline import TimeUp, time_limit
from lite_conformance.mutate.mutant import Array, Compute, Mutant
from lite_conformance.mutate.reach import is_reached, traced
from lite_conformance.mutate.state import StateBackend
from lite_conformance.mutate.state_bench import try_backend
from lite_conformance.mutate.verdict import Verdict
from lite_core.backend import Device, No, Yes
from lite_core.ir import DType, Graph, Node
from lite_core.ops.evaluate import evaluate_graph

__all__ = ["Bench"]

#: Seconds that a mutant may take for one case, in which the reference takes milliseconds.
_SECONDS_PER_CASE = 5.0


class Example:
    """A case in one element type: a graph of one node, its inputs and what the reference computes."""

    def __init__(self, name: str, case: OpCase, dtype: DType, seed: int, files: frozenset[str]) -> None:
        self.name = name
        self.case = case
        self.dtype = dtype
        self._seed = seed
        self._files = files

    @cached_property
    def built(self) -> tuple[Graph, list[Array]]:
        """The graph and its inputs."""
        return self.case.build(self.dtype, self._seed)

    @cached_property
    def _computed(self) -> tuple[list[Array], frozenset[tuple[str, int]]]:
        return traced(lambda: evaluate_graph(*self.built), self._files)

    @property
    def correct(self) -> list[Array]:
        """The outputs of the true reference."""
        return self._computed[0]

    def reaches(self, mutant: Mutant) -> bool:
        """Return False if the true reference executes none of the lines that the mutant changes."""
        return mutant.lines is None or is_reached(mutant.lines, self._computed[1])

    @cached_property
    def expected(self) -> list[Expected]:
        """The truth that the suite compares with."""
        return self.case.expect(*self.built)

    def differs(self, op: str, compute: Compute) -> bool:
        """Return False if the outputs of a mutant are within the tolerance.

        The outputs are compared bit by bit first: most cases that do not find a mutant end there.
        """
        try:
            found = evaluate_with(*self.built, op, compute)
            if len(found) == len(self.correct) and all(map(_same, found, self.correct)):
                return False
            if any(a.dtype == bool and (a.view(np.uint8) > 1).any() for a in found if a.size):
                return True  # neither true nor false
            return bool(check_arrays(found, self.expected, self.case.numerics, Allowance())[1].wrong)
        except Exception:  # whatever the fault raises: the suite then runs the case, and its verdict counts
            return True

    def run(self, subject: Subject) -> None:
        """Run the case as the suite does; raise what it raises."""
        run_op_case(subject, self.case, self.dtype, Allowance(), self._seed)


class Bench:
    """The examples of an operator, in an order that finds mutants fast: those that found one are tried first.

    An operator that draws random numbers has the cases of their distributions as well, which are tried last.

    Args:
        table: the operator's table of cases.
        seed: the seed of the suite's random numbers.
        drawn: the number of examples that hypothesis draws in each element type.
    """

    def __init__(self, table: OpTable, seed: int, drawn: int) -> None:
        self.op = table.definition.qualified_name
        self._seed = seed
        self._backend = MutantBackend(self.op)
        self._subject = Subject.first(self._backend)
        self._waiting = _examples(table, seed, drawn)
        self._ready: list[Example] = []
        self._distributions = [case for case in random_numbers.cases() if case.op == self.op]

    def try_out(self, mutant: Mutant) -> Verdict:
        """Run the cases on a mutant until one of them fails."""
        try:
            made = mutant.make()
        except Exception as error:
            return Verdict(True, 0, "", f"the mutant cannot be built: {type(error).__name__}: {error}")
        if isinstance(made, StateBackend):
            return try_backend(made, self._seed)
        compute = made
        self._backend.compute_node = compute
        reached = False
        for number, example in enumerate(self._in_order()):
            if not example.reaches(mutant):
                continue
            reached = True
            try:
                with time_limit(_SECONDS_PER_CASE):
                    if not example.differs(self.op, compute):
                        continue
                    example.run(self._subject)
            except Failure as failure:
                self._ready.insert(number // 2, self._ready.pop(number))
                return Verdict(True, 2, example.name, failure.reason[:200])
            except TimeUp:
                return Verdict(True, 2, example.name, f"not done after {_SECONDS_PER_CASE:g} s")
        found = self._try_distributions()
        return found or Verdict(False, reason="every result is right" if reached else "no case executes it")

    def _try_distributions(self) -> Verdict | None:
        """Return the verdict of the first case of a distribution that fails; None if there is none."""
        context = Context(self._subject, Settings(self._backend.name, self._seed))
        for case in self._distributions:
            try:
                with time_limit(_SECONDS_PER_CASE):
                    case.run(context)
            except Failure as failure:
                return Verdict(True, case.level, case.name, failure.reason[:200])
            except TimeUp:
                return Verdict(True, case.level, case.name, f"not done after {_SECONDS_PER_CASE:g} s")
        return None

    def _in_order(self) -> Iterator[Example]:
        yield from list(self._ready)
        for example in self._waiting:
            self._ready.append(example)
            yield example


def _examples(table: OpTable, seed: int, drawn: int) -> Iterator[Example]:
    """Yield the examples of a table: hand-written ones first, small ones before large ones, float32 before others."""
    files = frozenset({table.definition.reference.__code__.co_filename})
    cases = sorted(table.cases(), key=lambda c: (_size(c[2]) > 1 << 14, c[1] is not DType.FLOAT32))
    for name, dtype, case in cases:
        yield Example(name, case, dtype, seed, files)
    for name, dtype, drawer in table.drawers():
        for case in _drawn(drawer, dtype, seed, drawn):
            yield Example(name, case, dtype, seed, files)


def _drawn(drawer: Drawer, dtype: DType, seed: int, count: int) -> list[OpCase]:
    """Return the examples that hypothesis draws in a run of the suite, as long as none fails."""
    cases: list[OpCase] = []

    def record(draw: Draw, dtype: DType) -> OpCase:
        cases.append(drawer(draw, dtype))
        return cases[-1]

    with suppress(Refused):  # the examples are only drawn here
        run_drawn(Subject.first(_RefusingBackend("")), record, dtype, Allowance(), seed, count)
    return cases


class _RefusingBackend(MutantBackend):
    """A backend that supports nothing."""

    def supports(self, node: Node, device: Device) -> Yes | No:
        return No("the examples are only drawn")


def _size(case: OpCase) -> int:
    return sum(int(np.prod(tensor.shape)) for tensor in case.inputs if tensor is not None)


def _same(one: Array, other: Array) -> bool:
    return one.dtype == other.dtype and same_bits(one, other)
