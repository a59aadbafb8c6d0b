"""The memory of a simulated device, for tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core.ir import TensorType

__all__ = ["Memory", "Storage"]

Array = np.ndarray[Any, Any]


class Storage:
    """Storage in device memory. It is not an array, so code that uses it as an array fails."""

    def __init__(self, content: Array) -> None:
        self.content = content


class Memory:
    """A memory space that counts uploads and downloads."""

    def __init__(self, space: str) -> None:
        self.space = space
        self.uploads = self.downloads = 0

    def allocate(self, type: TensorType) -> Storage:
        return Storage(np.empty([int(d) for d in type.shape or ()], type.dtype.numpy))  # type: ignore[arg-type]

    def upload(self, array: Array, data: Storage) -> None:
        self.uploads += 1
        np.copyto(data.content, array)

    def download(self, data: Storage) -> Array:
        self.downloads += 1
        return data.content.copy()
