"""The runs of a bisection: each configuration runs once, and its outputs are judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from lite_core.errors import InputError, LiteError
from lite_tools.bisecting.answers import Answers
from lite_tools.bisecting.criteria import FAILS, GOOD, WRONG, Criterion, Judgement

__all__ = ["Outputs", "Trials"]

Array = np.ndarray[Any, Any]
Outputs = Mapping[str, Array]


class Trials:
    """Runs configurations, counts the runs, and remembers the judgements.

    Args:
        criterion: judges the outputs.
        answers: known judgements; receives the new ones.
        about: facts about the bisection for a check, see :meth:`Criterion.judge`.
        progress: receives a line before each run.
        repeat: runs of each configuration; it is wrong if one of them is.
    """

    def __init__(
        self,
        criterion: Criterion,
        answers: Answers,
        about: Mapping[str, str],
        progress: Callable[[str], None],
        repeat: int = 1,
    ) -> None:
        self.criterion, self.answers = criterion, answers
        self._about, self._progress, self._repeat = about, progress, repeat
        #: The number of configurations that ran, and of those whose judgement was known from an earlier start.
        self.runs, self.reused = 0, 0
        #: The largest number of runs that are left; None before that is known.
        self.left: int | None = None

    def judged(self, configuration: str, what: str, run: Callable[[], Outputs]) -> Judgement:
        """Return the judgement on a configuration, which runs only if that is not known.

        Args:
            configuration: identifies the configuration.
            what: the configuration in words.
            run: makes and runs it.
        """
        known = self.answers.get(configuration)
        if known is not None:
            self.reused += configuration in self.answers.earlier
            return known
        found = self.judged_now(what, run)
        self.answers.put(configuration, found)
        return found

    def judged_now(self, what: str, run: Callable[[], Outputs]) -> Judgement:
        """Run a configuration, and judge it.

        Raises:
            InputError: a check that the user wrote failed.
        """
        self.starts(what)
        judgement = Judgement(GOOD)
        for _ in range(self._repeat):
            try:
                outputs = run()
            except InputError:
                raise
            except LiteError as error:
                return Judgement(FAILS, str(error))
            judgement = self.judged_outputs(what, outputs)
            if judgement.verdict == WRONG:
                break
        return judgement

    def judged_outputs(self, what: str, outputs: Outputs) -> Judgement:
        """Judge the outputs of the latest run.

        Raises:
            InputError: a check that the user wrote failed.
        """
        about = {**self._about, "LITE_BISECT_RUN": str(self.runs), "LITE_BISECT_WHAT": what}
        return self.criterion.judge(outputs, about)

    def starts(self, what: str) -> None:
        """Count a run, and report it."""
        self.runs += 1
        left = "" if self.left is None else f"; at most {self.left} left to find one culprit"
        self._progress(f"run {self.runs}: {what}{left}")

    def knows_whole(self, judgement: Judgement) -> None:
        """Compare the judgement on the whole with that of an earlier start: answers of other kernels are forgotten."""
        known = self.answers.get("whole")
        if known is not None and known != judgement:
            self.answers.forget()
        if known != judgement:
            self.answers.put("whole", judgement)
