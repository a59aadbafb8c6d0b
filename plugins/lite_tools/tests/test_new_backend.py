"""The package that ``lite new-backend`` creates: complete, correct, clean, and never overwriting anything."""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import numpy as np
import pytest
from installed_plugins import lite, plugins_of

from lite_core import __version__, ops
from lite_core.builder import GraphBuilder
from lite_core.ir import DType
from lite_core.plugins import plugins_with
from lite_core.plugins.versions import requirement_problem
from lite_core.session import Session, load
from lite_tools.cli.new_backend import _compatible, render, write_package

Array = np.ndarray[Any, Any]
FILES = [
    "pyproject.toml",
    "README.md",
    "src/lite_my_chip/__init__.py",
    "src/lite_my_chip/plugin.py",
    "src/lite_my_chip/conformance.toml",
    "src/lite_my_chip/py.typed",
    "tests/test_conformance.py",
]


def new_backend(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lite_core", "new-backend", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "lite-my-chip"
    write_package("my_chip", folder)
    return folder


@pytest.fixture
def plugin(package: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(package / "src"))
    yield importlib.import_module("lite_my_chip.plugin")
    for name in [n for n in sys.modules if n.partition(".")[0] == "lite_my_chip"]:
        del sys.modules[name]


# **** the command ****


def test_files_and_next_commands(tmp_path: Path) -> None:
    shown = new_backend("my_chip", folder=tmp_path)
    assert (shown.returncode, shown.stderr) == (0, "")
    folder = tmp_path / "lite-my-chip"
    written = sorted(str(f.relative_to(folder)) for f in folder.rglob("*") if f.is_file())
    assert written == sorted(FILES)
    lines = [line.strip() for line in shown.stdout.splitlines()]
    assert [line for line in lines if line in FILES] == FILES
    assert lines[-4:] == [
        "cd lite-my-chip",
        "pip install -e '.[test]'",
        "lite backends",
        "lite-conformance --backend my_chip --level L1",
    ]


def test_json_and_another_folder(tmp_path: Path) -> None:
    (tmp_path / "my plugins").mkdir()
    shown = new_backend("my_chip", "--output", "my plugins", "--json", folder=tmp_path)
    data = json.loads(shown.stdout)
    assert (data["name"], data["folder"], data["files"]) == ("my_chip", "my plugins/lite-my-chip", FILES)
    assert data["next"][0] == "cd 'my plugins/lite-my-chip'"
    assert (tmp_path / "my plugins/lite-my-chip/pyproject.toml").exists()


@pytest.mark.parametrize("existing", ["folder", "file", "dangling link"])
def test_nothing_is_overwritten(tmp_path: Path, existing: str) -> None:
    target = tmp_path / "lite-toy"
    if existing == "folder":
        target.mkdir()
        (target / "README.md").write_text("mine")
    elif existing == "file":
        target.write_text("mine")
    else:
        target.symlink_to(tmp_path / "nowhere")
    shown = new_backend("toy", folder=tmp_path)
    assert shown.returncode == 2
    assert "'lite-toy' exists" in shown.stderr
    assert [f.name for f in tmp_path.iterdir()] == ["lite-toy"]
    if existing == "folder":
        assert [f.read_text() for f in target.iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("host", "'host'"),
        ("null", "'null'"),
        ("auto", "'auto'"),
        ("x86", "'x86'"),
        ("conformance", "'conformance'"),
        ("My-Chip", "'My-Chip'.*example my_chip$"),
        ("lite_toy", "example toy$"),
        ("lite-x86", "'lite-x86'"),
        ("9x", "'9x'"),
        ("a__b", "example a_b$"),
        ("a_", "example a$"),
        ("../up", "example up$"),
        ("é", "'é'"),
        ("", "''"),
        ("toy\n", "'toy"),
    ],
)
def test_invalid_names(tmp_path: Path, name: str, message: str) -> None:
    shown = new_backend(name, folder=tmp_path)
    assert shown.returncode == 2
    assert re.search(message, shown.stderr, re.MULTILINE)
    assert "next: lite new-backend --help" in shown.stderr
    assert not list(tmp_path.iterdir())


def test_folder_that_cannot_be_written(tmp_path: Path) -> None:
    assert "does not exist" in new_backend("toy", "-o", "nowhere", folder=tmp_path).stderr
    shown = new_backend("n" * 300, folder=tmp_path)
    assert (shown.returncode, "Traceback" in shown.stderr) == (1, False)
    assert "File name too long" in shown.stderr


def test_full_disk_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.write_text

    def full(path: Path, *arguments: Any, **named: Any) -> int:
        if path.name == "plugin.py":
            raise OSError(28, "No space left on device")
        return real(path, *arguments, **named)

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(click.ClickException, match="No space left on device"):
        write_package("toy", tmp_path / "lite-toy")
    assert not list(tmp_path.iterdir())


# **** the package ****


def test_every_template_is_written() -> None:
    templates = Path(str(resources.files("lite_tools.cli"))) / "templates/backend"
    found = {str(f.relative_to(templates)).removesuffix(".tmpl") for f in templates.rglob("*") if f.is_file()}
    assert {f.replace("package", "lite_toy") for f in found} == set(render("toy"))


def test_package_is_a_plugin_for_this_version_of_the_core(package: Path) -> None:
    tomllib = pytest.importorskip("tomllib")  # Python 3.11
    project = tomllib.loads((package / "pyproject.toml").read_text())["project"]
    assert project["name"] == "lite-my-chip"
    assert project["entry-points"]["lite.plugins"] == {"my_chip": "lite_my_chip.plugin"}
    assert "license" not in project
    (core,) = [r for r in project["dependencies"] if r.startswith("lite-core")]
    assert requirement_problem([core]) == ""
    assert "99.0" in requirement_problem([core], "99.0")
    assert project["optional-dependencies"]["test"] == [core.replace("lite-core", "lite-conformance[pytest]")]
    assert core.startswith(f"lite-core>={'.'.join(__version__.split('.')[:2])},")
    assert tomllib.loads((package / "src/lite_my_chip/conformance.toml").read_text()) == {}


def test_compatible_versions() -> None:
    assert _compatible("0.1.0") == ">=0.1,<0.2"
    assert _compatible("1.12.3.dev4") == ">=1.12,<1.13"


def test_examples_in_conformance_toml_can_be_uncommented(package: Path) -> None:
    tomllib = pytest.importorskip("tomllib")
    text = (package / "src/lite_my_chip/conformance.toml").read_text()
    examples = "\n".join(line[2:] for line in text.splitlines() if re.match(r"# (\[\[|\w+ = )", line))
    entries = tomllib.loads(examples)
    assert {kind: [set(e) for e in found] for kind, found in entries.items()} == {
        "unsupported": [{"case", "reason"}],
        "xfail": [{"case", "reason"}],
        "tolerance": [{"case", "reason", "rtol", "atol"}],
    }


@pytest.mark.parametrize(
    ("name", "check"),
    [
        *((name, ["ruff", "check", "--isolated", "--select=E,F,I,UP,B,D1"]) for name in ("toy", "a" * 20)),
        *((name, ["ruff", "format", "--isolated", "--check"]) for name in ("toy", "a" * 20)),
        ("my_chip", ["mypy", "--strict", "--exclude=tests"]),
    ],
)
def test_generated_code_passes_linters_and_type_checker(tmp_path: Path, name: str, check: list[str]) -> None:
    beside_python = str(Path(sys.executable).parent)
    tool = shutil.which(check[0], path=os.pathsep.join([beside_python, os.environ.get("PATH", "")]))
    if tool is None:
        pytest.skip(f"{check[0]} is not installed")
    write_package(name, tmp_path / "package")
    core = str(Path(str(resources.files("lite_core"))).parent)
    environment = {**os.environ, "MYPYPATH": core, "MYPY_CACHE_DIR": str(tmp_path / "mypy"), "RUFF_NO_CACHE": "true"}
    command = [tool, *check[1:], "."]
    shown = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path / "package", env=environment)
    assert shown.returncode == 0, shown.stdout + shown.stderr


# **** generated kernels ****


def session_of(plugin: ModuleType, op: str, *shapes: tuple[int, ...]) -> Session:
    b = GraphBuilder(op)
    inputs = [b.input(f"x{i}", "float32", list(shape)) for i, shape in enumerate(shapes)]
    b.output(b.add(op, inputs), "y")
    session = load(b.build(), backend="my_chip", fallback="never", plugins=plugins_with(*plugin.lite_backends()))
    assert session.devices == ("my_chip",)
    return session


def with_special_values(shape: tuple[int, ...], seed: int) -> Array:
    """Return random numbers, some of which are NaN, infinity or a zero of either sign."""
    random = np.random.default_rng(seed)
    array = random.standard_normal(shape).astype(np.float32)
    is_special = random.random(shape) < 0.2
    specials = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0], np.float32)
    array[is_special] = random.choice(specials, int(is_special.sum()))
    return array


@pytest.mark.parametrize("shape", [(), (1,), (0,), (7,), (3, 0, 2), (2, 3, 4, 5)])
def test_relu_equals_the_reference(plugin: ModuleType, shape: tuple[int, ...]) -> None:
    x = np.asarray(with_special_values(shape, seed=len(shape)))
    definition = ops.find("Relu")
    assert definition is not None
    np.testing.assert_array_equal(session_of(plugin, "Relu", shape).run(x0=x)["y"], definition.reference(x))


MATRICES = [
    ((3, 4), (4, 5)),
    ((4,), (4,)),
    ((4,), (4, 5)),
    ((3, 4), (4,)),
    ((2, 3, 4), (4,)),
    ((4,), (2, 4, 5)),
    ((2, 1, 3, 4), (5, 4, 2)),
    ((1, 3, 4), (6, 4, 2)),
    ((0, 4), (4, 5)),
    ((3, 0), (0, 5)),
    ((0,), (0,)),
    ((3, 4), (4, 0)),
    ((0, 3, 4), (4, 5)),
    ((0, 3, 4), (1, 4, 5)),
    ((1, 1), (1, 1)),
]


@pytest.mark.parametrize(("a", "b"), MATRICES)
def test_matmul_equals_the_reference(plugin: ModuleType, a: tuple[int, ...], b: tuple[int, ...]) -> None:
    random = np.random.default_rng(len(a) + 10 * len(b))
    x0, x1 = random.standard_normal(a).astype(np.float32), random.standard_normal(b).astype(np.float32)
    definition = ops.find("MatMul")
    assert definition is not None
    session = session_of(plugin, "MatMul", a, b)
    for values in (
        (x0, x1),
        (np.where(x0 > 1, np.float32(np.nan), x0), x1),
        (x0, np.where(x1 > 1, np.float32(np.inf), x1)),
    ):
        with np.errstate(invalid="ignore"):
            expected = definition.reference(*values)
            found = session.run(x0=values[0], x1=values[1])["y"]
        assert (found.shape, found.dtype) == (expected.shape, np.float32)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_other_element_types_run_on_host(plugin: ModuleType) -> None:
    b = GraphBuilder()
    b.output(b.add("Relu", [b.input("x", DType.FLOAT64, [2])]), "y")
    session = load(b.build(), backend="my_chip", plugins=plugins_with(plugin.backend))
    assert session.devices == ("host",)
    assert session.run(x=np.array([-1.0, 2.0]))["y"].tolist() == [0, 2]


def test_installed_package_is_loaded(package: Path, site: Path) -> None:
    shutil.copytree(package / "src/lite_my_chip", site / "lite_my_chip")
    info = site / "lite_my_chip-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lite-my-chip\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text("[lite.plugins]\nmy_chip = lite_my_chip.plugin\n")
    (record,) = plugins_of(site).records()
    assert (record.error, record.phase) == ("", "ready")
    rows = json.loads(lite(site, "backends", "--json").stdout)["backends"]
    (row,) = [r for r in rows if r["backend"] == "my_chip"]
    assert (row["state"], row["score"]) == ("ready", "1")
