"""``lite run``: any model on arrays, images or random inputs."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any

import click
import numpy as np

from lite_core.cli import print_json
from lite_core.cli.common import (
    backend_option,
    backends_of,
    console,
    json_option,
    milliseconds,
    model_argument,
    table,
    threads_option,
)
from lite_core.cli.inputs import ImageOptions, collect_inputs, parse_shapes
from lite_core.session import RunProfile, Session, load

_TOP = 5


@click.command("run")
@model_argument
@click.option(
    "--input",
    "-i",
    "inputs",
    multiple=True,
    metavar="[NAME=]FILE",
    help="A .npy, .npz or image file; NAME= may be left out when there is one input. Repeatable.",
)
@click.option(
    "--shape",
    "-s",
    "shapes",
    multiple=True,
    metavar="[NAME=]1x3x224x224",
    help="Random input of this shape, or the size an image is brought to. Repeatable.",
)
@click.option("--mean", default="0", show_default=True, help="Images: subtracted per channel, of values in 0..1.")
@click.option("--std", default="1", show_default=True, help="Images: divided by per channel.")
@click.option("--bgr", is_flag=True, help="Images: blue first.")
@click.option("--save", "-o", type=click.Path(dir_okay=False), help="Write the outputs to this .npz file.")
@click.option("--repeat", "-n", type=click.IntRange(1), default=1, show_default=True, help="Run this often.")
@click.option("--seed", default=0, show_default=True, help="Seed of random inputs.")
@backend_option
@threads_option
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
    seed: int,
    backend: str,
    threads: int | None,
    as_json: bool,
) -> None:
    """Run MODEL and show its outputs, which backend ran it, and how long it took.

    Inputs that are not given are random; say their shape where the model leaves it open.
    """
    start = time.perf_counter()
    session = load(model, backend=backends_of(backend), threads=threads)
    loading = time.perf_counter() - start
    image = ImageOptions.parse(mean, std, bgr)
    arrays, sources = collect_inputs(session.inputs, inputs, parse_shapes(session.inputs, shapes), image, seed)
    times, profile, outputs = [], RunProfile(), {}
    for _ in range(repeat):
        profile = RunProfile()
        outputs = session.run(arrays, profile=profile)
        times.append(profile.seconds)
    if save:
        np.savez(save, **outputs)  # type: ignore[arg-type]
    if as_json:
        print_json(_as_dict(model, session, sources, outputs, loading, times, profile, save))
        return
    table(("input", "type", "from"), [(n, _type(a), sources[n]) for n, a in arrays.items()])
    console.print()
    table(("output", "type", "min", "max", "mean"), [(n, *_summary(a)) for n, a in outputs.items()])
    for name, array in outputs.items():
        _print_top(name, array)
    share = ", ".join(f"{label} {milliseconds(s)}" for label, s in profile.by_device().items())
    console.print(f"\nran on {share}; loaded in {milliseconds(loading)}", markup=False)
    if repeat > 1:
        console.print(
            f"{repeat} runs: median {milliseconds(statistics.median(times))}, fastest {milliseconds(min(times))}"
        )
    if save:
        console.print(f"outputs written to {Path(save)}", markup=False)


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
        "inputs": sources,
        "outputs": {n: dict(zip(("type", "min", "max", "mean"), _summary(a))) for n, a in outputs.items()},
        "load_seconds": loading,
        "run_seconds": times,
        "partitions": [
            {"name": p.partition, "device": p.device, "nodes": p.nodes, "seconds": p.seconds}
            for p in profile.partitions
        ],
        "saved": save,
    }
