"""Quantization of a trained model: layers compute with 8-bit integers, with scales from runs on samples.

::

    result = quantize_model(graph, samples, method="percentile")
    print(result.report.outputs, result.report.kept)
    write_model("model.lite", result.graph)

"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from lite_core.errors import InputError
from lite_core.ir import Graph, Node
from lite_core.plugins import PluginManager
from lite_core.schedule.placement import unknown_name
from lite_core.session import Session, load
from lite_core.session.arguments import to_arrays
from lite_tools.quantization.accuracy import OutputAccuracy
from lite_tools.quantization.calibration import calibrate
from lite_tools.quantization.insertion import insert_quantization
from lite_tools.quantization.keeping import Kept, find_kept
from lite_tools.quantization.layer_noise import measure_noise
from lite_tools.quantization.layers import OPERATORS, Layer, channel_axis, find_layers
from lite_tools.quantization.ranges import METHODS, Parameters, parameters_of, range_of
from lite_tools.quantization.switching import SwitchedModel
from lite_tools.taps import matches_node, names_of

__all__ = ["MIN_SNR", "LayerRecord", "QuantizationReport", "QuantizedModel", "quantize_model"]

Array = np.ndarray[Any, Any]

#: The least signal-to-noise ratio of an output, in decibels, below which layers stay in float32: noise of a hundredth
#: of the signal's power. Many models reach it with a tenth of their layers in float32 (docs/quantizing.md).
MIN_SNR = 20.0
#: The most samples that the noise is measured on.
_MOST_MEASURED = 8


@dataclass(frozen=True, slots=True)
class LayerRecord:
    """The record of a layer: a Conv, Gemm or MatMul outside of sub-graphs.

    Attributes:
        name: the name of its node.
        op: its operator.
        origin: operator and name of the node in the model that was read.
        weights: the shape of its weights; empty if they are no constant.
        kept: the reason why it stays in float32; empty if it is quantized.
        snr_db: signal-to-noise ratio of its result in the quantized model, in decibels; None if it was not measured.
        alone_db: that of the noisiest output if only this layer is quantized; None if no layers were searched.
        without_db: for a layer that the search kept, that of the noisiest output if it were quantized, too.
        bytes_before: size of its weights in float32.
        bytes_after: size of its weights as they are stored, with scales.
    """

    name: str
    op: str
    origin: str
    weights: tuple[int, ...]
    kept: str
    snr_db: float | None
    alone_db: float | None
    without_db: float | None
    bytes_before: int
    bytes_after: int


@dataclass(frozen=True, slots=True)
class QuantizationReport:
    """The report of a quantization.

    Attributes:
        method: how the ranges of activations were chosen, one of :data:`METHODS`.
        percentile: the share of elements inside the ranges, in percent, for the method ``percentile``.
        samples: the number of samples that the model was calibrated on.
        measured: the number of these that the noise was measured on.
        min_snr: the least signal-to-noise ratio of an output that was asked for, in decibels.
        layers: a record for each layer, in the order of the graph.
        outputs: the accuracy of each output relative to the float32 model's.
        notes: sentences for the user.
    """

    method: str
    percentile: float
    samples: int
    measured: int
    min_snr: float
    layers: tuple[LayerRecord, ...]
    outputs: tuple[OutputAccuracy, ...]
    notes: tuple[str, ...]

    @property
    def kept(self) -> tuple[LayerRecord, ...]:
        """The layers that stay in float32."""
        return tuple(layer for layer in self.layers if layer.kept)

    def as_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class QuantizedModel:
    """A graph whose layers compute with 8-bit integers, and the report about it."""

    graph: Graph
    report: QuantizationReport


def quantize_model(
    graph: Graph,
    samples: Sequence[Mapping[str, Array]],
    *,
    method: str = "minmax",
    percentile: float = 99.99,
    keep_float: Sequence[str] = (),
    min_snr: float = MIN_SNR,
    plugins: PluginManager | None = None,
    progress: Callable[[str], None] | None = None,
) -> QuantizedModel:
    """Quantize the layers of a model: uint8 activations, int8 weights with a scale for each output channel.

    The model runs on the samples, which gives the range of each activation. Layers stay in float32 if the outputs would
    otherwise have a lower signal-to-noise ratio than ``min_snr``.

    Args:
        graph: a ready graph, which is not changed; see :func:`lite_core.session.make_ready`.
        samples: inputs by name, one mapping for each sample. The sequence is read several times, and may read files.
        method: ``minmax``, ``percentile`` or ``entropy``, see :mod:`lite_tools.quantization.ranges`.
        percentile: for the method ``percentile``, the share of elements inside the range, in percent.
        keep_float: patterns of nodes that stay in float32: of their names, their names in the model that was read, or
            of operators, as in ``op:Gemm``.
        min_snr: the least signal-to-noise ratio of each output, in decibels; ``-inf`` quantizes every layer.
        plugins: the plugins to use instead of the installed ones, for tests.
        progress: called with a description of each step.

    Raises:
        InputError: an argument is wrong, a sample does not fit the model or makes it compute NaN, or no layer can be
            quantized.
    """
    report = progress or (lambda text: None)
    _check(method, percentile, min_snr, samples)
    layers, reasons = find_layers(graph)
    reasons |= _kept_by_user(graph, keep_float)
    layers = [layer for layer in layers if layer.name not in reasons]
    if not layers:
        why = "; ".join(dict.fromkeys(reasons.values())) or "it has no Conv, Gemm or MatMul"
        raise InputError(f"model {graph.name!r} has no layer that can be quantized: {why}")
    start = partial(load, threads=None, optimize=False, precision="float32", plugins=plugins, taps=())
    given = _Checked(graph, samples)
    activations = list(dict.fromkeys(layer.activation.name for layer in layers))
    report("calibrating")
    statistics = calibrate(graph, activations, given, method, start, report)
    measured = _spread(given, _MOST_MEASURED)
    parameters = {name: parameters_of(range_of(found, method, percentile)) for name, found in statistics.items()}
    kept = _search(graph, layers, parameters, measured, min_snr, start, report)
    reasons |= {
        name: f"with it in int8, the outputs have {without:.1f} dB, less than {min_snr:g} dB"
        for name, without in kept.without_db.items()
    }
    quantized = insert_quantization(graph, [layer for layer in layers if layer.name not in reasons], parameters)
    report("measuring the noise")
    noise = measure_noise(graph, quantized, [layer.name for layer in layers], measured, start, report)
    records = [_record(graph, node, reasons, kept, noise.layers) for node in graph.nodes if _is_layer(node)]
    return QuantizedModel(
        quantized,
        QuantizationReport(
            method=method,
            percentile=percentile,
            samples=len(given),
            measured=len(measured),
            min_snr=min_snr,
            layers=tuple(records),
            outputs=noise.outputs,
            notes=tuple(_notes(noise.outputs, min_snr)),
        ),
    )


def _check(method: str, percentile: float, min_snr: float, samples: Sequence[Mapping[str, Array]]) -> None:
    if method not in METHODS:
        raise InputError(f"unknown calibration method {method!r}; the methods are: {', '.join(METHODS)}")
    if not 0 < percentile <= 100:
        raise InputError(f"percentile must be above 0 and at most 100, is {percentile:g}")
    if math.isnan(min_snr):
        raise InputError("min_snr must be a number of decibels, is NaN")
    if not len(samples):
        raise InputError("calibration needs at least one sample; there are none")


class _Checked(Sequence[Mapping[str, Array]]):
    """Samples that are checked against a model when they are read."""

    def __init__(self, graph: Graph, samples: Sequence[Mapping[str, Array]]) -> None:
        self._graph, self._samples = graph, samples

    def __len__(self) -> int:
        return len(self._samples)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise TypeError("samples are read one by one")
        given, name = self._samples[index], self._name(index)
        try:
            arrays = to_arrays(self._graph.name, self._graph.inputs, given, {})
        except InputError as error:
            raise InputError(f"calibration sample {name}: {error}") from None
        for input, array in arrays.items():
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise InputError(f"calibration sample {name}: input {input!r} has NaN or infinite elements")
        return arrays

    def _name(self, index: int) -> str:
        files = getattr(self._samples, "files", None)
        return str(index + 1) if files is None else repr(str(files[index]))


def _spread(samples: Sequence[Mapping[str, Array]], most: int) -> list[Mapping[str, Array]]:
    """Return at most this number of samples, spread evenly."""
    count = min(len(samples), most)
    return [samples[number * len(samples) // count] for number in range(count)]


def _is_layer(node: Node) -> bool:
    return not node.domain and node.op in OPERATORS


def _kept_by_user(graph: Graph, patterns: Sequence[str]) -> dict[str, str]:
    """Return a reason for each layer that a pattern names, by the name of its result."""
    found = {}
    for pattern in patterns:
        nodes = [node for node in graph.nodes if _is_layer(node) and matches_node(pattern, node)]
        if not nodes:
            known = [name for node in graph.nodes if _is_layer(node) for name in names_of(node)]
            problem = f"keep_float names {pattern!r}, but no Conv, Gemm or MatMul of the optimized graph has"
            raise unknown_name(problem, pattern, [*dict.fromkeys(known)])
        found.update({value.name: "keep_float names it" for node in nodes for value in node.outputs[:1] if value})
    return found


def _search(
    graph: Graph,
    layers: Sequence[Layer],
    parameters: Mapping[str, Parameters],
    measured: Sequence[Mapping[str, Array]],
    min_snr: float,
    start: Callable[[Graph], Session],
    progress: Callable[[str], None],
) -> Kept:
    if min_snr == -math.inf or not any(value.dtype.is_floating for value in graph.outputs):
        return Kept({}, {})
    progress("compiling the model with switches")
    model = SwitchedModel(graph, layers, parameters, measured, start)
    return find_kept(model, [layer.name for layer in layers], min_snr, progress)


def _record(
    graph: Graph, node: Node, reasons: Mapping[str, str], kept: Kept, noise: Mapping[str, float]
) -> LayerRecord:
    value, weights = node.outputs[0], node.inputs[1]
    assert value is not None
    array = None if weights is None else graph.constants.get(weights)
    shape: tuple[int, ...] = () if array is None else array.shape
    reason = reasons.get(value.name, "")
    size = 0 if array is None else array.nbytes
    channels = 0 if array is None or reason else shape[channel_axis(node, len(shape))]
    return LayerRecord(
        name=node.name,
        op=node.op,
        origin=str(node.origin or ""),
        weights=shape,
        kept=reason,
        snr_db=noise.get(value.name),
        alone_db=kept.alone_db.get(value.name),
        without_db=kept.without_db.get(value.name),
        bytes_before=size,
        bytes_after=size if reason or array is None else array.size + 4 * channels,
    )


def _notes(outputs: Sequence[OutputAccuracy], min_snr: float) -> list[str]:
    return [
        f"output {output.name!r} has {output.snr_db:.1f} dB, less than the {min_snr:g} dB asked for: the search runs "
        "other kernels, which round differently. A higher min_snr (--min-snr) keeps more layers in float32"
        for output in outputs
        if output.snr_db < min_snr
    ]
