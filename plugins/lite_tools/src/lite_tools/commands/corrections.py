"""Corrections of a command line that click refuses: commands, options and values that are misspelt."""

from __future__ import annotations

import re
from collections.abc import Iterable

import click

from lite_core.plugins.known import known_distributions
from lite_tools.commands.next_commands import next_command_of, typed_command
from lite_tools.commands.suggestions import did_you_mean, similar_names

__all__ = ["corrected"]

_UNKNOWN_COMMAND = re.compile(r"^No such command '(.+?)'\.")
_NOT_A_CHOICE = re.compile(r"^'(.*)' is not (?:one of )?'", re.DOTALL)


def corrected(error: click.UsageError, command: str = "lite") -> tuple[str, str]:
    """Return the message of an error with similar names, and the command to type next.

    The command is the error's own if it has one, else the typed one with the most similar name, else the help.

    Args:
        error: the error.
        command: the command whose help is suggested if the error does not say to which one it belongs.
    """
    message, given, names = _misspelt(error)
    near = similar_names(given, names) if given else []
    if near and did_you_mean(given, names) not in message:
        message = f"{message.rstrip('.')}; {did_you_mean(given, names)}"
    again = typed_command(replaced={given: near[0]}, context=error.ctx) if near else ""
    path = error.ctx.command_path if error.ctx else command
    return message, next_command_of(error) or again or f"{path} --help"


def _misspelt(error: click.UsageError) -> tuple[str, str, Iterable[str]]:
    """Return the message, the name that is unknown, and the names that exist; without a name, nothing is misspelt."""
    message = error.format_message()
    if isinstance(error, click.NoSuchOption) and error.ctx is not None:
        if not error.option_name.startswith("--"):
            return message, "", ()
        options = [name for p in error.ctx.command.get_params(error.ctx) for name in (*p.opts, *p.secondary_opts)]
        return f"there is no option {error.option_name}", error.option_name, [o for o in options if o.startswith("--")]
    if (named := _UNKNOWN_COMMAND.match(error.message)) and error.ctx is not None:
        group, outer = error.ctx.command, error.ctx.parent
        names = group.list_commands(error.ctx) if isinstance(group, click.Group) else []
        of_packages = known_distributions("commands") if outer is None else ()
        return f"there is no command {named[1]!r}", named[1], [*names, *of_packages]
    if isinstance(error, click.BadParameter) and error.param is not None:
        kind, named = error.param.type, _NOT_A_CHOICE.match(error.message)
        if isinstance(kind, click.Choice) and named:
            return message, named[1], list(map(str, kind.choices))
    return message, "", ()
