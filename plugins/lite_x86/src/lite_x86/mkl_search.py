"""The locations that are searched for MKL, in order. Nothing is loaded here."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

__all__ = ["Location", "libraries_in", "locations"]

# File names of MKL's single dynamic library, which loads the layers from its own folder.
_PATTERNS = {"win32": "mkl_rt*.dll", "darwin": "libmkl_rt*.dylib"}
_PATTERN = _PATTERNS.get(sys.platform, "libmkl_rt.so*")

# Library folders below the root of MKL, of a Python environment or of a conda environment.
_FOLDERS = ("", "lib", "lib/intel64", "Library/bin", "bin", "redist/intel64")

_LIBRARY_PATHS = {"win32": "PATH", "darwin": "DYLD_LIBRARY_PATH"}
_LIBRARY_PATH = _LIBRARY_PATHS.get(sys.platform, "LD_LIBRARY_PATH")

# Names that the system's loader resolves, newest first. This is exact and cheap; ctypes.util.find_library would start
# a compiler. On Windows the loader has no other path than the library path, which is searched before.
_SYSTEM_NAMES = {
    "win32": (),
    "darwin": ("libmkl_rt.2.dylib", "libmkl_rt.1.dylib", "libmkl_rt.dylib"),
}
_SYSTEM = _SYSTEM_NAMES.get(sys.platform, ("libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so.1", "libmkl_rt.so"))


class Location(NamedTuple):
    """A location that may contain MKL.

    Attributes:
        name: the name of the location for users, for example ``MKLROOT``.
        libraries: the libraries to load, in order of preference: paths, or bare names for the system's loader.
        problem: the reason why there is no library, or empty.
    """

    name: str
    libraries: tuple[str, ...] = ()
    problem: str = ""


def locations(environment: Mapping[str, str]) -> Iterator[Location]:
    """Yield the locations in order of preference; each is inspected when it is reached."""
    yield _named(environment, "LITE_MKL_PATH")
    yield _wheel()
    yield _folder("the Python environment", sys.prefix)
    yield _named(environment, "CONDA_PREFIX")
    yield _named(environment, "MKLROOT")
    yield _library_path(environment)
    yield Location("the system's libraries", _SYSTEM, "" if _SYSTEM else "only those of the library path")


def libraries_in(*folders: Path) -> tuple[str, ...]:
    """Return MKL's libraries in these folders, the newest version first within each folder."""
    return tuple(str(file) for folder in folders for file in sorted(folder.glob(_PATTERN), key=_version, reverse=True))


def _version(file: Path) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", file.name))


def _named(environment: Mapping[str, str], variable: str) -> Location:
    value = environment.get(variable, "")
    return _folder(variable, value) if value else Location(variable, problem="not set")


def _folder(name: str, path: str) -> Location:
    root = Path(path)
    if root.is_file():
        return Location(name, (str(root.absolute()),))  # the loader would search the system for a bare name
    if not root.is_dir():
        return Location(name, problem=f"{path} does not exist")
    found = libraries_in(*(root / folder for folder in _FOLDERS))
    return Location(name, found, "" if found else f"no {_PATTERN} in {path}")


def _wheel() -> Location:
    name = "the wheel mkl"
    from importlib import metadata  # imported here because it is slow and only this search needs it

    try:
        distribution = metadata.distribution("mkl")
    except metadata.PackageNotFoundError:
        return Location(name, problem="not installed")
    # The wheel's libraries are outside site-packages; only its list of files tells where.
    folders = dict.fromkeys(Path(str(distribution.locate_file(f))).parent for f in distribution.files or ())
    found = libraries_in(*(folder.resolve() for folder in folders))
    return Location(name, found, "" if found else f"mkl {distribution.version} lists no {_PATTERN}")


def _library_path(environment: Mapping[str, str]) -> Location:
    value = environment.get(_LIBRARY_PATH, "")
    if not value:
        return Location(_LIBRARY_PATH, problem="not set")
    found = libraries_in(*(Path(folder) for folder in value.split(os.pathsep) if folder))
    return Location(_LIBRARY_PATH, found, "" if found else f"no {_PATTERN} in {value}")
