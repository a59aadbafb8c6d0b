"""Commands made of a description: they parse and complete like the real ones, and cannot be run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import click
from click.shell_completion import CompletionItem

from lite_tools.completion.values import Names, offered

__all__ = ["rebuild"]

_Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def rebuild(name: str, description: Mapping[str, Any], names: Names) -> click.Command:
    """Return the command of a description.

    Args:
        name: the command's name.
        description: what :func:`lite_tools.completion.description.describe` returned as ``command``.
        names: what it returned as ``names``.
    """
    parameters = [_parameter(number, each, names) for number, each in enumerate(description["parameters"])]
    # The options for help are among the parameters, so that click adds none.
    settings: dict[str, Any] = {"params": parameters, "help": description["help"], "add_help_option": False}
    if "commands" not in description:
        return click.Command(name, **settings)
    inner = {key: rebuild(key, each, names) for key, each in description["commands"].items()}
    return click.Group(name, commands=inner, **settings)


def _parameter(number: int, description: Mapping[str, Any], names: Names) -> click.Parameter:
    given = f"p{number}"  # click requires an identifier, and values are of no interest
    complete = _completing(description, names)
    if "flag" not in description:
        return click.Argument([given], nargs=description["nargs"], required=False, shell_complete=complete)
    options: dict[str, Any] = {"help": description["help"] or None, "hidden": description["hidden"]}
    if description["flag"]:
        return click.Option([given, *description["names"]], is_flag=True, **options)
    return click.Option(
        [given, *description["names"]],
        multiple=description["multiple"],
        nargs=description["nargs"],
        shell_complete=complete,
        **options,
    )


def _completing(description: Mapping[str, Any], names: Names) -> _Complete:
    if "choices" in description:
        return partial(_offered, "choice", {"choice": dict.fromkeys(description["choices"], "")})
    return partial(_offered, description.get("completes", ""), names)


def _offered(
    kind: str, names: Names, context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    return offered(kind, names, incomplete)
