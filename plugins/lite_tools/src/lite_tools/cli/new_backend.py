"""``lite new-backend``: creation of the package of a new backend from templates."""

from __future__ import annotations

import re
import shlex
import shutil
from importlib import resources
from pathlib import Path
from string import Template

import click

from lite_core import __version__
from lite_core.backend import API_VERSION
from lite_tools.commands.options import json_option
from lite_tools.commands.printing import console, print_json

__all__ = ["command", "render", "write_package"]

# The files of the package, each with a template in this package; `package` stands for the new package's name.
_FILES = (
    "pyproject.toml",
    "README.md",
    "src/package/__init__.py",
    "src/package/plugin.py",
    "src/package/conformance.toml",
    "src/package/py.typed",
    "tests/test_conformance.py",
)
_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_RESERVED_NAMES = {
    "auto": "it stands for the best available device",
    **dict.fromkeys(("host", "null"), "lite-core has a backend of this name"),
    **dict.fromkeys(
        ("arm", "compiler", "conformance", "core", "cpu", "onnx", "onnxruntime", "opencl", "paddle", "tools", "x86"),
        "Lite itself has a package of this name",
    ),
}


@click.command("new-backend")
@click.argument("name")
@click.option(
    "--output",
    "-o",
    type=click.Path(exists=True, file_okay=False, writable=True, path_type=Path),
    default=Path(),
    help="Folder in which to create the package's folder.  [default: the current folder]",
)
@json_option
def command(name: str, output: Path, as_json: bool) -> None:
    """Create the package of a new backend called NAME, with two kernels and a conformance test.

    The package is a folder lite-NAME, which `pip install` can install.
    """
    _check_name(name)
    folder = output / _distribution(name)
    files = write_package(name, folder)
    steps = [
        f"cd {shlex.quote(str(folder))}",
        "pip install -e '.[test]'",
        "lite backends",
        f"lite-conformance --backend {name} --level L1",
    ]
    if as_json:
        print_json({"name": name, "folder": str(folder), "files": files, "next": steps})
        return
    console.print(f"the package of backend {name!r} is written to {folder}:", markup=False)
    for file in files:
        console.print(f"  {file}", markup=False)
    console.print("next:")
    for step in steps:
        console.print(f"  {step}", markup=False)


def render(name: str) -> dict[str, str]:
    """Return the content of each file of a backend's package, by path.

    Args:
        name: the backend's name.
    """
    values = {
        "name": name,
        "distribution": _distribution(name),
        "package": f"lite_{name}",
        "compatible": _compatible(__version__),
        "api_version": str(API_VERSION),
    }
    folder = resources.files("lite_tools.cli") / "templates" / "backend"
    files = {}
    for path in _FILES:
        text = folder.joinpath(*f"{path}.tmpl".split("/")).read_text(encoding="utf-8")
        files[path.replace("package", values["package"])] = Template(text).substitute(values)
    return files


def write_package(name: str, folder: Path) -> list[str]:
    """Write a backend's package to a new folder and return the paths of its files. After an error, nothing remains.

    Raises:
        click.BadParameter: the folder already exists; it is not changed.
        click.ClickException: the operating system reports an error.
    """
    files = render(name)
    try:
        folder.mkdir()
    except FileExistsError:
        raise click.BadParameter(
            f"{str(folder)!r} exists and is not overwritten; choose another name or another --output",
            param_hint="NAME",
        ) from None
    except OSError as error:
        raise click.ClickException(f"{str(folder)!r} cannot be written: {error.strerror}") from error
    try:
        for path, text in files.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        shutil.rmtree(folder)
        raise click.ClickException(f"{str(folder)!r} cannot be written: {error.strerror}") from error
    return list(files)


def _check_name(name: str) -> None:
    problem = _RESERVED_NAMES.get(name)
    if problem:
        raise click.BadParameter(f"a backend cannot be called {name!r}: {problem}", param_hint="NAME")
    if not _NAME.fullmatch(name) or name.startswith("lite_"):
        similar = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_").removeprefix("lite_")
        hint = f", for example {similar}" if _NAME.fullmatch(similar) and similar not in _RESERVED_NAMES else ""
        raise click.BadParameter(
            f"{name!r} cannot be a backend's name: a name begins with a lower-case letter, contains lower-case "
            f"letters, digits and single underscores, and does not begin with lite_{hint}",
            param_hint="NAME",
        )


def _distribution(name: str) -> str:
    return f"lite-{name.replace('_', '-')}"


def _compatible(version: str) -> str:
    """Return the versions of Lite that a plugin written for this version is compatible with: ``>=0.1,<0.2``."""
    major, minor = (int(part) for part in version.split(".")[:2])
    return f">={major}.{minor},<{major}.{minor + 1}"
