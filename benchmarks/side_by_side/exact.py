"""The exact outputs of the models: computed in float64 by the references, and kept beside the converted models.

    python -m side_by_side.exact SOURCE INPUTS TARGET

``SOURCE`` is a model, ``INPUTS`` an ``.npz`` file, and ``TARGET`` the ``.npy`` file that receives its first output.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["LEAST_ERROR", "compute", "distances"]

Array = np.ndarray[Any, Any]

#: The smallest error that is told apart from none, as a share of the range: that of one rounding to float32.
LEAST_ERROR = 2.0**-24


def compute(source: str, inputs: Path, target: Path) -> None:
    """Compute the first output of a model in float64, or in its own types where they cannot be widened.

    Args:
        source: the model.
        inputs: the ``.npz`` file with its inputs.
        target: the ``.npy`` file to write.
    """
    # Imported here: a process that measures needs neither.
    import lite_core as lite
    from lite_conformance.judge.oracle import in_float64
    from lite_core.ops.evaluate import evaluate_graph

    graph = in_float64(lite.read_model(source))
    with np.load(inputs) as arrays:
        given = [arrays[value.name].astype(value.dtype.numpy) for value in graph.inputs]
    np.save(target, evaluate_graph(graph, given)[0])


def distances(output: Array, exact: Array) -> tuple[float, float]:
    """Return how far an output is from the exact one.

    Returns:
        The signal-to-noise ratio in dB, ``10 log10(sum y^2 / sum (x - y)^2)``, and the greatest error of an element as
        a share of the range of the exact output. An output that is as exact as float32 can hold has the ratio that
        belongs to errors of :data:`LEAST_ERROR`; one of another shape, or with a NaN, has minus infinity.
    """
    if output.shape != exact.shape or not np.isfinite(output).all():
        return -math.inf, math.inf
    errors = np.abs(output.astype(np.float64) - exact)
    signal, noise = float(np.square(exact).sum()), float(np.square(errors).sum())
    ratio = 10 * math.log10(signal / max(noise, signal * LEAST_ERROR**2)) if signal else math.inf
    return ratio, float(errors.max()) / (float(np.ptp(exact)) or 1.0)


if __name__ == "__main__":
    compute(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
