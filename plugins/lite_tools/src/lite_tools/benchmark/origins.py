"""Effective options of a measurement, each with the place that it came from."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import click
from click.core import ParameterSource

from lite_core.session import Session

__all__ = ["Effective", "environment_options", "given_options", "session_options"]

_COMMAND_LINE, _DEFAULT, _FILE = "command line", "default", "the .lite file"
#: Variables that choose backends, by the option that they decide.
_OF_BACKENDS = "LITE_BACKEND"


class Effective(NamedTuple):
    """An option with its value in words, and its origin: command line, environment variable, .lite file, default."""

    name: str
    value: str
    origin: str


def session_options(
    session: Session, backend: str | None, threads: int | None, precision: str | Mapping[str, str] | None
) -> list[Effective]:
    """Return the options of a session that may differ between the sessions of one measurement.

    Args:
        session: the session.
        backend: the command line's backends for it, None if it names none.
        threads: the command line's number of threads, None if it gives none.
        precision: the command line's precision, None if it gives none.
    """
    used = session.planner.options
    targets = list(session.targets)
    forced = os.environ.get(_OF_BACKENDS)
    if forced:
        chosen = Effective("backend", forced, f"environment variable {_OF_BACKENDS}")
    elif backend is not None:
        chosen = Effective("backend", backend, _COMMAND_LINE)
    else:
        chosen = Effective("backend", ", ".join(targets) or "auto", _FILE if targets else _DEFAULT)
    if precision is not None:
        wanted = precision if isinstance(precision, str) else ", ".join(f"{k}={v}" for k, v in precision.items())
        computed = Effective("precision", wanted, _COMMAND_LINE)
    else:
        computed = Effective("precision", session.planner.precision.text, _FILE if targets else _DEFAULT)
    counted = _COMMAND_LINE if threads is not None else f"{_DEFAULT}: the cores of use"
    return [chosen, Effective("threads", str(used.threads), counted), computed]


def given_options(context: click.Context, names: Mapping[str, str]) -> list[Effective]:
    """Return options of a command with their origin.

    Args:
        context: the command's context.
        names: by the parameter's name, the option's name for the user.
    """
    found = []
    for parameter, name in names.items():
        value = context.params[parameter]
        source = context.get_parameter_source(parameter)
        is_default = source in (ParameterSource.DEFAULT, ParameterSource.DEFAULT_MAP, None)
        found.append(Effective(name, _text(value), _DEFAULT if is_default else _COMMAND_LINE))
    return found


def environment_options() -> list[Effective]:
    """Return the environment variables that change Lite's behaviour and are set."""
    names = [name for name in sorted(os.environ) if name.startswith("LITE_") and name != _OF_BACKENDS]
    return [Effective(name, os.environ[name], "environment variable") for name in names]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):  # options by backend
        return ", ".join(f"{b}.{name}={v}" for b, own in value.items() for name, v in own.items()) or "none"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or "none"
    return "not set" if value is None else str(value)
