"""Options and arguments that several commands share, as decorators for click."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from typing import Any

import click

from lite_core.errors import InputError
from lite_tools.commands.backend_names import known_backends
from lite_tools.commands.next_commands import next_command_of, with_next_command
from lite_tools.commands.picture_files import require_pillow
from lite_tools.commands.progress import set_progress
from lite_tools.commands.value_types import ARRAY_FILE, BACKENDS, MODEL_FILE, PRECISION

__all__ = [
    "backend_option",
    "backend_options_option",
    "backends_of",
    "input_option",
    "json_option",
    "model_argument",
    "precision_option",
    "reader_option",
    "require_own_devices",
    "seed_option",
    "shape_option",
    "threads_option",
    "tune_option",
    "version_option",
]

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def _loading(context: click.Context, parameter: click.Parameter, model: str) -> str:
    """Name the model in the line about progress; commands that do more than to load it set another text."""
    if model is not None and not context.resilient_parsing:
        set_progress(f"loading {os.path.basename(os.path.normpath(model))}")
    return model


model_argument: Decorator = click.argument("model", type=MODEL_FILE, callback=_loading)
# is_eager: known to the option --version, wherever it stands
json_option: Decorator = click.option(
    "--json", "as_json", is_flag=True, is_eager=True, help="Print the result as JSON."
)
backend_option: Decorator = click.option(
    "--backend",
    "-b",
    type=BACKENDS,
    default="auto",
    show_default=True,
    help="Backend to run on (see `lite backends`), or several in order of preference: opencl,x86.",
)
threads_option: Decorator = click.option(
    "--threads", "-t", type=click.IntRange(1), help="Number of CPU threads.  [default: all]"
)
seed_option: Decorator = click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the random inputs."
)


def input_option(help: str = "Input file, see `lite run`. Repeatable.") -> Decorator:
    """Return the option for the arrays of inputs, which passes the tuple ``inputs`` to the command."""
    named: dict[str, Any] = {"type": ARRAY_FILE, "multiple": True, "metavar": "[NAME=]FILE", "help": help}
    return click.option("--input", "-i", "inputs", callback=require_pillow, **named)


def shape_option(
    help: str = "Shape of random numbers for the input NAME, if the model leaves it open. Repeatable.",
) -> Decorator:
    """Return the option for the shapes of inputs, which passes the tuple ``shapes`` to the command."""
    return click.option("--shape", "-s", "shapes", multiple=True, metavar="[NAME=]1x3x224x224", help=help)


def _precision(context: click.Context, parameter: click.Parameter, texts: Sequence[str]) -> str | dict[str, str] | None:
    """Parse texts PRECISION and PATTERN=PRECISION for the argument ``precision=``."""
    from lite_tools.precisions import parse_precisions  # not at the top: the help needs no scheduler

    try:
        return parse_precisions(texts)
    except InputError as error:
        raise with_next_command(click.BadParameter(str(error)), next_command_of(error)) from None


precision_option: Decorator = click.option(
    "--precision",
    type=PRECISION,
    multiple=True,
    metavar="[NODES=]TYPE",
    callback=_precision,
    help="Type that backends may compute in, if they support it: float32, float16 or bfloat16; for some nodes "
    "softmax_*=float32. Repeatable.  [default: that of a .lite file, else float32]",
)
tune_option: Decorator = click.option(
    "--tune", is_flag=True, help="Measure which kernels are fastest on this device, and store the choice (opencl, x86)."
)


def backends_of(text: str) -> str | list[str]:
    """Parse a comma-separated list of backends for the argument ``backend=``."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise click.BadParameter("name at least one backend, or auto", param_hint="--backend")
    known_backends(*names)
    return names[0] if len(names) == 1 else names


def require_own_devices() -> None:
    """Refuse to compare two sides while the environment variable LITE_BACKEND chooses the devices of both."""
    if os.environ.get("LITE_BACKEND"):
        raise click.UsageError("LITE_BACKEND is set and would choose the devices of both sides: unset it")


def _reader_options(context: click.Context, parameter: click.Parameter, texts: Sequence[str]) -> dict[str, Any]:
    """Parse texts NAME=JSON to keyword arguments of a reader."""
    options = {}
    for text in texts:
        name, separator, value = text.partition("=")
        try:
            options[name] = json.loads(value) if separator and name.isidentifier() else None
        except (ValueError, RecursionError) as error:  # ValueError: also an integer of thousands of digits
            raise click.BadParameter(f"{value!r} of {name} is not JSON: {error}") from None
        if options[name] is None:
            raise click.BadParameter(f'write NAME=JSON, such as lengths={{"x": 3}}, not {text!r}')
    return options


reader_option: Decorator = click.option(
    "--reader",
    "-R",
    multiple=True,
    metavar="NAME=JSON",
    callback=_reader_options,
    help='Option of the model format\'s reader, such as lengths={"x": 3}, the length of an ONNX sequence. Repeatable.',
)


def _backend_options(
    context: click.Context, parameter: click.Parameter, texts: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Parse texts BACKEND.NAME=VALUE for the argument ``backend_options=``: options by the backend's name."""
    options: dict[str, dict[str, Any]] = {}
    for text in texts:
        path, separator, value = text.partition("=")
        backend, dot, name = path.partition(".")
        if not (separator and dot and backend and name):
            raise click.BadParameter(f"write BACKEND.NAME=VALUE, such as x86.mkl=never, not {text!r}")
        known_backends(backend, within=text)
        options.setdefault(backend, {})[name] = _value(value)
    return options


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # also an integer of thousands of digits, and lists nested too deep
        return text


backend_options_option: Decorator = click.option(
    "--backend-option",
    "-O",
    "backend_options",
    multiple=True,
    metavar="BACKEND.NAME=VALUE",
    callback=_backend_options,
    help="Option of a single backend, such as x86.mkl=never. The value is parsed as JSON if possible, else it is a "
    "string. Repeatable.",
)


def version_option(version: str, program: str) -> Decorator:
    """Return the option ``--version``, which prints the version as text or, with :data:`json_option`, as JSON.

    Args:
        version: the version.
        program: the program or command that has it.
    """

    def show(context: click.Context, parameter: click.Parameter, is_given: bool) -> None:
        if not is_given or context.resilient_parsing:
            return
        if context.params.get("as_json"):
            from lite_tools.commands.printing import print_json  # not at the top: the help needs no tables

            print_json({"program": program, "version": version})
        else:
            click.echo(f"{program}, version {version}")
        context.exit()

    return click.option("--version", is_flag=True, expose_value=False, callback=show, help="Show the version and exit.")
