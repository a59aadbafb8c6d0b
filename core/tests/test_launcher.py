"""The command ``lite`` and ``lite_core.convert`` if lite-tools is missing or broken."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

import lite_core
from lite_core.plugins.installed import installed_entry_points

#: The dependencies of lite-core.
NEEDED = ("numpy", "packaging", "platformdirs", "pluggy")


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A folder with lite-core and its dependencies and nothing else: no lite-tools, no click, no rich."""
    for name in NEEDED:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        package = Path(spec.origin).parent
        (tmp_path / name).symlink_to(package)
        libraries = package.with_name(f"{name}.libs")  # beside packages with compiled parts
        if libraries.is_dir():
            (tmp_path / libraries.name).symlink_to(libraries)
    (tmp_path / "lite_core").symlink_to(Path(lite_core.__file__).parent)
    return tmp_path


def python(folder: Path, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run code that can import only from the folder and the standard library."""
    command = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.append({str(folder)!r}); {code}", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def lite(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return python(folder, "from lite_core.launcher import main; main()", *arguments)


def install(folder: Path, distribution: str, entry_points: str, **modules: str) -> None:
    """Write the files that pip would leave in the folder."""
    info = folder / f"{distribution.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entry_points)
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)


def test_the_core_alone_shows_backends_and_plugins(bare: Path) -> None:
    shown = lite(bare, "backends")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.splitlines()[0] == "backend host: ready"
    shown = lite(bare, "doctor")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.startswith(f"lite-core {lite_core.__version__}, plugin API 1, Python ")
    assert "\nbackend host: ready\n" in shown.stdout
    assert lite(bare, "--version").stdout == f"lite-core {lite_core.__version__}\n"


@pytest.mark.parametrize("arguments", [(), ("run", "x"), ("backends", "--json")])
def test_other_commands_name_what_to_install(bare: Path, arguments: tuple[str, ...]) -> None:
    shown = lite(bare, *arguments)
    assert (shown.returncode, shown.stdout) == (3, "")
    assert shown.stderr.startswith("error: lite-tools ")
    assert shown.stderr.endswith("\nnext: pip install 'lite-core[tools]'\n")


def test_command_of_a_known_distribution_names_the_distribution(bare: Path) -> None:
    shown = lite(bare, "demo")
    assert shown.returncode == 3
    assert shown.stderr.endswith("next: pip install 'lite-core[tools]' lite-paddle\n")


def test_doctor_shows_plugins_that_failed_or_have_warnings(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chip = """
from lite_core import KernelBackend, hookimpl
LITE_API_VERSION = 1
@hookimpl
def lite_backends():
    return [KernelBackend("chip")]
"""
    install(bare, "lite-chip", "[lite.plugins]\nchip = lite_chip\n", lite_chip=chip)
    monkeypatch.setenv("LITE_PLUGINS", "chip=lite-other")
    shown = lite(bare, "doctor")
    assert shown.returncode == 0, shown.stdout
    assert re.search(r"'chip' \(lite-chip 1\.0\): ready: .*'chip': .*lite-other", shown.stdout)
    install(bare, "lite-bad", "[lite.plugins]\nbad = lite_bad\n", lite_bad="import nowhere")
    shown = lite(bare, "doctor")
    assert shown.returncode == 1
    assert re.search(r"'bad' \(lite-bad 1\.0\): import: ModuleNotFoundError: .*'nowhere'", shown.stdout)


def test_convert_names_what_to_install(bare: Path) -> None:
    shown = python(bare, "import lite_core; lite_core.convert('model', 'model.lite')")
    assert shown.returncode == 1
    assert "lite_core.errors.ConversionError: " in shown.stderr
    assert shown.stderr.endswith("pip install 'lite-core[tools]'\n")


def test_import_error_of_lite_tools_is_reported(bare: Path) -> None:
    points = "[lite.tools]\nmain = lite_broken:main\nconvert = lite_broken:convert\n"
    install(bare, "lite-tools", points, lite_broken="import click_that_is_missing")
    reported = r"error: lite-tools .*'click_that_is_missing'\nnext: pip install --upgrade 'lite-core\[tools\]'\n"
    for arguments, first in ((("run", "x"), ""), (("doctor",), "lite-core ")):
        shown = lite(bare, *arguments)
        assert shown.returncode == 3
        assert re.fullmatch(reported, shown.stderr)
        assert shown.stdout.startswith(first)
    shown = python(bare, "import lite_core; lite_core.convert('model', 'model.lite')")
    assert "No module named 'click_that_is_missing'" in shown.stderr


def test_lite_tools_receive_the_arguments(bare: Path) -> None:
    tools = """
def main(arguments):
    print(arguments)
    return 4
def convert(model, output, **named):
    return model, output, named
"""
    install(
        bare, "lite-tools", "[lite.tools]\nmain = some_tools:main\nconvert = some_tools:convert\n", some_tools=tools
    )
    shown = lite(bare, "run", "x", "--json")
    assert (shown.returncode, shown.stdout) == (4, "['run', 'x', '--json']\n")
    shown = python(bare, "import lite_core; print(lite_core.convert('a', 'b', weights='int8'))")
    assert shown.stdout == "('a', 'b', {'weights': 'int8'})\n", shown.stderr


def test_lite_tools_declares_its_entry_points() -> None:
    assert {entry.name for entry in installed_entry_points("lite.tools")} == {"convert", "html", "main", "taps"}
