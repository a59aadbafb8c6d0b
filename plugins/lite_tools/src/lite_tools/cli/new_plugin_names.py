"""Names that a new plugin can have."""

from __future__ import annotations

import re
from collections.abc import Collection

import click

from lite_core.plugins.known import known_distributions
from lite_tools.commands.next_commands import with_correction
from lite_tools.plugin import lite_commands

__all__ = ["LITES_OWN", "check_name"]

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
#: The distributions of Lite, without ``lite-``.
LITES_OWN = (
    *("arm", "compiler", "conformance", "core", "cpu", "numba", "onnx", "onnxruntime", "opencl", "paddle", "serve"),
    *("tools", "x86"),
)
_RESERVED = {
    "auto": "it stands for the best available device",
    "lite": "it is the domain of Lite's own operators, and the format of its files",
    **dict.fromkeys(("host", "null"), "lite-core has a backend of this name"),
    **dict.fromkeys(LITES_OWN, "Lite itself has a package of this name"),
}


def check_name(name: str, kinds: Collection[str]) -> None:
    """Check the name of a new plugin.

    Args:
        name: the name that the user gave.
        kinds: the kinds of the plugin: a command cannot have the name of another command.

    Raises:
        click.BadParameter: the name is taken, or has other characters than a name may have.
    """
    problem = _problem(name, kinds)
    if problem:
        raise click.BadParameter(f"a plugin cannot be called {name!r}: {problem}", param_hint="NAME")
    if not _NAME.fullmatch(name) or name.startswith("lite_"):
        similar = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_").removeprefix("lite_")
        fits = bool(_NAME.fullmatch(similar)) and not _problem(similar, kinds)
        hint = f", for example {similar}" if fits else ""
        error = click.BadParameter(
            f"{name!r} cannot be a plugin's name: a name begins with a lower-case letter, contains lower-case "
            f"letters, digits and single underscores, and does not begin with lite_{hint}",
            param_hint="NAME",
        )
        raise with_correction(error, name, [similar] if fits else [])


def _problem(name: str, kinds: Collection[str]) -> str:
    if name in _RESERVED:
        return _RESERVED[name]
    commands = {*(command.name for command in lite_commands()), *known_distributions("commands")}
    is_taken = "command" in kinds and name.replace("_", "-") in commands
    return "Lite has a command of this name" if is_taken else ""
