"""The options of each command: a block of its page in docs/commands, and the list of commands in index.md there.

Everything comes from click, so the pages say what ``--help`` says. A new command needs a page with the two lines of its
block, ``command NAME``; all commands of ``lite-conformance`` are on one page.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from functools import partial

import click

from lite_conformance.cli.entry import conformance
from lite_tools.cli import lite
from lite_tools.commands import LazyCommand
from markdown_tables import table

__all__ = ["BLOCKS", "commands", "described"]


def commands(group: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """Iterate over the commands of a group, each with its full name, such as ``lite cache``."""
    assert isinstance(group, click.Group)
    context = click.Context(group, info_name=name)
    for below in group.list_commands(context):
        command = group.get_command(context, below)
        if command is not None and not command.hidden:
            yield f"{name} {below}", command.real if isinstance(command, LazyCommand) else command


def described(name: str, command: click.Command, level: int = 2, title: str = "") -> str:
    """Return what ``--help`` says about a command and its subcommands, in Markdown.

    Args:
        name: the command as it is typed.
        command: the command.
        level: the level of its heading.
        title: its heading; the name if empty.
    """
    context = click.Context(command, info_name=name, help_option_names=["-h", "--help"])
    usage = " ".join(command.collect_usage_pieces(context))
    parts = [f"{'#' * level} {title or name}", f"```text\n{name} {usage}\n```", *_help_of(command)]
    # Without the option for help, which click keeps as the first context of the process wanted it.
    parameters = [parameter for parameter in command.get_params(context) if "--help" not in parameter.opts]
    records = [record for parameter in parameters if (record := parameter.get_help_record(context))]
    records.append(("-h, --help", "Show this message and exit."))
    parts.append("\n".join(f"- `{names}`: {_plain(text)}" for names, text in records if text))
    if isinstance(command, click.Group):
        parts += [described(below, one, level + 1).strip("\n") for below, one in commands(command, name)]
    return "\n" + "\n\n".join(parts) + "\n\n"


def _help_of(command: click.Command) -> Iterator[str]:
    """Iterate over the paragraphs of a command's help; those whose lines click keeps become code."""
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        if paragraph.startswith("\b"):
            yield f"```text\n{paragraph[1:].strip()}\n```"
        elif paragraph:
            yield _plain(paragraph)


def _plain(text: str) -> str:
    """Return a text whose characters mean nothing in Markdown, but for code; defaults are in parentheses."""
    text = re.sub(r"  \[([^\]]+)\]", r" (\1)", text)  # click adds them so
    pieces = re.split(r"(`[^`]*`)", " ".join(text.split()))
    return "".join(piece if piece.startswith("`") else re.sub(r"([*<|]|\b_|_\b)", r"\\\1", piece) for piece in pieces)


def _of_lite() -> dict[str, click.Command]:
    return dict(commands(lite, "lite"))


def _index() -> str:
    """Return the table of the commands, each with a link to its page."""
    rows = [
        (f"[`{name}`]({name.removeprefix('lite ')}.md)", _plain(command.get_short_help_str(200)))
        for name, command in _of_lite().items()
    ]
    rows.append(("[`lite-conformance`](lite-conformance.md)", _plain((conformance.help or "").split("\n")[0])))
    return table(("command", "what it does"), rows)


def _suite() -> str:
    """Return the description of each command of lite-conformance."""
    return "\n" + "".join(described(*one).lstrip("\n") for one in commands(conformance, "lite-conformance"))


BLOCKS = {
    "commands": _index,
    **{f"command {name}": partial(described, name, command, title="Usage") for name, command in _of_lite().items()},
    "commands of lite-conformance": _suite,
}
