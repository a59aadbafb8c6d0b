"""Loading of code images into memory that is first writable, then executable, and never both."""

from __future__ import annotations

import ctypes
import mmap
import platform
import sys
from collections.abc import Sequence
from typing import Protocol

from lite_core.errors import LiteError
from lite_cpu.machine_code.image import CodeImage
from lite_cpu.machine_code.instruction_cache import flush_instruction_cache

__all__ = ["CodeLoadError", "LoadedCode", "load"]

_ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64"}  # names used by Windows and macOS


class CodeLoadError(LiteError):
    """Code cannot be loaded: it is for another processor, or the system refuses executable memory."""


class _ExecutableMemory(Protocol):
    """Pages that are written once and then executed.

    Attributes:
        address: start of the memory, aligned to a page of the system.
    """

    address: int

    def protect(self) -> None:
        """Make the pages readable and executable instead of writable."""


class LoadedCode:
    """Code images in executable memory, which stays mapped as long as this object lives."""

    def __init__(self, images: Sequence[CodeImage], memory: _ExecutableMemory, offsets: Sequence[int]) -> None:
        self._entries = [image.entries for image in images]
        self._memory = memory
        self._offsets = tuple(offsets)

    def address(self, index: int, name: str) -> int:
        """Return the address of the function ``name`` in image number ``index`` of those given to :func:`load`.

        Raises:
            CodeLoadError: the image has no such function.
        """
        offset = self._entries[index].get(name)
        if offset is None:
            raise CodeLoadError(f"code image {index} has no function {name!r}; it has {sorted(self._entries[index])}")
        return self._memory.address + self._offsets[index] + offset


def load(images: Sequence[CodeImage]) -> LoadedCode:
    """Copy images into one mapping of executable memory.

    Raises:
        CodeLoadError: an image is for another processor, or the system refuses executable memory.
    """
    here = platform.machine().lower()
    here = _ARCHITECTURES.get(here, here)
    offsets, size = [], 0
    for index, image in enumerate(images):
        if image.architecture != here:
            raise CodeLoadError(f"code image {index} is for {image.architecture}, this processor is {here}")
        if image.alignment > mmap.PAGESIZE:
            raise CodeLoadError(
                f"code image {index} needs an alignment of {image.alignment} bytes, pages have {mmap.PAGESIZE}"
            )
        offset = -(-size // image.alignment) * image.alignment
        offsets.append(offset)
        size = offset + len(image.code)
    memory = _allocate(max(size, 1))
    for image, offset in zip(images, offsets):
        ctypes.memmove(memory.address + offset, image.code, len(image.code))
    memory.protect()
    flush_instruction_cache(memory.address, size)
    return LoadedCode(images, memory, offsets)


if sys.platform == "win32":
    import weakref

    _COMMIT_AND_RESERVE, _RELEASE = 0x3000, 0x8000
    _PAGE_READWRITE, _PAGE_EXECUTE_READ = 0x04, 0x20

    class _Pages:
        def __init__(self, size: int) -> None:
            self._kernel = ctypes.WinDLL("kernel32", use_last_error=True)
            self._kernel.VirtualAlloc.restype = ctypes.c_void_p
            self._size = ctypes.c_size_t(size)
            address = self._kernel.VirtualAlloc(None, self._size, _COMMIT_AND_RESERVE, _PAGE_READWRITE)
            if not address:
                raise CodeLoadError(f"{size} bytes for code refused: {ctypes.WinError(ctypes.get_last_error())}")
            self.address: int = address
            release = self._kernel.VirtualFree
            weakref.finalize(self, release, ctypes.c_void_p(address), ctypes.c_size_t(0), _RELEASE)

        def protect(self) -> None:
            address, before = ctypes.c_void_p(self.address), ctypes.c_ulong()
            if not self._kernel.VirtualProtect(address, self._size, _PAGE_EXECUTE_READ, ctypes.byref(before)):
                raise _refused("VirtualProtect to PAGE_EXECUTE_READ", str(ctypes.WinError(ctypes.get_last_error())))

else:
    import os

    class _Pages:
        def __init__(self, size: int) -> None:
            try:
                self._pages = mmap.mmap(
                    -1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ | mmap.PROT_WRITE
                )
            except OSError as error:
                raise CodeLoadError(f"{size} bytes for code refused: {error}") from error
            # The mapping cannot be closed while this view exists; both are released with this object.
            self._view = (ctypes.c_char * size).from_buffer(self._pages)
            self.address = ctypes.addressof(self._view)

        def protect(self) -> None:
            system = ctypes.CDLL(None, use_errno=True)
            address, size = ctypes.c_void_p(self.address), ctypes.c_size_t(len(self._pages))
            if system.mprotect(address, size, mmap.PROT_READ | mmap.PROT_EXEC):
                raise _refused("mprotect to read and execute", os.strerror(ctypes.get_errno()))


def _refused(call: str, reason: str) -> CodeLoadError:
    return CodeLoadError(
        f"the system refused executable memory ({call}: {reason}); a hardened kernel, a sandbox or a security "
        "policy forbids code generated at run time: allow it for this process (SELinux: execmem), or use another "
        "backend"
    )


def _allocate(size: int) -> _ExecutableMemory:
    return _Pages(size)
