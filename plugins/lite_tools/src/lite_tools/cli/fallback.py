"""``--require-backend`` and ``--max-fallback``: failing when nodes run elsewhere than they should."""

from __future__ import annotations

from collections import Counter
from typing import Any

import click

from lite_core.errors import LiteError
from lite_core.session import Session

__all__ = ["Percentage", "check_required"]


class Percentage(click.ParamType[float]):
    """A share between 0 and 1, written ``5%`` or ``5``."""

    name = "percent"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The share that a text stands for."""
        if isinstance(value, float):
            return value
        try:
            percent = float(str(value).strip().removesuffix("%"))
        except ValueError:
            percent = -1.0
        if not 0 <= percent <= 100:
            self.fail(f"{value!r} is not a percentage from 0% to 100%", param, ctx)
        return percent / 100


def check_required(session: Session, backend: str, most: float) -> None:
    """Check that the nodes of a session run where somebody wants them.

    Args:
        session: with a plan, or else where the nodes would go is looked at.
        backend: name of a backend, or label of a device.
        most: the share of nodes, 0 to 1, that may run elsewhere.

    Raises:
        LiteError: more of them do; the message has the reasons.
    """
    assignment = session.assignment()
    elsewhere = [a for a in assignment if backend not in (a.device, a.device.partition(":")[0])]
    if len(elsewhere) <= most * len(assignment):
        return
    reasons = Counter(
        (a.op, a.device, next((why for label, why in a.refusals if label.partition(":")[0] == backend), ""))
        for a in elsewhere
    )
    listed = [
        f"{count} x {op} on {device}" + (f", because {backend}: {why}" if why else "")
        for (op, device, why), count in reasons.most_common()
    ]
    raise LiteError(
        f"{len(elsewhere)} of {len(assignment)} nodes run elsewhere than on {backend!r}, "
        f"{len(elsewhere) / len(assignment):.1%} where {most:.1%} may:\n  "
        + "\n  ".join([*listed, *session.selection_log])
    )
