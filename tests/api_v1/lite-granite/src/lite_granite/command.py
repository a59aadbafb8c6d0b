"""The command ``lite granite``."""

from __future__ import annotations

import click
from lite_core import Unavailable
from lite_tools.commands import UnavailableError, json_option, print_json, table

from lite_granite.backend import Granite


@click.command("granite")
@json_option
def command(as_json: bool) -> None:
    """Show the Granite chip."""
    found = Granite().probe()
    if isinstance(found, Unavailable):
        raise UnavailableError(f"{found.reason}. {found.remedy}", next_command="lite backends")
    if as_json:
        print_json({"devices": [device.label for device in found]})
    else:
        table(("device", "name"), [(device.label, device.name) for device in found])
