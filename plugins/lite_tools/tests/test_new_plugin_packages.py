"""The packages that ``lite new-plugin`` writes: metadata, style, and that every kind does what it says.

tests/test_new_plugins.py runs their own tests, mypy and the steps of their CI files in clean environments.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from installed_plugins import lite
from new_plugins import EVERYTHING, PLUGINS, install_metadata, project_of, tomllib, written

from lite_core import __version__, ops
from lite_core.backend import Options, Partition, Stale
from lite_core.builder import GraphBuilder
from lite_core.ir import DType, Graph
from lite_core.plugins import plugins_with
from lite_core.plugins.versions import requirement_problem
from lite_core.session import Session, load
from lite_tools.cli.new_plugin_ci import SERVICES, ci_steps
from lite_tools.cli.new_plugin_files import TEMPLATES, _compatible, render
from lite_tools.cli.new_plugin_kinds import NewPlugin

Array = np.ndarray[Any, Any]
each_plugin = pytest.mark.parametrize("plugin", PLUGINS.values(), ids=PLUGINS)


# **** files and metadata ****


def test_every_template_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    read: set[Path] = set()
    real = Path.read_text

    def noted(path: Path, *arguments: Any, **named: Any) -> str:
        read.add(path)
        return real(path, *arguments, **named)

    monkeypatch.setattr(Path, "read_text", noted)
    for plugin in PLUGINS.values():
        render(plugin)
    assert {file for file in TEMPLATES.rglob("*") if file.is_file()} == read


@each_plugin
def test_metadata(plugin: NewPlugin, tmp_path: Path) -> None:
    package = written(plugin, tmp_path)
    project = project_of(package)
    assert project["name"] == "lite-my-chip"
    assert {"version", "description", "readme", "license", "requires-python", "keywords", "classifiers"} <= {*project}
    assert project["entry-points"]["lite.plugins"] == {"my_chip": "lite_my_chip.plugin"}
    for group in project["entry-points"].values():
        for module in group.values():
            assert (package / "src" / f"{module.replace('.', '/')}.py").is_file()
    assert (package / "src/lite_my_chip/py.typed").is_file()

    required = project["dependencies"]
    (core,) = [requirement for requirement in required if requirement.startswith("lite-core")]
    assert requirement_problem([core]) == ""
    assert "99.0" in requirement_problem([core], "99.0")
    assert core.startswith(f"lite-core>={'.'.join(__version__.split('.')[:2])},")
    assert core.replace("lite-core", "lite-conformance[pytest]") in project["optional-dependencies"]["test"]
    needed = {
        match
        for file in package.rglob("src/*/*.py")
        for match in re.findall(r"(?:from|import) (lite_\w+)", file.read_text())
    }
    by_tests = {"lite_conformance", plugin.package}
    assert {name.replace("_", "-") for name in needed - by_tests} <= {re.split("[><]", r)[0] for r in required}


def test_compatible_versions() -> None:
    assert _compatible("0.1.0") == ">=0.1,<0.2"
    assert _compatible("1.12.3.dev4") == ">=1.12,<1.13"


def test_examples_in_conformance_toml_can_be_uncommented(tmp_path: Path) -> None:
    text = (written(EVERYTHING, tmp_path) / "src/lite_my_chip/conformance.toml").read_text()
    assert tomllib.loads(text) == {}
    examples = "\n".join(line[2:] for line in text.splitlines() if re.match(r"# (\[\[|\w+ = )", line))
    entries = tomllib.loads(examples)
    assert {kind: [set(e) for e in found] for kind, found in entries.items()} == {
        "unsupported": [{"case", "reason"}],
        "xfail": [{"case", "reason"}],
        "tolerance": [{"case", "reason", "rtol", "atol"}],
    }


@pytest.mark.parametrize("service", SERVICES)
def test_a_ci_file_has_all_steps_in_order(service: str) -> None:
    text = render(EVERYTHING)[SERVICES[service].file]
    steps = [command for _, command in ci_steps(EVERYTHING)]
    lines = [re.sub(r"^\s*(- )?((run|script): )?", "", line) for line in text.splitlines()]
    assert [line for line in lines if line in steps] == steps
    assert "PIP_FIND_LINKS" in text
    assert any("--backend my_chip" in step and step.endswith("|| test $? -eq 3") for step in steps)
    assert not any("--backend" in command for _, command in ci_steps(PLUGINS["operator"]))


@pytest.mark.parametrize("check", [("check",), ("format", "--check")], ids=" ".join)
def test_packages_with_short_and_long_names_follow_their_own_style(tmp_path: Path, check: tuple[str, ...]) -> None:
    tool = shutil.which("ruff", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
    if tool is None:
        pytest.skip("ruff is not installed")
    for number, plugin in enumerate(PLUGINS.values()):
        for name in ("a", "n" * 30):
            (tmp_path / f"{number}-{name}").mkdir()
            written(replace(plugin, name=name), tmp_path / f"{number}-{name}")
    shown = subprocess.run([tool, *check, "--no-cache", "."], capture_output=True, text=True, cwd=tmp_path)
    assert shown.returncode == 0, shown.stdout + shown.stderr


# **** backends ****


@pytest.fixture(params=["kernel-backend", "backend"])
def module(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The module plugin.py of a package with a backend."""
    monkeypatch.syspath_prepend(str(written(PLUGINS[request.param], tmp_path) / "src"))
    yield importlib.import_module("lite_my_chip.plugin")
    for name in [n for n in sys.modules if n.partition(".")[0] == "lite_my_chip"]:
        del sys.modules[name]


def session_of(module: ModuleType, op: str, *shapes: tuple[int, ...]) -> Session:
    b = GraphBuilder(op)
    inputs = [b.input(f"x{i}", "float32", list(shape)) for i, shape in enumerate(shapes)]
    b.output(b.add(op, inputs), "y")
    session = load(b.build(), backend="my_chip", fallback="never", plugins=plugins_with(*module.lite_backends()))
    assert session.devices == ("my_chip",)
    return session


@pytest.mark.parametrize("shape", [(), (0,), (7,), (2, 3, 4, 5)])
def test_relu_equals_the_reference(module: ModuleType, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    x = np.where(x > 1, np.float32(np.nan), x)
    definition = ops.find("Relu")
    assert definition is not None
    np.testing.assert_array_equal(session_of(module, "Relu", shape).run(x0=x)["y"], definition.reference(x))


@pytest.mark.parametrize(("a", "b"), [((3, 4), (4, 5)), ((4,), (2, 4, 5)), ((2, 1, 3, 4), (5, 4, 2)), ((3, 0), (0, 5))])
def test_matmul_equals_the_reference(module: ModuleType, a: tuple[int, ...], b: tuple[int, ...]) -> None:
    random = np.random.default_rng(0)
    x0, x1 = random.standard_normal(a).astype(np.float32), random.standard_normal(b).astype(np.float32)
    definition = ops.find("MatMul")
    assert definition is not None
    found = session_of(module, "MatMul", a, b).run(x0=x0, x1=x1)["y"]
    np.testing.assert_allclose(found, definition.reference(x0, x1), rtol=1e-5, atol=1e-6)


def test_other_element_types_run_on_host(module: ModuleType) -> None:
    b = GraphBuilder()
    b.output(b.add("Relu", [b.input("x", DType.FLOAT64, [2])]), "y")
    session = load(b.build(), backend="my_chip", plugins=plugins_with(*module.lite_backends()))
    assert session.devices == ("host",)
    assert session.run(x=np.array([-1.0, 2.0]))["y"].tolist() == [0, 2]


def chain(op: str = "Relu", rows: int = 2) -> Graph:
    b = GraphBuilder("chain")
    x = b.add("MatMul", [b.input("x", "float32", [rows, 3]), b.constant(np.ones((3, 3), np.float32))])
    b.output(b.add(op, [x]), "y")
    return b.build()


@pytest.mark.parametrize("module", ["backend"], indirect=True)
def test_a_saved_program_is_restored_for_its_graph_only(module: ModuleType) -> None:
    (backend,) = module.lite_backends()
    (device,) = backend.probe()
    pieces = [memoryview(piece) for piece in backend.compile(Partition("p", chain()), device, Options()).save()]

    def restored(pieces: list[memoryview], graph: Graph) -> Any:
        return backend.restore(pieces, Partition("p", graph), device, Options())

    # As when a model file is loaded: the sizes of values between nodes may not be known.
    loaded = chain()
    between = loaded.nodes[0].outputs[0]
    assert between is not None
    between.type = between.type.with_shape(("rows", 3))
    assert not isinstance(restored(pieces, loaded), Stale)
    assert isinstance(restored(pieces, chain("Softmax")), Stale)
    assert isinstance(restored(pieces, chain(rows=5)), Stale)
    assert isinstance(restored([pieces[0][:-9]], chain()), Stale)
    assert isinstance(restored([], chain()), Stale)
    assert "my_chip" in backend.compatibility(device, Options())


# **** everything in one package ****


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a package with everything, with the metadata that an installed package has."""
    package = written(EVERYTHING, tmp_path_factory.mktemp("everything"))
    install_metadata(package)
    return package


def test_lite_finds_everything(package: Path) -> None:
    (record,) = [
        row
        for row in json.loads(lite(package / "src", "plugins", "--json").stdout)["plugins"]
        if row["distribution"] == "lite-my-chip"
    ]
    assert (record["phase"], record["error"], record["warnings"]) == ("ready", "", [])
    assert record["provides"] == {
        "lite_backends": ["my_chip"],
        "lite_commands": ["my-chip"],
        "lite_formats": ["my_chip"],
        "lite_ops": ["my_chip.Squish"],
        "lite_passes": ["my_chip-fuse"],
    }


def test_its_own_tests_pass(package: Path) -> None:
    """Leaves out those that run the conformance suite: tests/test_new_plugins.py runs them."""
    tests = [str(file) for file in package.glob("tests/test_*.py") if file.stem not in ("test_backend", "test_package")]
    assert len(tests) == 4
    environment = {**os.environ, "PYTHONPATH": str(package / "src"), "LITE_CACHE_DIR": str(package / "cache")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    shown = subprocess.run(command, capture_output=True, text=True, cwd=package, env=environment)
    assert shown.returncode == 0, shown.stdout + shown.stderr
