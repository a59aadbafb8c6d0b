"""``lite-conformance plugin``: the operators, passes and formats of one package."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from lite_conformance.cli.run_command import run
from lite_conformance.cli.run_options import RunOptions, run_options

__all__ = ["command"]


@click.command("plugin")
@click.argument("name")
@run_options
def command(name: str, **given: Any) -> int:
    """Check the operators, passes and formats of the installed package NAME.

    Operators run on host, or on the backend that --backend names.
    """
    from lite_conformance.cases.plugins.package import installed_package

    options = RunOptions(**given)
    return run(replace(options, plugin=installed_package(name), backend=options.backend or "host"))
