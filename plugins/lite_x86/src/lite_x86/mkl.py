"""Finding and loading MKL, whose ``cblas_sgemm`` is an alternative to Lite's own matrix product.

Nothing is searched before :func:`search` is called. The result of every searched location is recorded. If MKL is
missing, broken or incomplete, that is logged (logger ``lite.x86.mkl``) and never an error.
"""

from __future__ import annotations

import ctypes
import logging
import os
import re
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from lite_core.forking import new_lock
from lite_x86.mkl_search import Location
from lite_x86.mkl_search import locations as default_locations

__all__ = ["Attempt", "Mkl", "Search", "find", "search", "skipped_search"]

logger = logging.getLogger("lite.x86.mkl")

_FUNCTIONS = (
    "cblas_sgemm",
    "mkl_get_version_string",
    "MKL_Set_Interface_Layer",
    "MKL_Set_Threading_Layer",
    "MKL_Set_Num_Threads_Local",
)
# The libraries ("layers") that mkl_rt loads at the first call; these names replace "mkl_rt" in its file name.
_LAYERS = {"win32": ("mkl_core", "mkl_sequential", "mkl_def"), "darwin": ("mkl_core", "mkl_sequential")}
_REQUIRED_LAYERS = _LAYERS.get(sys.platform, ("mkl_core", "mkl_intel_lp64", "mkl_sequential", "mkl_def"))

# Constants of mkl_service.h.
_INTERFACE_LP64, _THREADING_SEQUENTIAL = 0, 1


class Mkl(NamedTuple):
    """A loaded MKL. It stays loaded until the process ends.

    Attributes:
        path: the library's file.
        version: for example ``2026.2``.
        sequential: True if MKL starts no threads. If False, other code in the process has made it multi-threaded, and a
            thread that calls it must first call ``set_num_threads_local`` with 1.
        sgemm: address of ``cblas_sgemm``; its integers are 32 bits wide.
        set_num_threads_local: address of ``int MKL_Set_Num_Threads_Local(int)``, which affects the calling thread.
    """

    path: Path
    version: str
    sequential: bool
    sgemm: int
    set_num_threads_local: int


class Attempt(NamedTuple):
    """One searched location or library, and the result."""

    location: str
    result: str
    library: str = ""

    def __str__(self) -> str:
        return ": ".join(part for part in (self.location, self.library, self.result) if part)


class Search(NamedTuple):
    """The result of a search for MKL; ``mkl`` is None if none was found."""

    outcome: str
    mkl: Mkl | None = None
    attempts: tuple[Attempt, ...] = ()

    def lines(self) -> list[str]:
        """Return the search as text: the outcome, then every attempt, indented."""
        return [f"MKL: {self.outcome}", *(f"  {attempt}" for attempt in self.attempts)]


_lock = new_lock()


def search() -> Search:
    """Search for MKL; a process searches once and returns the same result from then on."""
    with _lock:
        return _search_once()


@cache
def _search_once() -> Search:
    return find(os.environ)


def find(environment: Mapping[str, str], locations: Iterable[Location] | None = None) -> Search:
    """Search for MKL, and log each attempt and the outcome.

    Args:
        environment: environment variables, some of which name locations.
        locations: the locations to search; by default those of :func:`lite_x86.mkl_search.locations`.
    """
    return _logged(_find(default_locations(environment) if locations is None else locations))


def skipped_search(reason: str) -> Search:
    """Return the result that replaces a search if MKL must not be used; ``reason`` is logged."""
    return _logged(Search(f"not looked for, {reason}"))


def _logged(result: Search) -> Search:
    logger.info("MKL: %s", result.outcome)
    return result


def _find(locations: Iterable[Location]) -> Search:
    attempts: list[Attempt] = []
    rejected: set[str] = set()

    def record(location: str, result: str, library: str = "") -> None:
        attempts.append(Attempt(location, result, library))
        # A user who names a file or folder must learn that it is not used.
        is_unused_choice = location == "LITE_MKL_PATH" and result not in ("loaded", "not set")
        logger.log(logging.WARNING if is_unused_choice else logging.DEBUG, "%s", attempts[-1])

    for location in locations:
        if location.problem:
            record(location.name, location.problem)
        for library in location.libraries:
            file = os.path.realpath(library) if os.path.dirname(library) else library
            if file in rejected:
                record(location.name, "rejected above", library)
                continue
            try:
                mkl = _open(library)
            except OSError as error:
                rejected.add(file)
                record(location.name, str(error).removeprefix(f"{library}: "), library)
                continue
            record(location.name, "loaded", library)
            threads = "" if mkl.sequential else ", which other code in this process uses with threads"
            return Search(f"{mkl.version} at {mkl.path}{threads}", mkl, tuple(attempts))
    return Search("not found, Lite's own kernels are used; `pip install mkl` installs it", None, tuple(attempts))


def _open(library: str) -> Mkl:
    """Load a library and configure it for calls from Lite's threads.

    Raises:
        OSError: the library cannot be loaded, is not MKL, or is incomplete.
    """
    if os.path.dirname(library):
        # Checked before loading: a library that is rejected later stays loaded, and the loader would return it for its
        # bare name.
        _check_layers(Path(library).resolve())
    loaded = ctypes.CDLL(library)
    absent = [name for name in _FUNCTIONS if not hasattr(loaded, name)]
    if absent:
        raise OSError(f"not MKL, it has no {absent[0]}")
    sgemm = _address(loaded.cblas_sgemm)
    path = _file_of(sgemm, library)
    # NOTE: MKL ends the process at the first call if a layer is missing, so no call may come before this check.
    _check_layers(path)
    loaded.MKL_Set_Interface_Layer(_INTERFACE_LP64)
    sequential = loaded.MKL_Set_Threading_Layer(_THREADING_SEQUENTIAL) == _THREADING_SEQUENTIAL
    text = ctypes.create_string_buffer(256)
    loaded.mkl_get_version_string(text, len(text))
    return Mkl(path, _version(text.value.decode()), sequential, sgemm, _address(loaded.MKL_Set_Num_Threads_Local))


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _check_layers(path: Path) -> None:
    for name in _REQUIRED_LAYERS:
        layer = path.with_name(path.name.replace("mkl_rt", name))
        if not layer.exists():
            raise OSError(f"incomplete, there is no {layer}")


def _version(text: str) -> str:
    found = re.search(r"Version ([\d.]+)", text)
    return found[1] if found else text.strip()


class _DlInfo(ctypes.Structure):
    """``Dl_info`` of dlfcn.h."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


def _file_of(address: int, library: str) -> Path:
    """Return the file of a loaded function, with links resolved; for a bare library name, the loader chose the file."""
    if os.path.dirname(library):
        return Path(library).resolve()
    info = _DlInfo()
    if not ctypes.CDLL(None).dladdr(ctypes.c_void_p(address), ctypes.byref(info)) or not info.file:
        raise OSError("the loader does not report which file it is")
    return Path(os.fsdecode(info.file)).resolve()
