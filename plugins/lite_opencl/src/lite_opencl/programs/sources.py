"""The files with kernels, and the version of this code; programs of other versions are not used."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from lite_compiler.sources import version_of_sources

__all__ = ["kernel_text", "sources_version"]

_PACKAGE = Path(__file__).parents[1]


@cache
def kernel_text(file: str) -> str:
    """Return the text of ``kernels/<file>.cl``."""
    return (_PACKAGE / "kernels" / f"{file}.cl").read_text(encoding="utf-8")


def sources_version() -> str:
    """Return the version of the sources of this package and of the library it compiles with."""
    return version_of_sources(str(_PACKAGE), endings=(".py", ".cl"))
