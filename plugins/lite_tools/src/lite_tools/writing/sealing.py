"""The seal of model files that this user makes, see :mod:`lite_core.container.trust`."""

from __future__ import annotations

import contextlib
import logging
import os

from lite_core.container.trust import KEY_BYTES, key_path, own_seal
from lite_core.private_files import write_private

__all__ = ["seal"]

logger = logging.getLogger("lite.tools")


def seal(digest: str) -> str:
    """Return the seal for code that this process made; empty, with a warning, if no key can be kept."""
    try:
        with contextlib.suppress(FileExistsError):
            write_private(key_path(), os.urandom(KEY_BYTES), replace=False)
        return own_seal(digest)
    except OSError as error:
        path = key_path()
        logger.warning("the code of this file is not sealed, so it has to be trusted before use: %s: %s", path, error)
        return ""
