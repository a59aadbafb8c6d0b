"""Choosing among kernels and tiles that compute the same: by estimate, by what was measured before, or by measuring."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from lite_opencl.lowering.steps import PlannedStep
from lite_opencl.tensors import Tensor
from lite_opencl.tuning.table import Choice, TuningTable

__all__ = ["Chooser", "Comparison", "problem"]

logger = logging.getLogger("lite.opencl.tuning")

#: What replaces the candidate that is estimated to be fastest must be faster than noise makes it, so many times: on a
#: machine with other work to do nothing is, and estimates are kept.
_WORTHWHILE, _FINALS = 0.96, 3

C = TypeVar("C")


def problem(kind: str, tensors: Iterable[Tensor], **sizes: object) -> str:
    """What is to be computed, in words: problems that are described alike have the same fastest candidate.

    Args:
        kind: of problem.
        tensors: whose element types matter.
        sizes: by name.
    """
    types = " ".join(str(tensor.dtype) for tensor in tensors)
    return f"{kind} of {types}: " + ", ".join(f"{name} {size}" for name, size in sizes.items())


class Comparison(Protocol):
    """Steps whose time can be compared with that of others; see :class:`lite_opencl.tuning.stopwatch.Stopwatch`."""

    def __call__(self, steps: Sequence[PlannedStep], others: Sequence[PlannedStep]) -> tuple[float, float]:
        """Seconds that both take, measured in turns; infinity for what cannot be built or run."""
        ...


class Chooser:
    """What one partition chooses, and why.

    Args:
        table: what was measured before; None for estimates only.
        compare: measures what is not in the table; None leaves it at that.
    """

    def __init__(self, table: TuningTable | None = None, compare: Comparison | None = None) -> None:
        self._table = table
        self._compare = compare
        self._measured: set[str] = set()
        #: What was taken from the table, or measured, by problem.
        self.used: dict[str, Choice] = {}

    @property
    def is_tuning(self) -> bool:
        return self._compare is not None

    def choose(self, problem: str, candidates: Sequence[C], steps: Callable[[C], Sequence[PlannedStep]]) -> C:
        """The candidate that is known to be fastest; the first where nothing is known.

        Args:
            problem: see :func:`problem`.
            candidates: all of which are right; told apart by their text.
            steps: that a candidate becomes, for measuring.
        """
        if self._table is None or len(candidates) == 1:
            return candidates[0]
        by_name = {str(candidate): candidate for candidate in candidates}
        choice = self._table.find(problem, by_name)
        if choice is None and self._compare is not None:
            with self._table.measuring:  # another thread may just have done it
                choice = self._table.find(problem, by_name)
                if choice is None:
                    choice = self._tournament(self._compare, by_name, steps)
                    self._table.add(problem, choice)
                    self._measured.add(problem)
                    logger.info("%s: %s", problem, choice)
        if choice is None:
            return candidates[0]
        self.used[problem] = choice
        return by_name[choice.name]

    def _tournament(
        self, compare: Comparison, by_name: dict[str, C], steps: Callable[[C], Sequence[PlannedStep]]
    ) -> Choice:
        """Each candidate in turns with the best so far; two at a time, or their weights would fill the memory."""
        usual, *others = by_name
        best, best_steps, best_seconds = usual, steps(by_name[usual]), math.inf
        for name in others:
            steps_of = steps(by_name[name])
            best_seconds, seconds = compare(best_steps, steps_of)
            logger.debug("%s: %.1f us, %s: %.1f us", best, 1e6 * best_seconds, name, 1e6 * seconds)
            if seconds < best_seconds:
                best, best_steps = name, steps_of
        if best == usual:
            return Choice(usual, best_seconds, usual, best_seconds)
        # Of many that are alike noise makes one the winner.
        usual_steps = steps(by_name[usual])
        finals = [compare(best_steps, usual_steps) for _ in range(_FINALS)]
        usual_seconds = min(final[1] for final in finals)
        if all(seconds < _WORTHWHILE * beside for seconds, beside in finals):
            return Choice(best, min(final[0] for final in finals), usual, usual_seconds)
        return Choice(usual, usual_seconds, usual, usual_seconds)

    def describe(self) -> list[str]:
        """A line for profiles, where anything is known to be fastest."""
        found = len(self.used.keys() - self._measured)
        counts = ((len(self._measured), "tuned now"), (found, "tuned before"))
        said = ", ".join(f"{count} {when}" for count, when in counts if count)
        return [f"tiles: {said}"] if said else []
