"""Real models: converted on this machine, run on ARM processors without a compiler, compared with Paddle's answers.

Each file has code for three levels of processors, and each processor must choose the best that it has. The models are
run by the file's code only: on one thread, on two, and each again, with the same bits.
"""

from __future__ import annotations

import json
from pathlib import Path

import catalog
import numpy as np
import pytest
from conftest import MakePython
from test_models import TOLERANCE, difference

from lite_tools.conversion import convert

CLASSIFIERS = [f"{name}-pir" for name in catalog.VISION]
MODELS = [*CLASSIFIERS, *(name for name in catalog.OCR if "v4" in name)]

#: The processors, and the levels that they run.
LEVELS = {
    "cortex-a53": "arm-v8",
    "cortex-a76": "arm-v8+dotprod+fp16",
    "max": "arm-v8+dotprod+fp16+i8mm+bf16",
}

RUN = """
import json, sys
import numpy as np
import lite_core as lite
file, inputs, outputs = sys.argv[1:]
with np.load(inputs) as given:
    arrays = dict(given)
for threads in (1, 2):
    session = lite.load(file, backend="arm", threads=threads, saved="trust", fallback="never")
    found = session.run(arrays)
    np.savez(f"{outputs}/{threads}.npz", **found)
    again = session.run(arrays)
    for name, expected in found.items():
        np.testing.assert_array_equal(again[name], expected)
print(json.dumps({"notes": session.notes, "devices": session.devices, "compiler": "llvmlite" in sys.modules}))
"""


@pytest.fixture(scope="session")
def converted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Files that were converted, by model: each serves several tests."""
    return {}


def prepared(name: str, files: dict[str, Path], factory: pytest.TempPathFactory) -> Path:
    """Return the model's file for ARM; it is made when it is needed first."""
    if name not in files:
        path, target = catalog.ensure(name), factory.mktemp(name) / "model.lite"
        shapes = {key: value.shape for key, value in catalog.example_input(name).items()}
        params, levels = {"params": path.params}, list(LEVELS.values())
        convert(path.model, target, "arm", cpu=levels, shapes=shapes, verify=False, reader_options=params)
        files[name] = target
    return files[name]


@pytest.mark.parametrize("processor", LEVELS)
@pytest.mark.parametrize("name", MODELS)
def test_model_of_a_file_matches_paddle(
    arm: MakePython,
    name: str,
    processor: str,
    converted: dict[str, Path],
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    if name in CLASSIFIERS and not catalog.has_paddle():
        pytest.skip("paddlepaddle is not installed: make test-arm PADDLE=1")
    file = prepared(name, converted, tmp_path_factory)
    inputs = tmp_path / "inputs.npz"
    np.savez(inputs, **catalog.example_input(name))
    found = json.loads(arm(processor).run("-c", RUN, str(file), str(inputs), str(tmp_path)))
    assert (found["compiler"], found["devices"]) == (False, ["arm"])
    better = [level for level in LEVELS.values() if level.startswith(LEVELS[processor]) and level != LEVELS[processor]]
    assert len(found["notes"]) == len(better), found["notes"]  # a line about each level that the processor lacks
    for threads in (1, 2):
        results = dict(np.load(tmp_path / f"{threads}.npz"))
        if name in CLASSIFIERS:
            for key, expected in catalog.paddle_answer(name).items():
                assert difference(results[key], expected) <= TOLERANCE
        else:
            sample, (result,) = catalog.sampled_answer(name), list(results.values())
            assert result.shape == sample.shape
            values = result.reshape(-1)[sample.positions]
            assert difference(values, sample.values.astype(values.dtype)) <= TOLERANCE
