"""The command to type next: the one that the user has typed, corrected or with more words."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TypeVar

import click

__all__ = [
    "next_command_of",
    "note_typed_words",
    "typed_command",
    "typed_value",
    "with_correction",
    "with_next_command",
    "with_replaced_words",
]

Error = TypeVar("Error", bound=Exception)


def note_typed_words(context: click.Context, words: Sequence[str]) -> None:
    """Keep the words of a command line, those after the program's name, for :func:`typed_command`."""
    context.meta[__name__] = (context.command_path, *words)


def typed_command(
    *more: str,
    replaced: Mapping[str, str] | None = None,
    dropped: Sequence[str] = (),
    without: Sequence[str] = (),
    context: click.Context | None = None,
) -> str:
    """Return the command line that is running, changed, as a line for a shell.

    Args:
        more: words to add at its end.
        replaced: words to replace, each with the new word; also values behind ``=``, as in ``--backend=X86``.
        dropped: options to leave out, all spellings of each, with their values: ``("--backend", "-b")``.
        without: flags to leave out, which have no values.
        context: the command's context; by default the current one.

    Returns:
        The command line; empty if the command was not started by a command line, or is not changed.
    """
    found = context or click.get_current_context(silent=True)
    typed: Sequence[str] = () if found is None else found.meta.get(__name__, ())
    kept = [word for word in typed if word not in without]
    words = [*_without(with_replaced_words(kept, replaced or {}), dropped), *more]
    return shlex.join(words) if typed and words != [*typed] else ""


def typed_value(option: str) -> str:
    """Return the value of an option, such as ``--targets``, on the command line that is running; empty without it."""
    context = click.get_current_context(silent=True)
    typed: Sequence[str] = () if context is None else context.meta.get(__name__, ())
    found = [value for word, value in pairwise(typed) if word == option]
    found += [word.partition("=")[2] for word in typed if word.startswith(f"{option}=")]
    return found[0] if found else ""


def with_replaced_words(words: Sequence[str], replaced: Mapping[str, str]) -> list[str]:
    """Return words with some replaced: whole ones, both sides of ``=``, and names in lists with commas."""
    return [_replaced(word, replaced) for word in words]


def _replaced(word: str, replaced: Mapping[str, str]) -> str:
    name, separator, value = word.partition("=")
    if word in replaced or not (separator or "," in word):
        return replaced.get(word, word)
    if separator:
        return f"{replaced.get(name, name)}={_replaced(value, replaced)}"
    return ",".join(replaced.get(each.strip(), each) for each in word.split(","))


def with_next_command(error: Error, command: str) -> Error:
    """Return an error after which the program suggests this command, unless the text is empty."""
    if command:
        vars(error)["next_command"] = command
    return error


def with_correction(error: Error, given: str, near: Sequence[str], otherwise: str = "") -> Error:
    """Return an error after which the program suggests the typed command with the most similar name.

    Args:
        error: the error.
        given: the word that the user has typed.
        near: the words that it may stand for, the most similar first.
        otherwise: the command to suggest if there are none.
    """
    return with_next_command(error, (typed_command(replaced={given: near[0]}) if near else "") or otherwise)


def next_command_of(error: BaseException) -> str:
    """Return the command that an error suggests; empty if it suggests none."""
    return str(getattr(error, "next_command", ""))


def _without(words: Sequence[str], options: Sequence[str]) -> list[str]:
    kept: list[str] = []
    is_value = False
    for word in words:
        if is_value:
            is_value = False
        elif word in options:
            is_value = True
        elif not word.startswith(tuple(f"{name}=" if name.startswith("--") else name for name in options)):
            kept.append(word)
    return kept
