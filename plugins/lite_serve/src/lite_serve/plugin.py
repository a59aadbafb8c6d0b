"""The hooks of lite-serve. Imports nothing heavy: servers and tables are imported when a command runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lite_core.plugins import hookimpl

if TYPE_CHECKING:
    import click

LITE_API_VERSION = 1


@hookimpl
def lite_commands() -> list[click.Command]:
    from lite_tools.commands import LazyCommand

    return [
        LazyCommand("serve", "Answer requests for models by HTTP and gRPC", "lite_serve.cli.serve"),
        LazyCommand("map", "Run a model over a table, arrays or a folder of pictures", "lite_serve.cli.map"),
    ]
