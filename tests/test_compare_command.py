"""``lite compare`` names planted faults in real models, and raises no false alarm on backends without any."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import catalog
import numpy as np
import pytest
from faulty_backend import nth_node
from faulty_backend.installing import install_planted
from faulty_backend.real_models import PLACES
from installed_plugins import lite as run_lite

import lite_core as lite
from lite_core.backend import Unavailable
from lite_core.formats import read_model
from lite_core.plugins import available_backends, default_plugins
from lite_core.session import make_ready
from lite_tools.writing import write_model

pytestmark = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="runs the backend x86")

#: The shapes of inputs; pictures of classifiers are 224 x 224.
SHAPES = {"pp_ocrv4_det": "1x3x640x640", "pp_ocrv4_rec": "1x3x48x320", "pp_ocrv4_cls": "1x3x48x192"}
MODELS = [*(f"{name}-legacy" for name in catalog.VISION), *SHAPES]


def file_of(name: str) -> Path:
    """Return the file of a model of the catalog; skip the test if it cannot be made here."""
    try:
        return catalog.ensure(name).model
    except catalog.ModelUnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A cache of compiled kernels for all tests of all test processes: building OpenCL programs takes longest."""
    base = tmp_path_factory.getbasetemp()
    return str((base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "kernels")


def compared(folder: Path, model: Path | str, *arguments: str, code: int, **environment: str) -> dict[str, Any]:
    """Run the command in a process of its own, and return its report."""
    done = run_lite(folder, "compare", str(model), "--repro", str(folder), "--json", *arguments, **environment)
    assert done.returncode == code, done.stdout[-2000:] + done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


# **** planted faults ****


@pytest.mark.full("models")
@pytest.mark.parametrize(("name", "fault"), [(name, fault) for name in PLACES for fault in PLACES[name]])
def test_one_command_names_the_node_of_a_planted_fault(name: str, fault: str, kernels: str, tmp_path: Path) -> None:
    model = file_of(name)
    op, number = PLACES[name][fault]
    node = nth_node(make_ready(read_model(model)).graph, op, number)
    install_planted(tmp_path, fault, node)
    runs = "20" if fault == "race" else "2"
    shape = SHAPES.get(name, "1x3x224x224")
    arguments = ("--b", "faulty", "--runs", runs, "-t", "2", "-s", shape)
    report = compared(tmp_path, model, *arguments, code=1, LITE_CACHE_DIR=kernels)
    assert report["culprit"] == [node], report["summary"]
    assert report["verdict"] == ("not deterministic" if fault in ("stale", "race") else "differ")
    if report["repro"]:
        again = subprocess.run([sys.executable, report["repro"]["script"], "host"], capture_output=True, text=True)
        assert again.returncode in (0, 1), again.stderr


# **** no false alarms ****

PAIRS = [("host", "x86"), ("host", "opencl"), ("x86", "opencl"), ("x86", "onnxruntime")]


@pytest.mark.full("models")
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
@pytest.mark.parametrize("name", MODELS)
def test_clean_backends_raise_no_alarm(name: str, pair: tuple[str, str], kernels: str, tmp_path: Path) -> None:
    backends = available_backends(default_plugins())
    for backend in pair:
        devices = backends[backend].probe() if backend in backends else Unavailable("it is not installed")
        if isinstance(devices, Unavailable):
            pytest.skip(f"{backend}: {devices.reason}")
    shape = SHAPES.get(name, "1x3x224x224")
    arguments = ("--a", pair[0], "--b", pair[1], "-s", shape)
    report = compared(tmp_path, file_of(name), *arguments, code=0, LITE_CACHE_DIR=kernels)
    assert report["verdict"] == "agree", report["summary"]
    assert len(report["rows"]) > 20


@pytest.mark.full("models")
@pytest.mark.parametrize(
    "arguments",
    [("--a", "x86", "--a-threads", "1", "-t", "2"), ("--a", "x86", "--no-passes"), ("--a", "x86", "--runs", "5")],
    ids=["threads", "passes", "itself"],
)
def test_one_backend_agrees_with_itself(arguments: tuple[str, ...], kernels: str, tmp_path: Path) -> None:
    model = file_of("mobilenet_v3_small-legacy")
    shape = ("-s", "1x3x224x224")
    report = compared(tmp_path, model, *arguments, "--b", "x86", *shape, code=0, LITE_CACHE_DIR=kernels)
    assert report["verdict"] == "agree", report["summary"]
    assert report["b"]["can_be_observed"]


@pytest.mark.full("models")
def test_a_prepared_file_agrees_with_its_source(kernels: str, tmp_path: Path) -> None:
    model, file = file_of("mobilenet_v3_small-legacy"), tmp_path / "small.lite"
    shape = ("--input-shape", "image=1x3x224x224")
    done = run_lite(
        tmp_path, "convert", str(model), "-o", str(file), "--targets", "x86", *shape, LITE_CACHE_DIR=kernels
    )
    assert done.returncode == 0, done.stderr
    report = compared(tmp_path, file, "--a-model", str(model), "--b", "x86", code=0, LITE_CACHE_DIR=kernels)
    assert report["verdict"] == "agree", report["summary"]
    assert len(report["rows"]) > 60


# **** the command ****


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A file with a convolution, a Relu, a product and a Softmax."""
    random = np.random.default_rng(0)
    b = lite.GraphBuilder("tiny")
    x = b.input("x", "float32", ("N", 3, 16, 16))
    x = b.add(
        "Conv", [x, b.constant(random.standard_normal((8, 3, 3, 3), np.float32))], {"pads": (1,) * 4}, name="conv"
    )
    x = b.add("MatMul", [b.add("Relu", [x], name="relu"), b.constant(random.standard_normal((16, 5), np.float32))])
    b.output(b.add("Softmax", [x], name="softmax"), "y")
    file = tmp_path / "tiny.lite"
    write_model(file, b.build())
    return file


@pytest.mark.full("models")
def test_the_command_says_what_differs_and_how_to_repeat_it(model: Path, tmp_path: Path) -> None:
    install_planted(tmp_path, "padding", "conv")
    page = tmp_path / "page.html"
    done = run_lite(tmp_path, "compare", str(model), "--b", "faulty", "--repro", str(tmp_path), "--html", str(page))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "The first step that diverges is conv (Conv)" in done.stdout
    assert f"next: python {tmp_path}" in done.stdout
    assert max(map(len, done.stdout.split("\n\n")[1].splitlines())) <= 80
    assert "input x leaves its batch open: 1 is taken" in done.stderr
    assert "conv" in page.read_text()


def test_two_machines_are_compared_by_a_file(model: Path, tmp_path: Path) -> None:
    values = tmp_path / "values.npz"
    done = run_lite(tmp_path, "compare", str(model), "--a", "host", "--save", str(values))
    assert done.returncode == 0, done.stderr
    assert "lite compare" in done.stdout
    assert compared(tmp_path, model, "--b", "host", "--load", str(values), code=0)["verdict"] == "agree"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--load", "a.npz", "--a", "x86"], "--load brings side a"),
        (["--save", "a.npz", "--b", "x86"], "--save runs side a only"),
        (["--load", "missing.npz"], "missing.npz"),
    ],
)
def test_options_that_do_not_fit_are_refused(model: Path, tmp_path: Path, arguments: list[str], message: str) -> None:
    done = run_lite(tmp_path, "compare", str(model), *arguments)
    assert done.returncode == 2, done.stdout + done.stderr
    assert message in done.stderr
