"""``lite plugins``: the installed plugins, what they provide, and what was left out and why."""

from __future__ import annotations

import click

from lite_core.backend import API_VERSION
from lite_core.plugins import default_plugins
from lite_tools.cli.plugin_tables import print_failures, print_plugin, print_plugins
from lite_tools.cli.plugins_validate import validate
from lite_tools.commands.exit_codes import EXIT_FAILURE, EXIT_OK
from lite_tools.commands.next_commands import with_correction
from lite_tools.commands.options import json_option
from lite_tools.commands.printing import console, print_json
from lite_tools.commands.suggestions import similar_names
from lite_tools.examining.inspection import HOOKS
from lite_tools.examining.packages import of_package, plugin_rows
from lite_tools.examining.plugins import ExaminedPlugin, examine_plugins


class _WithPackages(click.Group):
    """A group whose argument is the name of a subcommand, or of a package."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the first argument that is no option as a package, unless it is a subcommand."""
        named = next((argument for argument in args if not argument.startswith("-")), None)
        if named is not None and named not in self.commands:
            args = [argument for argument in args if argument is not named]
            ctx.obj = named
        return super().parse_args(ctx, args)


@click.group("plugins", cls=_WithPackages, invoke_without_command=True, subcommand_metavar="[PACKAGE | validate ...]")
@click.option("--verbose", "-v", is_flag=True, help="Show the tracebacks of failures.")
@json_option
@click.pass_context
def command(context: click.Context, verbose: bool, as_json: bool) -> int:
    """List the installed plugins: what they provide, how long they take to load, and what failed and why.

    With the name of a PACKAGE, show everything about its plugins, with tracebacks. `lite plugins validate PACKAGE`
    checks a package before it is published.

    Plugins are imported one after another in a separate process, as a session does; a module that several of them use
    is loaded by the first. A PACKAGE that is named is loaded before the others. The exit code is 1 if a plugin failed.
    """
    if context.invoked_subcommand is not None:
        return EXIT_OK
    name: str | None = context.obj
    plugins = _examined(name)
    rows = plugin_rows(plugins)
    failed = [plugin for plugin in plugins if plugin.record.failed]
    if as_json:
        print_json({"api_version": API_VERSION, "plugins": rows})
    elif name is None:
        print_plugins(rows)
    for row in rows if name is not None and not as_json else ():
        print_plugin(row)
    if not as_json:
        _print_remarks(plugins, verbose or name is not None)
        if failed and name is None and not verbose:
            console.print(f"\nWith tracebacks: lite plugins {failed[0].record.distribution}", markup=False)
    return EXIT_FAILURE if failed else EXIT_OK


def _examined(name: str | None) -> list[ExaminedPlugin]:
    """Examine all plugins, and return those of a package; those of others may claim the same names."""
    if name is None:
        return examine_plugins(*HOOKS)
    records = default_plugins().discover()
    wanted = of_package(records, name)
    if not wanted:
        packages = sorted({record.distribution for record in records})
        near = similar_names(name, [*packages, *command.commands], 1)
        hint = f"did you mean {near[0]}?" if near else "`lite plugins` lists them"
        error = click.BadParameter(f"no package {name!r} with plugins is installed; {hint}", param_hint="PACKAGE")
        raise with_correction(error, name, near, "lite plugins")
    first = wanted[0].distribution
    return [p for p in examine_plugins(*HOOKS, first=first) if p.record.distribution == first]


def _print_remarks(plugins: list[ExaminedPlugin], with_traceback: bool) -> None:
    for plugin in plugins:
        print_failures(plugin.record, with_traceback=with_traceback or plugin.has_ended_a_process)
        for warning in plugin.record.warnings:
            console.print(f"\nplugin {plugin.record.label}: {warning}", markup=False)


command.add_command(validate)
