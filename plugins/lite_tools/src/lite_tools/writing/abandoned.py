"""Temporary files that writers of model files left when they died."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from pathlib import Path

__all__ = ["remove_abandoned"]

_ABANDONED_SECONDS = 3600.0


def remove_abandoned(temporaries: Iterable[Path]) -> None:
    """Remove temporary files that were not written to within the last hour: their writers died."""
    for path in temporaries:
        with contextlib.suppress(OSError):
            if time.time() - path.lstat().st_mtime > _ABANDONED_SECONDS:
                path.unlink()
