"""One file for two targets: a .lite file of each real model, run where its first target is, is not, or is broken.

The first target is :mod:`apart`, which has memory of its own; the second is x86. Everything is done by the command
line, each run in a process of its own that sees other plugins installed.
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

import lite_core

pytestmark = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="this is not an x86 processor")

Array = np.ndarray[Any, Any]

MODELS = (*(f"{name}-legacy" for name in catalog.VISION), "pp_ocrv4_det", "pp_ocrv4_rec", "pp_ocrv4_cls")

APART = """
from apart import ApartBackend
from lite_core.plugins import hookimpl

LITE_API_VERSION = 1

@hookimpl
def lite_backends():
    return [ApartBackend(refused=[{refused}])]
"""
NO_DEVICE = """
from apart import ApartBackend
from lite_core.backend import Unavailable
from lite_core.plugins import hookimpl

LITE_API_VERSION = 1

class Unplugged(ApartBackend):
    def probe(self):
        return Unavailable("its driver finds no device", "plug one in")

@hookimpl
def lite_backends():
    return [Unplugged()]
"""
FAILS = """
from apart import ApartBackend
from lite_core.plugins import hookimpl

LITE_API_VERSION = 1

class Failing(ApartBackend):
    def restore(self, *arguments):
        raise OSError("the device is lost")

    def compile(self, *arguments):
        raise OSError("the device is lost")

@hookimpl
def lite_backends():
    return [Failing()]
"""

#: What is installed on a machine that runs the file, the device that then runs it, and what the session says of it.
MACHINES = {
    "present": (APART, "apart", "apart: memory apart, score 50"),
    "absent": (
        "",
        "x86",
        "apart: the model is made for it, but it is not installed: none of Lite's packages brings it",
    ),
    "no device": (NO_DEVICE, "x86", "apart: not available: its driver finds no device. plug one in"),
    "broken": ("raise ImportError('libapart.so is missing')", "x86", "apart: the model is made for it, but it is not"),
    "failing": (FAILS, "x86", "failed to compile partition 'apart/0'"),
}


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A folder for each machine with the plugin that is installed there."""
    folders = {}
    for machine, (source, _, _) in MACHINES.items():
        folders[machine] = tmp_path_factory.mktemp("site")
        if source:
            install(folders[machine], "apart", source.replace("{refused}", ""))
    return folders


@pytest.fixture(autouse=True)
def apart_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    path = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path))


@cache
def answer(name: str) -> dict[str, Array]:
    """What the model gives as it was before it was converted."""
    files = catalog.ensure(name)
    session = lite_core.load(
        files.model, backend="x86", reader_options={"params": files.params}, fallback="never", threads=2
    )
    return session.run(catalog.example_input(name))


def succeed(site: Path, *arguments: str, **environment: str) -> dict[str, Any]:
    """What a command prints as JSON; it must succeed."""
    shown = lite(site, *arguments, "--json", **environment)
    assert shown.returncode == 0, f"{' '.join(arguments)}\n{shown.stdout}\n{shown.stderr}"
    result: dict[str, Any] = json.loads(shown.stdout)
    return result


def convert(site: Path, name: str, file: Path, *options: str) -> dict[str, Any]:
    """Convert a catalog model for both targets, for the shapes of its example."""
    files = catalog.ensure(name)
    shapes = [f"--input-shape={n}={'x'.join(map(str, a.shape))}" for n, a in catalog.example_input(name).items()]
    settings = ("--targets", "apart,x86", "--threads", "2", *shapes, *options)
    return succeed(site, "convert", str(files.model), "-o", str(file), *settings)


def run(site: Path, file: Path, name: str, **environment: str) -> tuple[dict[str, Any], dict[str, Array]]:
    """Run a file on the example of a catalog model: what the command prints, and the outputs."""
    inputs, outputs = file.with_suffix(".in.npz"), file.with_suffix(".out.npz")
    np.savez(inputs, **catalog.example_input(name))
    shown = succeed(site, "run", str(file), "-i", str(inputs), "-o", str(outputs), "--threads", "2", **environment)
    with np.load(outputs) as arrays:
        return shown, dict(arrays)


def require(name: str) -> None:
    try:
        catalog.ensure(name)
    except catalog.ModelUnavailableError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", MODELS)
def test_one_file_runs_on_every_machine_and_gives_the_same(name: str, sites: dict[str, Path], tmp_path: Path) -> None:
    require(name)
    file = tmp_path / "model.lite"
    convert(sites["present"], name, file, "--no-verify")
    expected = answer(name)
    for machine, (_, device, said) in MACHINES.items():
        shown, outputs = run(sites[machine], file, name)
        assert shown["devices"] == [device], machine
        assert any(said in line for line in shown["selection_log"]), (machine, shown["selection_log"])
        assert all(np.array_equal(expected[n], outputs[n]) for n in expected), machine


@pytest.mark.parametrize("name", ["mobilenet_v3_small-legacy", "pp_ocrv4_cls"])
def test_a_model_that_is_split_between_the_targets(name: str, sites: dict[str, Path], tmp_path: Path) -> None:
    require(name)
    site = tmp_path / "site"
    site.mkdir()
    install(site, "apart", APART.replace("{refused}", "'HardSwish', 'GlobalAveragePool'"))
    file = tmp_path / "model.lite"
    report = convert(site, name, file, "--allow-fallback")
    assert report["file"]["written"] if "file" in report else file.exists()
    shown, outputs = run(site, file, name)
    assert set(shown["devices"]) == {"apart", "x86"}
    for output, array in answer(name).items():
        spread = float(array.max() - array.min())
        assert float(np.abs(outputs[output] - array).max()) <= 1e-4 * spread


def test_what_was_prepared_is_used(sites: dict[str, Path], tmp_path: Path) -> None:
    name = "pp_ocrv4_cls"
    require(name)
    file = tmp_path / "model.lite"
    convert(sites["present"], name, file, "--no-verify")
    counts = tmp_path / "counts.py"
    counts.write_text(
        "import sys, lite_core, numpy as np\n"
        "from lite_core.plugins import default_plugins\n"
        "session = lite_core.load(sys.argv[1], threads=2)\n"
        "session.run(dict(np.load(sys.argv[2])))\n"
        "backend = next(b for _, b in default_plugins().ask('lite_backends') if b.name == 'apart')\n"
        "print(backend.restored, backend.compiled, backend.tensors.uploads, backend.tensors.downloads)\n"
    )
    np.savez(tmp_path / "x.npz", **catalog.example_input(name))
    import subprocess

    path = os.pathsep.join([str(sites["present"]), os.environ["PYTHONPATH"]])
    for ignore, expected in (("", "1 0 1 1"), ("ignore", "0 1 1 1")):
        shown = subprocess.run(
            [sys.executable, str(counts), str(file), str(tmp_path / "x.npz")],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": path, "LITE_SAVED": ignore},
        )
        assert shown.stdout.strip() == expected, shown.stderr
