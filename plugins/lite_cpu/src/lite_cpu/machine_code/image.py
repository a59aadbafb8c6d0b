"""Flat images of machine code: the form of a compiled kernel in memory and in files.

An image needs no linker. All references inside it are relative, so it is loaded by copying its bytes to executable
memory.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import NamedTuple

from lite_core.errors import LiteError

__all__ = ["CODE_ALIGNMENT", "CodeImage", "CodeImageError"]

#: Minimum alignment of an image in bytes: the size of a cache line and of the widest vector constant.
CODE_ALIGNMENT = 64

_MAGIC = b"LCOD"
_VERSION = 1
_HEADER = struct.Struct("<4sHHIIQ")  # magic, version, length of the architecture, alignment, entries, bytes of code
_ENTRY = struct.Struct("<QH")  # offset, length of the name


class CodeImageError(LiteError):
    """A code image is damaged, is for another processor, or cannot be built from an object file."""


class CodeImage(NamedTuple):
    """Machine code that runs at any address.

    Attributes:
        code: instructions and constants.
        entries: offset in ``code``, in bytes, of each function that may be called from outside.
        architecture: the instruction set, ``x86_64`` or ``aarch64``.
        alignment: required alignment of the address that ``code`` is copied to, in bytes.
    """

    code: bytes
    entries: Mapping[str, int]
    architecture: str
    alignment: int = CODE_ALIGNMENT

    def to_bytes(self) -> bytes:
        """Serialize the image for :meth:`from_bytes`; equal images give equal bytes."""
        architecture = self.architecture.encode()
        parts = [
            _HEADER.pack(_MAGIC, _VERSION, len(architecture), self.alignment, len(self.entries), len(self.code)),
            architecture,
        ]
        for name, offset in sorted(self.entries.items()):
            encoded = name.encode()
            parts += (_ENTRY.pack(offset, len(encoded)), encoded)
        parts.append(self.code)
        return b"".join(parts)

    @staticmethod
    def from_bytes(blob: bytes) -> CodeImage:
        """Parse the bytes of :meth:`to_bytes`.

        Raises:
            CodeImageError: the bytes are of another kind or version, truncated or inconsistent.
        """
        try:
            return _parse(blob)
        except (struct.error, UnicodeDecodeError) as error:
            raise CodeImageError(f"code image of {len(blob)} bytes is truncated or damaged: {error}") from error


def _parse(blob: bytes) -> CodeImage:
    magic, version, architecture_bytes, alignment, count, code_bytes = _HEADER.unpack_from(blob)
    if magic != _MAGIC:
        raise CodeImageError(f"not a code image: expected it to start with {_MAGIC!r}, found {magic!r}")
    if version != _VERSION:
        raise CodeImageError(f"code image of version {version}, expected {_VERSION}; compile it again")
    if alignment < CODE_ALIGNMENT or alignment & (alignment - 1):
        raise CodeImageError(f"code image is damaged: alignment {alignment} is no power of two from {CODE_ALIGNMENT}")
    position = _HEADER.size + architecture_bytes
    architecture = blob[_HEADER.size : position].decode()
    entries = {}
    for _ in range(count):
        offset, name_bytes = _ENTRY.unpack_from(blob, position)
        position += _ENTRY.size + name_bytes
        name = blob[position - name_bytes : position].decode()
        if offset >= code_bytes:
            raise CodeImageError(f"code image is damaged: {name!r} at byte {offset} of {code_bytes} bytes of code")
        entries[name] = offset
    if len(blob) != position + code_bytes:
        raise CodeImageError(f"code image is damaged: expected {position + code_bytes} bytes, found {len(blob)}")
    return CodeImage(blob[position:], entries, architecture, alignment)
