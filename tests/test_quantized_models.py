"""Real models with weights stored in fewer bits: smaller files, and nearly the same outputs."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path
from typing import Any

import catalog
import numpy as np
import pytest

import lite_core as lite
from lite_core.formats import read_model
from lite_core.ir import Graph
from lite_core.passes import optimize
from lite_tools.quantization import compare_outputs, quantize_weights
from lite_tools.writing import write_model

pytestmark = [
    pytest.mark.full("models"),
    pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="this is not an x86 processor"),
]

Array = np.ndarray[Any, Any]

#: Models with large matrix products beside convolutions: both must be quantized.
MODELS = ("mobilenet_v1-legacy", "pp_ocrv4_rec", "pp_ocrv5_mobile_rec", "pp_ocrv4_cls")
#: Greatest size of the file, as a share of its size with float32 weights.
SIZE = {"int8": 0.30, "float16": 0.53}
#: Limits of small models, in which biases, scales and the graph itself have a larger share.
SIZE_OF_SMALL_MODELS = {"int8": 0.50, "float16": 0.65}
#: Least ratio of outputs to their errors, in decibels.
SIGNAL_TO_NOISE = {"int8": 20, "float16": 45}


@cache
def plain(name: str) -> Graph:
    try:
        path = catalog.ensure(name)
    except catalog.ModelUnavailableError as error:
        pytest.skip(str(error))
    return optimize(read_model(path.model, params=path.params))[0]


def load(graph: Graph) -> lite.Session:
    return lite.load(graph, backend="x86", threads=1, fallback="never")


def text_of(probabilities: Array) -> list[int]:
    """Return the text that a recogniser reads: the likeliest class of each step, without repetitions and blanks (0)."""
    classes = probabilities.argmax(-1).reshape(-1)
    changed = np.concatenate([[True], classes[1:] != classes[:-1]])
    return [int(c) for c in classes[changed] if c]


@pytest.mark.parametrize("scheme", ["int8", "float16"])
@pytest.mark.parametrize("name", MODELS)
def test_smaller_file_has_the_same_outputs(name: str, scheme: str, tmp_path: Path) -> None:
    graph = plain(name)
    result = quantize_weights(graph, scheme)
    assert not [record for record in result.weights if record.kept]

    sizes = []
    for file, content in {"plain.lite": graph, "small.lite": result.graph}.items():
        write_model(tmp_path / file, content, optimized=True)
        sizes.append((tmp_path / file).stat().st_size)
    limits = SIZE_OF_SMALL_MODELS if name == "pp_ocrv4_cls" else SIZE
    assert sizes[1] <= limits[scheme] * sizes[0]

    inputs = catalog.example_input(name)
    (accuracy,) = compare_outputs(graph, result.graph, [inputs], make_run=lambda g: load(g).run)
    assert accuracy.snr_db >= SIGNAL_TO_NOISE[scheme]
    assert accuracy.top1_agreement == 1
    if name.endswith("_rec"):
        before, after = (text_of(next(iter(load(g).run(inputs).values()))) for g in (graph, result.graph))
        assert len(before) > 3
        assert after == before


@pytest.mark.parametrize("scheme", ["int8", "float16"])
def test_quantized_model_is_one_partition(scheme: str) -> None:
    session = load(quantize_weights(plain("pp_ocrv4_rec"), scheme).graph)
    session.run(catalog.example_input("pp_ocrv4_rec"), profile=True)
    assert {a.device for a in session.assignment()} == {"x86"}
    assert session.last_profile is not None
    assert len(session.last_profile.partitions) == 1
