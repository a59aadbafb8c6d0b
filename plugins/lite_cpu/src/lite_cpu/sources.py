"""Version of this package's source code; programs compiled or saved by other versions are not used."""

from __future__ import annotations

import os

from lite_compiler.sources import version_of_sources

__all__ = ["sources_version"]


def sources_version() -> str:
    """Return a text that changes with the sources of this package and of lite_compiler."""
    return version_of_sources(os.path.dirname(__file__))
