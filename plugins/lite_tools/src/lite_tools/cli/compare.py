"""``lite compare``: the first step of a model at which two backends, machines or precisions truly differ."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from lite_core.schedule.precision import Precision
from lite_core.session import Session, load
from lite_tools.cli.session_inputs import session_inputs
from lite_tools.commands.errors import check_writable
from lite_tools.commands.exit_codes import EXIT_FAILURE, EXIT_NOTHING
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
    require_own_devices,
    seed_option,
    shape_option,
    threads_option,
)
from lite_tools.commands.printing import console, print_json, table
from lite_tools.commands.progress import set_progress
from lite_tools.commands.value_types import BACKENDS
from lite_tools.comparing import RunningTruth, Side, StoredTruth, Truth, compare, report_of, save_values
from lite_tools.comparing.terminal import table_rows, wanted_rows
from lite_tools.precisions import precision_words

Array = np.ndarray[Any, Any]


@click.command("compare")
@model_argument
@click.option(
    "--a",
    "backend_a",
    type=BACKENDS,
    metavar="BACKEND",
    help="The side that is trusted.  [default: host without passes]",
)
@click.option("--b", "backend_b", type=BACKENDS, metavar="BACKEND", help="The side in doubt.  [default: auto]")
@click.option("--a-model", metavar="FILE", help="The model that side a runs, such as the source of a .lite file.")
@input_option()
@shape_option()
@threads_option
@click.option("--a-threads", type=click.IntRange(1), help="Number of threads of side a.  [default: as --threads]")
@precision_option
@click.option(
    "--a-precision",
    type=click.Choice(["float32", "float16", "bfloat16"]),
    help="Precision of side a.  [default: that of a .lite file, else float32]",
)
@click.option("--no-passes", is_flag=True, help="Run side b without the graph passes.")
@click.option(
    "--a-no-passes", is_flag=True, help="Run side a without the graph passes, as it runs if --a is not given."
)
@click.option(
    "--runs",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    help="Runs of side b on equal inputs, with others in between: results that change are found. More find rare races.",
)
@click.option(
    "--no-reference", is_flag=True, help="Do not compare suspects with float64: errors above one percent diverge."
)
@click.option("--save", type=click.Path(dir_okay=False), help="Write the results of side a to this file, for --load.")
@click.option("--load", "loaded", type=click.Path(), help="Take side a, and its inputs, from a file of --save.")
@click.option(
    "--repro",
    type=click.Path(file_okay=False),
    default=".",
    show_default=True,
    help="Folder for the script that repeats the fault; --repro '' writes none.",
)
@click.option("--html", type=click.Path(dir_okay=False), help="Write the comparison as a page to this file.")
@click.option("--all", "every", is_flag=True, help="Show all results instead of those with great errors.")
@seed_option
@backend_options_option
@reader_option
@json_option
def command(
    model: str,
    backend_a: str | None,
    backend_b: str | None,
    a_model: str | None,
    inputs: tuple[str, ...],
    shapes: tuple[str, ...],
    threads: int | None,
    a_threads: int | None,
    precision: str | dict[str, str] | None,
    a_precision: str | None,
    no_passes: bool,
    a_no_passes: bool,
    runs: int,
    no_reference: bool,
    save: str | None,
    loaded: str | None,
    repro: str,
    html: str | None,
    every: bool,
    seed: int,
    backend_options: dict[str, dict[str, Any]],
    reader: dict[str, Any],
    as_json: bool,
) -> None:
    """Find the first step of MODEL at which side b truly differs from side a.

    Every result of side b is compared twice: computed from side a's results (the error of this step alone), and
    computed on its own (with the errors of all steps before it). Steps that differ by more than rounding usually does
    are compared with float64, which tells a bug from rounding. The first step that diverges is divided into its nodes,
    and a script that repeats the fault is written.

    \b
    lite compare MODEL --b opencl                  against the backend host
    lite compare MODEL --a x86 --b opencl --html c.html
    lite compare MODEL --a x86 --b x86 --runs 50   races
    lite compare MODEL.lite --a-model MODEL.onnx   a file and its source
    lite compare MODEL --a arm --save a.npz        on one machine,
    lite compare MODEL --b opencl --load a.npz     on another

    Exit code 0 if they agree, 1 if they differ, 4 if nothing could be compared.
    """  # noqa: D301 - \b keeps click from wrapping the lines
    if loaded and (backend_a or a_model or a_threads or a_precision or a_no_passes or inputs or shapes or save):
        raise click.UsageError(
            "--load brings side a and the inputs: leave out --a and the like, --input, --shape, --save"
        )
    if save and backend_b:
        raise click.UsageError("--save runs side a only: leave out --b, and compare with --load afterwards")
    require_own_devices()
    for file, option in ((save, "--save"), (html, "--html")):
        if file:
            check_writable(file, option)

    def open_side(file: str, backend: str, count: int | None, found: Any, passes: bool) -> Session:
        return load(
            file,
            backends_of(backend),
            count,
            found,
            optimize=passes,
            backend_options=backend_options,
            reader_options=reader,
        )

    a_no_passes = a_no_passes or backend_a is None
    stored = StoredTruth(Path(loaded)) if loaded else None
    session_a = None
    if stored is None:
        name_a, count = backend_a or "host", a_threads or threads
        session_a = open_side(a_model or model, name_a, count, a_precision, not a_no_passes)
    session_b = None if save else open_side(model, backend_b or "auto", threads, precision, not no_passes)
    session = session_b or session_a
    assert session is not None
    if stored is None:
        arrays, sources, notes = session_inputs(session, inputs, shapes, ImageOptions(), seed)
        print_notes(notes)
    else:
        arrays, sources = stored.inputs, dict.fromkeys(stored.inputs, f"from {loaded}")
    if session_a is not None:
        set_progress("planning side a")
        side_a = Side.of(name_a, session_a, arrays, passes=not a_no_passes, file=a_model or model)
        if save:
            count = save_values(Path(save), side_a, arrays, model)
            print_notes(session_a.notes)
            following = shlex.join(["lite", "compare", model, "--load", save])
            if as_json:
                saved = {"side": side_a.label, "results": count, "written": save}
                print_json({"model": model, **saved, "next": following})
                return
            console.print(f"{count} results of {side_a.label} written to {save}", markup=False)
            console.print(f"next, on the other machine: {following}", markup=False)
            return
    assert session_b is not None
    set_progress("planning side b")
    side_b = Side.of(backend_b or "auto", session_b, arrays, passes=not no_passes, file=model)
    truth: Truth = stored if stored is not None else RunningTruth(side_a, arrays)
    found = compare(
        truth,
        side_b,
        arrays,
        other_inputs=_others(arrays, seed),
        runs=runs,
        use_reference=not no_reference,
        repro_folder=Path(repro) if repro else None,
        progress=set_progress,
    )
    report = report_of(
        found,
        model=model,
        inputs=[
            {"name": name, "type": f"{array.dtype.name}{list(array.shape)}", "source": sources[name]}
            for name, array in arrays.items()
        ],
        a=stored.about if stored is not None else side_a.as_dict(),
        b=side_b.as_dict(),
        settings={"seed": seed, "runs": runs, "reference": not no_reference},
    )
    if html:
        from lite_tools.pages.comparison import comparison_page

        Path(html).write_text(comparison_page(report), encoding="utf-8")
    for each in (session_a, session_b):
        print_notes(() if each is None else each.notes)
    if as_json:
        print_json(report)
    else:
        sides = (["--a", backend_a] if backend_a else []) + ["--b", backend_b or "auto"]
        sides += ["--threads", str(threads)] if threads else []
        words = [*sides, *precision_words(Precision.of(precision))] if precision else sides
        words += [word for file in inputs for word in ("-i", file)] + [word for text in shapes for word in ("-s", text)]
        words += ["--seed", str(seed)] if seed else []
        words += option_words(reader, backend_options)
        bisection = [] if loaded or a_model else ["lite", "bisect", model, "--by", "node", *words]
        _print(report, every, html, bisection)
    if found.differs:
        raise click.exceptions.Exit(EXIT_FAILURE)
    if not found.comparison.rows:
        raise click.exceptions.Exit(EXIT_NOTHING)


def _others(arrays: Mapping[str, Array], seed: int) -> dict[str, Array]:
    """Return inputs of the same shapes with the same elements in another order, which every model accepts."""
    generator = np.random.default_rng(seed + 1)
    return {name: generator.permutation(array.reshape(-1)).reshape(array.shape) for name, array in arrays.items()}


def _print(report: Mapping[str, Any], every: bool, html: str | None, bisection: Sequence[str]) -> None:
    for side in ("a", "b"):
        about = report[side]
        options = ", ".join(f"{name} {value}" for name, value in about["options"].items() if name != "passes")
        passes = "" if about["options"]["passes"] else ", no passes"
        console.print(f"{side}: {about['label']} on {', '.join(about['devices'])} ({options}{passes})", markup=False)
        if not about["can_be_observed"]:
            console.print(
                "   it shows no results inside its partitions: each node is compiled alone, unlike in other runs",
                markup=False,
            )
    shown = [f"{i['name']} {i['type']} ({i['source']})" for i in report["inputs"]]
    console.print(f"inputs: {', '.join(shown)}\n", markup=False)
    rows = wanted_rows(report, every)
    if rows:
        table(*table_rows(rows))
        left_out = len(report["rows"]) - len(rows)
        if left_out:
            console.print(f"{left_out} more result(s) with smaller errors: --all shows them", markup=False)
        console.print()
    if report["inside"]:
        console.print("the step that diverges, node by node:", markup=False)
        table(*table_rows(report["inside"]))
        console.print()
    console.print(report["summary"], markup=False)
    for note in report["notes"]:
        console.print(f"note: {note}", markup=False)
    if html:
        console.print(f"page: {html}", markup=False)
    if report["repro"]:
        console.print(f"next: python {shlex.quote(report['repro']['script'])}", markup=False)
    elif report["verdict"] == "differ" and bisection:
        console.print(f"next: {shlex.join(bisection)}", markup=False)
