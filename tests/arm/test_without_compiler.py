"""Sizes that were not prepared, on ARM processors without a compiler: the kernels come from the model file."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import MakePython
from test_other_sizes import agree, classifier, dynamic, dynamic_inputs, pictures

from lite_core import convert
from lite_core.ir import Graph

Array = np.ndarray[Any, Any]

RUN = """
import json, sys
import numpy as np
import lite_core as lite
file, fallback, *pairs = sys.argv[1:]
session = lite.load(file, backend="arm", threads=2, saved="trust", fallback=fallback)
for inputs, outputs in zip(pairs[::2], pairs[1::2]):
    with np.load(inputs) as given:
        np.savez(outputs, **session.run(dict(given)))
print(json.dumps({"notes": session.notes, "devices": session.devices, "compiler": "llvmlite" in sys.modules}))
"""

CLASSIFIER = [pictures(1, 3, 16, 40), pictures(4, 3, 16, 40), pictures(1, 3, 16, 75), pictures(3, 3, 16, 130)]


@pytest.mark.parametrize(
    ("make", "inputs", "fallback"),
    [(classifier, CLASSIFIER, "never"), (dynamic, dynamic_inputs(), "host")],
    ids=["classifier", "depends-on-data"],
)
def test_the_kernels_of_a_file_serve_other_sizes(
    arm: MakePython,
    tmp_path: Path,
    make: Callable[[], Graph],
    inputs: list[Mapping[str, Array]],
    fallback: str,
) -> None:
    graph, path = make(), tmp_path / "model.lite"
    shapes = {name: array.shape for name, array in inputs[0].items()}
    convert(graph, path, "arm", cpu="cortex-a53", shapes=shapes, data=inputs[0], verify=False, allow_fallback=True)
    files = []
    for number, given in enumerate(inputs):
        files += [tmp_path / f"in{number}.npz", tmp_path / f"out{number}.npz"]
        np.savez(files[-2], **given)  # type: ignore[arg-type]  # it takes names as keywords
    answer = json.loads(arm("cortex-a53").run("-c", RUN, str(path), fallback, *map(str, files)))
    on_host = [note for note in answer["notes"] if "1 x Compress" in note]  # no backend for processors has it
    assert answer["notes"] == on_host
    assert len(on_host) == (fallback == "host")
    assert not answer["compiler"]
    assert "arm" in answer["devices"]
    for given, results in zip(inputs, files[1::2]):
        agree(dict(np.load(results)), graph, given)
