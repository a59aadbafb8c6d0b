"""Memory-mapped tensors that a model keeps in external files."""

from __future__ import annotations

import mmap
import stat
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from onnx import TensorProto

__all__ = ["ExternalFiles", "MissingData"]

Array = np.ndarray[Any, Any]


class MissingData(ValueError):
    """A file of tensors is missing, too short, or outside the allowed folders; the message is meant for the user."""


class ExternalFiles:
    """The external files with a model's tensors. Each is mapped once, read-only; pages are read on first use.

    Only files in the model's folder and below are opened: an untrusted model must not read other files. If the model's
    path is a symbolic link, the folder of its target is allowed, too: download caches link models and their data.

    Args:
        model: the model's file.
    """

    def __init__(self, model: Path) -> None:
        self._model = model
        self._mapped: dict[Path, Array] = {}

    @property
    def total_bytes(self) -> int:
        """The size of the files that have been mapped."""
        return sum(data.nbytes for data in self._mapped.values())

    def bytes_of(self, tensor: TensorProto, count: int) -> Array:
        """Return the bytes of a tensor: as many as the model says, or ``count`` if it does not say.

        Raises:
            MissingData: the file is missing, too short, or outside the folder.
        """
        entries = {entry.key: entry.value for entry in tensor.external_data}
        location = entries.get("location", "")
        try:
            offset, length = (int(entries.get(key) or default) for key, default in (("offset", 0), ("length", count)))
        except ValueError as error:
            raise MissingData(f"its offset or length in the file {location!r} is not a number: {error}") from None
        data = self._content(location)
        if offset < 0 or length < 0 or offset + length > len(data):
            raise MissingData(
                f"it should be {length} bytes from byte {offset} of the file {location!r}, which has {len(data)} bytes"
            )
        return data[offset : offset + length]

    def _content(self, location: str) -> Array:
        try:
            path = self._inside(location)
            if path not in self._mapped:
                self._mapped[path] = _map(path)
        except FileNotFoundError:
            folder = str(self._model.parent)
            raise MissingData(f"the file {location!r} is not beside the model, in {folder!r}") from None
        except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: a cycle of symbolic links
            raise MissingData(f"the file {location!r} cannot be used: {error}") from None
        return self._mapped[path]

    def _inside(self, location: str) -> Path:
        relative = PurePosixPath(location.replace("\\", "/"))
        folder = self._model.parent.resolve()
        path = (folder / relative).resolve()
        allowed = (folder, self._model.resolve().parent)
        if not location or relative.is_absolute() or not any(path.is_relative_to(root) for root in allowed):
            raise ValueError("it is outside the model's folder, and Lite reads only files inside it")
        return path


def _map(path: Path) -> Array:
    """Map a whole file into memory.

    Raises:
        OSError: it cannot be opened.
        ValueError: it is not an ordinary file.
    """
    if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe could block indefinitely
        raise ValueError("it is not an ordinary file")
    with path.open("rb") as file:
        if not path.stat().st_size:
            return np.zeros(0, np.uint8)  # an empty file cannot be mapped
        return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
