"""The command group ``lite``, with the commands of all plugins, including lite-tools."""

from __future__ import annotations

import click

from lite_core import __version__
from lite_core.plugins import default_plugins
from lite_core.plugins.known import command_distribution
from lite_tools.commands.errors import UnavailableError

__all__ = ["commands_of_plugins", "lite"]

#: The plugin whose commands are registered first: no other plugin can take their names.
_LITE_TOOLS = "lite_tools.plugin"


class _Commands(click.Group):
    """The commands of plugins."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(commands_of_plugins())

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        return commands_of_plugins().get(name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        distribution = command_distribution(args[0])
        if distribution and args[0] not in commands_of_plugins():
            raise UnavailableError(
                f"the command {args[0]!r} comes with {distribution}, which is not installed",
                f"pip install {distribution}",
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, command.get_short_help_str(100)) for name, command in commands_of_plugins().items()]
        with formatter.section("Commands"):
            formatter.write_dl(sorted(rows))


def commands_of_plugins() -> dict[str, click.Command]:
    """Return the commands of plugins by name; unusable ones are recorded and skipped.

    Raises:
        UnavailableError: the plugin lite-tools itself is missing or failed.
    """
    plugins = default_plugins()
    commands: dict[str, click.Command] = {}
    owners: dict[str, str] = {}
    for record, command in sorted(plugins.ask("lite_commands"), key=lambda answer: answer[0].module != _LITE_TOOLS):
        if not isinstance(command, click.Command):
            problem = f"{command!r} is not a click.Command"
        elif not command.name:
            problem = f"{command!r} has no name"
        elif command.name in owners:
            problem = f"the command name {command.name!r} is taken by {owners[command.name]}"
        else:
            commands[command.name] = command
            owners[command.name] = record.label
            continue
        plugins.reject(record, "lite_commands", problem, command)
    _check_own()
    return commands


def _check_own() -> None:
    own = next((record for record in default_plugins().records() if record.module == _LITE_TOOLS), None)
    if own is None:
        again = "pip install --force-reinstall lite-tools"
        raise UnavailableError("lite-tools is not among the installed plugins", again)
    if own.failed:
        problem = f"plugin {own.label} failed at {own.phase}: {own.error}"
        raise UnavailableError(problem, f"pip install --upgrade {own.distribution} lite-core")


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="lite")
def lite() -> None:
    """Run trained neural networks on the hardware of this machine."""
