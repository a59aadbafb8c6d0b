"""The steps of a conversion: read, optimize, ask the targets, compile, write, verify."""

from __future__ import annotations

import glob
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from lite_core.backend import Options
from lite_core.container import ModelFile
from lite_core.errors import ConversionError, InputError, LiteError, ModelFormatError
from lite_core.ir import Graph, Shape, SymbolicDim
from lite_core.plugins import PluginManager, PluginRecord, default_plugins
from lite_core.processors import useful_threads
from lite_core.saved_kernels import SavesKernels
from lite_core.schedule import Candidate
from lite_core.schedule.precision import Precision
from lite_core.session import make_ready, open_model
from lite_core.session.arguments import check_shapes
from lite_core.storage import configuration_folder
from lite_tools.checking.limits import LIMITS
from lite_tools.conversion.arguments import check_kinds, output_path
from lite_tools.conversion.other_sizes import OtherSizes, depends_on_data, find_other_sizes
from lite_tools.conversion.pieces import Pieces
from lite_tools.conversion.prepare import PreparedTarget, prepare_target
from lite_tools.conversion.problems import coverage_problems, raise_disagreement, raise_problems
from lite_tools.conversion.quantizing import Quantization, summary
from lite_tools.conversion.report import Check, ConversionReport, GraphSummary, file_split
from lite_tools.conversion.several_shapes import AnySize, single_shapes
from lite_tools.conversion.stripping import unread_constants
from lite_tools.conversion.targets import Coverage, at_levels, coverage_of, fallback_candidates, find_targets
from lite_tools.conversion.typed import Shapes, typed_graph
from lite_tools.conversion.verification import Sample, check_reference, check_target, draw_samples
from lite_tools.precisions import precision_words, precisions_in
from lite_tools.quantization import SCHEMES, OutputAccuracy, compare_outputs, quantize_weights
from lite_tools.quantization.blocks import BLOCK
from lite_tools.tuned import measure_missing
from lite_tools.writing import seal, write_model
from lite_tools.writing.abandoned import remove_abandoned

__all__ = ["LIMITS", "PRECISIONS", "STORED_TYPES", "convert"]

Array = np.ndarray[Any, Any]

#: The types that backends may be allowed to compute in.
PRECISIONS = tuple(LIMITS)
#: The threads that sessions on other machines are expected to use. A plan for four serves two to eight.
_THREADS_ELSEWHERE = 4
#: The types that weights may be stored in.
STORED_TYPES = ("float32", *SCHEMES)


def convert(
    model: str | os.PathLike[str] | Graph,
    output: str | os.PathLike[str],
    targets: str | Sequence[str] = "auto",
    precision: str | Mapping[str, str] = "float32",
    shapes: Mapping[str, Sequence[AnySize]] | Sequence[Mapping[str, Sequence[AnySize]]] | None = None,
    *,
    weights: str = "float32",
    weights_block: int = BLOCK,
    keep_weights: Sequence[str] = (),
    quantize: str | None = None,
    calibrate: str | os.PathLike[str] | Sequence[Mapping[str, Array]] | None = None,
    calibration_method: str = "minmax",
    percentile: float | None = None,
    calibration_samples: int | None = None,
    keep_float: Sequence[str] = (),
    min_snr: float | None = None,
    cpu: str | Sequence[str] = (),
    strip: bool = False,
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
    """Convert a model to a .lite file for one or several targets.

    This runs the passes, asks each target about every node, compiles the model for each target, and stores the state
    that the backends save in the file. The new file is then verified with the references and on every target that has a
    device on this machine; a file with different results is not written. All problems are in one error, after which
    nothing is written.

    Args:
        model: a file or folder that an installed plugin reads, or a graph.
        output: the file to write, usually ``*.lite``.
        targets: names of backends in order of preference, as ``["opencl", "x86"]`` or ``"opencl,x86"``. ``"auto"``
            stands for every backend that has a device on this machine. The model is also compiled for targets without
            a device, if their plugin supports that.
        precision: the type that backends may compute in, ``"float32"``, ``"float16"`` or ``"bfloat16"``, or a mapping
            of node name patterns to these, as for :func:`lite_core.load`. Sessions have the precision of the file by
            default, and use prepared plans only if they have it.
        shapes: the input shapes to prepare a plan for, or several such mappings, with a plan for each. A model
            without symbolic dimensions needs none. A model that only leaves the batch open is prepared for one item by
            default; for other symbolic dimensions without ``shapes``, the file has no plans. A dimension may be a range
            or a list of sizes, as in ``{"x": (1, 3, 48, range(32, 1281, 32))}``.
        weights: the type to store weights in: ``"float32"`` does not change them, ``"float16"`` halves their size,
            ``"int8"`` stores a byte for each element and a scale for each channel, ``"int4"`` half a byte for each
            element of matrices of products and a scale for each block, and other weights as ``"int8"``. Arithmetic does
            not change.
        weights_block: elements of a block of ``"int4"``, a multiple of 16. Smaller blocks are more exact and larger.
        keep_weights: patterns of names of constants that ``weights`` does not change, with ``*`` and ``?``.
        quantize: ``"int8"`` computes Conv, Gemm and MatMul with 8-bit integers, see
            :func:`lite_tools.quantization.quantize_model`, which explains the following arguments, too.
        calibrate: samples for ``quantize``: a folder of ``.npz`` files, each with an array for every input, or a
            sequence of mappings of input names to arrays. The first one is also an input of the verification, unless
            ``data`` is given.
        calibration_method: how ranges of activations are chosen: ``"minmax"``, ``"percentile"`` or ``"entropy"``.
        percentile: the share of elements inside the ranges for the method ``"percentile"``; by default 99.99 percent.
        calibration_samples: the most samples to use.
        keep_float: patterns of nodes that stay in float32.
        min_snr: the least signal-to-noise ratio of an output, in decibels; layers stay in float32 to reach it. By
            default :data:`lite_tools.quantization.MIN_SNR`.
        cpu: levels of processors to compile for, such as ``["x86-64-v4", "x86-64-v3"]`` or ``["cortex-a76"]``: the file
            then holds code for each, and a session uses the one with most features that its processor can run. By
            default, the code is for this machine's processor, or for every processor of a target that is not here.
        strip: leave out the constants that no prepared plan reads. The file is smaller, but runs only with the prepared
            shapes on its targets.
        exact: forbid algorithms that trade accuracy for speed; a session uses prepared plans only if it has the same
            setting.
        tune: let backends measure which of their kernels are fastest on this machine, and store the choice; like
            ``tune`` of :func:`lite_core.load`.
        threads: the number of threads that sessions will use, or several such numbers, with a plan for each; by
            default one thread and all useful ones, or four for a target that is not here. Plans share their packed
            weights.
        allow_fallback: let other targets, and then host, run nodes that a target refuses.
        prepare: store the state that backends save. By default, this is done only for ``weights="float32"``: packed
            weights are float32, and would enlarge a file that is meant to be small.
        verify: run the new file and compare the results.
        data: inputs for the verification and for measuring the accuracy of stored weights; by default random numbers.
        limit: the largest allowed difference of an output, as a share of its range; by default 1e-3, or 2e-2 and 1e-1
            if ``precision`` contains ``"float16"`` and ``"bfloat16"``.
        seed: the seed of random inputs.
        force: write the file even if its results differ.
        plugins: the plugins to use instead of the installed ones, for tests.
        progress: called with a description of each step.
        reader_options: options of the reader of the model's format, such as ``{"params": path}``.

    Returns:
        The report of the conversion.

    Raises:
        InputError: an argument is wrong, or shapes or data do not fit the model.
        ModelFormatError: the model cannot be read.
        UnsupportedOperatorError: the reader cannot lower operators; all are listed.
        BackendUnavailableError: no installed plugin has a target; the message says what to install.
        ConversionError: a target refuses nodes or fails to compile, the new file has different results, or it cannot be
            written.
    """
    path = output_path(output)
    check_kinds(targets=targets, cpu=cpu, shapes=shapes, threads=threads, data=data, limit=limit, seed=seed)
    check_kinds(strip=strip, exact=exact, tune=tune, allow_fallback=allow_fallback, prepare=prepare, verify=verify)
    check_kinds(force=force, plugins=plugins, progress=progress, percentile=percentile, min_snr=min_snr)
    check_kinds(calibration_samples=calibration_samples, keep_float=keep_float)
    check_kinds(weights_block=weights_block, keep_weights=keep_weights)
    by_node = Precision.of(precision)
    wanted = Quantization(quantize, calibrate, calibration_method, percentile, calibration_samples, keep_float, min_snr)
    wanted.check()
    _check_arguments(weights, quantize, verify)
    if keep_weights and weights == "float32":
        raise InputError("keep_weights (--keep-weights) needs weights in fewer bits, such as weights='int4'")
    settings = _Settings(
        plugins=plugins or default_plugins(),
        options=_options(Options(1, by_node.default, exact, tune), threads, useful_threads()),
        options_elsewhere=_options(Options(1, by_node.default, exact, tune), threads, _THREADS_ELSEWHERE),
        precision=by_node,
        allow_fallback=allow_fallback,
        store=weights == "float32" if prepare is None else prepare,
        strip=strip,
        limit=max(LIMITS[each] for each in precisions_in(by_node)) if limit is None else limit,
        force=force,
        progress=progress or (lambda text: None),
    )
    settings.progress("reading the model")
    original = _read(model, settings.plugins, reader_options)
    settings.progress("running the passes")
    graph, changed_by, unprepared = _made_ready(original, targets, settings)
    by_node.check(graph)
    if "file" in graph.metadata:  # do not disclose the path of the original model
        graph.metadata["file"] = Path(graph.metadata["file"]).name
    quantized = None
    if weights != "float32":
        quantized = quantize_weights(graph, weights, block=weights_block, keep=keep_weights)
    graph = graph if quantized is None else quantized.graph
    layers = None
    if quantize is not None:
        given = wanted.sample_source(graph)
        layers = wanted.applied(graph, given, settings.plugins, settings.progress)
        graph = layers.graph
        data = given[0] if data is None else data
        # Right kernels may round a number to either neighbouring step, which changes outputs like quantization itself.
        changes = [d for d in (output.max_difference for output in layers.report.outputs) if np.isfinite(d)]
        settings = replace(settings, limit=max(settings.limit, *changes) if limit is None else limit)
    signatures = _signatures(graph, shapes)
    levels = [level for level in (cpu.split(",") if isinstance(cpu, str) else cpu) if level]
    coverages = _ask_targets(original.name, signatures[0][1] if signatures else graph, targets, levels, settings)
    samples: list[Sample] = []
    sizes_are_saved = settings.store and not strip and any(_saves_kernels(coverage) for coverage in coverages)
    if verify or quantized is not None or (sizes_are_saved and any(depends_on_data(typed) for _, typed in signatures)):
        settings.progress("running the references")
        oracle = original if quantized is None and layers is None else graph
        try:
            samples = draw_samples(oracle, [wanted for wanted, _ in signatures], data, seed)
        except InputError as error:
            if verify or quantized is not None or data is not None:
                raise
            unprepared.append(f"sizes that depend on data are not prepared (--data x.npz prepares those of x): {error}")
    pieces, other_sizes = Pieces(graph), None
    if sizes_are_saved:
        command = _command(model, path, coverages, signatures, by_node, exact, threads)
        other_sizes = find_other_sizes(graph, signatures, samples, command)
    prepared = _prepare(graph, coverages, signatures, pieces, other_sizes, settings)
    accuracy: tuple[OutputAccuracy, ...] = ()
    if quantized is not None:
        settings.progress("measuring the accuracy of stored weights")
        accuracy = compare_outputs(original, graph, [sample.inputs for sample in samples])
    metadata = {} if layers is None else {"quantization": summary(layers.report)}
    checks = _write(path, graph, prepared, pieces, coverages, samples if verify else [], metadata, settings, changed_by)
    file = ModelFile.open(path)
    return ConversionReport(
        model=original.name,
        output=path,
        size=path.stat().st_size,
        split=file_split(file),
        precision=by_node.text,
        stored_as=weights,
        before=GraphSummary.of(original),
        after=GraphSummary.of(graph),
        passes=changed_by,
        targets=tuple(part.report for part in prepared),
        weights=() if quantized is None else quantized.weights,
        accuracy=accuracy,
        quantization=None if layers is None else layers.report,
        checks=tuple(checks),
        notes=tuple(_notes(graph, bool(shapes), len(signatures), settings.store, checks))
        + _trust_notes(file)
        + (*unprepared,),
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
    """The settings of a conversion."""

    plugins: PluginManager
    options: Sequence[Options]
    options_elsewhere: Sequence[Options]
    precision: Precision
    allow_fallback: bool
    store: bool
    strip: bool
    limit: float
    force: bool
    progress: Callable[[str], None]

    def fallback_candidates(self, coverage: Coverage, coverages: Sequence[Coverage]) -> list[Candidate]:
        """Return the devices that may run nodes that a target refuses."""
        others = [c.target for c in coverages] if self.allow_fallback else []
        return fallback_candidates(coverage, others, self.plugins)


def _options(common: Options, threads: int | Sequence[int] | None, useful: int) -> list[Options]:
    """Return options with each number of threads to prepare plans for, in ascending order.

    Args:
        common: the other options.
        threads: the numbers requested; None for one and ``useful`` threads.
        useful: the number of useful threads.
    """
    wanted = (1, useful) if threads is None else (threads,) if isinstance(threads, int) else tuple(threads)
    return [replace(common, threads=count) for count in sorted({*wanted})]


def _check_arguments(weights: str, quantize: str | None, verify: bool) -> None:
    if weights not in STORED_TYPES:
        raise InputError(f"weights must be one of {', '.join(STORED_TYPES)}, not {weights!r}")
    if quantize is not None and weights != "float32":
        raise InputError(
            f"weights={weights!r} (--weights) and quantize={quantize!r} (--quantize) exclude each other: quantized "
            "layers store their weights as int8 anyway"
        )
    if verify and os.environ.get("LITE_BACKEND"):
        raise InputError(
            f"LITE_BACKEND={os.environ['LITE_BACKEND']} would override the targets in the verification: unset it, or "
            "disable the verification (verify=False, --no-verify)"
        )


def _signatures(
    graph: Graph, shapes: Mapping[str, Sequence[AnySize]] | Sequence[Mapping[str, Sequence[AnySize]]] | None
) -> list[tuple[Shapes, Graph]]:
    """Return the complete shapes to prepare plans for, each with the graph whose types follow from them.

    Without ``shapes``, a static model has its own shapes, a model that leaves only the batch open is prepared for one
    item, and other models have no plans.
    """
    if shapes:
        several = [shapes] if isinstance(shapes, Mapping) else list(shapes)
        wanted = [single for each in several for single in single_shapes(each)]
        complete = [check_shapes(graph.name, graph.inputs, each) for each in wanted]
        different = [each for number, each in enumerate(complete) if each not in complete[:number]]
        return [(each, typed_graph(graph, each)) for each in different]
    default_shapes = {value.name: _one_item(value.shape) for value in graph.inputs}
    items = {name: shape for name, shape in default_shapes.items() if shape is not None}
    if len(items) < len(default_shapes):
        return []
    try:
        return [(items, typed_graph(graph, check_shapes(graph.name, graph.inputs, items)))]
    except InputError:  # the open dimension is not a batch
        return []


def _one_item(shape: Shape | None) -> tuple[int, ...] | None:
    """Return a shape with a symbolic first dimension set to 1; None if other dimensions are symbolic."""
    if shape is None or any(isinstance(dim, SymbolicDim) for dim in shape[1:]):
        return None
    return tuple(dim if isinstance(dim, int) else 1 for dim in shape)


def _saves_kernels(coverage: Coverage) -> bool:
    """Return True if a target's kernels can be saved for sizes that are not prepared."""
    candidate = coverage.target.candidate
    return candidate is not None and isinstance(candidate.backend, SavesKernels)


def _command(
    model: str | os.PathLike[str] | Graph,
    path: Path,
    coverages: Sequence[Coverage],
    signatures: Sequence[tuple[Shapes, Graph]],
    precision: Precision,
    exact: bool,
    threads: int | Sequence[int] | None,
) -> str:
    """Return the command of this conversion, for messages; it names files without their folders."""
    counts = [threads] if isinstance(threads, int) else threads or ()
    words = ["lite", "convert", "MODEL" if isinstance(model, Graph) else os.path.basename(os.fspath(model))]
    words += ["-o", path.name, "--targets", ",".join(dict.fromkeys(c.target.name for c in coverages))]
    for option, values in (
        ("--cpu", [c.target.level for c in coverages if c.target.level]),
        ("--threads", [str(count) for count in counts]),
    ):
        words += [option, ",".join(values)] if values else []
    words += [*precision_words(precision), *(["--exact"] if exact else [])]
    for shapes, _ in signatures:
        words += [f"--input-shape={name}={'x'.join(map(str, shape))}" for name, shape in shapes.items()]
    return shlex.join(words)


def _made_ready(
    original: Graph, requested: str | Sequence[str], settings: _Settings
) -> tuple[Graph, tuple[str, ...], list[str]]:
    """Return a model's graph after the passes, the names of those that changed it, and notes.

    A pass of a plugin may insert operators of its package. Where a target refuses one, plugins' passes are left out: a
    model must not need more than it did before.
    """
    graph, changed_by = make_ready(original, settings.plugins)
    inserted = graph.op_counts().keys() - original.op_counts().keys()
    foreign = {name for name in inserted if name.partition(".")[2] and not name.startswith("lite.")}
    if not foreign or settings.allow_fallback:
        return graph, changed_by, []
    coverages = [coverage_of(graph, target) for target in find_targets(requested, settings.plugins)[0]]
    refused = {r.op: c.target.name for c in coverages for r in c.refusals or () if r.op in foreign}
    if not refused:
        return graph, changed_by, []
    listed = ", ".join(f"{op}, which {target} refuses" for op, target in refused.items())
    plain, plain_changes = make_ready(original, _WithoutPasses(settings.plugins))
    passes = ", ".join(name for name in changed_by if name.endswith(")"))  # with its plugin, unlike Lite's own
    return plain, plain_changes, [f"the passes of plugins are left out ({passes}): they insert {listed}"]


class _WithoutPasses(PluginManager):
    """The plugins of another manager, without their passes."""

    def __init__(self, plugins: PluginManager) -> None:
        super().__init__(list)
        self._plugins = plugins

    def ask(self, hook: str) -> list[tuple[PluginRecord, Any]]:
        return [] if hook == "lite_passes" else self._plugins.ask(hook)


def _ask_targets(
    model: str, graph: Graph, requested: str | Sequence[str], levels: Sequence[str], settings: _Settings
) -> list[Coverage]:
    if settings.store and not levels:  # code for named levels is for other machines
        settings.progress("measuring the machine")
        measure_missing(requested.split(",") if isinstance(requested, str) else requested, settings.plugins)
    settings.progress("asking the targets")
    targets, missing = find_targets(requested, settings.plugins)
    if levels:
        targets = at_levels(targets, levels)
    coverages = [coverage_of(graph, target) for target in targets]
    raise_problems(model, missing, [] if settings.allow_fallback else coverage_problems(coverages))
    return coverages


def _prepare(
    graph: Graph,
    coverages: Sequence[Coverage],
    signatures: Sequence[tuple[Shapes, Graph]],
    pieces: Pieces,
    other_sizes: OtherSizes | None,
    settings: _Settings,
) -> list[PreparedTarget]:
    prepared, failed, may_move = [], [], settings.allow_fallback
    saved = pieces if settings.store else None
    for coverage in coverages:
        settings.progress(f"compiling for {coverage.target.name}")
        others = settings.fallback_candidates(coverage, coverages)
        options = settings.options_elsewhere if coverage.target.absent else settings.options
        try:
            prepared.append(
                prepare_target(
                    graph,
                    coverage,
                    others,
                    signatures,
                    options,
                    saved,
                    other_sizes,
                    precision=settings.precision,
                    may_move=may_move,
                )
            )
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
    metadata: Mapping[str, str],
    settings: _Settings,
    passes: Sequence[str],
) -> list[Check]:
    """Write the file under a temporary name, verify it with the samples, and rename it."""
    settings.progress("writing the file")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.unverified")
    remove_abandoned(path.parent.glob(f".*{glob.escape(path.name)}.*.unverified*"))
    try:
        try:
            write_model(
                temporary,
                graph,
                targets=[part.record for part in prepared],
                pieces=pieces.sections,
                packed=pieces.packed,
                stripped=unread_constants(graph, prepared, pieces) if settings.strip else (),
                metadata=metadata,
                optimized=True,
                seal=seal,
            )
        except ModelFormatError as error:  # which stands for damaged files elsewhere
            raise ConversionError(f"model {graph.name!r}: its file is not written", [str(error)]) from error
        checks = _verify(ModelFile.open(temporary), coverages, samples, settings) if samples else []
        if not settings.force:
            raise_disagreement(graph.name, checks, passes)
        try:
            os.replace(temporary, path)
        except OSError as error:
            why = f"{str(path)!r} cannot be written: {error.strerror or error}"
            raise ConversionError(f"model {graph.name!r}: its file is not written", [why]) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    return checks


def _verify(
    file: ModelFile, coverages: Sequence[Coverage], samples: Sequence[Sample], settings: _Settings
) -> list[Check]:
    checks = []
    if not settings.strip:
        settings.progress("verifying with the references")
        checks = check_reference(file, samples, settings.limit)
    verified: set[str] = set()  # a session uses the first level that the processor can run
    for coverage in coverages:
        target = coverage.target
        if not target.absent and target.name not in verified:
            verified.add(target.name)
            settings.progress(f"verifying on {target.name}")
            backends = [target.name, *(c.device.backend for c in settings.fallback_candidates(coverage, coverages))]
            allowed = settings.options[-1], settings.precision
            checks += check_target(file, backends, samples, settings.limit, settings.plugins, *allowed)
    return checks


def _notes(graph: Graph, shapes_given: bool, plans: int, store: bool, checks: Sequence[Check]) -> list[str]:
    notes = []
    if not store:
        notes.append(
            "compiled code and packed weights are not stored in the file, to keep it small; sessions compile when they "
            "load it. prepare=True (--prepare) stores them"
        )
    symbolic = [value for value in graph.inputs if not value.type.is_static]
    if store and symbolic and not shapes_given:
        prepared, others = "the file has no plan", "each shape"
        if plans:
            prepared, others = "the file has a plan for one item", "other shapes"
        options = [f"--input-shape {value.name}={_shape_text(value.shape)}" for value in symbolic]
        notes.append(
            f"the model leaves sizes open; {prepared}, and sessions compile for {others} at run time. To prepare "
            f"plans: {' '.join(options)}, with numbers for the question marks"
        )
    if any(not check.agrees for check in checks):
        notes.append("the results of the file differ from those of the model; it was written anyway")
    return notes


def _trust_notes(file: ModelFile) -> tuple[str, ...]:
    if not file.has_code or file.code_is_trusted("own"):
        return ()
    return (
        f"the code in the file could not be sealed with your key in {configuration_folder()}: sessions compile the "
        f"model again until you run: lite trust {shlex.quote(str(file.path))}",
    )


def _shape_text(shape: Shape | None) -> str:
    return "?" if shape is None else "x".join(str(dim) if isinstance(dim, int) else "?" for dim in shape)
