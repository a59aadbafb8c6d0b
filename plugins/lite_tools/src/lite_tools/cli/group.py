"""The command group ``lite``, with the commands of all plugins, including lite-tools."""

from __future__ import annotations

import shlex
from functools import cache

import click

from lite_core import __version__
from lite_core.plugins import ENTRY_POINT_GROUP, PluginManager, PluginRecord, default_plugins
from lite_core.plugins.claims import refused_claims
from lite_core.plugins.installed import EntryPoint, installed_entry_points
from lite_core.plugins.known import known_distributions
from lite_tools import plugin as plugin_of_tools
from lite_tools.commands.errors import UnavailableError
from lite_tools.commands.next_commands import note_typed_words, typed_command, with_next_command
from lite_tools.commands.options import version_option
from lite_tools.commands.suggestions import similar_names

__all__ = ["commands_of_plugins", "is_own_command", "lite", "owner_of"]

#: Commands of older versions, and what to type instead.
_REPLACED = {"new-backend": ("new-plugin", "kernel-backend", "NAME")}


class _Commands(click.Group):
    """The commands of plugins. Commands of lite-tools load no other plugin: `lite doctor` works if others crash."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(commands_of_plugins())

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        return _own_commands().get(name) or commands_of_plugins().get(name)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        note_typed_words(ctx, args)
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name in _REPLACED:
            own = click.Context(_own_commands()[_REPLACED[name][0]], ctx, _REPLACED[name][0])
            error = click.UsageError(f"`lite {name}` is now `lite {' '.join(_REPLACED[name])}`", own)
            given = args[1:] or ["--help"]
            raise with_next_command(error, shlex.join([ctx.command_path, *_REPLACED[name][:-1], *given]))
        if name not in _own_commands() and name not in commands_of_plugins():
            if name in _refused:
                raise UnavailableError(f"the command {name!r} cannot be run: {_refused[name]}", "lite doctor")
            if distribution := known_distributions("commands").get(name):
                raise UnavailableError(
                    f"the command {name!r} comes with {distribution}, which is not installed",
                    f"pip install {distribution}",
                )
            if not similar_names(name, _own_commands()) and (faults := _faults_before_commands()):
                may_have = [f"plugin {r.label} may have it, but failed: {error}" for r, error in faults]
                raise UnavailableError(
                    f"there is no command {name!r}; {'; '.join(may_have)}", f"lite plugins {faults[0][0].distribution}"
                )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from lite_tools.examining.plugins import examine_plugins  # not at the top: other commands start faster

        _own_commands()  # raises if lite-tools itself cannot be used
        plugins = examine_plugins("lite_commands")
        with formatter.section("Commands"):
            formatter.write_dl(sorted(item for plugin in plugins for item in plugin.commands.items()))
        failed = [plugin.record.label for plugin in plugins if plugin.record.failed]
        if failed:
            with formatter.section("Plugins that failed, see `lite doctor`"):
                formatter.write_text(", ".join(failed))


def _faults_before_commands() -> list[tuple[PluginRecord, str]]:
    """Return the plugins whose commands are not known because they failed, with the reasons."""
    phases = ("import", "version", "register", "lite_commands")
    return [(r, f.error) for r in default_plugins().records() for f in r.failures if f.phase in phases]


#: The names of commands that several plugins claim, or that the user has given to another plugin, with the reason.
_refused: dict[str, str] = {}


@cache
def _own_commands() -> dict[str, click.Command]:
    """Return the commands of lite-tools by name.

    Raises:
        UnavailableError: the plugin lite-tools itself is missing or failed.
    """
    own = PluginManager(_own_entry_points)
    commands = {str(command.name): command for _, command in own.ask("lite_commands")}
    if not own.records():
        again = "pip install --force-reinstall lite-tools"
        raise UnavailableError("lite-tools is not among the installed plugins", again)
    (record,) = own.records()
    if record.failed:
        problem = f"plugin {record.label} failed at {record.phase}: {record.error}"
        raise UnavailableError(problem, f"pip install --upgrade {record.distribution} lite-core")
    return commands


def _own_entry_points() -> list[EntryPoint]:
    """Return the entry point of lite-tools, but not one with which another package names the same module."""
    own = (e for e in installed_entry_points(ENTRY_POINT_GROUP) if e.value == plugin_of_tools.__name__)
    return [e for e in own if e.dist is None or e.dist.name.replace("_", "-").lower() == "lite-tools"][:1]


def commands_of_plugins() -> dict[str, click.Command]:
    """Return the commands of all plugins by name; unusable ones are recorded and skipped.

    Raises:
        UnavailableError: the plugin lite-tools itself is missing or failed.
    """
    plugins, own = default_plugins(), _own_commands()
    others: list[tuple[PluginRecord, click.Command]] = []
    for record, command in plugins.ask("lite_commands"):
        if record.module == plugin_of_tools.__name__:
            continue
        if not isinstance(command, click.Command):
            problem = f"{command!r} is not a click.Command"
        elif not command.name:
            problem = f"{command!r} has no name"
        elif command.name in own:
            problem = f"the command name {command.name!r} is taken by lite-tools"
        else:
            others.append((record, command))
            continue
        plugins.reject(record, "lite_commands", problem, command)
    refused = refused_claims([(record, str(command.name)) for record, command in others])
    for position, (reason, is_fault) in refused.items():
        record, command = others[position]
        _refused[str(command.name)] = reason
        if is_fault:
            plugins.reject(record, "lite_commands", f"command {command.name!r}: {reason}", command)
    return own | {str(c.name): c for position, (_, c) in enumerate(others) if position not in refused}


def is_own_command(name: str) -> bool:
    """Return True for a command of lite-tools; no other plugin is loaded.

    Raises:
        UnavailableError: the plugin lite-tools itself is missing or failed.
    """
    return name in _own_commands()


def owner_of(name: str) -> PluginRecord | None:
    """Return the plugin that provides a command; None for a command of lite-tools or an unknown one."""
    if name in _own_commands():
        return None
    return next((record for record, command in default_plugins().ask("lite_commands") if command.name == name), None)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@version_option(__version__, "lite")
@click.option("--json", "as_json", is_flag=True, is_eager=True, help="With --version: print it as JSON.")
@click.pass_context
def lite(context: click.Context, as_json: bool) -> None:
    """Run trained neural networks on the hardware of this machine."""
    if as_json:
        error = click.UsageError(f"write --json after the command: lite {context.invoked_subcommand} --json")
        raise with_next_command(error, typed_command("--json", without=("--json",)))
