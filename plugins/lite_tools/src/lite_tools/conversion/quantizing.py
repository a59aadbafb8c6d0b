"""Quantization of layers as a step of a conversion."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lite_core.errors import InputError
from lite_core.ir import Graph
from lite_core.plugins import PluginManager, default_plugins
from lite_core.session import make_ready
from lite_tools.comparing.errors import plain_number
from lite_tools.quantization import MIN_SNR, QuantizationReport, QuantizedModel, quantize_model
from lite_tools.quantization.samples import FolderSamples

__all__ = ["QUANTIZED_TYPES", "Quantization", "quantized_graph", "summary"]

Array = np.ndarray[Any, Any]

#: The types that layers may be quantized to.
QUANTIZED_TYPES = ("int8",)


@dataclass(frozen=True, slots=True)
class Quantization:
    """The arguments of ``convert`` about quantization, which :func:`lite_tools.conversion.convert` explains.

    Attributes:
        type: ``quantize``.
        calibrate: a folder or samples.
        method: ``calibration_method``.
        percentile: ``percentile``; None if it was not given.
        samples: ``calibration_samples``.
        keep_float: ``keep_float``.
        min_snr: ``min_snr``; None if it was not given.
    """

    type: str | None = None
    calibrate: str | os.PathLike[str] | Sequence[Mapping[str, Array]] | None = None
    method: str = "minmax"
    percentile: float | None = None
    samples: int | None = None
    keep_float: Sequence[str] = ()
    min_snr: float | None = None

    def check(self) -> None:
        """Check that the arguments go together, before long work begins.

        Raises:
            InputError: they do not.
        """
        if self.type is None:
            given = [
                name
                for name, is_given in (
                    ("calibrate (--calibrate)", self.calibrate is not None),
                    ("keep_float (--keep-float)", bool(self.keep_float)),
                    ("min_snr (--min-snr)", self.min_snr is not None),
                    ("calibration_samples (--calibration-samples)", self.samples is not None),
                    ("percentile (--percentile)", self.percentile is not None),
                )
                if is_given
            ]
            if given:
                raise InputError(f"{given[0]} needs quantize='int8' (--quantize int8)")
            return
        if self.type not in QUANTIZED_TYPES:
            raise InputError(f"quantize must be one of {', '.join(QUANTIZED_TYPES)}, not {self.type!r}")
        if self.calibrate is None:
            raise InputError(
                "quantize (--quantize) needs samples of the model's inputs: calibrate=FOLDER (--calibrate FOLDER), a "
                "folder of .npz files. To store weights in fewer bits without samples: weights='int8' (--weights int8)"
            )
        if self.percentile is not None and self.method != "percentile":
            raise InputError("percentile (--percentile) needs calibration_method='percentile'")

    def sample_source(self, graph: Graph) -> Sequence[Mapping[str, Array]]:
        """Return the samples.

        Raises:
            InputError: the folder is missing or empty.
        """
        given = self.calibrate
        assert given is not None
        if isinstance(given, (str, os.PathLike)):
            return FolderSamples(given, {value.name: value.type for value in graph.inputs}, self.samples)
        return given if self.samples is None else given[: self.samples]

    def applied(
        self,
        graph: Graph,
        samples: Sequence[Mapping[str, Array]],
        plugins: PluginManager,
        progress: Callable[[str], None],
    ) -> QuantizedModel:
        """Return a ready graph with quantized layers, see :func:`lite_tools.quantization.quantize_model`."""
        return quantize_model(
            graph,
            samples,
            method=self.method,
            percentile=99.99 if self.percentile is None else self.percentile,
            keep_float=self.keep_float,
            min_snr=MIN_SNR if self.min_snr is None else self.min_snr,
            plugins=plugins,
            progress=progress,
        )


def quantized_graph(graph: Graph, progress: Callable[[str], None], *arguments: Any) -> tuple[Graph, QuantizationReport]:
    """Return a graph with quantized layers, for formats other than Lite's own.

    Args:
        graph: the graph as it was read.
        progress: called with a description of each step.
        arguments: the fields of :class:`Quantization`, in its order.

    Raises:
        InputError: see :func:`lite_tools.quantization.quantize_model`.
    """
    wanted, plugins = Quantization(*arguments), default_plugins()
    wanted.check()
    ready, _ = make_ready(graph, plugins)
    result = wanted.applied(ready, wanted.sample_source(ready), plugins, progress)
    return result.graph, result.report


def summary(report: QuantizationReport) -> str:
    """Return what a file keeps about its quantization, as JSON."""
    facts = {
        "type": "int8",
        "method": report.method,
        **({"percentile": report.percentile} if report.method == "percentile" else {}),
        "samples": report.samples,
        "snr_db": {output.name: plain_number(round(output.snr_db, 2)) for output in report.outputs},
        "quantized": sum(not layer.kept for layer in report.layers),
        "kept": {layer.name: layer.kept for layer in report.kept},
    }
    return json.dumps(facts)
