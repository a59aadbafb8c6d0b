"""``lite run``: any model on arrays, images or random inputs."""

from __future__ import annotations

import statistics
import time
import zipfile
from dataclasses import asdict
from functools import partial
from typing import Any

import click
import numpy as np

from lite_core.schedule import Plan
from lite_core.session import RunProfile, Session, load
from lite_tools.cli.fallback import Percentage, check_required
from lite_tools.cli.model_file import prepared_shapes
from lite_tools.commands.errors import check_writable
from lite_tools.commands.exit_codes import EXIT_FAILURE, EXIT_OK
from lite_tools.commands.inputs import ImageOptions, collect_inputs, parse_shapes
from lite_tools.commands.options import (
    backend_option,
    backend_options_option,
    backends_of,
    json_option,
    model_argument,
    precision_option,
    reader_option,
    seed_option,
    threads_option,
    tune_option,
)
from lite_tools.commands.printing import console, milliseconds, print_json, table
from lite_tools.diagnostics import ConsistencyReport, FinitenessReport, check_consistency, check_finite

_TOP = 5


@click.command("run")
@model_argument
@click.option(
    "--input",
    "-i",
    "inputs",
    multiple=True,
    metavar="[NAME=]FILE",
    help="A .npy, .npz or image file for the input NAME; NAME= may be left out when the model has one input, and "
    "for an .npz file that holds arrays by input name. Repeatable.",
)
@click.option(
    "--shape",
    "-s",
    "shapes",
    multiple=True,
    metavar="[NAME=]1x3x224x224",
    help="Shape of the random numbers for the input NAME, or of the input that an image is resized to. Repeatable.",
)
@click.option(
    "--mean",
    default="0",
    show_default=True,
    help="For images: subtracted from the pixel values, scaled to 0..1 before; a number, or one for each channel: "
    "0.485,0.456,0.406.",
)
@click.option(
    "--std",
    default="1",
    show_default=True,
    help="For images: what the values are divided by after that; a number, or one for each channel.",
)
@click.option("--bgr", is_flag=True, help="For images: channels in the order blue, green, red, not red, green, blue.")
@click.option("--save", "-o", type=click.Path(dir_okay=False), help="Write the outputs to this .npz file.")
@click.option("--repeat", "-n", type=click.IntRange(1), default=1, show_default=True, help="How many times to run.")
@click.option("--profile", "show_profile", is_flag=True, help="Show what each kernel took, in the last run.")
@click.option(
    "--verify",
    type=click.IntRange(1),
    metavar="N",
    help="Run N times in each of several sessions and threads, and fail if any output differs in any bit.",
)
@click.option(
    "--validate",
    is_flag=True,
    help="Look for NaN and infinity in the result of every node, and name the first with any.",
)
@click.option("--require-backend", metavar="NAME", help="Fail when nodes run elsewhere than on this backend.")
@click.option(
    "--max-fallback",
    type=Percentage(),
    default="0%",
    show_default=True,
    help="With --require-backend: the share of nodes that may run elsewhere.",
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
    repeat: int,
    show_profile: bool,
    verify: int | None,
    validate: bool,
    require_backend: str | None,
    max_fallback: float,
    seed: int,
    precision: str,
    tune: bool,
    backend: str,
    backend_options: dict[str, dict[str, Any]],
    threads: int | None,
    reader: dict[str, Any],
    as_json: bool,
) -> int:
    """Run MODEL, a file or a folder, and show its outputs, which backend ran it, and how long it took.

    Inputs that are not given are random numbers; say their shape with --shape where the model leaves it open. A .lite
    file has a shape that it is prepared for.
    """
    if save:
        check_writable(save, "--save")
    image = ImageOptions.parse(mean, std, bgr)
    start = time.perf_counter()
    settings: dict[str, Any] = {
        "backend": backends_of(backend),
        "threads": threads,
        "precision": precision,
        "backend_options": backend_options,
    }
    make_session = partial(load, model, tune=tune, reader_options=reader, **settings)
    session = make_session()
    loading = time.perf_counter() - start
    given = parse_shapes(session.inputs, shapes)
    arrays, sources = collect_inputs(session.inputs, inputs, given, image, seed, usual=prepared_shapes(session.file))
    start = time.perf_counter()
    plan = session.plan({name: array.shape for name, array in arrays.items()})
    loading += time.perf_counter() - start
    if require_backend:
        check_required(session, require_backend, max_fallback)
    times, profile, outputs = [], RunProfile(), {}
    for _ in range(repeat):
        profile = RunProfile()
        outputs = session.run(arrays, profile=profile)
        times.append(profile.seconds)
    if save:
        _save(save, outputs)
    consistency = check_consistency(make_session, arrays, verify) if verify else None
    make_probe = partial(load, optimize=False, **settings)
    finiteness = check_finite(session.graph, make_probe, arrays) if validate else None
    code = EXIT_OK if all(check is None or check.ok for check in (consistency, finiteness)) else EXIT_FAILURE
    if as_json:
        shown = _as_dict(model, session, sources, outputs, loading, times, profile, save)
        checks = {"consistency": consistency, "finiteness": finiteness}
        print_json({**shown, **{name: check and asdict(check) for name, check in checks.items()}})
        return code
    table(("input", "type", "from"), [(n, _type(a), sources[n]) for n, a in arrays.items()])
    console.print()
    table(("output", "type", "min", "max", "mean"), [(n, *_summary(a)) for n, a in outputs.items()])
    for name, array in outputs.items():
        _print_top(name, array)
    share = ", ".join(f"{label} in {milliseconds(s)}" for label, s in profile.by_device().items())
    console.print(f"\nran on {share}; loaded in {milliseconds(loading)}", markup=False)
    if repeat > 1:
        console.print(
            f"{repeat} runs: median {milliseconds(statistics.median(times))}, fastest {milliseconds(min(times))}"
        )
    if show_profile:
        console.print(f"\n{profile}", markup=False)
    if save:
        console.print(f"outputs written to {save}", markup=False)
    for line in _surprises(session, plan):
        console.print(line, markup=False)
    if consistency is not None:
        _print_consistency(consistency)
    if finiteness is not None:
        _print_finiteness(finiteness)
    return code


def _surprises(session: Session, plan: Plan) -> list[str]:
    """Why a file did not run as it was made to: a line for each target that is absent, and for what is stale."""
    absent = []
    if session.file is not None:
        targets = [record.backend for record in session.file.targets]
        here = {candidate.device.backend for candidate in plan.placement.candidates}
        missing = [name for name in targets if name not in here]
        absent = [line for line in session.selection_log if line.partition(":")[0] in missing]
        if absent:
            none = "; none of them is here, so it was compiled for what is" if len(missing) == len(targets) else ""
            absent.insert(0, f"the file is made for {', '.join(targets)}{none}")
    return [*absent, *session.notes]


def _print_consistency(report: ConsistencyReport) -> None:
    what = f"{report.runs} runs in {report.sessions} sessions and {report.threads} threads"
    if report.ok:
        console.print(f"verified: {what} gave the same, bit by bit")
        return
    console.print(f"NOT the same every time: {len(report.differences)} difference(s) in {what}")
    for difference in report.differences[:_TOP]:
        console.print(f"  {difference}", markup=False)


def _print_finiteness(report: FinitenessReport) -> None:
    if report.first is None:
        console.print(f"validated: the results of all nodes are finite, {report.values} of them")
        return
    console.print(
        f"NOT finite: {report.not_finite} of the {report.values} results of nodes, first that of\n{report.first}",
        markup=False,
    )


def _save(file: str, outputs: dict[str, np.ndarray[Any, Any]]) -> None:
    """Write an .npz file of exactly this name.

    np.savez would append .npz, and cannot take an output named like one of its own parameters (``file``).
    """
    try:
        with zipfile.ZipFile(file, "w") as archive:
            for name, array in outputs.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)
    except OSError as error:
        raise click.ClickException(f"the outputs could not be written to {file!r}: {error}") from None


def _type(array: np.ndarray[Any, Any]) -> str:
    return f"{array.dtype.name}{list(array.shape)}"


def _summary(array: np.ndarray[Any, Any]) -> tuple[str, str, str, str]:
    if array.size == 0:
        return _type(array), "-", "-", "-"
    numbers = array.astype(np.float64)
    return _type(array), f"{numbers.min():.6g}", f"{numbers.max():.6g}", f"{numbers.mean():.6g}"


def _print_top(name: str, array: np.ndarray[Any, Any]) -> None:
    """The largest entries of what looks like class scores: one row of several numbers."""
    if array.ndim != 2 or array.shape[0] != 1 or array.shape[1] < 2 or array.dtype.kind != "f":
        return
    best = np.argsort(-array[0], kind="stable")[:_TOP]
    console.print(f"\n{name}: the {len(best)} largest", markup=False)
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
        "inputs": sources,
        "outputs": {n: dict(zip(("type", "min", "max", "mean"), _summary(a))) for n, a in outputs.items()},
        "load_seconds": loading,
        "run_seconds": times,
        "partitions": [
            {"name": p.partition, "device": p.device, "nodes": p.nodes, "seconds": p.seconds}
            for p in profile.partitions
        ],
        "kernels": profile.as_dict()["kernels"],
        "saved": save,
    }
