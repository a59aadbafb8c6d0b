"""Converting a model: read, optimize, ask, compile, write, verify."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lite_core.backend import Options
from lite_core.container import ModelFile, write_model
from lite_core.errors import InputError, LiteError
from lite_core.ir import Graph, Shape, SymbolicDim
from lite_core.plugins import PluginManager, default_plugins
from lite_core.schedule import Candidate
from lite_core.session import make_ready, open_model
from lite_core.session.arguments import check_shapes
from lite_tools.conversion.pieces import Pieces
from lite_tools.conversion.prepare import PreparedTarget, Shapes, prepare_target, typed_graph
from lite_tools.conversion.problems import coverage_problems, raise_disagreement, raise_problems
from lite_tools.conversion.report import Check, ConversionReport, GraphSummary
from lite_tools.conversion.targets import Coverage, companions, coverage_of, find_targets
from lite_tools.conversion.verification import Sample, check_reference, check_target, draw_samples
from lite_tools.quantization import SCHEMES, OutputAccuracy, compare_outputs, quantize_weights

__all__ = ["LIMITS", "PRECISIONS", "STORED_TYPES", "convert"]

Array = np.ndarray[Any, Any]

#: The largest difference of an output as a share of its range, by the type that backends compute in.
LIMITS = {"float32": 1e-3, "float16": 2e-2, "bfloat16": 1e-1}
#: The types that backends may compute in.
PRECISIONS = tuple(LIMITS)
#: The types that weights may be stored as.
STORED_TYPES = ("float32", *SCHEMES)


def convert(
    model: str | os.PathLike[str] | Graph,
    output: str | os.PathLike[str],
    targets: str | Sequence[str] = "auto",
    precision: str = "float32",
    shapes: Mapping[str, Sequence[int]] | Sequence[Mapping[str, Sequence[int]]] | None = None,
    *,
    weights: str = "float32",
    exact: bool = False,
    tune: bool = False,
    threads: int | Sequence[int] | None = None,
    allow_fallback: bool = False,
    prepare: bool | None = None,
    verify: bool = True,
    data: Mapping[str, Array] | None = None,
    limit: float | None = None,
    seed: int = 0,
    force: bool = False,
    plugins: PluginManager | None = None,
    progress: Callable[[str], None] | None = None,
    reader_options: Mapping[str, Any] | None = None,
) -> ConversionReport:
    """Convert a model into a .lite file for one or several targets.

    The passes are run, each target is asked whether it can run every node, the model is compiled for each, and what
    the backends save goes into the file. The file is then run by the references and on every target that has a device
    here; one that computes something else is not written. So is nothing at all where something is in the way: every
    reason is in one error.

    Args:
        model: a file or folder that an installed plugin reads, or a graph.
        output: the file to write, usually ``*.lite``.
        targets: names of backends, the preferred first, as ``["opencl", "x86"]`` or ``"opencl,x86"``; ``"auto"``
            stands for every backend that has a device on this machine. One without a device is compiled for where its
            plugin can do that without one.
        precision: the type that backends may compute in, ``"float32"``, ``"float16"`` or ``"bfloat16"``, as for
            :func:`lite_core.load`: a session uses what is prepared only where it allows the same.
        shapes: shapes of the inputs that a plan is prepared for, or several such mappings, a plan for each. A model
            without symbolic dimensions needs none; one with them and without ``shapes`` has no plans in its file.
        weights: the type that weights are stored as: ``"float32"`` leaves them as they are, ``"float16"`` halves them,
            ``"int8"`` stores a byte and a scale for each channel. Arithmetic stays what it was.
        exact: forbid algorithms that trade accuracy for speed; a session uses what is prepared only where it
            does, too.
        tune: let backends measure which of their kernels are fastest on this machine, and store these; as ``tune`` of
            :func:`lite_core.load`.
        threads: how many threads sessions are expected to use, or several such numbers, a plan for each; one thread and
            all processors when omitted. Plans have their packed weights in common.
        allow_fallback: let other targets, and then host, run the nodes that a target cannot.
        prepare: store what the backends save. By default that is done for weights in ``"float32"`` only: packed ones
            are float32, and would make a file larger that is meant to be small.
        verify: run the file before it gets its name.
        data: inputs to verify with, and to measure the accuracy of stored weights; random numbers when omitted.
        limit: the largest difference of an output that is allowed, as a share of its range; 1e-3, or 2e-2 and 1e-1
            where ``precision`` is ``"float16"`` and ``"bfloat16"``.
        seed: of random inputs.
        force: write the file although it computes something else.
        plugins: the plugins to use instead of the installed ones, for tests.
        progress: told what is being done, in a few words.
        reader_options: options of the reader of the model's format, such as ``{"params": path}``.

    Returns:
        What was done, with tables to print.

    Raises:
        InputError: an argument is wrong, or shapes or data do not fit the model.
        ModelFormatError: the model cannot be read, or the file cannot be written.
        UnsupportedOperatorError: the reader cannot lower operators; all are listed.
        BackendUnavailableError: no plugin that is installed brings a target; says what to install.
        ConversionError: a target cannot run nodes or fails to compile, or the file computes something else.
    """
    path = Path(output)
    _check_arguments(path, precision, weights, limit, verify)
    settings = _Settings(
        plugins=plugins or default_plugins(),
        options=[Options(count, precision, exact, tune) for count in _thread_counts(threads)],
        allow_fallback=allow_fallback,
        store=weights == "float32" if prepare is None else prepare,
        limit=LIMITS[precision] if limit is None else limit,
        force=force,
        progress=progress or (lambda text: None),
    )
    settings.progress("reading the model")
    original = _read(model, settings.plugins, reader_options)
    settings.progress("running the passes")
    graph, changed_by = make_ready(original, settings.plugins)
    if "file" in graph.metadata:  # whoever gets the model need not learn in which folder it was
        graph.metadata["file"] = Path(graph.metadata["file"]).name
    quantized = None if weights == "float32" else quantize_weights(graph, weights)
    graph = graph if quantized is None else quantized.graph
    signatures = _signatures(graph, shapes)
    coverages = _ask(original.name, signatures[0][1] if signatures else graph, targets, settings)
    samples: list[Sample] = []
    if verify or quantized is not None:
        settings.progress("running the references")
        truth = original if quantized is None else graph
        samples = draw_samples(truth, [wanted for wanted, _ in signatures], data, seed)
    pieces = Pieces()
    prepared = _prepare(graph, coverages, signatures, pieces, settings)
    accuracy: tuple[OutputAccuracy, ...] = ()
    if quantized is not None:
        settings.progress("measuring what storing weights in fewer bits costs")
        accuracy = compare_outputs(original, graph, [sample.inputs for sample in samples])
    checks = _write(path, graph, prepared, pieces, coverages, samples if verify else [], settings)
    return ConversionReport(
        model=original.name,
        output=path,
        size=path.stat().st_size,
        precision=precision,
        stored_as=weights,
        before=GraphSummary.of(original),
        after=GraphSummary.of(graph),
        passes=changed_by,
        targets=tuple(part.report for part in prepared),
        weights=() if quantized is None else quantized.weights,
        accuracy=accuracy,
        checks=tuple(checks),
        notes=tuple(_notes(graph, bool(shapes), len(signatures), settings.store, checks)),
    )


def _read(
    model: str | os.PathLike[str] | Graph, plugins: PluginManager, reader_options: Mapping[str, Any] | None
) -> Graph:
    opened = open_model(model, plugins=plugins, reader_options=reader_options)
    if opened.file is not None:
        opened.file.verify_constants(opened.graph.every_constant())
    return opened.graph


@dataclass(frozen=True, slots=True)
class _Settings:
    """What holds for the whole of a conversion."""

    plugins: PluginManager
    options: Sequence[Options]
    allow_fallback: bool
    store: bool
    limit: float
    force: bool
    progress: Callable[[str], None]

    def companions(self, coverage: Coverage, coverages: Sequence[Coverage]) -> list[Candidate]:
        """The devices that may run what a target cannot."""
        others = [c.target for c in coverages] if self.allow_fallback else []
        return companions(coverage, others, self.plugins)


def _thread_counts(threads: int | Sequence[int] | None) -> list[int]:
    """The numbers of threads to prepare plans for, in ascending order."""
    wanted = (1, os.cpu_count() or 1) if threads is None else (threads,) if isinstance(threads, int) else tuple(threads)
    if not wanted or not all(isinstance(count, int) and count >= 1 for count in wanted):
        raise InputError(f"threads must be a whole number, at least 1, or several of them, is {threads!r}")
    return sorted({*wanted})


def _check_arguments(path: Path, precision: str, weights: str, limit: float | None, verify: bool) -> None:
    if precision not in PRECISIONS:
        raise InputError(f"precision must be one of {', '.join(PRECISIONS)}, is {precision!r}")
    if weights not in STORED_TYPES:
        raise InputError(f"weights must be one of {', '.join(STORED_TYPES)}, is {weights!r}")
    if limit is not None and not limit >= 0:
        raise InputError(f"limit must be a share of an output's range, such as 1e-3, is {limit!r}")
    if not path.absolute().parent.is_dir():
        raise InputError(f"output {str(path)!r} cannot be written: there is no folder {str(path.parent)!r}")
    if path.is_dir():
        raise InputError(f"output {str(path)!r} is a folder; name a file, such as {str(path / 'model.lite')!r}")
    if verify and os.environ.get("LITE_BACKEND"):
        raise InputError(
            f"LITE_BACKEND={os.environ['LITE_BACKEND']} would decide where the written model is verified: unset it, or "
            "leave verifying out (verify=False, --no-verify)"
        )


def _signatures(
    graph: Graph, shapes: Mapping[str, Sequence[int]] | Sequence[Mapping[str, Sequence[int]]] | None
) -> list[tuple[Shapes, Graph]]:
    """The shapes to prepare plans for, each complete and with the graph that has the types that follow from them.

    Without any wanted, a static model has its own, and one that leaves only the batch open is prepared for one item;
    there are none for others.
    """
    if shapes:
        wanted = [shapes] if isinstance(shapes, Mapping) else list(shapes)
        complete = [check_shapes(graph.name, graph.inputs, given) for given in wanted]
        different = [given for number, given in enumerate(complete) if given not in complete[:number]]
        return [(given, typed_graph(graph, given)) for given in different]
    usual = {value.name: _one_item(value.shape) for value in graph.inputs}
    items = {name: shape for name, shape in usual.items() if shape is not None}
    if len(items) < len(usual):
        return []
    try:
        return [(items, typed_graph(graph, check_shapes(graph.name, graph.inputs, items)))]
    except InputError:  # what is open is not a batch
        return []


def _one_item(shape: Shape | None) -> tuple[int, ...] | None:
    """A shape with a symbolic first dimension set to 1; None where others are symbolic."""
    if shape is None or any(isinstance(dim, SymbolicDim) for dim in shape[1:]):
        return None
    return tuple(dim if isinstance(dim, int) else 1 for dim in shape)


def _ask(model: str, graph: Graph, requested: str | Sequence[str], settings: _Settings) -> list[Coverage]:
    settings.progress("asking the targets")
    targets, missing = find_targets(requested, settings.plugins)
    coverages = [coverage_of(graph, target) for target in targets]
    raise_problems(model, missing, [] if settings.allow_fallback else coverage_problems(coverages))
    return coverages


def _prepare(
    graph: Graph,
    coverages: Sequence[Coverage],
    signatures: Sequence[tuple[Shapes, Graph]],
    pieces: Pieces,
    settings: _Settings,
) -> list[PreparedTarget]:
    prepared, failed, may_move = [], [], settings.allow_fallback
    saved = pieces if settings.store else None
    for coverage in coverages:
        settings.progress(f"compiling for {coverage.target.name}")
        others = settings.companions(coverage, coverages)
        try:
            part = prepare_target(graph, coverage, others, signatures, settings.options, saved, may_move=may_move)
            prepared.append(part)
        except LiteError as error:
            failed.append(f"target {coverage.target.name!r}: {error}")
    raise_problems(graph.name, [], failed)
    return prepared


def _write(
    path: Path,
    graph: Graph,
    prepared: Sequence[PreparedTarget],
    pieces: Pieces,
    coverages: Sequence[Coverage],
    samples: Sequence[Sample],
    settings: _Settings,
) -> list[Check]:
    """Write the file under another name, verify it with the samples, and give it its own."""
    settings.progress("writing the file")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.unverified")
    try:
        write_model(
            temporary,
            graph,
            targets=[part.record for part in prepared],
            pieces=pieces.sections,
            optimized=True,
        )
        checks = _verify(ModelFile.open(temporary), coverages, samples, settings) if samples else []
        if not settings.force:
            raise_disagreement(graph.name, checks)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return checks


def _verify(
    file: ModelFile, coverages: Sequence[Coverage], samples: Sequence[Sample], settings: _Settings
) -> list[Check]:
    settings.progress("verifying by the references")
    checks = check_reference(file, samples, settings.limit)
    for coverage in coverages:
        target = coverage.target
        if not target.absent:
            settings.progress(f"verifying on {target.name}")
            backends = [target.name, *(c.device.backend for c in settings.companions(coverage, coverages))]
            checks += check_target(file, backends, samples, settings.limit, settings.plugins, settings.options[-1])
    return checks


def _notes(graph: Graph, shapes_given: bool, plans: int, store: bool, checks: Sequence[Check]) -> list[str]:
    notes = []
    if not store:
        notes.append(
            "what the backends save, packed weights for the most part, is not in the file, which stays small; a "
            "session compiles when it loads. prepare=True (--prepare) puts it in"
        )
    symbolic = [value for value in graph.inputs if not value.type.is_static]
    if store and symbolic and not shapes_given:
        prepared = "the plan in the file is for one item" if plans else "the file has no plan"
        options = [f"--input-shape {value.name}={_pattern(value.shape)}" for value in symbolic]
        notes.append(
            f"the model leaves sizes open; {prepared}, and a session compiles when it meets other shapes. To prepare "
            f"for them: {' '.join(options)}, with numbers for the question marks"
        )
    if any(not check.agrees for check in checks):
        notes.append("the file computes something else than the model it was made from; it was written all the same")
    return notes


def _pattern(shape: Shape | None) -> str:
    return "?" if shape is None else "x".join(str(dim) if isinstance(dim, int) else "?" for dim in shape)
