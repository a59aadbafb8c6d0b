"""A report of a model as one .zip file: what happens when it is loaded and run here, and what it takes to repeat it."""

from __future__ import annotations

import json
import os
import shlex
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import click

from lite_core import __version__
from lite_tools.commands.progress import set_progress
from lite_tools.reporting.environment import describe_environment
from lite_tools.reporting.processes import End, run_python
from lite_tools.reporting.replay import replay_page
from lite_tools.reporting.scrubbing import Scrubber, shared_variables

__all__ = ["ReportRequest", "ReportResult", "write_report"]

_TRIAL = "from pathlib import Path; from lite_tools.reporting.trial import {0}; sys.exit({0}(Path(sys.argv[1])))"
_LITE = "from lite_core.launcher import main; main(sys.argv[1:])"
#: Settings that decide what a run does; a command that repeats it sets them, too.
_DECISIVE = ("LITE_BACKEND", "LITE_BACKENDS", "OMP_NUM_THREADS")
_ABOUT = {
    "REPLAY.md": "what happened, and the command that repeats it",
    "environment.json": "Python, the system, the processor, versions of packages, settings of Lite and of threads",
    "doctor.txt": "the output of `lite doctor`",
    "graph.txt": "the graph of model.lite as text",
    "plan.txt": "the devices of the nodes with the reasons, notes, the steps of the plan",
    "options.json": "the options of the report",
    "error.txt": "the error, or the end of the process",
    "log.txt": "the log of loading and running at the level debug, with the stack of a crash",
    "model.lite": "the model before the passes, without code",
    "inputs.npz": "inputs for it",
    "node.lite": "the nodes of the kernel that failed, with their constants",
    "node_inputs.npz": "random inputs for them",
}


@dataclass
class ReportRequest:
    """The subject of a report, and its options.

    Attributes:
        model: path of the model.
        backend, threads, precision, backend_options, reader: see :func:`lite_core.load`.
        inputs, shapes: as on the command line of `lite run`.
        seed: seed of random inputs and substitutes of weights.
        with_weights: the report contains the model's weights.
        with_inputs: the report contains the arrays of ``inputs``.
        seconds: time limit of each run.
    """

    model: str
    backend: str | list[str] = "auto"
    threads: int | None = None
    precision: Any = None
    backend_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    reader: Mapping[str, Any] = field(default_factory=dict)
    inputs: Sequence[str] = ()
    shapes: Sequence[str] = ()
    seed: int = 0
    with_weights: bool = False
    with_inputs: bool = False
    seconds: float = 300.0


@dataclass
class ReportResult:
    """Findings of a report.

    Attributes:
        outcome: ``ran``, ``failed``, ``crashed`` or ``hung``.
        summary: one sentence about it.
        command: the command that repeats it after unpacking; empty if the model could not be read.
        replay: how the command ended when it was tried: one of the values of ``outcome``; empty if there is none.
        node: names of the nodes of the kernel that failed.
        node_command: the command that runs these nodes by themselves.
        node_replay: how it ended when it was tried; empty if it was not.
        files: the files of the report, with what is in them.
        left_out: what was left out, one item each.
        not_scrubbed: files that contain private names which cannot be removed, with these names.
    """

    outcome: str
    summary: str
    command: str = ""
    replay: str = ""
    node: list[str] = field(default_factory=list)
    node_command: str = ""
    node_replay: str = ""
    files: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    not_scrubbed: dict[str, list[str]] = field(default_factory=dict)


def write_report(request: ReportRequest, path: Path, *, with_doctor: bool = True) -> ReportResult:
    """Load and run a model in a process of its own, and write a report of it; an existing file is replaced.

    Args:
        request: what is reported.
        path: the .zip file.
        with_doctor: also run `lite doctor`, which takes seconds.

    Raises:
        click.UsageError: an option does not fit the model.
        OSError: the file cannot be written.
    """
    with tempfile.TemporaryDirectory(prefix="lite-report-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        scrubber = Scrubber.for_this_machine(request.model)
        end, facts = _try(request, folder)
        error = facts.get("error") or {}
        if error.get("is_of_user"):
            raise click.UsageError(error["message"])
        result = ReportResult(end.kind, scrubber.text(_summary(end, facts)))
        texts = {
            "environment.json": _json(scrubber.data(describe_environment())),
            "options.json": _json(scrubber.data({k: v for k, v in asdict(request).items() if k != "model"})),
            "error.txt": f"{result.summary}\n\n{_error(end)}" if end.kind != "ran" else "",
            "log.txt": end.log,
            "graph.txt": facts.get("graph", ""),
            "plan.txt": _plan(facts),
        }
        if with_doctor:
            set_progress("describing this machine and the plugins")
            doctor = run_python(_LITE, ["doctor"], folder, request.seconds)
            texts["doctor.txt"] = doctor.output + doctor.log
        if end.kind != "ran":
            set_progress("looking for the node that fails")
            _try_node(request, folder, facts, scrubber, result)
        set_progress("repeating what happened with the files of the report")
        _replay(request, folder, scrubber, result)
        texts["REPLAY.md"] = replay_page(result, end)
        _note_left_out(request, facts, result)
        _pack(path, folder, {n: scrubber.text(text) for n, text in texts.items() if text}, scrubber, result, request)
    return result


def _try(request: ReportRequest, folder: Path) -> tuple[End, dict[str, Any]]:
    """Run the trial; return its end and what it found out."""
    (folder / "request.json").write_text(json.dumps(asdict(request)), encoding="utf-8")
    set_progress("loading and running the model in another process")
    end = run_python(_TRIAL.format("main"), [str(folder)], folder, request.seconds, log_level="debug")
    file = folder / "facts.json"
    facts: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    kernel = folder / "kernel.json"
    if end.kind != "ran" and kernel.exists() and kernel.stat().st_size:
        facts["kernel"] = json.loads(kernel.read_text(encoding="utf-8"))
    return end, facts


def _summary(end: End, facts: Mapping[str, Any]) -> str:
    step, error = facts.get("step", "starting"), facts.get("error") or {}
    kernel = facts.get("kernel") or {}
    where = f" in the kernel {kernel['kernel']} of {', '.join(kernel['nodes'][:4])}" if kernel else ""
    if end.kind == "crashed":
        return f"the process died of {end.signal} while {step}{where}; the last line of its log: {end.last_line}"
    if end.kind == "hung":
        return f"the process did not end in time while {step}{where}; the last line of its log: {end.last_line}"
    if end.kind == "failed":
        return f"{error.get('type', 'an error')} while {step}{where}: {error.get('message', end.last_line)}"
    return "the model was loaded and run without an error"


def _error(end: End) -> str:
    """Return the part of the log from the traceback, or the stack of a crash, on."""
    for mark in ("Fatal Python error", "Traceback (most recent call last)"):
        if mark in end.log:
            return mark + end.log.partition(mark)[2]
    return end.last_line


def _plan(facts: Mapping[str, Any]) -> str:
    parts = [facts.get("session", ""), facts.get("plan", ""), *(f"note: {note}" for note in facts.get("notes", ()))]
    return "\n".join([*filter(None, parts), "", *facts.get("assignment", ())]).strip()


def _device(facts: Mapping[str, Any]) -> str:
    nodes = (facts.get("kernel") or {}).get("nodes", ())
    return next((facts["devices"][node] for node in nodes if node in facts.get("devices", {})), "")


def _try_node(
    request: ReportRequest, folder: Path, facts: Mapping[str, Any], scrubber: Scrubber, result: ReportResult
) -> None:
    """Cut out the nodes of the kernel that failed, and run them by themselves."""
    kernel = facts.get("kernel")
    if not kernel:
        return
    result.node = list(kernel["nodes"])
    asked = {**asdict(request), "nodes": result.node, "sizes": facts["shapes"]}
    (folder / "request.json").write_text(json.dumps(asked), encoding="utf-8")
    cut = run_python(_TRIAL.format("cut_node"), [str(folder)], folder, request.seconds)
    if cut.kind != "ran":
        result.left_out.append(scrubber.text(f"the failing node by itself: {cut.last_line}"))
        return
    words = ["run", "node.lite", "--input", "node_inputs.npz", *_words(request, _device(facts))]
    result.node_command, result.node_replay = _command(words, scrubber), _run_lite(words, request, folder)


def _replay(request: ReportRequest, folder: Path, scrubber: Scrubber, result: ReportResult) -> None:
    """Find the command that repeats what happened, and try it."""
    if (folder / "inputs.npz").exists():
        words = ["run", "model.lite", "--input", "inputs.npz", *_words(request, "")]
        result.command, result.replay = _command(words, scrubber), _run_lite(words, request, folder)


def _command(words: Sequence[str], scrubber: Scrubber) -> str:
    """Return a command of lite as a line for a shell, with the settings of this process that decide what it does."""
    settings = [f"{n}={shlex.quote(v)}" for n, v in shared_variables(os.environ).items() if n in _DECISIVE]
    return scrubber.text(" ".join([*settings, "lite", *map(shlex.quote, words)]))


def _run_lite(words: Sequence[str], request: ReportRequest, folder: Path) -> str:
    """Run a command of lite in a folder; return how it ended."""
    return run_python(_LITE, words, folder, request.seconds, folder=str(folder)).kind


def _words(request: ReportRequest, device: str) -> list[str]:
    """Return the options of `lite run` for a request."""
    from lite_core.schedule.precision import Precision
    from lite_tools.precisions import precision_words

    backends = device or (request.backend if isinstance(request.backend, str) else ",".join(request.backend))
    words = ["--backend", backends] if backends != "auto" else []
    words += ["--threads", str(request.threads)] if request.threads else []
    words += [] if request.precision is None else precision_words(Precision.of(request.precision))
    for backend, own in request.backend_options.items():
        words += [word for name, value in own.items() for word in ("-O", f"{backend}.{name}={_json(value).strip()}")]
    return words


def _note_left_out(request: ReportRequest, facts: Mapping[str, Any], result: ReportResult) -> None:
    if not request.with_weights:
        text = "the weights: random numbers of the same mean and spread are in their place (--with-weights keeps them)"
        result.left_out.append(text)
    given = [n for n, told in facts.get("inputs", {}).items() if not told["source"].startswith("random")]
    if given and not request.with_inputs:
        result.left_out.append(f"the arrays of --input: random numbers stand for {', '.join(given)} (--with-inputs)")
    if facts.get("has_code"):
        result.left_out.append("the compiled code of the .lite file: the command compiles the model again")
    result.left_out.append("user name, host name, paths, and environment variables but those of Lite and of threads")


def _pack(
    path: Path,
    folder: Path,
    texts: Mapping[str, str],
    scrubber: Scrubber,
    result: ReportResult,
    request: ReportRequest,
) -> None:
    """Write the .zip file: the texts, the models and arrays in the folder, and the manifest."""
    binary = [n for n in ("model.lite", "inputs.npz", "node.lite", "node_inputs.npz") if (folder / n).exists()]
    for name in binary:
        if found := scrubber.found_in((folder / name).read_bytes()):
            result.not_scrubbed[name] = [*dict.fromkeys(found)]
    names = [name for name in _ABOUT if name in texts or name in binary]
    result.files = {name: _ABOUT[name] for name in names}
    manifest = scrubber.data({"schema_version": 1, "lite": __version__, **asdict(result)})
    temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
    try:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("manifest.json", _json(manifest))
            for name in names:
                if name in texts:
                    archive.writestr(name, texts[name])
                else:  # weights hardly become smaller
                    kind = zipfile.ZIP_STORED if request.with_weights else zipfile.ZIP_DEFLATED
                    archive.write(folder / name, name, compress_type=kind)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _json(data: Any) -> str:
    return json.dumps(data, indent=2, default=str) + "\n"
