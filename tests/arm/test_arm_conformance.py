"""The conformance suite on the backend arm, under emulation.

Everything is green, and every refusal has a reason. Kernels are compiled by a process of this machine. Of the operators
(level 2), `make test-arm` runs a sample that has every operator; the full tier runs all, in shards.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from conformance_command import assert_green
from conftest import MakePython
from emulated import PROCESSORS

from full_tests import state_of_sources
from workspace import ROOT

#: Emulation is about a hundred times slower than a processor: limits that are meant for hanging cases grow with it.
_TIMEOUT = "--timeout=900"
_SHARDS = 4


def run(arm: MakePython, processor: str, folder: Path, *options: str) -> None:
    python = arm(processor, compiles=True)
    executable = python.environment / "bin/python"
    assert_green("arm", [_TIMEOUT, *options], folder, python=executable, variables=python.variables)


@pytest.mark.parametrize("processor", PROCESSORS)
def test_contract(arm: MakePython, processor: str, reports: Path) -> None:
    run(arm, processor, reports, "--level", "L0-L1")


@pytest.mark.parametrize("shard", range(1, _SHARDS + 1))
def test_sample_of_operators(arm: MakePython, shard: int, seed: int, reports: Path) -> None:
    sample = ("--sample=1500", f"--seed={seed}", f"--shard={shard}/{_SHARDS}", "--examples=3")
    run(arm, "cortex-a76", reports, "--level", "L2-L2", *sample)


@pytest.mark.parametrize(
    ("processor", "operators"), [("cortex-a53", "Conv"), ("max", "*Integer*"), ("max", "QLinear*")]
)
def test_operators_whose_kernels_differ_between_processors(
    arm: MakePython, processor: str, operators: str, seed: int, reports: Path
) -> None:
    sample = ("--sample=60", f"--seed={seed}", "--examples=3")
    run(arm, processor, reports, "--level", "L2-L2", "--op", operators, *sample)


def test_sample_of_graphs(arm: MakePython, seed: int, reports: Path) -> None:
    run(arm, "cortex-a76", reports, "--level", "L3-L3", "--sample=60", f"--seed={seed}", "--examples=3")


def test_products_of_float16(arm: MakePython, tmp_path: Path) -> None:
    run(arm, "cortex-a76", tmp_path, "--precision", "float16-sums", "--level", "L2-L2", "--case", "precision[*")


def test_threads_and_memory(arm: MakePython, seed: int, reports: Path) -> None:
    run(arm, "cortex-a76", reports, "--level", "L5-L5", "--sample=12", f"--seed={seed}")


@pytest.mark.full("arm")
@pytest.mark.parametrize("shard", range(1, 33))
def test_operators(arm: MakePython, shard: int, seed: int) -> None:
    """Run a shard of all operators; go on with it if it was interrupted, and do not repeat it if it passed."""
    folder = ROOT / "out/full" / state_of_sources() / f"arm-operators-{shard}"
    if not (folder / "passed").exists():
        folder.mkdir(parents=True, exist_ok=True)
        run(arm, "cortex-a76", folder, "--level", "L2-L2", f"--seed={seed}", f"--shard={shard}/32", "--resume")
        (folder / "passed").touch()
