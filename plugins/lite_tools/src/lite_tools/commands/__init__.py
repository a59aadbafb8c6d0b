"""Building blocks for commands of ``lite``, for packages that add commands.

A command is a :class:`click.Command` that a plugin returns from its hook ``lite_commands``. This module provides the
options, tables, JSON output and exit codes that all commands share::

    @click.command("sizes")
    @model_argument
    @json_option
    def command(model: str, as_json: bool) -> int:
        ...
        print_json({"model": model, "bytes": size}) if as_json else table(("model", "bytes"), [(model, size)])
        return EXIT_OK

    @hookimpl
    def lite_commands():
        return [LazyCommand("sizes", "Show the size of a model", "my_package.sizes")]

Names are imported on first use: a plugin that only lists its commands imports nothing else.
"""

# NOTE: no module of this package may have a name in __all__: when it is imported, it would replace that name.

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lite_tools.commands.conversions import ConversionReport, print_report
    from lite_tools.commands.corrections import corrected
    from lite_tools.commands.errors import UnavailableError, check_writable, print_error
    from lite_tools.commands.exit_codes import (
        EXIT_CRASH,
        EXIT_FAILURE,
        EXIT_FILE,
        EXIT_NOTHING,
        EXIT_OK,
        EXIT_UNAVAILABLE,
        EXIT_USAGE,
    )
    from lite_tools.commands.inputs import ImageOptions, collect_inputs, parse_shapes
    from lite_tools.commands.lazy import LazyCommand
    from lite_tools.commands.next_commands import next_command_of, note_typed_words, with_correction
    from lite_tools.commands.notes import print_notes
    from lite_tools.commands.options import (
        backend_option,
        backend_options_option,
        backends_of,
        input_option,
        json_option,
        model_argument,
        precision_option,
        reader_option,
        seed_option,
        shape_option,
        threads_option,
        tune_option,
        version_option,
    )
    from lite_tools.commands.pictures import check_picture, draw_graph
    from lite_tools.commands.printing import console, milliseconds, print_json, print_text, table
    from lite_tools.commands.progress import set_progress, shown_progress, undisturbed
    from lite_tools.commands.safe_html import content_policy, embedded_json
    from lite_tools.commands.suggestions import did_you_mean, similar_names
    from lite_tools.commands.targets import check_targets, split_targets

_MODULES = {
    "EXIT_CRASH": "exit_codes",
    "EXIT_FAILURE": "exit_codes",
    "EXIT_FILE": "exit_codes",
    "EXIT_NOTHING": "exit_codes",
    "EXIT_OK": "exit_codes",
    "EXIT_UNAVAILABLE": "exit_codes",
    "EXIT_USAGE": "exit_codes",
    "ConversionReport": "conversions",
    "ImageOptions": "inputs",
    "LazyCommand": "lazy",
    "UnavailableError": "errors",
    "backend_option": "options",
    "backend_options_option": "options",
    "backends_of": "options",
    "check_picture": "pictures",
    "check_targets": "targets",
    "check_writable": "errors",
    "collect_inputs": "inputs",
    "console": "printing",
    "content_policy": "safe_html",
    "corrected": "corrections",
    "did_you_mean": "suggestions",
    "draw_graph": "pictures",
    "embedded_json": "safe_html",
    "input_option": "options",
    "json_option": "options",
    "milliseconds": "printing",
    "model_argument": "options",
    "next_command_of": "next_commands",
    "note_typed_words": "next_commands",
    "parse_shapes": "inputs",
    "precision_option": "options",
    "print_error": "errors",
    "print_json": "printing",
    "print_notes": "notes",
    "print_report": "conversions",
    "print_text": "printing",
    "reader_option": "options",
    "seed_option": "options",
    "set_progress": "progress",
    "shape_option": "options",
    "shown_progress": "progress",
    "similar_names": "suggestions",
    "split_targets": "targets",
    "table": "printing",
    "threads_option": "options",
    "tune_option": "options",
    "undisturbed": "progress",
    "version_option": "options",
    "with_correction": "next_commands",
}

__all__ = [
    "EXIT_CRASH",
    "EXIT_FAILURE",
    "EXIT_FILE",
    "EXIT_NOTHING",
    "EXIT_OK",
    "EXIT_UNAVAILABLE",
    "EXIT_USAGE",
    "ConversionReport",
    "ImageOptions",
    "LazyCommand",
    "UnavailableError",
    "backend_option",
    "backend_options_option",
    "backends_of",
    "check_picture",
    "check_targets",
    "check_writable",
    "collect_inputs",
    "console",
    "content_policy",
    "corrected",
    "did_you_mean",
    "draw_graph",
    "embedded_json",
    "input_option",
    "json_option",
    "milliseconds",
    "model_argument",
    "next_command_of",
    "note_typed_words",
    "parse_shapes",
    "precision_option",
    "print_error",
    "print_json",
    "print_notes",
    "print_report",
    "print_text",
    "reader_option",
    "seed_option",
    "set_progress",
    "shape_option",
    "shown_progress",
    "similar_names",
    "split_targets",
    "table",
    "threads_option",
    "tune_option",
    "undisturbed",
    "version_option",
    "with_correction",
]


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'lite_tools.commands' has no attribute {name!r}")
    value = getattr(import_module(f"lite_tools.commands.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
