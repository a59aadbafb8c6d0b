"""The command to type after an error, which works as it is typed: it repeats the options that it needs."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import click

from lite_core.errors import (
    BackendUnavailableError,
    ConversionError,
    ExecutionError,
    InputError,
    LiteError,
    ModelFormatError,
    UnsupportedOperatorError,
    UntrustedCodeError,
)
from lite_tools.cli.group import lite
from lite_tools.cli.plugin_steps import step_for_plugin_at_fault
from lite_tools.commands.next_commands import next_command_of, with_replaced_words
from lite_tools.commands.option_words import option_words
from lite_tools.commands.suggestions import similar_file, similar_names

__all__ = ["next_step", "parameters_of"]

_NO_DEVICE = re.compile(r"backend '([^']+)' has no device '([^']*)'")
_NO_VALUE = re.compile(r"option '([^']+)' of backend '([^']+)' must be one of (.+); it is '([^']*)'$")
#: What a backend failed at; the first group is its name.
_FAILED = re.compile(r"backend '([^']+)'(?: \(|: node|, partition)")
_NOT_COMPILED = re.compile(r"  target '[^']+': backend '([^']+)' \([^()]*\) failed to compile ")
_NO_OPTION = re.compile(r"backend '([^']+)' has no option '([^']+)' \(did you mean '([^']+)'")


def parameters_of(arguments: Sequence[str]) -> Mapping[str, Any]:
    """Return the parameters of a command line by their names; empty for an unknown command."""
    with click.Context(lite) as context:
        command = lite.get_command(context, arguments[0])
    if command is None:
        return {}
    # resilient_parsing: no prompts, and no errors, which were already reported
    return command.make_context(arguments[0], [*arguments[1:]], resilient_parsing=True).params


def next_step(error: LiteError, arguments: Sequence[str], given: Mapping[str, Any]) -> str:
    """Return the command that cures an error or shows more about it.

    Args:
        error: the error.
        arguments: the words of the command line behind ``lite``.
        given: its parameters, see :func:`parameters_of`.
    """
    model: str | None = given.get("model")
    help_of_command = f"lite {shlex.quote(arguments[0])} --help"
    if own := next_command_of(error) or _report(error, given) or step_for_plugin_at_fault(error):
        return own
    if corrected := _corrected(str(error), arguments):
        return shlex.join(["lite", *corrected])
    if isinstance(error, BackendUnavailableError):
        return "lite backends"
    if model is None:
        is_about_arguments = isinstance(error, (InputError, ModelFormatError))
        return help_of_command if is_about_arguments else "lite doctor"
    if isinstance(error, UnsupportedOperatorError):
        return _line("check", model, *_backend(given), *_others(given))
    if isinstance(error, ConversionError):
        return _after_conversion(error, model, given)
    if isinstance(error, UntrustedCodeError):
        return _line("trust", model)
    if isinstance(error, ModelFormatError) and model.endswith(".lite") and "--sections" not in arguments:
        return _line("inspect", model, "--sections")
    if isinstance(error, InputError) and not os.path.exists(model):
        near = similar_file(model)
        return shlex.join(["lite", *with_replaced_words(arguments, {model: near})]) if near else help_of_command
    if isinstance(error, InputError) and "option '" in str(error):
        return help_of_command
    if isinstance(error, InputError):
        shown = ("--optimized", "--origins") if "--optimized --origins" in str(error) else ()
        # Options of the reader are not repeated after an error about them.
        others = () if " option " in str(error) else _others(given, backends=False)
        return _line("inspect", model, *shown, *others)
    return help_of_command if isinstance(error, ModelFormatError) else "lite doctor"


def _corrected(message: str, arguments: Sequence[str]) -> list[str]:
    """Return the words of the command line without the mistake that a message of the core names; empty without one."""
    if found := _NO_DEVICE.match(message):  # the backend's first device
        wrong, right = ":".join(found.groups()), found[1]
    elif found := _NO_OPTION.match(message):
        wrong, right = f"{found[1]}.{found[2]}", f"{found[1]}.{found[3]}"
    elif (found := _NO_VALUE.match(message)) and (near := similar_names(found[4], re.findall("'([^']+)'", found[3]))):
        wrong, right = (f"{found[2]}.{found[1]}={value}" for value in (found[4], near[0]))
    else:
        return []
    changed = with_replaced_words(arguments, {wrong: right})
    return changed if changed != [*arguments] else []


def _report(error: LiteError, given: Mapping[str, Any]) -> str:
    """Return the command that packs what the authors of a plugin need after a failed run; empty for another error."""
    model: str | None = given.get("model")
    if model is None:
        return ""
    backend = ""
    if isinstance(error, ExecutionError) and step_for_plugin_at_fault(error):
        found = _FAILED.match(str(error))
        backend = found[1] if found else "host"  # whose runs call the references
    elif isinstance(error, ConversionError):
        from lite_tools.conversion.problems import DisagreementError  # not at the top: other commands start faster

        if isinstance(error, DisagreementError) and error.failed:
            backend = error.target or "host"
        elif found := _NOT_COMPILED.search(str(error)):
            backend = found[1]
        elif error.source:
            backend = "host"
    return _line("report", model, "-b", backend, *_others(given)) if backend else ""


def _line(name: str, model: str, *words: str) -> str:
    return shlex.join(["lite", name, model, *words])


def _others(given: Mapping[str, Any], *, backends: bool = True) -> Sequence[str]:
    return option_words(given.get("reader") or {}, (given.get("backend_options") or {}) if backends else {})


def _backend(given: Mapping[str, Any]) -> Sequence[str]:
    """Return the words for the backend that was asked for; none for the default, or if several were compared."""
    backend = given.get("backend")
    return ("-b", backend) if isinstance(backend, str) and backend != "auto" else ()


def _after_conversion(error: ConversionError, model: str, given: Mapping[str, Any]) -> str:
    """Return the command that lists what targets refuse, or finds what makes the converted model's results differ."""
    from lite_tools.conversion.problems import DisagreementError  # not at the top: other commands start faster

    others = _others(given, backends=False)
    if not isinstance(error, DisagreementError):
        return _line("check", model, "--targets", given.get("targets") or "auto", *others)
    if error.target is None:
        return _line("bisect", model, "--by", "pass", *others)
    return _line("compare", model, "--b", error.target, *others)
