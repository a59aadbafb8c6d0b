"""Which code this is: what has been compiled and saved by other code is not used."""

from __future__ import annotations

import os

from lite_compiler.sources import version_of_sources

__all__ = ["sources_version"]


def sources_version() -> str:
    """What tells the sources of this package, and of the library it compiles with, from any others."""
    return version_of_sources(os.path.dirname(__file__))
