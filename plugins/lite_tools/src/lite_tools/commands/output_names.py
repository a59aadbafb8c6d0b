"""Names of output files: the ending says the format, and an ending without a format is refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lite_core.errors import InputError
from lite_core.plugins import PluginManager, default_plugins
from lite_core.plugins.known import format_distribution
from lite_tools.commands.next_commands import typed_command, with_next_command
from lite_tools.commands.notes import print_notes

if TYPE_CHECKING:
    from lite_tools.conversion.other_formats import Writer

__all__ = ["arrays_file", "model_file"]

_LITE, _ONE, _SEVERAL = ".lite", ".npy", ".npz"


def model_file(
    path: Path, option: str = "--output", *, plugins: PluginManager | None = None
) -> tuple[Path, Writer | None]:
    """Return the file to write a model to, and the format that its ending names; None for Lite's own.

    A name without an ending gets ``.lite``, and a note says so.

    Args:
        path: the file that the user has named.
        option: the option that names it, for messages.
        plugins: the plugins that write formats; by default those of the process.

    Raises:
        click.BadParameter: nothing writes this format.
        InputError: a plugin reads this format and does not write it, or it is not installed.
    """
    from lite_tools.conversion.other_formats import Writer, writer_for  # not at the top: `lite run` converts nothing

    if not path.suffix and path.name:
        completed = path.with_name(path.name + _LITE)
        print_notes([f"{str(path)!r} has no ending: {str(completed)!r} is written"])
        return completed, None
    if path.suffix.lower() == _LITE:
        return path, None
    instead = typed_command(replaced={str(path): str(_with_ending(path, _LITE))})
    try:
        writer = writer_for(path, plugins=plugins)
    except InputError as error:
        package = format_distribution(f"model{path.suffix.lower()}")
        is_missing = f"pip install {package}" in str(error)
        raise with_next_command(error, f"pip install {package}" if is_missing else instead) from None
    if writer is not None:
        return path, writer
    formats = (plugins or default_plugins()).ask("lite_formats")
    others = [f"{suffix} ({fmt.name})" for _, fmt in formats if isinstance(fmt, Writer) for suffix in fmt.suffixes]
    known = " or ".join([f"{_LITE} (Lite's own)", *others])
    message = f"{str(path)!r}: no plugin writes {path.suffix}; end it with {known}"
    raise with_next_command(click.BadParameter(message, param_hint=option), instead)


def arrays_file(file: str, names: Sequence[str] | None = None, option: str = "--save") -> str:
    """Return the file to write arrays to: ``.npy`` for one, ``.npz`` for any number of them, by name.

    A name without an ending gets ``.npz``, and a note says so.

    Args:
        file: the file that the user has named.
        names: the names of the arrays, as soon as they are known.
        option: the option that names it, for messages.

    Raises:
        click.BadParameter: the ending is another one, or a .npy file would have to hold several arrays.
    """
    path = Path(file)
    if not path.suffix and path.name:
        completed = f"{file}{_SEVERAL}"
        print_notes([f"{file!r} has no ending: {completed!r} is written"])
        return completed
    ending = path.suffix.lower()
    problem = ""
    if ending not in (_ONE, _SEVERAL):
        problem = f"arrays are not written as {path.suffix}; end it with {_SEVERAL}, or with {_ONE} for a single array"
    elif ending == _ONE and names is not None and len(names) != 1:
        problem = f"{_ONE} holds one array, and there are {len(names)}: {', '.join(names)}; end it with {_SEVERAL}"
    if not problem:
        return file
    error = click.BadParameter(f"{file!r}: {problem}", param_hint=option)
    raise with_next_command(error, typed_command(replaced={file: str(_with_ending(path, _SEVERAL))}))


def _with_ending(path: Path, ending: str) -> Path:
    """Return a path with another ending; that of a version, such as ``model.v2`` or ``model-1.5``, stays."""
    return path.with_suffix(ending) if path.suffix[1:].isalpha() else path.with_name(path.name + ending)
