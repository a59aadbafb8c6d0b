"""Notes of sessions on the command line."""

from __future__ import annotations

from collections.abc import Iterable

import click

from lite_tools.commands.printing import print_text

__all__ = ["print_notes"]


def print_notes(notes: Iterable[str]) -> None:
    """Print each note as a line ``note: ...`` to standard error, unless this command has already printed it.

    Standard output stays what the user asked for: tables, or one JSON document.

    Args:
        notes: the notes of a session, which are complete after its last run: :attr:`lite_core.Session.notes`.
    """
    context = click.get_current_context(silent=True)
    printed: set[str] = set() if context is None else context.meta.setdefault(__name__, set())
    for note in dict.fromkeys(notes):
        if note not in printed:
            printed.add(note)
            print_text(f"note: {note}", err=True)
