"""``lite inspect --html`` and ``--svg``: pictures of a graph, or of the plan that runs it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import click

from lite_core.errors import InputError, LiteError
from lite_core.ir import Graph
from lite_core.session import RunProfile, Session, load, make_ready
from lite_tools.checking import random_inputs
from lite_tools.cli.model_file import open_verified
from lite_tools.cli.session_inputs import session_shapes
from lite_tools.commands.notes import print_notes
from lite_tools.commands.options import backends_of
from lite_tools.commands.pictures import check_picture, draw_graph
from lite_tools.commands.printing import console, print_json
from lite_tools.pictures import Annotations, KernelUse, errors_of_comparison, kernels_of_profile, observed_kernels

__all__ = ["PictureRequest", "picture_options", "write_pictures"]

_OPTIONS = (
    click.option("--html", metavar="FILE", help="Draw the graph into a page that can be searched and collapsed."),
    click.option("--svg", metavar="FILE", help="Draw the graph into an SVG file."),
    click.option("--time", "timed", is_flag=True, help="With --html or --svg: measure the kernels of a run."),
    click.option("--profile", metavar="FILE", help="With --html or --svg: times, from `lite run --profile --json`."),
    click.option("--errors", metavar="FILE", help="With --html or --svg: errors, from `lite compare --json`."),
)

Function = Callable[..., Any]


class PictureRequest(NamedTuple):
    """The options of ``lite inspect`` for pictures."""

    html: str | None
    svg: str | None
    timed: bool
    profile: str | None
    errors: str | None

    @property
    def is_given(self) -> bool:
        """True if a picture is asked for.

        Raises:
            click.UsageError: no picture is asked for, but something to show in it.
        """
        if (self.timed or self.profile or self.errors) and not (self.html or self.svg):
            raise click.UsageError("--time, --profile and --errors are shown in pictures: add --html or --svg FILE")
        return bool(self.html or self.svg)


def picture_options(function: Function) -> Function:
    """Add the options of :class:`PictureRequest` to a command."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def write_pictures(
    model: str,
    request: PictureRequest,
    *,
    optimized: bool,
    shapes: Sequence[str],
    backend: str,
    threads: int | None,
    backend_options: dict[str, dict[str, Any]],
    reader: dict[str, Any],
    as_json: bool,
) -> None:
    """Draw a model: as it was read, with ``optimized`` as the passes leave it, or as a backend runs it.

    It is drawn as a backend runs it if a backend, threads, shapes or times are asked for.
    """
    for option, file in (("--html", request.html), ("--svg", request.svg)):
        if file:
            check_picture(file, option)
    known = known_of_files(request.profile, request.errors)
    default = click.core.ParameterSource.DEFAULT
    is_backend_given = click.get_current_context().get_parameter_source("backend") is not default
    if request.timed or shapes or threads or backend_options or is_backend_given:
        session = load(model, backends_of(backend), threads, backend_options=backend_options, reader_options=reader)
        graph, known = planned(session, shapes, known, timed=request.timed)
    else:
        opened = open_verified(model, reader)
        is_ready = optimized or request.profile or request.errors
        graph = make_ready(opened.graph, run_passes=not opened.optimized).graph if is_ready else opened.graph
    nodes = draw_graph(graph, html=request.html, svg=request.svg, known=known)
    if as_json:
        print_json({"model": model, "html": request.html, "svg": request.svg, "nodes": nodes})
        return
    for written in filter(None, (request.html, request.svg)):
        console.print(f"written: {written} ({nodes} nodes)", markup=False)


def known_of_files(profile: str | None, errors: str | None) -> Annotations:
    """Return what a profile and the report of a comparison say about nodes.

    Raises:
        InputError: a file cannot be read, or has other contents.
    """
    return Annotations(
        kernels=kernels_of_profile(_read(profile, "--profile"), profile) if profile else (),
        errors=errors_of_comparison(_read(errors, "--errors"), errors) if errors else {},
    )


def planned(session: Session, shapes: Sequence[str], known: Annotations, *, timed: bool) -> tuple[Graph, Annotations]:
    """Return the graph of a plan, and on which devices and by which kernels its nodes run.

    The kernels are known after a run with random inputs; if the model rejects these, a note says so.

    Args:
        session: the session.
        shapes: texts such as ``x=1x3x224x224``.
        known: what files say; the kernels of a profile are kept.
        timed: measure the kernels.

    Raises:
        InputError: the profile names devices that the plan does not use.
    """
    chosen, notes = session_shapes(session, shapes)
    plan = session.plan(chosen)
    assignments = session.assignment()
    _check_devices(known.kernels, session.devices)
    kernels: Sequence[KernelUse] = known.kernels
    if not kernels:
        arrays = random_inputs(plan.graph)
        try:
            kernels = _timed_kernels(session, arrays) if timed else ()
            kernels = kernels or observed_kernels(plan, list(arrays.values()))
        except LiteError as error:
            print_notes([f"the kernels are not shown: a run with random inputs failed: {error}"])
    print_notes((*notes, *session.notes))
    return plan.graph, Annotations(
        {a.node: a.device for a in assignments},
        {a.node: [f"{label}: {reason}" for label, reason in a.refusals] for a in assignments},
        kernels,
        known.errors,
    )


def _check_devices(kernels: Sequence[KernelUse], devices: Sequence[str]) -> None:
    """Refuse the kernels of a profile that another plan was measured with."""
    others = sorted({kernel.device for kernel in kernels if kernel.device} - {*devices})
    if others:
        raise InputError(
            f"--profile was measured on {', '.join(others)}, but this plan runs on {', '.join(devices)}: name the same "
            "--backend for both, or measure with --time instead"
        )


def _timed_kernels(session: Session, arrays: dict[str, Any]) -> list[KernelUse]:
    """Measure the kernels of a run that follows another; a backend that measures none has none."""
    session.run(arrays)
    profile = RunProfile()
    session.run(arrays, profile=profile)
    return [KernelUse(k.kernel, k.nodes, k.device, k.seconds) for k in profile.kernels]


def _read(file: str, option: str) -> Any:
    try:
        with open(file, encoding="utf-8") as opened:
            return json.load(opened)
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{option}: {file!r} cannot be read as JSON: {error}") from None
