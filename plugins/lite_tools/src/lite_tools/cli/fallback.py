"""``--require-backend`` and ``--max-fallback``: an error if nodes run on other backends than the required one."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from lite_core.errors import LiteError
from lite_core.session import Session

__all__ = ["Percentage", "check_required"]

# Older versions of click have no subscript here when the program runs.
if TYPE_CHECKING:
    _ParamType = click.ParamType[float]
else:
    _ParamType = click.ParamType


class Percentage(_ParamType):
    """A share between 0 and 1, written ``5%`` or ``5``."""

    name = "percent"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse a percentage."""
        if isinstance(value, float):
            return value
        try:
            percent = float(str(value).strip().removesuffix("%"))
        except ValueError:
            percent = -1.0
        if not 0 <= percent <= 100:
            self.fail(f"{value!r} is not a percentage from 0% to 100%", param, ctx)
        return percent / 100


def check_required(session: Session, backend: str, max_share: float) -> None:
    """Check that the nodes of a session run on the required backend.

    Args:
        session: the session; without a plan, the placement before planning is checked.
        backend: the name of a backend, or the label of a device.
        max_share: the share of nodes, 0 to 1, that may run on other backends.

    Raises:
        LiteError: more nodes run on other backends; the message has the reasons.
    """
    assignment = session.assignment()
    elsewhere = [a for a in assignment if backend not in (a.device, a.device.partition(":")[0])]
    if len(elsewhere) <= max_share * len(assignment):
        return
    reasons = Counter(
        (a.op, a.device, next((why for label, why in a.refusals if label.partition(":")[0] == backend), ""))
        for a in elsewhere
    )
    listed = [
        f"{count} x {op} on {device}" + (f"; {backend}: {why}" if why else "")
        for (op, device, why), count in reasons.most_common()
    ]
    raise LiteError(
        f"{len(elsewhere)} of {len(assignment)} nodes do not run on {backend!r}: "
        f"{len(elsewhere) / len(assignment):.1%}, allowed are {max_share:.1%}:\n  "
        + "\n  ".join([*listed, *session.selection_log])
    )
