"""Finding and loading MKL, whose ``cblas_sgemm`` is one more matrix product to choose from.

Nothing is searched before :func:`search` is called. Every place is recorded with what was found there; MKL that is
missing, broken or incomplete is a line in the log (logger ``lite.x86.mkl``), never an error.
"""

from __future__ import annotations

import ctypes
import logging
import os
import re
import sys
import threading
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from lite_x86.mkl_search import Place, places

__all__ = ["Attempt", "Mkl", "Search", "find", "not_looked_for", "search"]

logger = logging.getLogger("lite.x86.mkl")

_FUNCTIONS = (
    "cblas_sgemm",
    "mkl_get_version_string",
    "MKL_Set_Interface_Layer",
    "MKL_Set_Threading_Layer",
    "MKL_Set_Num_Threads_Local",
)
# The layers that mkl_rt loads at the first call, by what replaces "mkl_rt" in its file name.
_LAYERS = {"win32": ("mkl_core", "mkl_sequential", "mkl_def"), "darwin": ("mkl_core", "mkl_sequential")}
_NEEDED_LAYERS = _LAYERS.get(sys.platform, ("mkl_core", "mkl_intel_lp64", "mkl_sequential", "mkl_def"))

# Values of mkl_service.h.
_INTERFACE_LP64, _THREADING_SEQUENTIAL = 0, 1


class Mkl(NamedTuple):
    """A loaded MKL. It stays loaded as long as the process lives.

    Attributes:
        path: the library's file.
        version: for example ``2026.2``.
        sequential: it starts no threads of its own. Where False, other code had given it threads before; a
            thread that calls it must first call ``set_num_threads_local`` with 1.
        sgemm: address of ``cblas_sgemm``; its integers are 32 bits wide.
        set_num_threads_local: address of ``int MKL_Set_Num_Threads_Local(int)``, for the calling thread.
    """

    path: Path
    version: str
    sequential: bool
    sgemm: int
    set_num_threads_local: int


class Attempt(NamedTuple):
    """One place that was looked at, and what came of it."""

    place: str
    result: str
    library: str = ""

    def __str__(self) -> str:
        return ": ".join(part for part in (self.place, self.library, self.result) if part)


class Search(NamedTuple):
    """Where MKL was looked for, and what was chosen: ``mkl`` is None where there is none."""

    outcome: str
    mkl: Mkl | None = None
    attempts: tuple[Attempt, ...] = ()

    def lines(self) -> list[str]:
        """The search as text: the outcome, then every attempt, indented."""
        return [f"MKL: {self.outcome}", *(f"  {attempt}" for attempt in self.attempts)]


_lock = threading.Lock()


def search() -> Search:
    """The search of this process, made once, when it is first asked for."""
    with _lock:
        return _search_once()


@cache
def _search_once() -> Search:
    return find(os.environ)


def find(environment: Mapping[str, str], where: Iterable[Place] | None = None) -> Search:
    """Look for MKL, log each attempt and the outcome.

    Args:
        environment: the variables that name places.
        where: the places to look at, those of :func:`~lite_x86.mkl_search.places` by default.
    """
    return _logged(_find(places(environment) if where is None else where))


def not_looked_for(why: str) -> Search:
    """What stands for the search where MKL is not wanted; ``why`` goes into the log."""
    return _logged(Search(f"not looked for, {why}"))


def _logged(result: Search) -> Search:
    logger.info("MKL: %s", result.outcome)
    return result


def _find(where: Iterable[Place]) -> Search:
    attempts: list[Attempt] = []
    refused: set[str] = set()

    def record(place: str, result: str, library: str = "") -> None:
        attempts.append(Attempt(place, result, library))
        # Who names a file or folder wants to know that it is not what is used.
        named = place == "LITE_MKL_PATH" and result not in ("loaded", "not set")
        logger.log(logging.WARNING if named else logging.DEBUG, "%s", attempts[-1])

    for place in where:
        if place.empty:
            record(place.name, place.empty)
        for library in place.libraries:
            file = os.path.realpath(library) if os.path.dirname(library) else library
            if file in refused:
                record(place.name, "refused before", library)
                continue
            try:
                mkl = _open(library)
            except OSError as error:
                refused.add(file)
                record(place.name, str(error).removeprefix(f"{library}: "), library)
                continue
            record(place.name, "loaded", library)
            threads = "" if mkl.sequential else ", which other code in this process uses with threads"
            return Search(f"{mkl.version} at {mkl.path}{threads}", mkl, tuple(attempts))
    return Search("not found, Lite's own kernels do all; `pip install mkl` brings it", None, tuple(attempts))


def _open(library: str) -> Mkl:
    """Load a library and prepare it for calls from threads of Lite's.

    Raises:
        OSError: it cannot be loaded, is not MKL, or lacks a part.
    """
    if os.path.dirname(library):
        # Before it is loaded: one that is refused later stays, and the loader gives it to who asks for its bare name.
        _check_layers(Path(library).resolve())
    loaded = ctypes.CDLL(library)
    absent = [name for name in _FUNCTIONS if not hasattr(loaded, name)]
    if absent:
        raise OSError(f"not MKL, it has no {absent[0]}")
    sgemm = _address(loaded.cblas_sgemm)
    path = _file_of(sgemm, library)
    # NOTE: MKL ends the process at the first call when a layer is missing; no call may come before this check.
    _check_layers(path)
    loaded.MKL_Set_Interface_Layer(_INTERFACE_LP64)
    sequential = loaded.MKL_Set_Threading_Layer(_THREADING_SEQUENTIAL) == _THREADING_SEQUENTIAL
    text = ctypes.create_string_buffer(256)
    loaded.mkl_get_version_string(text, len(text))
    return Mkl(path, _version(text.value.decode()), sequential, sgemm, _address(loaded.MKL_Set_Num_Threads_Local))


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _check_layers(path: Path) -> None:
    for name in _NEEDED_LAYERS:
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
    """The file a loaded function comes from, links resolved: the loader chose it where it was given a bare name."""
    if os.path.dirname(library):
        return Path(library).resolve()
    info = _DlInfo()
    if not ctypes.CDLL(None).dladdr(ctypes.c_void_p(address), ctypes.byref(info)) or not info.file:
        raise OSError("the loader does not say which file it is")
    return Path(os.fsdecode(info.file)).resolve()
