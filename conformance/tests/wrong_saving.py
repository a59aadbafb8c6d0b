"""Backends that save and restore wrongly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from wrong_executables import WrongBackend, WrongExecutable, right

from lite_core.backend import Buffer, Device, Executable, Options, Partition, Stale
from lite_core.ir import PanelLayout, SavedWeights

__all__ = ["BACKENDS"]


class Scaled(WrongExecutable):
    """An executable that saves two numbers, and computes with the numbers that it was restored from."""

    def __init__(self, part: Partition, factor: float = 1.0, offset: float = 0.0) -> None:
        super().__init__(part, scale)
        self.factor = factor
        self.offset = offset

    def save(self) -> list[bytes]:
        return [np.float64(self.factor).tobytes(), np.float64(self.offset).tobytes()]


def scale(executable: Any, inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> None:
    for buffer, array in zip(outputs, executable.results(inputs)):
        buffer.store((array * executable.factor + executable.offset).astype(array.dtype))


class RestoresAnything(WrongBackend):
    """Restores from any pieces."""

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        return Scaled(part)

    def restore(
        self, pieces: Sequence[memoryview], part: Partition, device: Device, options: Options
    ) -> Executable | Stale:
        return Scaled(part, *(float(np.frombuffer(piece)[0]) for piece in pieces))


class MixesUpPieces(RestoresAnything):
    """Checks only the number and the sizes of the pieces that it restores from."""

    def restore(
        self, pieces: Sequence[memoryview], part: Partition, device: Device, options: Options
    ) -> Executable | Stale:
        if [piece.nbytes for piece in pieces] != [8, 8]:
            return Stale("these are not two numbers")
        return super().restore(pieces, part, device, options)


class SavesOnePiece(RestoresAnything):
    """Saves bytes instead of a sequence of pieces."""

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        executable: Any = Scaled(part)
        executable.save = lambda: b"saved"
        return executable  # type: ignore[no-any-return]


class MislabelsWeights(RestoresAnything):
    """Saves weights in another order than the layout that they claim to be in."""

    class Executable(Scaled):
        def save(self) -> list[Any]:
            numbers = super().save()
            for value, array in self.graph.constants.items():
                if array.dtype == np.float32 and array.ndim == 2 and array.size:
                    depth, columns = array.shape
                    layout = PanelLayout(array.shape, (0, 1), depth, columns, 4, 4)
                    packed = np.empty(layout.shape, np.float32)
                    layout.pack(array, packed)
                    return [*numbers, SavedWeights(packed[:, ::-1].tobytes(), value.name, layout)]
            return [*numbers]

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        return self.Executable(part)

    def restore(
        self, pieces: Sequence[memoryview], part: Partition, device: Device, options: Options
    ) -> Executable | Stale:
        return super().restore(pieces[:2], part, device, options)


class ReadsUnlisted(RestoresAnything):
    """Restores executables that read all constants, although they list none."""

    class Executable(Scaled):
        def constants_read(self) -> list[str]:
            return []

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        return self.Executable(part)


class MisspeltWhenRestored(WrongBackend):
    """A backend with restored executables with a misspelt ``constants_read``."""

    class Restored(Scaled):
        def constants_reads(self) -> list[str]:
            return []

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        return Scaled(part)

    def restore(
        self, pieces: Sequence[memoryview], part: Partition, device: Device, options: Options
    ) -> Executable | Stale:
        if [bytes(piece) for piece in pieces] != Scaled(part).save():
            return Stale("these are not the numbers that were saved")
        return self.Restored(part)


#: The backends by name.
BACKENDS: dict[str, WrongBackend] = {
    name: kind(name, right)
    for name, kind in {
        "restores_anything": RestoresAnything,
        "mixes_up_pieces": MixesUpPieces,
        "saves_one_piece": SavesOnePiece,
        "mislabels_weights": MislabelsWeights,
        "reads_unlisted": ReadsUnlisted,
        "misspelt_when_restored": MisspeltWhenRestored,
    }.items()
}
