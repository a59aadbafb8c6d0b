"""Timing of two candidates in turns, until the faster one is clear."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable

from lite_core.errors import LiteError

__all__ = ["Run", "compare_in_turns"]

#: Runs a candidate once and returns the seconds that it took.
Run = Callable[[], float]

#: The time in seconds, of both candidates together, after which their comparison ends, and the most turns of each.
_SECONDS, _MAX_TURNS = 0.1, 25
#: The comparison ends after the fewest turns if one candidate is slower by this factor.
_CLEARLY_SLOWER = 1.3
#: Runs of a candidate in one turn. The first one finds caches that the other candidate used.
_RUNS = 2


def compare_in_turns(
    run: Run | None, other: Run | None, logger: logging.Logger, *, min_turns: int = 5
) -> tuple[float, float]:
    """Return the shortest time of each of two candidates, in seconds.

    Args:
        run: runs the first candidate; None if it cannot run.
        other: runs the second one.
        logger: receives the reason why a candidate is left out.
        min_turns: the fewest turns of each; more where other work disturbs the measurement.

    Returns:
        Infinity for a candidate that cannot run, or whose run raises a LiteError.
    """
    runs, seconds = [run, other], [math.inf, math.inf]
    for turn in range(1, _MAX_TURNS + 1):
        for i, each in enumerate(runs):
            if each is None:
                continue
            try:
                seconds[i] = min(seconds[i], *(each() for _ in range(_RUNS)))
            except LiteError as error:
                logger.info("a candidate is left out: %s", error)
                runs[i], seconds[i] = None, math.inf
        spent = _RUNS * turn * sum(seconds)
        is_clear = max(seconds) >= _CLEARLY_SLOWER * min(seconds)
        if turn >= min_turns and (is_clear or spent > _SECONDS):
            break
    return seconds[0], seconds[1]
