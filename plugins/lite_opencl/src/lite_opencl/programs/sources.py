"""The files that kernels are in, and which code this is: what other code compiled or saved is not used."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from lite_compiler.sources import version_of_sources

__all__ = ["kernel_text", "sources_version"]

_PACKAGE = Path(__file__).parents[1]


@cache
def kernel_text(file: str) -> str:
    """The text of ``kernels/<file>.cl``."""
    return (_PACKAGE / "kernels" / f"{file}.cl").read_text(encoding="utf-8")


def sources_version() -> str:
    """What tells the sources of this package, and of the library it compiles with, from any others."""
    return version_of_sources(str(_PACKAGE), endings=(".py", ".cl"))
