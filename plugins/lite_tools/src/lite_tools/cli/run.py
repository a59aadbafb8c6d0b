"""``lite run``: a run of a model on arrays, images or random inputs."""

from __future__ import annotations

import statistics
import time
import zipfile
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from lite_core.log import tracked
from lite_core.schedule import Plan
from lite_core.session import RunProfile, Session, load
from lite_tools.cli.fallback import Percentage, check_required
from lite_tools.cli.session_inputs import session_inputs
from lite_tools.cli.taps import TapRecorder, tap_option
from lite_tools.commands.errors import check_writable
from lite_tools.commands.exit_codes import EXIT_FAILURE, EXIT_OK
from lite_tools.commands.inputs import ImageOptions
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
)
from lite_tools.commands.output_names import arrays_file
from lite_tools.commands.printing import console, milliseconds, print_json, table
from lite_tools.commands.profile_rows import operator_rows, unaccounted_seconds
from lite_tools.commands.profiles import print_profile
from lite_tools.commands.progress import set_progress
from lite_tools.commands.trace import trace_text
from lite_tools.commands.value_types import BACKEND
from lite_tools.diagnostics import ConsistencyReport, FinitenessReport, check_consistency, check_finite
from lite_tools.pages.page import write_page

_MAX_SHOWN = 5
#: Runs before a profile: the first one compiles or loads, the next ones fill the caches.
_WARMUP = 3


@click.command("run")
@model_argument
@input_option(
    "A .npy, .npz or image file for the input NAME. NAME= is optional for a model with one input, and for an .npz "
    "file that contains arrays by input name; FILE.npz:ARRAY is an array of another name. Repeatable."
)
@shape_option("Shape of random numbers for the input NAME, or shape to resize an image to. Repeatable.")
@click.option(
    "--mean",
    default="0",
    show_default=True,
    help="For images: mean to subtract from pixel values, which are scaled to 0..1 first; one number, or one for each "
    "channel: 0.485,0.456,0.406.",
)
@click.option(
    "--std",
    default="1",
    show_default=True,
    help="For images: standard deviation to divide by after that; one number, or one for each channel.",
)
@click.option(
    "--bgr", is_flag=True, help="For images: order the channels blue, green, red instead of red, green, blue."
)
@click.option(
    "--save",
    "-o",
    type=click.Path(dir_okay=False),
    help="Write the outputs to this file: .npz for any number of them, .npy for a single one.",
)
@tap_option
@click.option("--repeat", "-n", type=click.IntRange(1), default=1, show_default=True, help="Number of runs.")
@click.option(
    "--warmup",
    type=click.IntRange(0),
    help="Number of runs before those that count.  [default: 3 with --profile or --trace, else 0]",
)
@click.option("--profile", "show_profile", is_flag=True, help="Show the time of each kernel in the last run.")
@click.option(
    "--trace",
    type=click.Path(dir_okay=False),
    help="Write the profile to this JSON file as a trace, which Perfetto and Chrome's tracing open.",
)
@click.option(
    "--verify",
    type=click.IntRange(1),
    metavar="N",
    help="Run N times in each of several sessions and threads, and fail if outputs are not identical bit by bit.",
)
@click.option(
    "--validate",
    is_flag=True,
    help="Check the results of all nodes for NaN and infinity, and show the first node that has any.",
)
@click.option(
    "--require-backend", type=BACKEND, metavar="NAME", help="Fail if nodes run on other backends than this one."
)
@click.option(
    "--max-fallback",
    type=Percentage(),
    default="0%",
    show_default=True,
    help="With --require-backend: share of nodes that may run on other backends.",
)
@seed_option
@precision_option
@tune_option
@backend_option
@backend_options_option
@threads_option
@reader_option
@json_option
def command(
    model: str,
    inputs: tuple[str, ...],
    shapes: tuple[str, ...],
    mean: str,
    std: str,
    bgr: bool,
    save: str | None,
    patterns: tuple[str, ...],
    repeat: int,
    warmup: int | None,
    show_profile: bool,
    trace: str | None,
    verify: int | None,
    validate: bool,
    require_backend: str | None,
    max_fallback: float,
    seed: int,
    precision: str | dict[str, str] | None,
    tune: bool,
    backend: str,
    backend_options: dict[str, dict[str, Any]],
    threads: int | None,
    reader: dict[str, Any],
    as_json: bool,
) -> int:
    """Run MODEL, a file or a folder, and show its outputs, the devices and types that computed them, and the run time.

    Inputs without --input are random numbers. Give their shapes by --shape if the model leaves them open; for a .lite
    file, the default is the first shape that it is prepared for, and an open batch is 1.
    """
    if save:
        save = arrays_file(save)
        check_writable(save, "--save")
    if trace:
        check_writable(trace, "--trace")
    image = ImageOptions.parse(mean, std, bgr)
    start = time.perf_counter()
    settings: dict[str, Any] = {
        "backend": backends_of(backend),
        "threads": threads,
        "precision": precision,
        "backend_options": backend_options,
    }
    make_session = partial(load, model, tune=tune, reader_options=reader, **settings)
    taps = TapRecorder(patterns)
    session = make_session(**taps.arguments)
    loading = time.perf_counter() - start
    if save:
        arrays_file(save, [*session.outputs, *patterns])
    arrays, sources, notes = session_inputs(session, inputs, shapes, image, seed)
    print_notes(notes)
    start = time.perf_counter()
    plan = session.plan({name: array.shape for name, array in arrays.items()})
    loading += time.perf_counter() - start
    print_notes(told := _deviations(session, plan))
    if require_backend:
        check_required(session, require_backend, max_fallback, model, told)
    if warmup is None:
        warmup = _WARMUP if show_profile or trace else 0
    set_progress(Path(model).name)
    for _ in tracked(
        range(warmup), "running before times count"
    ):  # with a profile, because a device may have another queue for it
        session.run(arrays, profile=RunProfile())
    times, profile, outputs = [], RunProfile(), {}
    for _ in tracked(range(repeat), "running"):
        taps.clear()
        profile = RunProfile()
        outputs = session.run(arrays, profile=profile)
        times.append(profile.seconds)
    print_notes(session.notes)
    if save:
        _save(save, {**outputs, **taps.arrays()})
    if trace:
        write_page(trace, trace_text(profile, plan, Path(model).name), "--trace")
    if verify or validate:
        set_progress("checking the results")
    consistency = check_consistency(make_session, arrays, verify) if verify else None
    make_probe = partial(load, optimize=False, **settings)
    finiteness = check_finite(session.graph, make_probe, arrays) if validate else None
    code = EXIT_OK if all(check is None or check.ok for check in (consistency, finiteness)) else EXIT_FAILURE
    if as_json:
        shown = _as_dict(model, session, sources, outputs, loading, times, profile, save)
        shown["warmup_runs"] = warmup
        shown["taps"] = taps.as_dicts()
        checks = {"consistency": consistency, "finiteness": finiteness}
        print_json({**shown, **{name: check and asdict(check) for name, check in checks.items()}})
        return code
    table(("input", "type", "source"), [(n, _type(a), sources[n]) for n, a in arrays.items()])
    console.print()
    table(("output", "type", "min", "max", "mean"), [(n, *_summary(a)) for n, a in outputs.items()])
    for name, array in outputs.items():
        _print_top(name, array)
    taps.show()
    share = ", ".join(f"{label} in {milliseconds(s)}" for label, s in profile.by_device().items())
    console.print(f"\nran on {share}; loaded in {milliseconds(loading)}", markup=False)
    for line in session.computes:
        console.print(f"computed {line}", markup=False)
    if repeat > 1:
        console.print(
            f"{repeat} runs: median {milliseconds(statistics.median(times))}, fastest {milliseconds(min(times))}"
        )
    if show_profile:
        runs = warmup + repeat - 1
        console.print(f"\nprofile of one run, after {runs} other{'s' if runs != 1 else ''}")
        print_profile(profile, session.assignment())
    if trace:
        console.print(f"trace written to {trace}: open it at https://ui.perfetto.dev", markup=False)
    if save:
        console.print(f"outputs written to {save}", markup=False)
    if consistency is not None:
        _print_consistency(consistency)
    if finiteness is not None:
        _print_finiteness(finiteness)
    return code


def _deviations(session: Session, plan: Plan) -> list[str]:
    """Return lines about targets of a file that are not available, plans that were not used, and why only host runs."""
    absent = []
    if targets := session.targets:
        here = {candidate.device.backend for candidate in plan.placement.candidates}
        missing = [name for name in targets if name not in here]
        absent = [line for line in session.selection_log if line.partition(":")[0] in missing]
        if absent:
            none = "; none of them is available, so it was compiled for other devices"
            none = none if len(missing) == len(targets) else ""
            absent.insert(0, f"the file is made for {', '.join(targets)}{none}")
    return [*dict.fromkeys((*absent, *session.notes))]


def _print_consistency(report: ConsistencyReport) -> None:
    runs = f"{report.runs} runs in {report.sessions} sessions and {report.threads} threads"
    if report.ok:
        console.print(f"verified: {runs} returned identical results, bit by bit")
        return
    console.print(f"NOT identical: {len(report.differences)} difference(s) in {runs}")
    for difference in report.differences[:_MAX_SHOWN]:
        console.print(f"  {difference}", markup=False)


def _print_finiteness(report: FinitenessReport) -> None:
    if report.first is None:
        console.print(f"validated: the results of all nodes are finite, {report.values} of them")
        return
    console.print(
        f"NOT finite: {report.not_finite} of {report.values} results of nodes; the first is from\n{report.first}",
        markup=False,
    )


def _save(file: str, outputs: dict[str, np.ndarray[Any, Any]]) -> None:
    """Write a .npy or .npz file with exactly this name.

    np.savez would append .npz, and does not support an output with the name of one of its parameters (``file``).
    Strings are written as texts of one length, which NumPy reads without pickle.
    """
    plain = {name: array.astype(str) if array.dtype.hasobject else array for name, array in outputs.items()}
    try:
        if file.lower().endswith(".npy"):
            (array,) = plain.values()
            with open(file, "wb") as opened:
                np.lib.format.write_array(opened, array, allow_pickle=False)
            return
        with zipfile.ZipFile(file, "w") as archive:
            for name, array in plain.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)
    except OSError as error:
        raise click.ClickException(f"the outputs could not be written to {file!r}: {error}") from None


def _type(array: np.ndarray[Any, Any]) -> str:
    return f"{'string' if array.dtype.hasobject else array.dtype.name}{list(array.shape)}"


def _summary(array: np.ndarray[Any, Any]) -> tuple[str, str, str, str]:
    if array.size == 0:
        return _type(array), "-", "-", "-"
    if array.dtype.hasobject:
        return _type(array), repr(min(array.flat)), repr(max(array.flat)), "-"
    numbers = array.astype(np.float64)
    return _type(array), f"{numbers.min():.6g}", f"{numbers.max():.6g}", f"{numbers.mean():.6g}"


def _print_top(name: str, array: np.ndarray[Any, Any]) -> None:
    """Print the largest elements of an output that looks like class scores: one row of several numbers."""
    if array.ndim != 2 or array.shape[0] != 1 or array.shape[1] < 2 or array.dtype.kind != "f":
        return
    best = np.argsort(-array[0], kind="stable")[:_MAX_SHOWN]
    console.print(f"\n{name}: the {len(best)} largest elements", markup=False)
    table(("index", "value"), [(int(i), f"{array[0, i]:.6g}") for i in best])


def _as_dict(
    model: str,
    session: Session,
    sources: dict[str, str],
    outputs: dict[str, np.ndarray[Any, Any]],
    loading: float,
    times: list[float],
    profile: RunProfile,
    save: str | None,
) -> dict[str, Any]:
    return {
        "model": model,
        "devices": list(session.devices),
        "selection_log": list(session.selection_log),
        "computes": list(session.computes),
        "inputs": sources,
        "outputs": {n: dict(zip(("type", "min", "max", "mean"), _summary(a))) for n, a in outputs.items()},
        "load_seconds": loading,
        "run_seconds": times,
        "partitions": [
            {"name": p.partition, "device": p.device, "nodes": p.nodes, "seconds": p.seconds}
            for p in profile.partitions
        ],
        "kernels": profile.as_dict()["kernels"],
        "copies": profile.as_dict()["copies"],
        "operators": [row._asdict() for row in operator_rows(profile)],
        "unaccounted_seconds": unaccounted_seconds(profile),
        "saved": save,
    }
