"""Tournaments of the backend ``x86``: a model file that was tuned is used without measuring."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from convolution_case import ConvolutionCase

import lite_core as lite
from lite_cpu.comparison import ColdComparison
from lite_x86 import detect
from lite_x86.backend import X86Backend

pytestmark = pytest.mark.skipif(not detect.is_x86_64(), reason="the processor is no x86-64")

CASE = ConvolutionCase(16, 16, (14, 14), (3, 3), pads=(1, 1, 1, 1))


def test_choices_are_kept_by_processor() -> None:
    backend = X86Backend()
    device = backend._share().choices().device
    assert detect.this_processor().model in device
    assert backend.machine().name in device
    assert any("choices of kernels in" in line for line in backend.report())


@pytest.mark.full("cpu")
def test_tuned_model_file_is_not_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any) -> tuple[float, float]:
        raise AssertionError("candidates are measured")

    lite.convert(CASE.graph("float32"), tmp_path / "tuned.lite", "x86", threads=1, tune=True)
    monkeypatch.setattr(ColdComparison, "__call__", refuse)
    results = []
    for tune in (False, True):
        session = lite.load(tmp_path / "tuned.lite", "x86", threads=1, tune=tune, fallback="never")
        results.append(session.run(CASE.inputs(), profile=True)["y"].tobytes())
        assert re.search(r"choices: \d+ from the model's file", str(session.last_profile))
        assert not session.notes
    assert results[0] == results[1]
