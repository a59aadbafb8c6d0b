"""Where MKL may be: the places, in the order in which they are searched. Nothing is loaded here."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

__all__ = ["Place", "libraries_in", "places"]

# MKL's single dynamic library. Each finds the layers that lie beside it.
_PATTERNS = {"win32": "mkl_rt*.dll", "darwin": "libmkl_rt*.dylib"}
_PATTERN = _PATTERNS.get(sys.platform, "libmkl_rt.so*")

# Folders that hold libraries, below the root of MKL, of a Python environment or of a conda environment.
_FOLDERS = ("", "lib", "lib/intel64", "Library/bin", "bin", "redist/intel64")

_LIBRARY_PATHS = {"win32": "PATH", "darwin": "DYLD_LIBRARY_PATH"}
_LIBRARY_PATH = _LIBRARY_PATHS.get(sys.platform, "LD_LIBRARY_PATH")

# Names that the system's loader is asked for, newest first. Asking it is exact and cheap: ctypes.util.find_library
# starts a compiler to answer. On Windows the library path has been searched before, and there is no other.
_SYSTEM_NAMES = {
    "win32": (),
    "darwin": ("libmkl_rt.2.dylib", "libmkl_rt.1.dylib", "libmkl_rt.dylib"),
}
_SYSTEM = _SYSTEM_NAMES.get(sys.platform, ("libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so.1", "libmkl_rt.so"))


class Place(NamedTuple):
    """Somewhere MKL may be.

    Attributes:
        name: what a person calls it, for example ``MKLROOT``.
        libraries: what to load, by preference: paths, or bare names for the system's loader.
        empty: why there is nothing to load, where that is so.
    """

    name: str
    libraries: tuple[str, ...] = ()
    empty: str = ""


def places(environment: Mapping[str, str]) -> Iterator[Place]:
    """The places in the order of preference; each is looked at when it is asked for."""
    yield _named(environment, "LITE_MKL_PATH")
    yield _wheel()
    yield _folder("the Python environment", sys.prefix)
    yield _named(environment, "CONDA_PREFIX")
    yield _named(environment, "MKLROOT")
    yield _library_path(environment)
    yield Place("the system's libraries", _SYSTEM, "" if _SYSTEM else "none but those of the library path")


def libraries_in(*folders: Path) -> tuple[str, ...]:
    """MKL's libraries in some folders, those of the newest version first in each."""
    return tuple(str(file) for folder in folders for file in sorted(folder.glob(_PATTERN), key=_version, reverse=True))


def _version(file: Path) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", file.name))


def _named(environment: Mapping[str, str], variable: str) -> Place:
    value = environment.get(variable, "")
    return _folder(variable, value) if value else Place(variable, empty="not set")


def _folder(name: str, path: str) -> Place:
    root = Path(path)
    if root.is_file():
        return Place(name, (str(root.absolute()),))  # a bare name would be the system's
    if not root.is_dir():
        return Place(name, empty=f"{path} does not exist")
    found = libraries_in(*(root / folder for folder in _FOLDERS))
    return Place(name, found, "" if found else f"no {_PATTERN} in {path}")


def _wheel() -> Place:
    name = "the wheel mkl"
    from importlib import metadata  # imported here: it is slow, and only this search needs it

    try:
        distribution = metadata.distribution("mkl")
    except metadata.PackageNotFoundError:
        return Place(name, empty="not installed")
    # Its libraries lie outside of site-packages: only the list of its files says where.
    folders = dict.fromkeys(Path(str(distribution.locate_file(f))).parent for f in distribution.files or ())
    found = libraries_in(*(folder.resolve() for folder in folders))
    return Place(name, found, "" if found else f"mkl {distribution.version} lists no {_PATTERN}")


def _library_path(environment: Mapping[str, str]) -> Place:
    value = environment.get(_LIBRARY_PATH, "")
    if not value:
        return Place(_LIBRARY_PATH, empty="not set")
    found = libraries_in(*(Path(folder) for folder in value.split(os.pathsep) if folder))
    return Place(_LIBRARY_PATH, found, "" if found else f"no {_PATTERN} in {value}")
