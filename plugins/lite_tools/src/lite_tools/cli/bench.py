"""``lite bench``: the run time of a model on one or several backends."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from lite_core.session import Session, load
from lite_tools.cli.model_file import prepared_shapes
from lite_tools.commands.inputs import ImageOptions, collect_inputs, parse_shapes
from lite_tools.commands.options import (
    backend_options_option,
    backends_of,
    json_option,
    model_argument,
    precision_option,
    reader_option,
    seed_option,
    tune_option,
)
from lite_tools.commands.printing import console, milliseconds, print_json, table
from lite_tools.diagnostics import Latency, measure_latency


@click.command("bench")
@model_argument
@click.option(
    "--backend",
    "-b",
    "backends",
    multiple=True,
    help="Backend to measure, or several in order of preference: opencl,x86. Repeat the option to compare backends.  "
    "[default: auto]",
)
@click.option(
    "--threads",
    "-t",
    "threads",
    multiple=True,
    type=click.IntRange(1),
    help="Number of CPU threads. Repeat the option to compare numbers of threads.  [default: all]",
)
@click.option(
    "--input", "-i", "inputs", multiple=True, metavar="[NAME=]FILE", help="Input file, see `lite run`. Repeatable."
)
@click.option(
    "--shape",
    "-s",
    "shapes",
    multiple=True,
    metavar="[NAME=]1x3x224x224",
    help="Shape of random numbers for the input NAME, if the model leaves it open. Repeatable.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(0, min_open=True),
    default=3.0,
    show_default=True,
    help="Total run time of each measurement.",
)
@seed_option
@precision_option
@tune_option
@backend_options_option
@reader_option
@json_option
def command(
    model: str,
    backends: tuple[str, ...],
    threads: tuple[int, ...],
    inputs: tuple[str, ...],
    shapes: tuple[str, ...],
    seconds: float,
    seed: int,
    precision: str,
    tune: bool,
    backend_options: dict[str, dict[str, Any]],
    reader: dict[str, Any],
    as_json: bool,
) -> None:
    """Measure the run time of MODEL on each backend with each number of threads.

    The measurements are interleaved in one process, so that other load on the machine affects all of them alike: ratios
    are more reliable than milliseconds.
    """
    wanted = [(text, count) for text in backends or ("auto",) for count in threads or (None,)]
    makers = {
        _name(text, count): partial(
            load,
            model,
            backend=backends_of(text),
            threads=count,
            precision=precision,
            tune=tune,
            backend_options=backend_options,
            reader_options=reader,
        )
        for text, count in wanted
    }
    arrays: dict[str, Any] = {}
    sources: dict[str, str] = {}

    def make_inputs(session: Session) -> dict[str, Any]:
        given = parse_shapes(session.inputs, shapes)
        collected = collect_inputs(
            session.inputs, inputs, given, ImageOptions(), seed, default_shapes=prepared_shapes(session.file)
        )
        arrays.update(collected[0])
        sources.update(collected[1])
        return arrays

    results = measure_latency(makers, make_inputs, seconds)
    if as_json:
        print_json({"model": model, "inputs": sources, "results": [result.as_dict() for result in results]})
        return
    shown = [(name, f"{array.dtype.name}{list(array.shape)}", sources[name]) for name, array in arrays.items()]
    table(("input", "type", "source"), shown)
    console.print()
    heads = ("backend", "ran on", "load", "first run", "median", "fastest", "90th percentile", "runs", "relative")
    table(heads, [_row(result, results[0]) for result in results])


def _name(backends: str, threads: int | None) -> str:
    return backends if threads is None else f"{backends}, {threads} thread{'s' if threads > 1 else ''}"


def _row(result: Latency, first: Latency) -> tuple[object, ...]:
    times = (result.load, result.first, result.median, result.fastest, result.p90)
    ratio = f"{result.median / first.median:.2f}"
    return (result.name, ", ".join(result.devices), *map(milliseconds, times), len(result.runs), ratio)
