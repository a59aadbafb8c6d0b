"""The memory of the chip: blocks of bytes that are no arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from lite_core import TensorType
from lite_core.backend import ViewsMemory

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Stone:
    """A tensor in a block of the chip's memory."""

    block: bytearray
    offset: int
    type: TensorType

    def array(self) -> Array:
        """Return the elements as the units of the chip see them."""
        shape = [int(size) for size in self.type.shape or ()]  # type: ignore[arg-type]
        return np.ndarray(shape, self.type.dtype.numpy, self.block, self.offset)


class GraniteMemory(ViewsMemory):
    """The memory space ``granite``."""

    space = "granite"

    def allocate(self, type: TensorType) -> Stone:
        size = int(type.size) * type.dtype.itemsize  # type: ignore[arg-type]
        return Stone(bytearray(max(size, 1)), 0, type)

    def upload(self, array: Array, data: Stone) -> None:
        data.array()[...] = array

    def download(self, data: Stone) -> Array:
        return data.array().copy()

    def view(self, data: Stone, offset: int, type: TensorType) -> Stone:
        return Stone(data.block, data.offset + offset, type)
