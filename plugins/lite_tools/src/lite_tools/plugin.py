"""The plugin's hook implementation: the commands, each of which is imported when it is invoked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lite_core.plugins import hookimpl

if TYPE_CHECKING:
    import click

LITE_API_VERSION = 1

_COMMANDS = {
    "backends": "List the installed backends, their devices, and reasons why devices are missing",
    "bench": "Measure the run time of a model on one or several backends",
    "bisect": "Find the node, device, precision or graph pass that makes outputs wrong",
    "cache": "Show, clear or fill the cache of compiled kernels",
    "check": "Check that a model can be read and run, and list all problems",
    "compare": "Find the first step at which two backends, machines or precisions differ",
    "completion": "Print the script that makes a shell complete what follows `lite`",
    "convert": "Convert a model to a .lite file for one or several targets",
    "doctor": "Show the environment, all plugins, and their problems",
    "inspect": "Print a model's graph, operators and inputs",
    "new-plugin": "Create the package of a new plugin: backend, operator, pass, format or command",
    "ops": "List the operators of the opset, or describe one of them",
    "plugins": "List the installed plugins, and what failed and why; validate one before publishing",
    "report": "Write a report about a model's failure, to share with others",
    "run": "Run a model on arrays, images or random inputs",
    "tune": "Measure this machine, and store the numbers for later sessions",
    "trust": "Trust the code in a .lite file that somebody else made",
}


@hookimpl
def lite_commands() -> list[click.Command]:
    from lite_tools.commands import LazyCommand

    return [LazyCommand(name, text, f"lite_tools.cli.{name.replace('-', '_')}") for name, text in _COMMANDS.items()]
