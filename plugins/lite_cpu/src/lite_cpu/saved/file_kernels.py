"""Kernels that a model file holds besides its programs, for partitions in sizes that were not prepared.

Most kernels take sizes as parameters. Where nothing can be compiled, a partition is therefore lowered as usual, for the
machine that the file was converted for, and its program calls the file's kernels. The first piece is a frame with the
machine and, for each kernel, digests of its key and of its code; then follow the runtime and the kernels, which are
equal to pieces of the programs and so are stored once.

NOTE: as for programs, the core passes pieces on only if they are trusted, and this code serves only the session of that
file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING

from lite_core.forking import new_lock
from lite_cpu.machine import Machine
from lite_cpu.machine_code.library import KernelLibrary
from lite_cpu.runtime.native import Native, runtime_image
from lite_cpu.saved.frame import SavedStateError, read_frame, write_frame
from lite_cpu.tuning import tuning_of_json

if TYPE_CHECKING:
    from lite_cpu.kernels.base import Kernel
    from lite_cpu.machine_code.file_code import FileCode

__all__ = ["FileLibrary", "KernelCollector", "MissingKernelError"]

#: Number of missing kernels that an error describes.
_MOST_LISTED = 3
_KEY_DIGITS = 32


class MissingKernelError(SavedStateError):
    """A model file lacks kernels, and this environment cannot compile them."""


class KernelCollector:
    """The kernels of all programs that are compiled with one device, to be saved. Thread-safe."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._kernels: dict[Kernel, None] = {}

    def add(self, kernels: Iterable[Kernel]) -> None:
        """Add the kernels of a program."""
        with self._lock:
            self._kernels.update(dict.fromkeys(kernels))

    def pieces(self, library: KernelLibrary) -> list[bytes]:
        """Return the kernels as pieces for :class:`FileLibrary`; none if there are no kernels.

        Args:
            library: the library that the programs were compiled with.
        """
        with self._lock:
            kernels = [*self._kernels]
        if not kernels:
            return []
        library.addresses(kernels)
        images = library.images(sorted(kernel.key(library.machine) for kernel in kernels))
        code = {_digest(key): image.to_bytes() for key, image in images.items()}
        runtime = runtime_image(library.machine.triple)
        description = {
            "machine": asdict(library.machine),
            "runtime": sha256(runtime).hexdigest(),
            "kernels": [[digest, sha256(image).hexdigest()] for digest, image in code.items()],
        }
        return [write_frame(description, []), runtime, *code.values()]


class FileLibrary(KernelLibrary):
    """A library with the kernels that a model file holds for one machine, and no others.

    Args:
        pieces: the result of :meth:`KernelCollector.pieces`, read from the file.

    Raises:
        SavedStateError: the pieces are damaged, or no kernels.
    """

    def __init__(self, pieces: Sequence[memoryview]) -> None:
        if not pieces:
            raise SavedStateError("no kernels are saved")
        try:
            saved = read_frame(pieces[0]).description
            self._entries = [(str(key), str(checksum)) for key, checksum in saved["kernels"]]
            self._runtime, self._pieces = str(saved["runtime"]), pieces[1:]
            machine = {**saved["machine"], "features": tuple(saved["machine"]["features"])}
            super().__init__(Machine(**{**machine, "tuning": tuning_of_json(machine["tuning"])}))
        except (LookupError, TypeError, ValueError) as error:
            raise SavedStateError(f"the saved kernels cannot be read: {type(error).__name__}: {error}") from error

    @property
    def native(self) -> Native:
        """The runtime in the file."""
        return self._code.native

    def addresses(self, kernels: Iterable[Kernel]) -> dict[Kernel, int]:
        """Return the addresses of kernels.

        Raises:
            MissingKernelError: the file lacks some of them; the message describes them.
        """
        known = self._code.addresses
        found = {kernel: known.get(_digest(kernel.key(self.machine)), 0) for kernel in kernels}
        missing = [repr(kernel) for kernel, address in found.items() if not address]
        if missing:
            more = f" and {len(missing) - _MOST_LISTED} more" if len(missing) > _MOST_LISTED else ""
            raise MissingKernelError(
                f"the model's file lacks {len(missing)} of {len(found)} kernels that these sizes need: "
                f"{', '.join(missing[:_MOST_LISTED])}{more}"
            )
        return found

    @cached_property
    def _code(self) -> FileCode:
        """The kernels, by the digests of their keys, and the runtime; loaded when first used.

        Raises:
            SavedStateError: the pieces are not those that were saved together.
            CodeLoadError: the code is for another processor.
        """
        from lite_cpu.machine_code.file_code import code_of_file

        code = [bytes(piece) for piece in self._pieces]
        checksums = [self._runtime, *(checksum for _, checksum in self._entries)]
        if [sha256(piece).hexdigest() for piece in code] != checksums:
            raise SavedStateError("the kernels in the model's file are not those that were saved together")
        return code_of_file([key for key, _ in self._entries], code[1:], code[0])


def _digest(key: str) -> str:
    """Return what a file stores instead of the key of a kernel, most of which describes the machine."""
    return sha256(key.encode()).hexdigest()[:_KEY_DIGITS]
