"""Everything Lite raises on purpose: one tree under :class:`LiteError`.

A message says who speaks (plugin, version), which node or file it is about, what was
expected and what was found, and ends with what the reader can do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

__all__ = [
    "BackendUnavailableError",
    "ConversionError",
    "ExecutionError",
    "GraphError",
    "InputError",
    "LiteError",
    "ModelFormatError",
    "OperatorProblem",
    "PassError",
    "PluginError",
    "UnsupportedOperatorError",
]


class LiteError(Exception):
    """Base class of every error that Lite raises on purpose."""


class ModelFormatError(LiteError):
    """A model file is foreign, truncated, damaged, or not an inference model."""


class OperatorProblem(NamedTuple):
    """An operator of a model that cannot be lowered or executed.

    Attributes:
        op: the operator's type as the model names it.
        reason: why not.
        nodes: names of the nodes it concerns.
        remedy: what the reader can do, empty where nothing is known.
    """

    op: str
    reason: str
    nodes: tuple[str, ...]
    remedy: str = ""


class UnsupportedOperatorError(LiteError):
    """A model contains operators that cannot be lowered or executed; all of them are listed.

    Args:
        subject: what was asked for, the beginning of the message: ``"model 'x.json'"``.
        problems: every operator concerned.
    """

    def __init__(self, subject: str, problems: Iterable[OperatorProblem]) -> None:
        self.problems = tuple(problems)
        lines = [f"{subject}: {len(self.problems)} operator problem(s)"]
        for problem in self.problems:
            shown = ", ".join(problem.nodes[:5]) + (", ..." if len(problem.nodes) > 5 else "")
            lines.append(f"  {problem.op} ({len(problem.nodes)} node(s): {shown}): {problem.reason}")
            if problem.remedy:
                lines.append(f"    -> {problem.remedy}")
        super().__init__("\n".join(lines))


class ConversionError(LiteError):
    """A model cannot be converted for the targets asked for, or the converted one computes something else.

    Args:
        subject: the beginning of the message.
        problems: what stands in the way, one text each.
    """

    def __init__(self, subject: str, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join([subject, *(f"  {problem}" for problem in self.problems)]))


class GraphError(LiteError):
    """A graph breaks a rule: SSA, order, an operator's signature, or types that do not fit."""


class InputError(LiteError):
    """What was passed to a session does not fit the model's inputs."""


class BackendUnavailableError(LiteError):
    """A backend was asked for by name and cannot be used; the recorded reason is in the message."""


class ExecutionError(LiteError):
    """A backend failed while it ran a node or a partition."""


class PluginError(LiteError):
    """A plugin broke the contract. Raised only under ``LITE_STRICT_PLUGINS=1``."""


class PassError(LiteError):
    """A graph pass changed the result of the graph (found by check mode) or broke the graph."""
