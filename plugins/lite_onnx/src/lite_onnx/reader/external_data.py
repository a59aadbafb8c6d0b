"""Tensors that a model keeps in files beside it, mapped into memory."""

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
    """A file of tensors is not there, too short, or not where a model may point; the message is for the user."""


class ExternalFiles:
    """The files beside a model that hold tensors of it. Each is mapped once and read-only; pages are read when used.

    Only files in the model's folder and below are opened: a model from anybody must not read what is elsewhere. The
    folder that a link to the model leads to counts as well, for caches of downloads keep models and their data so.

    Args:
        model: the model's file.
    """

    def __init__(self, model: Path) -> None:
        self._model = model
        self._mapped: dict[Path, Array] = {}

    def bytes_of(self, tensor: TensorProto, count: int) -> Array:
        """The bytes of a tensor: as many as the model says, or ``count`` where it does not.

        Raises:
            MissingData: the file is not there, too short, or lies outside of the folder.
        """
        entries = {entry.key: entry.value for entry in tensor.external_data}
        location = entries.get("location", "")
        try:
            offset, length = (int(entries.get(key) or usual) for key, usual in (("offset", 0), ("length", count)))
        except ValueError as error:
            raise MissingData(f"the place that it should have in the file {location!r} is no number: {error}") from None
        data = self._content(location)
        if offset < 0 or length < 0 or offset + length > len(data):
            raise MissingData(
                f"it should be {length} bytes from byte {offset} of the file {location!r}, which has {len(data)}"
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
        except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: links that lead in a circle
            raise MissingData(f"the file {location!r} cannot be used: {error}") from None
        return self._mapped[path]

    def _inside(self, location: str) -> Path:
        relative = PurePosixPath(location.replace("\\", "/"))
        folder = self._model.parent.resolve()
        path = (folder / relative).resolve()
        allowed = (folder, self._model.resolve().parent)
        if not location or relative.is_absolute() or not any(path.is_relative_to(root) for root in allowed):
            raise ValueError("it lies outside of the model's folder, which Lite does not read")
        return path


def _map(path: Path) -> Array:
    """All bytes of a file.

    Raises:
        OSError: it cannot be opened.
        ValueError: it is no ordinary file.
    """
    if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would wait for ever
        raise ValueError("it is not an ordinary file")
    with path.open("rb") as file:
        if not path.stat().st_size:
            return np.zeros(0, np.uint8)  # what is empty cannot be mapped
        return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
