"""A package that was written for version 1 of the contract of plugins, as its author published it, works unchanged.

``tests/api_v1`` must not be edited; docs/api-stability.md has the promise that it holds.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from installed_plugins import lite, plugins_of
from unpacked_wheels import unpacked_wheel

import lite_core as core
from lite_conformance import read_report
from lite_core.backend import API_VERSION, Buffer, Options, Partition
from lite_core.ir import Node
from lite_core.ops import registry
from lite_core.ops.evaluate import evaluate_graph
from lite_core.plugins import PluginManager, available_backends, plugins_with
from lite_tools.conversion import convert

FROZEN = Path(__file__).parent / "api_v1"
PACKAGE = FROZEN / "lite-granite"
DISTRIBUTION = "lite-granite 1.4.2"

pytestmark = pytest.mark.skipif(
    API_VERSION != 1, reason="written for version 1; the package of the present version is tested by its own file"
)


def test_nobody_edited_the_frozen_package() -> None:
    """Compare each file with the hash that it was committed with: a change would hide what breaks for its users."""
    listed = dict(line.split("  ")[::-1] for line in (FROZEN / "SHA256SUMS").read_text().splitlines())
    files = [path for path in PACKAGE.rglob("*") if path.is_file() and not {"__pycache__", "dist"} & {*path.parts}]
    found = {
        path.relative_to(FROZEN).as_posix(): hashlib.sha256(path.read_bytes().replace(b"\r\n", b"\n")).hexdigest()
        for path in files
    }
    changed = {name for name, _ in found.items() ^ listed.items()}
    assert not changed, "restore these files; if lite-core broke them, cure lite-core (docs/api-stability.md)"


# **** installed as pip does ****


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel of the package and unpack it into a folder, with its dist-info."""
    folder = tmp_path_factory.mktemp("granite")
    shutil.copytree(PACKAGE, folder / "sources", ignore=shutil.ignore_patterns("__pycache__", "dist"))
    return unpacked_wheel(folder / "sources", folder)


@pytest.fixture
def plugins(installed: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PluginManager]:
    """Find the package alone, as in a new process, and make each of its failures an error."""
    monkeypatch.setenv("LITE_STRICT_PLUGINS", "1")
    monkeypatch.delenv("GRANITE", raising=False)
    with imported_from(installed, monkeypatch):
        yield plugins_of(installed)


@contextmanager
def imported_from(site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Import the package from a folder; afterwards, unload it and its operator."""
    monkeypatch.syspath_prepend(str(site))
    try:
        yield
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "lite_granite"]:
            del sys.modules[name]
        registry.REGISTRY.pop(("granite", "Shrinkage"), None)


def mixed() -> core.Graph:
    """Matrix product and element-wise operators, in which the package's passes find something."""
    b = core.GraphBuilder("mixed")
    x = b.input("x", "float32", ["n", 4])
    product = b.add("MatMul", [x, b.constant(np.arange(24, dtype=np.float32).reshape(4, 6) / 10 - 1)])
    size = b.add("Add", [b.add("Abs", [product]), b.constant(np.float32(1))])
    shrunk = b.add("Div", [product, size])
    b.output(b.add("Exp", [b.add("Neg", [b.add("Neg", [shrunk])])]), "y")
    return b.build()


X = np.linspace(-3, 3, 8, dtype=np.float32).reshape(2, 4)


def expected() -> np.ndarray:
    product = X @ (np.arange(24, dtype=np.float32).reshape(4, 6) / 10 - 1)
    return np.exp(product / (1 + np.abs(product)))


def test_every_hook_gives_all_that_it_has(plugins: PluginManager) -> None:
    given = {
        hook: [item.name for record, item in plugins.ask(hook) if record.name == "granite"]
        for hook in ("lite_backends", "lite_ops", "lite_passes", "lite_formats", "lite_commands")
    }
    assert given == {
        "lite_backends": ["granite", "sand"],
        "lite_ops": ["Shrinkage"],
        "lite_passes": ["granite-double-negation", "granite-find-shrinkage"],
        "lite_formats": ["granite"],
        "lite_commands": ["granite"],
    }
    (record,) = [record for record in plugins.records() if record.name == "granite"]
    assert not record.failed
    assert not record.warnings, "a member looks misspelt, or an optional part became required"
    assert f"{record.distribution} {record.version}" == DISTRIBUTION


@pytest.mark.parametrize("backend", ["granite", "sand"])
def test_a_model_runs_with_the_operator_and_the_passes(plugins: PluginManager, backend: str) -> None:
    fallback = "never" if backend == "granite" else "host"
    session = core.load(mixed(), backend=[backend], plugins=plugins, fallback=fallback)
    assert [node.qualified_op for node in session.graph.nodes] == ["MatMul", "granite.Shrinkage", "Exp"]
    np.testing.assert_allclose(session.run(x=X)["y"], expected(), rtol=1e-5)
    devices = {assigned.op: assigned.device for assigned in session.assignment()}
    assert devices["granite.Shrinkage"] == backend


def test_the_optional_parts_are_used(plugins: PluginManager) -> None:
    options = {"granite": {"polish": True}}
    session = core.load(mixed(), backend="granite", plugins=plugins, fallback="never", backend_options=options)
    session.run({"x": X}, profile=True)
    assert session.last_profile is not None
    assert [kernel.kernel for kernel in session.last_profile.kernels] == [
        "granite_matmul",
        "granite_shrinkage",
        "granite_exp",
    ]
    assert session.computes
    values = session.run({"x": X}, outputs=[session.graph.nodes[0].name, "y"])
    assert [array.shape for array in values.values()] == [(2, 6), (2, 6)]
    with pytest.raises(core.InputError, match="no option 'shine'"):
        core.load(mixed(), backend="granite", plugins=plugins, backend_options={"granite": {"shine": True}})


def test_shapes_that_depend_on_data(plugins: PluginManager) -> None:
    b = core.GraphBuilder("found")
    b.output(b.add("Transpose", [b.add("NonZero", [b.input("x", "float32", ["n", 4])])]), "y")
    for backend in ("granite", "sand"):
        session = core.load(b.build(), backend=[backend], plugins=plugins)
        np.testing.assert_array_equal(session.run(x=X)["y"], np.argwhere(X))


def test_a_model_is_converted_and_restored(
    plugins: PluginManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mixed.lite"
    report = convert(mixed(), file, targets="granite", shapes={"x": (2, 4)}, plugins=plugins)
    assert report.targets[0].saved_bytes > 0
    session = core.load(file, backend="granite", plugins=plugins, fallback="never")
    session.run({"x": X}, profile=True)
    assert session.last_profile is not None
    assert session.last_profile.partitions[0].notes == ("restored from a file",)
    np.testing.assert_allclose(session.run(x=X)["y"], expected(), rtol=1e-5)
    monkeypatch.setenv("GRANITE_DRIVER", "4.0")
    again = core.load(file, backend="granite", plugins=plugins, fallback="never")
    np.testing.assert_allclose(again.run(x=X)["y"], expected(), rtol=1e-5)
    assert any("driver 3.1" in note and "driver 4.0" in note for note in again.notes)


def test_a_file_of_the_format_is_read_and_written(plugins: PluginManager, installed: Path, tmp_path: Path) -> None:
    file = tmp_path / "chain.granite"
    file.write_bytes(b"granite 1\n1.0\n-2.5\nend\n")
    session = core.load(file, backend="granite", plugins=plugins, reader_options={"width": 4})
    first = X / (1 + np.abs(X))
    np.testing.assert_allclose(session.run(x=X)["y"], first / (1 + np.abs(2.5 * first)), rtol=1e-5)
    completed = lite(installed, "convert", str(file), "-o", str(tmp_path / "written.granite"))
    assert completed.returncode == 0, completed.stderr
    assert (tmp_path / "written.granite").read_bytes() == file.read_bytes()


def test_a_missing_device_is_reported(plugins: PluginManager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRANITE", "absent")
    with pytest.raises(core.BackendUnavailableError, match="no Granite chip is plugged in"):
        core.load(mixed(), backend="granite", plugins=plugins)


# **** optional parts ****


class Executable:
    """An executable with the required members of version 1."""

    scratch_bytes = 0

    def __init__(self, graph: core.Graph) -> None:
        self.graph = graph

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        results = evaluate_graph(self.graph, [buffer.data for buffer in inputs])
        for array, buffer in zip(results, outputs):
            buffer.store(array)


class Backend:
    """A backend with the required members of version 1."""

    name = "bare"

    def probe(self) -> list[core.Device]:
        return [core.Device("bare")]

    def supports(self, node: Node, device: core.Device) -> core.Yes:
        return core.Yes()

    def compile(self, part: Partition, device: core.Device, options: Options) -> Executable:
        return Executable(part.graph)


def test_what_is_optional_stays_optional(tmp_path: Path) -> None:
    plugins = plugins_with(Backend())
    session = core.load(mixed(), backend="bare", plugins=plugins, fallback="never")
    np.testing.assert_allclose(session.run({"x": X}, profile=True)["y"], expected(), rtol=1e-5)
    assert session.last_profile is not None
    assert session.last_profile.by_device().keys() >= {"bare"}
    assert session.describe()
    inner = session.graph.nodes[0].outputs[0]
    assert inner is not None
    assert session.run({"x": X}, outputs=[inner.name])[inner.name].shape == (2, 6)
    bound = session.bind({"x": X.copy()})
    bound.run()
    np.testing.assert_allclose(bound.outputs["y"], expected(), rtol=1e-5)
    convert(mixed(), tmp_path / "m.lite", targets="bare", shapes={"x": (2, 4)}, plugins=plugins)
    again = core.load(tmp_path / "m.lite", backend="bare", plugins=plugins, fallback="never")
    np.testing.assert_allclose(again.run(x=X)["y"], expected(), rtol=1e-5)
    with pytest.raises(core.InputError, match="bare"):
        core.load(mixed(), backend="bare", plugins=plugins, backend_options={"bare": {"any": 1}})


# **** the command, the suite ****


def test_the_command_of_the_package(installed: Path) -> None:
    completed = lite(installed, "granite", "--json")
    assert completed.returncode == 0, completed.stderr
    assert json.loads(completed.stdout)["devices"] == ["granite"]


def test_the_command_fails_as_commands_of_lite_do(plugins: PluginManager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRANITE", "absent")
    ((_, command),) = [pair for pair in plugins.ask("lite_commands") if pair[0].name == "granite"]
    result = CliRunner().invoke(command, [])
    assert result.exit_code == 3
    assert "Plug it in" in result.output


@pytest.mark.full("conformance")
def test_the_suite_passes(installed: Path, tmp_path: Path) -> None:
    some = ("Relu[f32,*]", "Softmax[f32,*]", "MatMul[f32,*]", "granite.Shrinkage[f32,*]", "graph[f32,elementwise-*")
    for arguments in (
        ("--backend", "granite", "--level", "L1"),
        ("--backend", "granite", *(word for pattern in some for word in ("--case", pattern))),
        ("--backend", "sand", "--level", "L1"),
        ("plugin", "lite-granite", "--level", "L2"),
    ):
        completed = suite(installed, tmp_path / "report.json", *arguments)
        assert completed.returncode == 0, completed.stdout + completed.stderr
        statuses = {record.status.value for record in read_report(tmp_path / "report.json").records}
        assert "passed" in statuses <= {"passed", "unsupported", "skipped"}


@pytest.mark.full("conformance")
def test_its_own_tests_pass(installed: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(installed), "PYTEST_ADDOPTS": ""}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", ".", "tests"]
    folder = installed.parent / "sources"
    completed = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)
    assert completed.returncode == 0, completed.stdout + completed.stderr


def suite(installed: Path, report: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(installed), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "lite_conformance", *arguments, "--json", str(report), "--examples", "3"]
    environment = {**os.environ, "PYTHONPATH": paths, "LITE_CACHE_DIR": str(report.parent / "cache")}
    return subprocess.run(command, capture_output=True, text=True, env=environment)


# **** packages of other versions ****


@pytest.mark.parametrize("version", [0, 2])
def test_a_package_of_another_version_is_left_out_with_a_clear_answer(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    site = tmp_path / "site"
    shutil.copytree(installed, site)
    plugin = site / "lite_granite/plugin.py"
    plugin.write_text(plugin.read_text().replace("LITE_API_VERSION = 1", f"LITE_API_VERSION = {version}"))
    with imported_from(site, monkeypatch):
        plugins = plugins_of(site)
        assert not {"granite", "sand"} & available_backends(plugins).keys()
        (record,) = [record for record in plugins.records() if record.name == "granite"]
        assert f"written for API {version}, this lite-core supports API {API_VERSION}" in record.error
        session = core.load(mixed(), plugins=plugins)  # everything else works
        np.testing.assert_allclose(session.run(x=X)["y"], expected(), rtol=1e-5)
        with pytest.raises(core.BackendUnavailableError, match="shows what is installed and what failed to load"):
            core.load(mixed(), backend="granite", plugins=plugins)


def test_the_package_requires_what_an_author_of_version_1_wrote(installed: Path) -> None:
    """Hold the bounds to the present version: pip must accept this lite-core beside the package."""
    (found,) = metadata.distributions(path=[str(installed)])
    assert "lite-core<0.2,>=0.1" in (found.requires or ())
