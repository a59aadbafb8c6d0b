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
    click.option("--level", "-l", default="L5", show_default=True, help="L2: levels 0 to 2. L2-L3: these only."),
    click.option(
        "--case", "cases", multiple=True, help="Only cases with this name; * and ? are wildcards. Repeatable."
    ),
    click.option("--op", "ops", multiple=True, help="Only cases of this operator: Conv, 'lite.*'. Repeatable."),
    click.option(
        "--dtype", "dtypes", multiple=True, help="Only cases in this element type: float16 or f16. Repeatable."
    ),
    click.option("--exclude", multiple=True, help="Leave out the cases with this name, with wildcards. Repeatable."),
    click.option("--last-failed", is_flag=True, help="Only the cases of this backend that failed when they ran last."),
    click.option(
        "--shard", default="1/1", help="i/n: the i-th of n parts of equal size, which together are the whole."
    ),
    click.option(
        "--sample",
        default=0,
        metavar="COUNT",
        type=click.IntRange(0),
        help="Only COUNT cases, of every operator and element type alike; --seed decides which.",
    ),
    click.option("--maxfail", type=click.IntRange(1), help="Stop after this number of bad cases."),
    click.option("--resume", is_flag=True, help="Go on with an interrupted run; repeat its command with this option."),
    click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Seed of all random numbers."),
    click.option(
        "--examples",
        default=20,
        show_default=True,
        type=click.IntRange(1),
        help="Random examples per operator and type.",
    ),
    click.option(
        "--jobs",
        "-j",
        type=click.IntRange(1),
        help=f"Worker processes.  [default: the processors, at most {_MAX_JOBS}]",
    ),
    click.option(
        "--timeout",
        default=60.0,
        show_default=True,
        type=click.FloatRange(0, min_open=True),
        help="Time limit of a case, or of each drawn example, in seconds.",
    ),
    click.option(
        "--model", "models", multiple=True, type=click.Path(exists=True), help="A model to run in L4. Repeatable."
    ),
    click.option(
        "--node-data",
        type=click.Path(exists=True),
        help="The ONNX project's node data: a folder, or the wheel of onnx 1.17.",
    ),
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
        default="float32",
        show_default=True,
        help="Let the backend compute float32 cases of levels 2 to 4 in fewer bits.",
    ),
    click.option("--json", "json_file", type=click.Path(dir_okay=False), help="Write the report as JSON."),
    click.option("--junit", type=click.Path(dir_okay=False), help="Write the report as JUnit XML."),
    click.option("--html", type=click.Path(dir_okay=False), help="Write the report as one web page."),
    click.option(
        "--repro",
        type=click.Path(file_okay=False),
        help="Folder for scripts that repeat failures with only NumPy and lite_core.",
    ),
    click.option("--list", "list_cases", is_flag=True, help="List the cases and run nothing."),
    click.option("--quiet", "-q", is_flag=True, help="No progress, only the summary."),
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
