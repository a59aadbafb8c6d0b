"""Mapping of model files into memory, once per process and file."""

from __future__ import annotations

import mmap
import os
import stat
import threading
import zlib
from collections.abc import Iterable, Iterator, Sequence
from io import RawIOBase
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from lite_core.container.layout import BLOCK, HEADER_SIZE, Header, Table, constant_section
from lite_core.container.records import Section
from lite_core.errors import ModelFormatError
from lite_core.ir import TensorType, product

__all__ = ["MappedFile", "map_file"]

Array = np.ndarray[Any, Any]
_Block = tuple[str, int, int, int]  # name of the section, offset in the file, size, checksum
# More threads would not gain memory bandwidth, or would compete with other work.
_MOST_THREADS = 4


class MappedFile(mmap.mmap):
    """The bytes of a file, read-only, with a checked header and table.

    Arrays that view the mapping keep it alive, together with its state: the verified checksums and the arrays of
    constants. While a file is in use, opening it again therefore returns the same array objects.
    """

    header: Header
    table: Table
    lock: threading.RLock
    _verified: set[str]
    _constants: WeakValueDictionary[tuple[int, TensorType], Array]

    @staticmethod
    def of(file: RawIOBase, size: int) -> MappedFile:
        """Map an open file. Raises ModelFormatError if it is not a readable ``.lite`` file."""
        header = Header.parse(file.read(HEADER_SIZE) or b"")
        header.check_size(size)
        mapped = MappedFile(file.fileno(), size, access=mmap.ACCESS_READ)
        mapped.header = header
        mapped.table = Table.parse(mapped._view(header.table_offset, header.table_size), header)
        mapped.lock = threading.RLock()
        mapped._verified = set()
        mapped._constants = WeakValueDictionary()
        return mapped

    def _view(self, offset: int, size: int) -> memoryview:
        return memoryview(self)[offset : offset + size]

    def contents(self, names: Sequence[str]) -> list[memoryview]:
        """Return the bytes of sections, each verified on first access. Raises ModelFormatError."""
        for name in names:
            if name not in self.table.sections:
                raise ModelFormatError(f"it has no section {name!r} (it has: {', '.join(self.table.sections)})")
        self.verify(names)
        return [self._view(section.offset, section.size) for section in map(self.table.sections.__getitem__, names)]

    def constant(self, number: int, type: TensorType) -> Array:
        """Return the array in a section without verification. Raises ValueError if its size does not fit the type."""
        array = self._constants.get((number, type))
        if array is None:
            section = self.table.sections[constant_section(number)]
            if not type.is_static or product(type.shape or ()) * type.dtype.itemsize != section.size:
                raise ValueError(f"section {section.name!r} has {section.size} bytes, which does not fit {type}")
            array = np.ndarray(type.shape, type.dtype.numpy, buffer=self, offset=section.offset)  # type: ignore[arg-type]
            self._constants[number, type] = array
        return array

    def verify(self, names: Iterable[str]) -> None:
        """Verify the checksums of sections, each once in the lifetime of the mapping.

        Raises:
            ModelFormatError: names every damaged section.
        """
        # NOTE: reading a page beyond the end of a shrunken file kills the process, which Python cannot prevent. A file
        # that shrank earlier is detected here. A file that is replaced by a rename stays complete.
        self.header.check_size(self.size())
        pending = [self.table.sections[name] for name in names if name not in self._verified]
        blocks = [block for section in pending for block in _blocks(section)]
        damaged: set[str] = set()
        work = iter(blocks)
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
        for name, offset, size, checksum in work:  # threads share one iterator: each block is verified by one of them
            if zlib.crc32(self._view(offset, size)) != checksum:
                damaged.add(name)


def _blocks(section: Section) -> Iterator[_Block]:
    for number, checksum in enumerate(section.checksums):
        start = number * BLOCK
        yield section.name, section.offset + start, min(BLOCK, section.size - start), checksum


_mapped: WeakValueDictionary[tuple[int, ...], MappedFile] = WeakValueDictionary()
_lock = threading.Lock()


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
