"""Mapping of model files into memory, once per process and file."""

from __future__ import annotations

import mmap
import os
import stat
import threading
import weakref
import zlib
from collections.abc import Iterable, Iterator, Sequence
from io import RawIOBase
from math import prod
from pathlib import Path
from weakref import WeakValueDictionary

import numpy as np

from lite_core.container.layout import BLOCK, HEADER_SIZE, Header, Table, constant_section
from lite_core.container.records import Section
from lite_core.errors import ModelFormatError
from lite_core.forking import new_lock
from lite_core.ir import Array, DType, Nibbles, PanelLayout, TensorType, aligned_empty
from lite_core.ir.dims import product

__all__ = ["MappedFile", "map_file", "stored_panels"]

_Block = tuple[str, int, int]  # name of the section, offset in it, checksum
# More threads would not gain memory bandwidth, or would compete with other work.
_MOST_THREADS = 4


class MappedFile(mmap.mmap):
    """The bytes of a file, read-only, with a checked header and table.

    Arrays that view the mapping keep it alive, together with its state: the verified checksums and the arrays of
    constants. While a file is in use, opening it again therefore returns the same array objects.

    Sealed sections are read once, into private memory: what was verified is what is used, whatever happens to the file.
    """

    header: Header
    table: Table
    lock: threading.RLock
    _verified: set[str]
    _constants: WeakValueDictionary[tuple[int, TensorType], Array]
    _unpacked: WeakValueDictionary[int, _Unpacked]
    _private: dict[str, memoryview]

    @staticmethod
    def of(file: RawIOBase, size: int) -> MappedFile:
        """Map an open file. Raises ModelFormatError if it is not a readable ``.lite`` file."""
        header = Header.parse(file.read(HEADER_SIZE) or b"")
        header.check_size(size)
        mapped = MappedFile(file.fileno(), size, access=mmap.ACCESS_READ)
        mapped.header = header
        mapped.table = Table.parse(mapped._view(header.table_offset, header.table_size), header)
        mapped.lock = new_lock()
        mapped._verified = set()
        mapped._constants = WeakValueDictionary()
        mapped._unpacked = WeakValueDictionary()
        mapped._private = {}
        return mapped

    def _view(self, offset: int, size: int) -> memoryview:
        return memoryview(self)[offset : offset + size]

    def contents(self, names: Sequence[str]) -> list[memoryview]:
        """Return the bytes of sections, each verified on first access. Raises ModelFormatError."""
        for name in names:
            if name not in self.table.sections:
                raise ModelFormatError(f"it has no section {name!r} (it has: {', '.join(self.table.sections)})")
        self.verify(names)
        return list(map(self._bytes_of, names))

    def _bytes_of(self, name: str) -> memoryview:
        """Return the bytes of a section without verification; those in private memory if there is a copy."""
        section = self.table.sections[name]
        return self._private.get(name) or self._view(section.offset, section.size)

    def constant(self, number: int, type: TensorType, layout: PanelLayout | Nibbles | None = None) -> Array:
        """Return the array in a section without verification. Raises ValueError if its size does not fit the type.

        If the section stores the array in a layout, or 4-bit integers, its elements are undefined until :meth:`unpack`.
        """
        array = self._constants.get((number, type))
        if array is None:
            section = self.table.sections[constant_section(number)]
            size = product(type.shape or ())
            if isinstance(layout, PanelLayout) and isinstance(size, int):
                layout.check(size)
                size = product(layout.shape)
            elif isinstance(size, int) and section.size < size and type.dtype in (DType.INT4, DType.UINT4):
                layout = Nibbles((size,))
                size = layout.shape[0]
            if not type.is_static or size * type.dtype.itemsize != section.size:
                raise ValueError(f"section {section.name!r} has {section.size} bytes, which does not fit {type}")
            if layout is None:
                copy = self._private_copy(section) if section.sealed and section.size else None
                buffer, offset = (self, section.offset) if copy is None else (copy, 0)
                array = np.ndarray(type.shape, type.dtype.numpy, buffer=buffer, offset=offset)  # type: ignore[arg-type]
                if copy is not None:
                    weakref.finalize(array, id, self)  # keeps the mapping alive, as a view of it does
            else:
                array = self._space_for(number, type, layout)
            self._constants[number, type] = array
        return array

    def panels(self, number: int, layout: PanelLayout | Nibbles) -> Array:
        """Return a section that stores an array in a layout, without verification: float32, or bytes of two nibbles."""
        offset = self.table.sections[constant_section(number)].offset
        dtype = np.float32 if isinstance(layout, PanelLayout) else np.uint8
        panels: Array = np.ndarray(layout.shape, dtype, buffer=self, offset=offset)
        return panels

    def _private_copy(self, section: Section) -> memoryview:
        if section.name not in self._private:
            copy = aligned_empty((section.size,), np.uint8)
            copy[:] = np.frombuffer(self._view(section.offset, section.size), np.uint8)
            copy.flags.writeable = False
            # The first copy stays, also if two threads make one: what the seal was computed of is what is used.
            self._private.setdefault(section.name, copy.data)
        return self._private[section.name]

    def _space_for(self, number: int, type: TensorType, layout: PanelLayout | Nibbles) -> Array:
        if isinstance(layout, PanelLayout) and type.dtype is not DType.FLOAT32:
            raise ValueError(f"only float32 arrays can be stored in panels, array {number} is {type}")
        space = self._unpacked.get(number)
        if space is None:
            # Anonymous pages take no memory until they are written: many programs read the panels only.
            space = self._unpacked[number] = _Unpacked(-1, prod(layout.split) * type.dtype.itemsize)
            space.mapped, space.number, space.layout, space.is_filled = self, number, layout, False
            _spaces[np.frombuffer(space, np.uint8).ctypes.data] = space
        array: Array = np.ndarray(type.shape, type.dtype.numpy, buffer=space)  # type: ignore[arg-type]
        array.flags.writeable = False
        return array

    def unpack(self, numbers: Iterable[int]) -> None:
        """Write the elements of arrays that are stored in panels, whose sections are verified, to their plain order."""
        with self.lock:
            for space in filter(None, map(self._unpacked.get, numbers)):
                if not space.is_filled:
                    panels = self.panels(space.number, space.layout)
                    space.layout.unpack(panels, np.frombuffer(space, panels.dtype))
                    space.is_filled = True

    def verify(self, names: Iterable[str]) -> None:
        """Verify the checksums of sections, each once in the lifetime of the mapping.

        Raises:
            ModelFormatError: names every damaged section.
        """
        # NOTE: reading a page beyond the end of a shrunken file kills the process, which Python cannot prevent. A file
        # that shrank earlier is detected here. A file that is replaced by a rename stays complete.
        self.header.check_size(self.size())
        pending = [self.table.sections[name] for name in names if name not in self._verified]
        for section in pending:
            if section.sealed:
                self._private_copy(section)
        damaged: set[str] = set()
        work = iter([(s.name, n * BLOCK, checksum) for s in pending for n, checksum in enumerate(s.checksums)])
        helpers = [
            threading.Thread(target=self._verify, args=(work, damaged), name="lite-verify", daemon=True)
            for _ in range(min(os.cpu_count() or 1, _MOST_THREADS, 1 + sum(s.size for s in pending) // BLOCK) - 1)
        ]
        for helper in helpers:
            helper.start()
        self._verify(work, damaged)
        for helper in helpers:
            helper.join()
        self._verified.update(section.name for section in pending if section.name not in damaged)
        if damaged:
            raise ModelFormatError(
                f"{len(damaged)} section(s) are damaged, their checksums do not fit: {', '.join(sorted(damaged))}; "
                "copy the file again, or convert the model again"
            )

    def _verify(self, work: Iterator[_Block], damaged: set[str]) -> None:
        for name, start, checksum in work:  # threads share one iterator: each block is verified by one of them
            found = self._bytes_of(name)[start : start + BLOCK]
            if zlib.crc32(found) != checksum:
                damaged.add(name)


class _Unpacked(mmap.mmap):
    """Memory for the plain elements of an array that a file stores in panels."""

    mapped: MappedFile
    number: int
    layout: PanelLayout | Nibbles
    is_filled: bool


#: The memory for unpacked arrays, by its address.
_spaces: WeakValueDictionary[int, _Unpacked] = WeakValueDictionary()


def stored_panels(array: Array, layout: PanelLayout | Nibbles) -> Array | None:
    """Return a constant in the order that a backend reads it in, if a file stores it in exactly this order, else None.

    Args:
        array: a constant of a graph, contiguous.
        layout: the wanted order.

    Raises:
        ModelFormatError: the section is damaged.
    """
    space = _spaces.get(array.ctypes.data)
    if space is None or space.layout != layout or len(space) != array.nbytes:
        return None
    space.mapped.verify([constant_section(space.number)])
    return space.mapped.panels(space.number, layout)


_mapped: WeakValueDictionary[tuple[int, ...], MappedFile] = WeakValueDictionary()
_lock = new_lock()


def map_file(path: Path) -> MappedFile:
    """Return the existing mapping of a file if it is in use and the file is unchanged, else a new one.

    Raises:
        ModelFormatError: the file cannot be opened, or is not a readable ``.lite`` file.
    """
    try:
        # Checked before opening, because opening a pipe would wait for a writer.
        if not stat.S_ISREG(path.stat().st_mode):
            raise ModelFormatError("it is not a file")
        with path.open("rb", buffering=0) as file, _lock:
            status = os.fstat(file.fileno())
            key = (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size)
            mapped = _mapped.get(key)
            if mapped is None:
                mapped = _mapped[key] = MappedFile.of(file, status.st_size)
            return mapped
    except (OSError, ValueError) as error:  # ValueError: an invalid file name
        raise ModelFormatError(f"it cannot be read: {getattr(error, 'strerror', None) or error}") from error
