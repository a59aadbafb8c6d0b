"""``lite bench``: run times of a model on one or several backends, its memory, and changes since a measurement."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import click
import numpy as np

from lite_core.schedule.precision import Precision
from lite_core.session import Session, load
from lite_tools.benchmark import Budget, check_agreement, compare_documents, measure
from lite_tools.benchmark.document import flat_rows, result_of, with_latencies
from lite_tools.benchmark.environment import environment, model_digest
from lite_tools.benchmark.origins import environment_options, given_options, session_options
from lite_tools.benchmark.other_load import OtherLoadMeter
from lite_tools.benchmark.saved import read_saved
from lite_tools.checking.limits import LIMITS
from lite_tools.cli.bench_tables import print_document
from lite_tools.cli.session_inputs import session_inputs
from lite_tools.commands.errors import check_writable
from lite_tools.commands.exit_codes import EXIT_FAILURE, EXIT_OK
from lite_tools.commands.inputs import ImageOptions
from lite_tools.commands.notes import print_notes
from lite_tools.commands.option_words import option_words
from lite_tools.commands.options import (
    backend_options_option,
    backends_of,
    input_option,
    json_option,
    model_argument,
    precision_option,
    reader_option,
    seed_option,
    shape_option,
    tune_option,
)
from lite_tools.commands.printing import console, json_text, print_json
from lite_tools.commands.value_types import BACKENDS
from lite_tools.precisions import precision_words

_SECONDS = 3.0
#: Options of the whole measurement that the report lists, by parameter.
_LISTED = {
    "warmup": "--warmup",
    "iterations": "--iterations",
    "seconds": "--seconds",
    "concurrent": "--concurrent",
    "seed": "--seed",
    "tune": "--tune",
    "backend_options": "--backend-option",
}


@click.command("bench")
@model_argument
@click.option(
    "--backend",
    "-b",
    "backends",
    type=BACKENDS,
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
@input_option()
@shape_option(
    "Shape of random numbers for the input NAME, if the model leaves it open; a model that only leaves the batch "
    "open is measured with one item. Repeatable."
)
@click.option(
    "--warmup",
    type=click.IntRange(0),
    default=3,
    show_default=True,
    help="Runs of each measurement, after the first one, that do not count.",
)
@click.option(
    "--iterations",
    "-n",
    type=click.IntRange(1),
    help="Runs of each measurement that count, instead of --seconds; with both, both are reached.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(0, min_open=True),
    help=f"Total run time of each measurement, with at least five runs.  [default: {_SECONDS:g}, or none with "
    "--iterations]",
)
@click.option(
    "--concurrent",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    metavar="N",
    help="Also let N threads run each session at once, and measure throughput and latencies under this load.",
)
@click.option(
    "--limit",
    type=click.FloatRange(0),
    help="Largest allowed difference between the outputs of backends, as a share of an output's range.  [default: "
    "1e-3; 2e-2 for float16, 1e-1 for bfloat16]",
)
@click.option("--csv", "csv_file", type=click.Path(dir_okay=False), help="Write a row for each measurement to FILE.")
@click.option(
    "--html", "html_file", type=click.Path(dir_okay=False), help="Write a page with charts to FILE; it loads nothing."
)
@click.option(
    "--save",
    type=click.Path(dir_okay=False),
    help="Write everything, with the time of each run, to FILE, for --against.",
)
@click.option(
    "--against", type=click.Path(dir_okay=False), help="Compare with a FILE of --save, and tell noise from changes."
)
@seed_option
@precision_option
@tune_option
@backend_options_option
@reader_option
@json_option
@click.pass_context
def command(
    context: click.Context,
    model: str,
    backends: tuple[str, ...],
    threads: tuple[int, ...],
    inputs: tuple[str, ...],
    shapes: tuple[str, ...],
    warmup: int,
    iterations: int | None,
    seconds: float | None,
    concurrent: int,
    limit: float | None,
    csv_file: str | None,
    html_file: str | None,
    save: str | None,
    against: str | None,
    seed: int,
    precision: str | dict[str, str] | None,
    tune: bool,
    backend_options: dict[str, dict[str, Any]],
    reader: dict[str, Any],
    as_json: bool,
) -> int:
    """Measure the run time of MODEL on each backend with each number of threads.

    The measurements are interleaved in one process, so that other load on the machine affects all of them alike: ratios
    are more reliable than milliseconds. The outputs are compared, too: the exit code is 1 if they differ.
    """
    for file, option in ((csv_file, "--csv"), (html_file, "--html"), (save, "--save")):
        if file is not None:
            check_writable(file, option)
    earlier = read_saved(against) if against else None
    if seconds is None and iterations is None:
        seconds = context.params["seconds"] = _SECONDS
    wanted = {
        _name(text or "auto", count): (text, count) for text in backends or (None,) for count in threads or (None,)
    }
    makers = {
        name: partial(
            load,
            model,
            backend=backends_of(text or "auto"),
            threads=count,
            precision=precision,
            tune=tune,
            backend_options=backend_options,
            reader_options=reader,
        )
        for name, (text, count) in wanted.items()
    }
    chosen = _Inputs(inputs, shapes, seed)
    meter = OtherLoadMeter()
    measured = measure(makers, chosen.make, Budget(warmup, iterations, seconds or 0.0, concurrent))
    load_of_others = meter.read()
    if load_of_others is not None and not load_of_others.is_quiet:
        chosen.notes.append(f"{load_of_others} during the measurement, which makes latencies longer and noisier")
    results = [
        result_of(each, session_options(each.session, *wanted[each.name], precision), concurrent) for each in measured
    ]
    agreement = check_agreement([(m.name, m.outputs) for m in measured], _limit(measured[0].session, limit))
    document: dict[str, Any] = {
        "model": model,
        "model_sha256": model_digest(model, reader),
        "inputs": chosen.sources,
        "input_types": {n: f"{array.dtype.name}{list(array.shape)}" for n, array in chosen.arrays.items()},
        "other_load": load_of_others and load_of_others._asdict(),
        "environment": environment(b for result in results for b in _backends_in(result)),
        "options": [o._asdict() for o in (*given_options(context, _LISTED), *environment_options())],
        "notes": chosen.notes,
        "results": results,
        "agreement": {**agreement.as_dict(), "sentences": agreement.sentences()},
        "against": None,
    }
    complete = with_latencies(document, measured)
    if earlier is not None and against is not None:
        document["against"] = complete["against"] = compare_documents(earlier, complete).as_dict(against)
    _write_files(document, complete, csv_file, html_file, save)
    print_notes((*chosen.notes, *(note for each in measured for note in each.session.notes)))
    if as_json:
        print_json(document)
    else:
        print_document(document)
        if not agreement.ok:
            others = (*chosen.words, *option_words(reader, backend_options))
            sides = wanted[agreement.reference], wanted[agreement.exceeding()[0][0]]
            console.print(f"next: {_comparison(model, *sides, precision, others)}", markup=False)
    return EXIT_OK if agreement.ok else EXIT_FAILURE


@dataclass
class _Inputs:
    """The inputs of the measurement, made for the first session.

    Attributes:
        files: the texts of ``--input``.
        shapes: the texts of ``--shape``.
        seed: the seed of random inputs.
        arrays: an array for each input.
        sources: the source of each array in words.
        notes: a sentence if the model leaves the batch open and one item was chosen.
    """

    files: tuple[str, ...]
    shapes: tuple[str, ...]
    seed: int
    arrays: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the command line for the same inputs."""
        words = [word for file in self.files for word in ("-i", file)]
        words += [word for shape in self.shapes for word in ("-s", shape)]
        return (*words, *(("--seed", str(self.seed)) if self.seed else ()))

    def make(self, session: Session) -> Mapping[str, np.ndarray[Any, Any]]:
        """Return an array for each input of a session."""
        found = session_inputs(session, self.files, self.shapes, ImageOptions(), self.seed)
        self.arrays, self.sources, notes = found
        self.notes += notes
        return found.arrays


def _name(backends: str, threads: int | None) -> str:
    return backends if threads is None else f"{backends}, {threads} thread{'s' if threads > 1 else ''}"


def _comparison(
    model: str,
    a: tuple[str | None, int | None],
    b: tuple[str | None, int | None],
    precision: str | dict[str, str] | None,
    others: Sequence[str],
) -> str:
    """Return the command line that names the first step at which two measured sessions differ."""
    words = ["lite", "compare", model, "--a", a[0] or "auto", *(["--a-threads", str(a[1])] if a[1] else [])]
    words += ["--b", b[0] or "auto", *(["--threads", str(b[1])] if b[1] else [])]
    if precision is not None:
        given = Precision.of(precision)
        words += ["--a-precision", given.default, *precision_words(given)]
    return shlex.join([*words, *others])


def _backends_in(result: Mapping[str, Any]) -> list[str]:
    return [label.partition(":")[0] for label in result["devices"]]


def _limit(session: Session, limit: float | None) -> float:
    """Return the largest allowed difference: the user's, else that of the least exact precision in use."""
    if limit is not None:
        return limit
    used = session.planner.precision
    return max(LIMITS[each] for each in (used.default, *(found for _, found in used.patterns)))


def _write_files(
    document: Mapping[str, Any],
    complete: Mapping[str, Any],
    csv_file: str | None,
    html_file: str | None,
    save: str | None,
) -> None:
    from lite_tools.pages.bench_report import bench_page  # not at the top: few measurements write a page
    from lite_tools.pages.page import write_page

    if csv_file:
        rows, text = flat_rows(document), io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
        write_page(csv_file, text.getvalue(), "--csv")
    if html_file:
        write_page(html_file, bench_page(complete), "--html")
    if save:
        write_page(save, json_text(complete), "--save")
