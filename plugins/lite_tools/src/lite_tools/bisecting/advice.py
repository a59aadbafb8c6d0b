"""Advice after a bisection: the command to type next, and how to live with the fault until it is cured."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from glob import escape
from typing import NamedTuple

from lite_core.schedule.precision import Precision
from lite_tools.bisecting.findings import FOUND, NOTHING, UNSTEADY, Findings
from lite_tools.precisions import precision_words

__all__ = ["MANY_RUNS", "Request", "next_command", "workaround"]

#: Runs of each configuration in the bisection that is advised for results that change from run to run.
MANY_RUNS = 20


class Request(NamedTuple):
    """The request for a bisection; see the options of ``lite bisect``.

    ``others`` are words of the command line that every command takes: options of the reader and of backends;
    ``criterion`` those that say what is wrong; ``repeat`` is the number of runs of each configuration.
    """

    model: str
    by: str
    a: str
    b: str
    a_threads: int | None
    threads: int | None
    a_precision: str
    precision: Precision
    inputs: tuple[str, ...]
    shapes: tuple[str, ...]
    seed: int
    others: tuple[str, ...] = ()
    criterion: tuple[str, ...] = ()
    repeat: int = 1


def next_command(request: Request, findings: Findings) -> str:
    """Return the command line to type next."""
    threads = ["--threads", str(request.threads)] if request.threads else []
    b = [*threads, *precision_words(request.precision), *_inputs(request)]
    if findings.verdict == UNSTEADY:
        return _line("compare", request, "--a", request.b, "--b", request.b, "--runs", "50", *b)
    if findings.verdict == FOUND and findings.precision:
        words = precision_words(Precision.of(findings.precision))
        return _line("run", request, "--backend", request.b, *threads, *words, *_inputs(request))
    if findings.verdict == FOUND and request.by == "backend":
        devices = ",".join(culprit.name for culprit in findings.culprits)
        return _line("bisect", request, "--by", "node", "--a", request.a, "--b", devices, *b)
    a = ["--a-threads", str(request.a_threads)] if request.a_threads else []
    a += ["--a-precision", request.a_precision] if request.a_precision != "float32" else []
    if findings.verdict == NOTHING and request.repeat < MANY_RUNS:
        often = [*request.criterion, "--repeat", str(MANY_RUNS)]
        return _line("bisect", request, "--by", request.by, "--a", request.a, *a, "--b", request.b, *b, *often)
    a += ["--a-no-passes"] if request.by == "pass" else []
    return _line("compare", request, "--a", request.a, *a, "--b", request.b, *b)


def workaround(request: Request, findings: Findings) -> list[str]:
    """Return lines with which the model runs correctly; none if nothing was found."""
    if findings.verdict != FOUND:
        return []
    if findings.precision is not None:
        words = shlex.join(precision_words(Precision.of(findings.precision)))
        return [
            f"to keep them in float32: {_load(request, request.b, precision=findings.precision)}",
            f"or with lite run, lite bench and lite convert: {words}",
        ]
    if request.by == "pass":
        return [f"until it is cured: {_load(request, request.b, optimize=False)}"]
    if request.by == "backend":
        return []
    if request.by == "threads":
        return [f"until it is cured: {_load(request, request.b, threads=request.a_threads or 1)}"]
    pins = {escape(c.name): c.device_a for c in findings.culprits if c.device_a}
    others = [name for name in request.a.split(",") if name not in ("host", "auto")]
    backends = ",".join([request.b, *others])
    if len(pins) < len(findings.culprits) or (request.b == "auto" and others):
        return []
    others_left = findings.others is not None and findings.others.verdict != "good"
    when = "until it is cured (not enough alone, the other fault remains)" if others_left else "until it is cured"
    return [f"{when}: {_load(request, backends, placement=pins)}"]


def _load(request: Request, backend: str, **options: bool | int | Mapping[str, str]) -> str:
    names = backend.split(",")
    named = {} if backend == "auto" else {"backend": names[0] if len(names) == 1 else names}
    words = [f"{name}={value!r}" for name, value in {**named, **options}.items()]
    return f"lite.load({', '.join([repr(request.model), *words])})"


def _inputs(request: Request) -> list[str]:
    words = [word for file in request.inputs for word in ("-i", file)]
    words += [word for shape in request.shapes for word in ("-s", shape)]
    return [*words, *(["--seed", str(request.seed)] if request.seed else []), *request.others]


def _line(name: str, request: Request, *words: str) -> str:
    return shlex.join(["lite", name, request.model, *words])
