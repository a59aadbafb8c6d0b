"""Differences between two measurements, told from noise by the method of batch means.

Runs that follow each other are alike: a disturbance of the machine lasts longer than a run. Each measurement is
therefore cut into a few long batches of consecutive runs, and the spread of their medians says how far a median can be
trusted (G. S. Fishman, Grouping observations in digital simulation, Management Science 24, 1978). The interval of the
change follows from Welch's t-test for unequal variances (B. L. Welch, Biometrika 34, 1947). It is computed on
logarithms, because times differ by factors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Change", "change_of_median"]

Array = np.ndarray[Any, Any]

#: Changes up to this share are never reported: two processes that run the same code differ by as much, because of their
#: layout in memory and the clocks of the processor.
SMALLEST_CHANGE = 0.03
#: More batches make intervals narrower, but miss disturbances that last longer than a batch.
_BATCHES = 6
_FEWEST_RUNS = 5
#: The 99.5 % quantiles of Student's t distribution for 1, 2, ... 10 degrees of freedom.
_STUDENT = (63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169)


class Change(NamedTuple):
    """The change of a median from one measurement to another, as a share of the first: 0.08 is 8 % slower.

    Attributes:
        share: the change; None if there are too few runs to tell.
        low: the lower end of the interval that contains it with a probability of 99 %.
        high: the upper end.
    """

    share: float | None
    low: float = 0.0
    high: float = 0.0

    @property
    def verdict(self) -> str:
        """One of ``slower``, ``faster``, ``no difference`` and ``too few runs``."""
        if self.share is None:
            return "too few runs"
        if self.low > 0 and self.share > SMALLEST_CHANGE:
            return "slower"
        return "faster" if self.high < 0 and self.share < -SMALLEST_CHANGE else "no difference"

    def __str__(self) -> str:
        if self.share is None:
            return f"too few runs to tell a difference: at least {_FEWEST_RUNS} of each are needed"
        if self.verdict == "no difference":
            above = "" if self.low <= 0 <= self.high else f" above {_percent(SMALLEST_CHANGE)} %"
            return f"no difference{above} seen ({_percent(self.low, True)} to {_percent(self.high, True)} %)"
        ends = sorted((abs(self.low), abs(self.high)))
        return f"{self.verdict} by {_percent(abs(self.share))} % ({_percent(ends[0])} to {_percent(ends[1])} %)"

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, with the changes in percent."""
        shares = {"change_percent": self.share, "change_low_percent": self.low, "change_high_percent": self.high}
        percent = {key: None if self.share is None or v is None else 100 * v for key, v in shares.items()}
        return {"verdict": self.verdict, "text": str(self), **percent}


def change_of_median(before: Sequence[float], after: Sequence[float]) -> Change:
    """Return the change of the median run time, averaged over batches, from one measurement to another.

    Args:
        before: the times of the first measurement, in the order in which the runs took place.
        after: the times of the second one.
    """
    if min(len(before), len(after)) < _FEWEST_RUNS:
        return Change(None)
    old, new = _logarithms_of_medians(before), _logarithms_of_medians(after)
    middle, half = float(new.mean() - old.mean()), _half_width(old, new)
    return Change(math.expm1(middle), math.expm1(middle - half), math.expm1(middle + half))


def _logarithms_of_medians(times: Sequence[float]) -> Array:
    batches = np.array_split(np.asarray(times, np.float64), min(_BATCHES, len(times)))
    return np.log([np.median(batch) for batch in batches])


def _half_width(*measurements: Array) -> float:
    """Return half of the width of the interval of the difference between the means of two measurements."""
    variances = [float(medians.var(ddof=1)) / medians.size for medians in measurements]
    total = sum(variances)
    if total == 0:
        return 0.0
    freedom = total**2 / sum(v**2 / (medians.size - 1) for v, medians in zip(variances, measurements))
    return _STUDENT[min(int(freedom), len(_STUDENT)) - 1] * math.sqrt(total)


def _percent(share: float, signed: bool = False) -> str:
    percent = 100 * share
    digits = 0 if abs(percent) >= 9.95 else 1
    return f"{percent:+.{digits}f}" if signed else f"{percent:.{digits}f}"
