"""One .lite file for two targets: each real model, run where its first target is present, absent, or broken.

The first target is the backend of :mod:`discrete_memory`; the second is x86. Everything is done by the command line,
each run in a separate process that sees other plugins.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from functools import cache
from pathlib import Path
from typing import Any

import catalog
import numpy as np
import pytest
from installed_plugins import install, lite
from tiers import in_part

import lite_core

pytestmark = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="this is not an x86 processor")

Array = np.ndarray[Any, Any]

MODELS = (*(f"{name}-legacy" for name in catalog.VISION), "pp_ocrv4_det", "pp_ocrv4_rec", "pp_ocrv4_cls")
#: The models that `make test` runs; the others belong to the full tier.
QUICK = ["mobilenet_v3_small-legacy", "pp_ocrv4_cls"]

PRESENT = """
from discrete_memory import DiscreteMemoryBackend
from lite_core.plugins import hookimpl

LITE_API_VERSION = 1

@hookimpl
def lite_backends():
    return [DiscreteMemoryBackend(refused=[{refused}]{speed})]
"""
NO_DEVICE = """
from discrete_memory import DiscreteMemoryBackend
from lite_core.backend import Unavailable
from lite_core.plugins import hookimpl

LITE_API_VERSION = 1

class Unplugged(DiscreteMemoryBackend):
    def probe(self):
        return Unavailable("its driver finds no device", "plug one in")

@hookimpl
def lite_backends():
    return [Unplugged()]
"""
FAILS = """
from discrete_memory import DiscreteMemoryBackend
from lite_core.plugins import hookimpl

LITE_API_VERSION = 1

class Failing(DiscreteMemoryBackend):
    def restore(self, *arguments):
        raise OSError("the device is lost")

    def compile(self, *arguments):
        raise OSError("the device is lost")

@hookimpl
def lite_backends():
    return [Failing()]
"""

#: The plugin installed on a machine, the device that then runs the file, and a part of the session's log about it.
MACHINES = {
    "present": (PRESENT, "discrete", "discrete"),
    "absent": ("", "x86", "discrete"),
    "no device": (NO_DEVICE, "x86", "its driver finds no device"),
    "broken": ("raise ImportError('libdiscrete.so is missing')", "x86", "discrete"),
    "failing": (FAILS, "x86", "discrete/0"),
}


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return a folder for each machine, with the plugin that is installed there."""
    folders = {}
    for machine, (source, _, _) in MACHINES.items():
        folders[machine] = tmp_path_factory.mktemp("site")
        if source:
            install(folders[machine], "discrete", source.replace("{refused}", "").replace("{speed}", ""))
    return folders


@pytest.fixture(autouse=True)
def make_discrete_memory_importable(monkeypatch: pytest.MonkeyPatch) -> None:
    path = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path))


@cache
def expected_outputs(name: str) -> dict[str, Array]:
    """Return the outputs of the model before its conversion."""
    files = catalog.ensure(name)
    session = lite_core.load(
        files.model, backend="x86", reader_options={"params": files.params}, fallback="never", threads=2
    )
    return session.run(catalog.example_input(name))


def succeed(site: Path, *arguments: str, **environment: str) -> dict[str, Any]:
    """Run a command that must succeed; return its JSON output."""
    completed = lite(site, *arguments, "--json", **environment)
    assert completed.returncode == 0, f"{' '.join(arguments)}\n{completed.stdout}\n{completed.stderr}"
    result: dict[str, Any] = json.loads(completed.stdout)
    return result


def convert(site: Path, name: str, file: Path, *options: str) -> dict[str, Any]:
    """Convert a catalog model for both targets, for the shapes of its example input."""
    files = catalog.ensure(name)
    shapes = [f"--input-shape={n}={'x'.join(map(str, a.shape))}" for n, a in catalog.example_input(name).items()]
    settings = ("--targets", "discrete,x86", "--threads", "2", *shapes, *options)
    return succeed(site, "convert", str(files.model), "-o", str(file), *settings)


def run(site: Path, file: Path, name: str, **environment: str) -> tuple[dict[str, Any], dict[str, Array]]:
    """Run a file on the example input of a catalog model; return the command's JSON output, and the outputs."""
    inputs, outputs = file.with_suffix(".in.npz"), file.with_suffix(".out.npz")
    np.savez(inputs, **catalog.example_input(name))
    completed = succeed(site, "run", str(file), "-i", str(inputs), "-o", str(outputs), "--threads", "2", **environment)
    with np.load(outputs) as arrays:
        return completed, dict(arrays)


def require(name: str) -> None:
    try:
        catalog.ensure(name)
    except catalog.ModelUnavailableError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", in_part("models", MODELS, QUICK))
def test_one_file_runs_on_every_machine_and_gives_the_same(name: str, sites: dict[str, Path], tmp_path: Path) -> None:
    require(name)
    file = tmp_path / "model.lite"
    convert(sites["present"], name, file, "--no-verify")
    expected = expected_outputs(name)
    for machine, (_, device, note) in MACHINES.items():
        completed, outputs = run(sites[machine], file, name)
        assert completed["devices"] == [device], machine
        assert any(note in line for line in completed["selection_log"]), (machine, completed["selection_log"])
        assert all(np.array_equal(expected[n], outputs[n]) for n in expected), machine


@pytest.mark.parametrize("name", ["mobilenet_v3_small-legacy", "pp_ocrv4_cls"])
def test_a_model_that_is_split_between_the_targets(name: str, sites: dict[str, Path], tmp_path: Path) -> None:
    require(name)
    site = tmp_path / "site"
    site.mkdir()
    # Without a stated speed no node moves to save copies. On a busy machine, copies measured slow would move them all.
    refused = "'HardSwish', 'GlobalAveragePool'"
    install(site, "discrete", PRESENT.replace("{refused}", refused).replace("{speed}", ", flops=0"))
    file = tmp_path / "model.lite"
    report = convert(site, name, file, "--allow-fallback")
    assert report["file"]["written"] if "file" in report else file.exists()
    completed, outputs = run(site, file, name)
    assert set(completed["devices"]) == {"discrete", "x86"}
    for output, array in expected_outputs(name).items():
        spread = float(array.max() - array.min())
        assert float(np.abs(outputs[output] - array).max()) <= 1e-4 * spread


def test_prepared_partitions_are_used(sites: dict[str, Path], tmp_path: Path) -> None:
    name = "pp_ocrv4_cls"
    require(name)
    file = tmp_path / "model.lite"
    convert(sites["present"], name, file, "--no-verify")
    counts = tmp_path / "counts.py"
    counts.write_text(
        "import sys, lite_core, numpy as np\n"
        "from lite_core.plugins import default_plugins\n"
        "session = lite_core.load(sys.argv[1], threads=2)\n"
        "backend = next(b for _, b in default_plugins().ask('lite_backends') if b.name == 'discrete')\n"
        "inputs = dict(np.load(sys.argv[2]))\n"
        "session.prepare({name: array.shape for name, array in inputs.items()})\n"
        "memory = backend.tensors\n"
        "before = memory.uploads, memory.downloads  # the planner may have measured copies\n"
        "session.run(inputs)\n"
        "print(backend.restored, backend.compiled, memory.uploads - before[0], memory.downloads - before[1])\n"
    )
    np.savez(tmp_path / "x.npz", **catalog.example_input(name))
    import subprocess

    path = os.pathsep.join([str(sites["present"]), os.environ["PYTHONPATH"]])
    for ignore, expected in (("", "1 0 1 1"), ("ignore", "0 1 1 1")):
        completed = subprocess.run(
            [sys.executable, str(counts), str(file), str(tmp_path / "x.npz")],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": path, "LITE_SAVED": ignore},
        )
        assert completed.stdout.strip() == expected, completed.stderr
