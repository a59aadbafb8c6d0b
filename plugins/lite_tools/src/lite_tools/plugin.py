"""What lite-tools gives to Lite: commands. Each is imported when it is invoked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lite_core.plugins import hookimpl

if TYPE_CHECKING:
    import click

LITE_API_VERSION = 1

_COMMANDS = {
    "backends": "Show the installed backends, their devices, and why one is missing",
    "bench": "Measure how long a model takes, on several backends in turns",
    "check": "Tell whether a model can be read and run, and what is in the way",
    "convert": "Convert a model into one .lite file for one or several targets",
    "doctor": "Show the environment, every plugin, and what is wrong with them",
    "inspect": "Print a model's graph, operators and inputs",
    "new-backend": "Write the package of a new backend, with kernels and tests",
    "ops": "List the operators of the opset, or describe one",
    "run": "Run a model on arrays, images or random inputs",
}


@hookimpl
def lite_commands() -> list[click.Command]:
    from lite_tools.commands import LazyCommand

    return [LazyCommand(name, text, f"lite_tools.cli.{name.replace('-', '_')}") for name, text in _COMMANDS.items()]
