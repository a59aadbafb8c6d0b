"""The options of ``lite-conformance run``.

A new option is a line in ``_OPTIONS`` and a field of :class:`RunOptions` with the same name.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from lite_conformance.cases.case import Settings
from lite_conformance.cli import shared_options as shared
from lite_conformance.judge.precision import LEVELS
from lite_conformance.run.last_failed import last_failed
from lite_conformance.run.selection import Selection, parse_level, parse_shard

__all__ = ["RunOptions", "run_options"]

_Command = TypeVar("_Command", bound=Callable[..., Any])
_MAX_JOBS = 8

_OPTIONS = (
    click.option(
        "--backend", "-b", help="An installed backend (opencl, opencl:1), module:attribute or file.py:attribute."
    ),
    shared.level,
    shared.case,
    shared.op,
    shared.dtype,
    shared.exclude,
    click.option("--last-failed", is_flag=True, help="Only the cases of this backend that failed when they ran last."),
    shared.shard,
    shared.sample,
    click.option("--maxfail", type=click.IntRange(1), help="Stop after this number of bad cases."),
    click.option("--resume", is_flag=True, help="Go on with an interrupted run; repeat its command with this option."),
    shared.seed,
    shared.examples,
    click.option(
        "--jobs",
        "-j",
        type=click.IntRange(1),
        help=f"Worker processes.  [default: the processors, at most {_MAX_JOBS}]",
    ),
    shared.timeout,
    click.option(
        "--model", "models", multiple=True, type=click.Path(exists=True), help="A model to run in L4. Repeatable."
    ),
    shared.node_data,
    click.option(
        "--expectations",
        type=click.Path(exists=True, dir_okay=False),
        help="File to use instead of the backend's own conformance.toml.",
    ),
    click.option(
        "--isolate",
        type=click.Choice(["auto", "never"]),
        default="auto",
        show_default=True,
        help="never: run in this process, for debugging.",
    ),
    click.option(
        "--precision",
        type=click.Choice(list(LEVELS)),
        metavar="LEVEL",
        default="float32",
        show_default=True,
        help=f"Let the backend compute float32 cases of levels 2 to 4 in fewer bits: {', '.join(LEVELS)}.",
    ),
    shared.json_report,
    shared.junit_report,
    shared.html_report,
    click.option(
        "--repro",
        type=click.Path(file_okay=False),
        help="Folder for scripts that repeat failures with only NumPy and lite_core.",
    ),
    click.option("--list", "list_cases", is_flag=True, help="List the cases and run nothing."),
    shared.quiet,
)


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The values of the options; a field that may be None is None if the option is not given."""

    backend: str | None
    level: str
    cases: tuple[str, ...]
    ops: tuple[str, ...]
    dtypes: tuple[str, ...]
    exclude: tuple[str, ...]
    last_failed: bool
    shard: str
    sample: int
    maxfail: int | None
    resume: bool
    seed: int
    examples: int
    jobs: int | None
    timeout: float
    models: tuple[str, ...]
    node_data: str | None
    expectations: str | None
    isolate: str
    precision: str
    json_file: str | None
    junit: str | None
    html: str | None
    repro: str | None
    list_cases: bool
    quiet: bool
    #: The distribution whose operators, passes and formats are tested instead of the whole suite.
    plugin: str = ""

    @property
    def settings(self) -> Settings:
        """The settings that all processes of the run share."""
        return Settings(
            self.backend or "",
            self.seed,
            self.examples,
            self.models,
            self.node_data,
            self.expectations,
            self.precision,
            self.plugin,
        )

    @property
    def selection(self) -> Selection:
        """The selected cases.

        Raises:
            InputError: a value is wrong, or no earlier run is known, whose failures ``--last-failed`` selects.
        """
        only = last_failed(self.settings.title, self.json_file) if self.last_failed else None
        shard = parse_shard(self.shard)
        return Selection(
            parse_level(self.level), self.cases, self.ops, self.dtypes, self.exclude, only, shard, self.sample
        )

    @property
    def worker_count(self) -> int:
        """The number of worker processes."""
        return self.jobs or min(os.cpu_count() or 1, _MAX_JOBS)


def run_options(command: _Command) -> _Command:
    """Add the options to a command, in the order of its help."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
