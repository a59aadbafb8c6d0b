"""The package to validate: an installed distribution, a wheel file, or a project folder, whose wheel is built."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import metadata, util
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit
from urllib.request import url2pathname

from lite_core.errors import InputError
from lite_tools.commands.errors import UnavailableError
from lite_tools.commands.progress import set_progress
from lite_tools.examining.process import module_path

__all__ = ["Package", "opened_package"]

_MOST_LINES = 15  # of the output of a build that failed
_MOST_BYTES = 2**31  # of an unpacked wheel


@dataclass
class Package:
    """A package to validate.

    Attributes:
        kind: what was named.
        distribution: its metadata.
        names: its files, relative to the folder that they are installed into; None if they cannot be listed.
        links: names of symbolic links in the wheel.
        site: the folder with the unpacked wheel; empty for an installed distribution.
        folder: the project's folder, if it was named or the installation is an editable one.
    """

    kind: Literal["installed", "folder", "wheel"]
    distribution: metadata.Distribution
    names: list[str] | None
    links: list[str] = field(default_factory=list)
    site: str = ""
    folder: Path | None = None

    @property
    def name(self) -> str:
        return str(self.distribution.metadata["Name"] or "unknown")

    @property
    def version(self) -> str:
        return str(self.distribution.metadata["Version"] or "unknown")

    def read(self, name: str) -> bytes | None:
        """Return the content of one of its files; None if it is missing."""
        path = Path(str(self.distribution.locate_file(name)))
        return path.read_bytes() if path.is_file() else None


@contextmanager
def opened_package(text: str) -> Iterator[Package]:
    """Open a package; a wheel is unpacked into a temporary folder meanwhile.

    Args:
        text: the name of an installed distribution, the path of a wheel, or that of a project folder.

    Raises:
        InputError: there is no such package, it is not a wheel, or the project cannot be built.
        UnavailableError: a project is to be built, and the package build is not installed.
    """
    path = Path(text)
    with tempfile.TemporaryDirectory(prefix="lite-", ignore_cleanup_errors=True) as folder:
        if path.is_dir() and any((path / name).is_file() for name in ("pyproject.toml", "setup.py")):
            wheel = _built(path, Path(folder, "wheels"))
            yield _unpacked(wheel, Path(folder, "site"), path)
        elif path.is_file():
            yield _unpacked(path, Path(folder, "site"), None)
        elif path.is_dir():
            raise InputError(f"the folder {text!r} has no pyproject.toml: name the folder of a project")
        else:
            yield _installed(text)


def _installed(name: str) -> Package:
    try:
        # Not by metadata.distribution(), which also searches the working folder of `python -m`.
        found = next(iter(metadata.distributions(name=name, path=module_path())))
    except (StopIteration, ValueError):
        raise InputError(
            f"{name!r} is neither an installed package, nor a wheel, nor the folder of a project; `lite plugins` lists "
            "the installed packages with plugins"
        ) from None
    url = json.loads(found.read_text("direct_url.json") or "{}")
    if url.get("dir_info", {}).get("editable"):
        folder = Path(url2pathname(urlsplit(url["url"]).path))
        return Package("installed", found, None, folder=folder)
    names = None if found.files is None else [file.as_posix() for file in found.files]
    return Package("installed", found, names)


def _unpacked(wheel: Path, site: Path, folder: Path | None) -> Package:
    try:
        with zipfile.ZipFile(wheel) as archive:
            entries = archive.infolist()
            if sum(entry.file_size for entry in entries) > _MOST_BYTES:
                raise InputError(f"{str(wheel)!r} would have more than {_MOST_BYTES >> 30} GB when unpacked")
            archive.extractall(site)
    except (zipfile.BadZipFile, NotImplementedError) as error:
        raise InputError(f"{str(wheel)!r} is not a wheel: {error}") from None
    found = [*metadata.distributions(path=[str(site)])]
    if len(found) != 1 or not found[0].metadata["Name"]:
        raise InputError(f"{str(wheel)!r} is not a wheel: it has {len(found)} folders with metadata, expected 1")
    links = [entry.filename for entry in entries if stat.S_ISLNK(entry.external_attr >> 16)]
    names = [entry.filename for entry in entries if not entry.is_dir()]
    return Package("wheel" if folder is None else "folder", found[0], names, links, str(site), folder)


def _built(project: Path, output: Path) -> Path:
    """Build the wheel of a project, with the build requirements that are installed here, if they are complete."""
    if util.find_spec("build") is None:
        raise UnavailableError(
            "validating a project folder builds its wheel, for which build is missing", "pip install build"
        )
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(output)]
    set_progress("building the project's wheel")
    result = _run([*command, "--no-isolation", str(project)])
    if result.returncode and any(words in result.stdout for words in ("Missing dependencies", "is not available")):
        result = _run([*command, str(project)])
    wheels = [*output.glob("*.whl")]
    if result.returncode or len(wheels) != 1:
        shown = "\n".join(result.stdout.strip().splitlines()[-_MOST_LINES:])
        raise InputError(f"the project {str(project)!r} cannot be built; correct it:\n{shown}")
    return wheels[0]


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory(prefix="lite-") as folder:  # `python -m` would import from the working folder
        command = [*command[:-1], str(Path(command[-1]).absolute())]
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=folder)
