"""Options and arguments that several commands take, as click's decorators."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import click

__all__ = [
    "backend_option",
    "backend_options_option",
    "backends_of",
    "json_option",
    "model_argument",
    "precision_option",
    "reader_option",
    "seed_option",
    "threads_option",
    "tune_option",
]

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

model_argument: Decorator = click.argument("model", type=click.Path())
json_option: Decorator = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
backend_option: Decorator = click.option(
    "--backend",
    "-b",
    default="auto",
    show_default=True,
    help="Backend to run on, see `lite backends`, or several by preference: opencl,x86.",
)
threads_option: Decorator = click.option("--threads", "-t", type=click.IntRange(1), help="CPU threads.  [default: all]")
seed_option: Decorator = click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the random inputs."
)
precision_option: Decorator = click.option(
    "--precision",
    type=click.Choice(["float32", "float16", "bfloat16"]),
    default="float32",
    show_default=True,
    help="What backends may compute in, where they can; a converted file is loaded with the same.",
)
tune_option: Decorator = click.option(
    "--tune", is_flag=True, help="Measure which kernels are fastest here, and keep that (opencl)."
)


def backends_of(text: str) -> str | list[str]:
    """The ``backend=`` argument for a comma-separated list."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise click.BadParameter("name at least one backend, or auto", param_hint="--backend")
    return names[0] if len(names) == 1 else names


def _reader_options(context: click.Context, parameter: click.Parameter, texts: Sequence[str]) -> dict[str, Any]:
    """Keyword arguments of a reader: names, and values in JSON."""
    options = {}
    for text in texts:
        name, separator, value = text.partition("=")
        try:
            options[name] = json.loads(value) if separator and name.isidentifier() else None
        except json.JSONDecodeError as error:
            raise click.BadParameter(f"{value!r} of {name} is not JSON: {error}") from None
        if options[name] is None:
            raise click.BadParameter(f'it reads NAME=JSON, such as lengths={{"x": 3}}, not {text!r}')
    return options


reader_option: Decorator = click.option(
    "--reader",
    "-R",
    multiple=True,
    metavar="NAME=JSON",
    callback=_reader_options,
    help='Option of the reader of the model\'s format: lengths={"x": 3} says how many tensors a sequence of an ONNX '
    "model has. Repeatable.",
)


def _backend_options(
    context: click.Context, parameter: click.Parameter, texts: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """The ``backend_options=`` argument: a backend's own options by its name."""
    options: dict[str, dict[str, Any]] = {}
    for text in texts:
        path, separator, value = text.partition("=")
        backend, dot, name = path.partition(".")
        if not (separator and dot and backend and name):
            raise click.BadParameter(f"it reads BACKEND.NAME=VALUE, such as x86.mkl=never, not {text!r}")
        options.setdefault(backend, {})[name] = _value(value)
    return options


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


backend_options_option: Decorator = click.option(
    "--backend-option",
    "-O",
    "backend_options",
    multiple=True,
    metavar="BACKEND.NAME=VALUE",
    callback=_backend_options,
    help="Option of a backend's own, such as x86.mkl=never; the value is JSON, or else text. Repeatable.",
)
