"""Real Paddle models on the backend host, compared with Paddle's own inference on the same input.

Paddle's outputs are computed in the test if paddlepaddle is installed. For the small networks and (as samples) for
the OCR models they are committed, so that every environment compares some real models.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import catalog
import numpy as np
import pytest
from tiers import in_part

import lite_core as lite

# The largest difference of an output, as a share of that output's range.
TOLERANCE = 1e-4
GOLDENS = Path(__file__).parent / "models/goldens"
OCR = [name for name in catalog.NAMES if name.startswith("pp_ocr")]
#: The models that `make test` runs; the others belong to the full tier.
QUICK = ["mobilenet_v3_small-legacy", "mobilenet_v3_small-pir", *OCR]

needs_paddle = pytest.mark.skipif(not catalog.has_paddle(), reason="paddlepaddle is not installed: make test PADDLE=1")


def difference(result: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> float:
    """Return the largest difference as a share of the expected output's range."""
    assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    spread = float(expected.max()) - float(expected.min())
    assert spread > 1e-3, "the expected output is almost constant, which makes the comparison useless"
    return float(np.abs(result.astype(np.float64) - expected).max()) / spread


@pytest.fixture(scope="session", autouse=True)
def models(request: pytest.FixtureRequest) -> None:
    """Export all models in a few processes if the full tier runs; a single export takes seconds."""
    if catalog.has_paddle() and request.config.getoption("--part"):
        catalog.make_all(catalog.NAMES)


@needs_paddle
@pytest.mark.parametrize("name", in_part("models", catalog.NAMES, QUICK))
def test_model_matches_paddle(name: str) -> None:
    path = catalog.ensure(name)
    session = lite.load(path.model, backend="host", reader_options={"params": path.params})
    outputs = session.run(catalog.example_input(name))
    answer = catalog.paddle_answer(name)
    assert list(outputs) == list(answer)
    for output, expected in answer.items():
        assert difference(outputs[output], expected) <= TOLERANCE


@pytest.mark.parametrize("name", OCR)
def test_ocr_model_matches_the_committed_sample(name: str) -> None:
    path = catalog.ensure(name)
    session = lite.load(path.model, backend="host", reader_options={"params": path.params})
    (output,) = session.run(catalog.example_input(name)).values()
    sample = catalog.sampled_answer(name)
    assert output.shape == sample.shape
    found = output.reshape(-1)[sample.positions]
    assert difference(found, sample.values.astype(found.dtype)) <= TOLERANCE


TINY = sorted(p.relative_to(GOLDENS) for p in GOLDENS.glob("*/*") if p.is_dir())


@pytest.mark.parametrize("folder", TINY, ids=str)
def test_tiny_network_matches_the_committed_answer(folder: Path) -> None:
    directory = GOLDENS / folder
    session = lite.load(directory, backend="host")
    answers = directory if (directory / "outputs.npz").exists() else directory.parent / "legacy"
    with np.load(directory.parent / "inputs.npz") as inputs, np.load(answers / "outputs.npz") as expected:
        outputs = session.run(dict(inputs))
        assert list(outputs) == expected.files
        for name in expected.files:
            assert difference(outputs[name], expected[name]) <= TOLERANCE


def test_a_missing_model_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    second = threading.Event()

    def export(names: Sequence[str]) -> None:
        made.extend(names)
        second.set() if len(made) > 1 else second.wait(0.3)  # time for a second export to begin beside this one
        model = tmp_path / "resnet18" / "pir" / catalog.MODEL_FILE["pir"]
        model.parent.mkdir(parents=True)  # fails for a second export
        model.touch()

    monkeypatch.setenv("LITE_MODEL_CACHE", str(tmp_path))
    monkeypatch.setattr(catalog, "_export", export)
    with ThreadPoolExecutor(4) as callers:
        paths = list(callers.map(catalog.ensure, ["resnet18-pir"] * 4))
    assert made == ["resnet18-pir"]
    assert len(set(paths)) == 1
