"""Which code this is: what other code compiled or saved is not used."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

__all__ = ["kernel_text", "sources_version"]

_FOLDER = Path(__file__).parents[1]


@functools.cache
def kernel_text(file: str) -> str:
    """The text of ``kernels/<file>.cl``."""
    return (_FOLDER / "kernels" / f"{file}.cl").read_text(encoding="utf-8")


@functools.cache
def sources_version() -> str:
    """A checksum of this package's sources: an edited kernel must never meet its former self."""
    checksum = hashlib.sha256()
    for path in sorted([*_FOLDER.rglob("*.py"), *_FOLDER.rglob("*.cl")]):
        checksum.update(path.read_bytes())
    return checksum.hexdigest()[:16]
