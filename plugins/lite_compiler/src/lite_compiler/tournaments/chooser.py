"""Choice among candidates that compute the same: by estimate, by an earlier tournament, or by a tournament now."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from lite_compiler.tournaments.choice import Choice
from lite_compiler.tournaments.table import ChoiceTable
from lite_core.log import tracked

__all__ = ["Chooser", "Comparison"]

#: A candidate replaces the one with the best estimate only if it takes at most this fraction of its time in each of
#: several comparisons. Under other load, noise prevents this, and the candidate with the best estimate is kept.
_WORTHWHILE, _FINALS = 0.96, 3

C = TypeVar("C")
S = TypeVar("S")
S_contra = TypeVar("S_contra", contravariant=True)


class Comparison(Protocol[S_contra]):
    """A function that compares the times of steps on a device."""

    def __call__(self, steps: Sequence[S_contra], others: Sequence[S_contra]) -> tuple[float, float]:
        """Return the interleaved times of both lists, in seconds; infinity for steps that cannot be built or run."""
        ...


class Chooser(Generic[S]):
    """The choices of one partition, whose steps are of type ``S``.

    Args:
        table: earlier choices; None for estimates only.
        compare: measures problems that are not in the table; None to use estimates for them.

    Attributes:
        used: choices that were found in the table or measured, by problem.
    """

    def __init__(self, table: ChoiceTable | None = None, compare: Comparison[S] | None = None) -> None:
        self._table = table
        self._compare = compare
        self._measured: set[str] = set()
        self.used: dict[str, Choice] = {}

    @property
    def is_tuning(self) -> bool:
        """True if unknown choices are measured."""
        return self._compare is not None

    @property
    def may_choose(self) -> bool:
        """False if every problem gets its first candidate, because nothing was or will be measured."""
        return self.is_tuning or (self._table is not None and self._table.count > 0)

    def choose(self, problem: str, candidates: Sequence[C], steps: Callable[[C], Sequence[S]]) -> C:
        """Return the candidate that is known to be fastest, or the first one if none is known.

        Args:
            problem: see :func:`lite_compiler.tournaments.choice.problem`.
            candidates: equivalent candidates, identified by their text.
            steps: returns the steps of a candidate, for measuring.
        """
        if self._table is None or len(candidates) == 1:
            return candidates[0]
        by_name = {str(candidate): candidate for candidate in candidates}
        choice = self._table.find(problem, by_name)
        if choice is None and self._compare is not None:
            with self._table.measuring:  # another thread may have measured it in the meantime
                choice = self._table.find(problem, by_name)
                if choice is None:
                    choice = self._tournament(problem, self._compare, by_name, steps)
                    self._table.add(problem, choice)
                    self._measured.add(problem)
                    self._table.logger.info("%s: %s", problem, choice)
        if choice is None:
            return candidates[0]
        self.used[problem] = choice
        return by_name[choice.name]

    def _tournament(
        self, problem: str, compare: Comparison[S], by_name: dict[str, C], steps: Callable[[C], Sequence[S]]
    ) -> Choice:
        """Compare each candidate with the best so far; only two at a time, to limit the memory for packed weights."""
        assert self._table is not None
        usual, *others = by_name
        best, best_steps, best_seconds = usual, steps(by_name[usual]), math.inf
        for name in tracked(others, f"measuring kernels for {problem}"):
            steps_of = steps(by_name[name])
            best_seconds, seconds = compare(best_steps, steps_of)
            self._table.logger.debug("%s: %.1f us, %s: %.1f us", best, 1e6 * best_seconds, name, 1e6 * seconds)
            if seconds < best_seconds:
                best, best_steps = name, steps_of
        if best == usual:
            return Choice(usual, best_seconds, usual, best_seconds)
        # Among many similar candidates noise may decide, so the winner is compared with the usual one again.
        usual_steps = steps(by_name[usual])
        finals = [compare(best_steps, usual_steps) for _ in range(_FINALS)]
        usual_seconds = min(final[1] for final in finals)
        if all(seconds < _WORTHWHILE * of_usual for seconds, of_usual in finals):
            return Choice(best, min(final[0] for final in finals), usual, usual_seconds)
        return Choice(usual, usual_seconds, usual, usual_seconds)

    def describe(self) -> list[str]:
        """Return a line for profiles if any choice was measured, else nothing."""
        found = len(self.used.keys() - self._measured)
        counts = ((len(self._measured), "tuned now"), (found, "tuned before"))
        text = ", ".join(f"{count} {when}" for count, when in counts if count)
        return [f"choices: {text}"] if text else []
