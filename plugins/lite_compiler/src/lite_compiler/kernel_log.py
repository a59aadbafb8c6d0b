"""The log of a compiler at level debug: one line for each group of nodes, with its kernels and the reasons for them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from lite_compiler.tournaments.choice import Choice
from lite_core.ir import Node

__all__ = ["KernelLog"]

#: Most candidates that a line names; the others are counted.
_MOST_OTHERS = 3


class KernelLog:
    """The lines about the groups of a partition, for one logger. Nothing is computed unless its level is debug.

    Args:
        logger: the logger; None for candidates that are only measured.

    Attributes:
        is_on: False if nothing is logged.
    """

    def __init__(self, logger: logging.Logger | None = None) -> None:
        self._logger = logger
        self.is_on = logger is not None and logger.isEnabledFor(logging.DEBUG)
        self._reasons: list[str] = []

    def remark(self, reason: str) -> None:
        """Add a reason to the line of the group that is being lowered."""
        if self.is_on:
            self._reasons.append(reason)

    def choice(self, problem: str, candidates: Sequence[object], chosen: object, measured: Choice | None) -> None:
        """Add the reason for a candidate: the times that a tournament measured, or an estimate.

        Args:
            problem: see :func:`lite_compiler.tournaments.choice.problem`.
            candidates: the candidates, the one that is estimated to be fastest first.
            chosen: the candidate that was chosen.
            measured: the result of the tournament, if one was held.
        """
        if not self.is_on or len(candidates) < 2:
            return
        others = [str(candidate) for candidate in candidates if candidate != chosen]
        named, more = ", ".join(others[:_MOST_OTHERS]), len(others) - _MOST_OTHERS
        reason = f"measured: {measured}" if measured else "estimated to be fastest"
        rest = f" and {more} more" if more > 0 else ""
        self.remark(f"{problem.partition(' of ')[0]}: {chosen} ({reason}), not {named}{rest}")

    def group(self, nodes: Iterable[Node], labels: Iterable[str]) -> None:
        """Write the line of a group that is lowered; ``labels`` are those of its steps."""
        if self.is_on and self._logger is not None:
            described = ", ".join(f"{node.name or node.op} ({node.qualified_op})" for node in nodes)
            kernels = " + ".join(dict.fromkeys(labels)) or "no step: a view, or written elsewhere"
            self._logger.debug("%s: %s", described, "; ".join([kernels, *self._reasons]))
            self._reasons.clear()
