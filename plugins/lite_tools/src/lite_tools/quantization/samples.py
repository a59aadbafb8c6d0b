"""Samples for calibration from a folder of NumPy files, which are read one at a time."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lite_core.errors import InputError
from lite_core.ir import TensorType
from lite_tools.commands.array_files import read_array_file, read_arrays

__all__ = ["FolderSamples"]

Array = np.ndarray[Any, Any]

_SUFFIXES = (".npy", ".npz")


class FolderSamples(Sequence[Mapping[str, Array]]):
    """The samples in a folder, in the order of the files' names; a file is read when its sample is needed.

    Args:
        folder: the folder. Each ``.npz`` file has an array for every input, by name, and may have others. If the model
            has one input, ``.npy`` files are samples, too.
        types: the types of the model's inputs, by name.
        most: the most samples to use, spread evenly over the files; None for all.

    Raises:
        InputError: there is no such folder, it has no samples, or ``most`` is not a positive number.
    """

    def __init__(
        self, folder: str | os.PathLike[str], types: Mapping[str, TensorType], most: int | None = None
    ) -> None:
        self._types = types
        path = Path(folder)
        if most is not None and most < 1:
            raise InputError(f"calibration_samples (--calibration-samples) must be at least 1, is {most}")
        if not path.is_dir():
            raise InputError(f"calibration folder {str(folder)!r} is not a folder: name one with an .npz file a sample")
        names = sorted(entry.name for entry in path.iterdir() if entry.suffix.lower() in _SUFFIXES and entry.is_file())
        if not names:
            found = sorted({entry.suffix or entry.name for entry in path.iterdir()})[:5]
            raise InputError(
                f"calibration folder {str(folder)!r} has no .npz or .npy files, but {', '.join(found) or 'nothing'}. "
                "Save the inputs of each sample as the model gets them: "
                f"numpy.savez('{path.name}/0.npz', {', '.join(f'{name}=...' for name in types)})"
            )
        count = len(names) if most is None else min(most, len(names))
        self.files = tuple(path / names[number * len(names) // count] for number in range(count))

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: Any) -> Any:
        file = self.files[index]
        if file.suffix.lower() == ".npy" and len(self._types) != 1:
            raise InputError(
                f"calibration sample {str(file)!r}: the model has the inputs {', '.join(self._types)}, and a .npy file "
                "has one array without a name; save an .npz file with all of them"
            )
        try:
            if file.suffix.lower() == ".npz":
                return read_arrays(file, self._types)
            ((name, type_),) = self._types.items()
            return {name: read_array_file(file, name, type_)}
        # NumPy and zipfile raise many kinds for damaged files: TokenError, struct.error, zlib.error, MemoryError.
        except Exception as error:
            reason = str(error) or type(error).__name__
            raise InputError(f"calibration sample {str(file)!r} cannot be read: {reason}") from None
