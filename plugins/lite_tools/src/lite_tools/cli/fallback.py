"""``--require-backend`` and ``--max-fallback``: an error if nodes run on other backends than the required one."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import click

from lite_core.errors import LiteError
from lite_core.plugins import default_plugins
from lite_core.schedule.devices import select_devices
from lite_core.session import Session
from lite_tools.commands.backend_names import known_backends
from lite_tools.commands.next_commands import typed_command, with_next_command

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


def check_required(session: Session, backend: str, max_share: float, model: str, told: Collection[str] = ()) -> None:
    """Check that the nodes of a session run on the required backend.

    Args:
        session: the session; without a plan, the placement before planning is checked.
        backend: the name of a backend, or the label of a device.
        max_share: the share of nodes, 0 to 1, that may run on other backends.
        model: the model's file, for the next command.
        told: lines of the session's log that the user has read already; the message leaves them out.

    Raises:
        LiteError: more nodes run on other backends; the message has the reasons, and the next command is the same one
            with the backend asked for, or shows what the backend refuses.
        BackendUnavailableError: there is no such backend on this machine.
    """
    assignment = session.assignment()
    elsewhere = [a for a in assignment if backend not in (a.device, a.device.partition(":")[0])]
    if len(elsewhere) <= max_share * len(assignment):
        return
    name = backend.partition(":")[0]
    is_used = any(name == label.partition(":")[0] for a in assignment for label in (a.device, *dict(a.refusals)))
    if not is_used:  # asked for by name, it may run them; if it cannot, the error says why
        select_devices(known_backends(backend)[0], default_plugins())
    reasons = Counter(
        (a.op, a.device, next((why for label, why in a.refusals if label.partition(":")[0] == name), ""))
        for a in elsewhere
    )
    listed = [
        f"{count} x {op} on {device}" + (f"; {backend}: {why}" if why else "")
        for (op, device, why), count in reasons.most_common()
    ]
    share = f"{len(elsewhere) / len(assignment):.1%}, allowed are {max_share:.1%}"
    cause = "" if is_used else f" It was not asked for: add --backend {backend}, and it gets the nodes that it can run."
    error = LiteError(
        f"{len(elsewhere)} of {len(assignment)} nodes do not run on {backend!r}: {share}.{cause}\n  "
        + "\n  ".join([*listed, *(line for line in session.selection_log if line not in told)])
    )
    again = typed_command("--backend", backend, dropped=("--backend", "-b"))
    refused = shlex.join(["lite", "check", model, "--backend", backend, "--no-fallback"])
    raise with_next_command(error, refused if is_used else again)
