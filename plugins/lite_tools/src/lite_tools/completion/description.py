"""Description of all commands, and of the names that their options take, as plain data."""

from __future__ import annotations

from typing import Any

import click

__all__ = ["describe"]

_MOST_CHARACTERS = 70


def describe(group: click.Group) -> dict[str, Any]:
    """Describe a command with its sub-commands; the names of backends and operators, and the endings of models.

    Returns:
        ``command``: options, arguments and sub-commands; ``names``: texts that explain them by name, by kind.
    """
    return {"command": _command(group, click.Context(group)), "names": _names()}


def _command(command: click.Command, context: click.Context) -> dict[str, Any]:
    real = getattr(command, "real", command)  # of a LazyCommand
    described: dict[str, Any] = {
        "help": _first_sentence(command.get_short_help_str(200)),
        "parameters": [_parameter(each) for each in real.get_params(context)],
    }
    if isinstance(real, click.Group):
        inner = {name: real.get_command(context, name) for name in real.list_commands(context)}
        described["commands"] = {
            name: _command(each, click.Context(each, context)) for name, each in inner.items() if each
        }
    return described


def _parameter(parameter: click.Parameter) -> dict[str, Any]:
    described: dict[str, Any] = {
        "names": [*parameter.opts, *parameter.secondary_opts],
        "multiple": parameter.multiple,
        "nargs": parameter.nargs,
        **_values(parameter.type),
    }
    if isinstance(parameter, click.Option):
        described["help"] = _first_sentence(parameter.help or "")
        described["flag"] = parameter.is_flag or parameter.count
        described["hidden"] = parameter.hidden
    return described


def _values(type: Any) -> dict[str, Any]:
    """Return what a shell should offer for the values of a type."""
    if completes := getattr(type, "completes", None):
        return {"completes": completes}
    if isinstance(type, click.Choice):
        return {"choices": [str(getattr(choice, "name", choice)) for choice in type.choices]}
    if isinstance(type, (click.Path, click.File)):
        return {"completes": "folder" if isinstance(type, click.Path) and not type.file_okay else "file"}
    return {}


def _names() -> dict[str, dict[str, str]]:
    from lite_core import ops
    from lite_core.plugins import available_backends, default_plugins, left_out_backends
    from lite_core.schedule.precision import PRECISIONS

    suffixes = {suffix for _, reader in default_plugins().ask("lite_formats") for suffix in reader.suffixes}
    operators = {d.name if not d.domain else f"{d.domain}.{d.name}": "" for d in ops.all_ops()}
    return {
        "backend": dict.fromkeys(sorted({*available_backends(), *left_out_backends()}), ""),
        "operator": dict(sorted(operators.items())),
        "precision": dict.fromkeys(PRECISIONS, ""),
        "suffix": dict.fromkeys(sorted({".lite", *suffixes}), ""),
    }


def _first_sentence(text: str) -> str:
    """Return the first sentence of a help text in one line, shortened."""
    line = " ".join(text.replace("\b", "").split()).partition(". ")[0].removesuffix(".")
    return line if len(line) <= _MOST_CHARACTERS else line[: _MOST_CHARACTERS - 3].rstrip() + "..."
