"""Arrays that are kept in a temporary folder, so that however many there are, they take no memory."""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from lite_tools.comparing.values import Key

__all__ = ["Spool"]

Array = np.ndarray[Any, Any]


class Spool:
    """Arrays by key, in files of a temporary folder. Use it as a context manager: at the end the folder is deleted."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="lite-compare-")
        self._entries: dict[Key, tuple[Path, np.dtype[Any], tuple[int, ...]]] = {}

    def __enter__(self) -> Spool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._folder.cleanup()

    def __contains__(self, key: Key) -> bool:
        return key in self._entries

    def put(self, key: Key, array: Array) -> None:
        """Keep a copy of an array; one that was kept with the same key is replaced."""
        file = Path(self._folder.name, str(len(self._entries)))
        if array.dtype == object:  # strings; they are few
            np.save(file.with_suffix(".npy"), array.astype(str))
            file = file.with_suffix(".npy")
        else:
            np.ascontiguousarray(array).reshape(-1).view(np.uint8).tofile(file)
        self._entries[key] = file, array.dtype, array.shape

    def get(self, key: Key) -> Array | None:
        """Return an array, or None if there is none with this key."""
        if key not in self._entries:
            return None
        file, dtype, shape = self._entries[key]
        is_text = dtype.kind == "O"
        array: Array = np.load(file).astype(object) if is_text else np.fromfile(file, np.uint8).view(dtype)
        return array.reshape(shape)
