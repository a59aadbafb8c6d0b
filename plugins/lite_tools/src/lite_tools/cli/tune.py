"""``lite tune``: measuring what choices between kernels and plans depend on."""

from __future__ import annotations

from typing import Any

import click

from lite_core.plugins import default_plugins
from lite_tools.commands.errors import UnavailableError
from lite_tools.commands.options import json_option
from lite_tools.commands.printing import console, print_json
from lite_tools.commands.progress import set_progress
from lite_tools.tuned import HasTuning, backends_with_tuning


@click.command("tune")
@click.option("--show", "action", flag_value="show", help="Show what is in use, and measure nothing.")
@click.option("--clear", "action", flag_value="clear", help="Remove what is stored; defaults are used from then on.")
@json_option
def command(action: str | None, as_json: bool) -> None:
    """Measure this machine, and store the numbers for later sessions.

    This takes about two seconds. The numbers decide which of several correct kernels and plans are used, and which
    device computes a node: the tile of matrix products, the price of weights, the costs of steps and of threads, the
    speed of arithmetic and of reading from memory.
    `lite convert`, and sessions with tune=True, measure what was never measured. Other sessions measure nothing: they
    use the stored numbers or, if there are none, the defaults for the processor's family. Measure when the machine is
    otherwise idle, once on each machine.
    """
    found, absent = backends_with_tuning(default_plugins())
    if not found:
        reasons = "; ".join(f"{name}: {why}" for name, why in absent.items()) or "no installed backend measures it"
        raise UnavailableError(f"this machine cannot be measured: {reasons}", "lite backends")
    removed = {}
    for name, backend in found.items():
        set_progress(f"measuring this machine for {name}")
        removed[name] = _act(backend, action)
    if as_json:
        rows: dict[str, Any] = {name: {**backend.tuning(), "removed": removed[name]} for name, backend in found.items()}
        print_json({"backends": rows, "unavailable": absent})
        return
    for name, backend in found.items():
        cleared = "" if action != "clear" else " (removed)" if removed[name] else " (nothing was stored)"
        console.print("\n".join([f"{name}{cleared}", *(f"  {line}" for line in backend.tuning_lines())]), markup=False)


def _act(backend: HasTuning, action: str | None) -> bool:
    """Measure, show or clear; return True if something was removed."""
    if action == "clear":
        try:
            return backend.forget_tuning()
        except OSError as error:
            raise click.ClickException(f"the tuning is not removed: {error}") from error
    if action is None:
        backend.measure_tuning()
    return False
