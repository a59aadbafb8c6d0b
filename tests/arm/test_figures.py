"""The figures on the page about ARM still hold: instructions of small models, and the inner loops of kernels."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import catalog
import pytest

from workspace import ROOT


def check(request: pytest.FixtureRequest, script: str, *arguments: str) -> None:
    options = ["--check", "--environment", str(request.config.getoption("--arm"))]
    command = [sys.executable, str(ROOT / "benchmarks" / script), *options, *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout[-2000:]}{done.stderr[-4000:]}"


@pytest.mark.skipif(shutil.which(os.environ.get("CC", "cc")) is None, reason="no C compiler for the plugin that counts")
def test_small_models_need_no_more_instructions_than_recorded(request: pytest.FixtureRequest) -> None:
    models = {"mobilenet_v3_small": "mobilenet_v3_small-legacy", "pp_ocrv4_cls": "pp_ocrv4_cls"}
    try:
        for entry in models.values():
            catalog.ensure(entry)
    except catalog.ModelUnavailableError as error:
        pytest.skip(str(error))
    check(request, "arm_instructions.py", "--models", *models)


def test_inner_loops_use_the_processors_as_recorded(request: pytest.FixtureRequest) -> None:
    check(request, "arm.py")
