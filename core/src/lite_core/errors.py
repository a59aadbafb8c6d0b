"""The exceptions of Lite: one tree under :class:`LiteError`.

A message names the component that raised it (plugin and version), the node or file concerned, the expected and the
actual state, and ends with a remedy.
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
    "RunTimeoutError",
    "SessionClosedError",
    "UnsupportedOperatorError",
    "UntrustedCodeError",
]


class LiteError(Exception):
    """Base class of every error that Lite raises on purpose."""

    #: Distribution and version of the plugin at fault, ``"lite-x86 0.1.0"``; empty if none is known to be.
    source = ""


class ModelFormatError(LiteError):
    """A model file has an unknown format, is truncated or damaged, or is not an inference model."""


class UntrustedCodeError(ModelFormatError):
    """The code of a model file is not trusted, and no device of the session can run the model without it."""


class OperatorProblem(NamedTuple):
    """An operator of a model that cannot be lowered or executed.

    Attributes:
        op: the operator's type as the model names it.
        reason: why it cannot be lowered or executed.
        nodes: names of the nodes with this operator.
        remedy: what the user can do; empty if no remedy is known.
    """

    op: str
    reason: str
    nodes: tuple[str, ...]
    remedy: str = ""


class UnsupportedOperatorError(LiteError):
    """A model contains operators that cannot be lowered or executed; all of them are listed.

    Args:
        subject: beginning of the message, for example ``"model 'x.json'"``.
        problems: every unsupported operator.
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
    """A model cannot be converted for the requested targets, or the converted model computes different results.

    Args:
        subject: beginning of the message.
        problems: one text for each problem.
    """

    def __init__(self, subject: str, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join([subject, *(f"  {problem}" for problem in self.problems)]))


class GraphError(LiteError):
    """A graph is invalid: SSA form, node order, an operator's signature or its types are violated."""


class InputError(LiteError):
    """An argument is invalid, such as an array that does not fit the model's inputs."""


class BackendUnavailableError(LiteError):
    """A backend requested by name cannot be used; the message contains the recorded reason."""


class ExecutionError(LiteError):
    """A backend failed to compile or run a node or a partition."""


class RunTimeoutError(ExecutionError, TimeoutError):
    """A run took longer than its ``timeout``; the session can run again."""


class SessionClosedError(LiteError):
    """A session, or a binding of it, was used after it was closed, or closed inside its own run."""


class PluginError(LiteError):
    """A plugin violates the contract. Raised for installed plugins only if ``LITE_STRICT_PLUGINS=1`` is set."""


class PassError(LiteError):
    """A graph pass failed, left an invalid graph, or changed the graph's results (found by checked optimization)."""
