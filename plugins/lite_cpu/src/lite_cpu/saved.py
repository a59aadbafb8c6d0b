"""Compiled kernels as bytes: what an executable saves and a backend restores."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping

from lite_core.backend import Stale
from lite_cpu.image import CodeImage, CodeImageError

__all__ = ["pack_images", "unpack_images"]

_MAGIC = b"LITECPU1"
_HEADER = struct.Struct("<8sI32s")  # magic, bytes of the identity, SHA-256 of all that follows
_ENTRY = struct.Struct("<II")  # bytes of the key, bytes of the image


def pack_images(identity: str, images: Mapping[str, CodeImage]) -> bytes:
    """Kernels by key. ``identity`` says what must be the same where they are used: the machine, the code's version."""
    name = identity.encode()
    parts = [name]
    for key, image in images.items():
        encoded, blob = key.encode(), image.to_bytes()
        parts += [_ENTRY.pack(len(encoded), len(blob)), encoded, blob]
    content = b"".join(parts)
    return _HEADER.pack(_MAGIC, len(name), hashlib.sha256(content).digest()) + content


def unpack_images(blob: bytes, identity: str) -> dict[str, CodeImage] | Stale:
    """The kernels in ``blob``, or why they cannot be used here. Never raises."""
    try:
        magic, name_bytes, checksum = _HEADER.unpack_from(blob)
        content = blob[_HEADER.size :]
        if magic != _MAGIC:
            return Stale(f"the saved state starts with {magic!r}, expected {_MAGIC!r}")
        if hashlib.sha256(content).digest() != checksum:
            return Stale("the saved state is damaged: its checksum does not match")
        saved = content[:name_bytes].decode()
        if saved != identity:
            return Stale(f"the saved kernels are for {saved}; here is {identity}")
        images, position = {}, name_bytes
        while position < len(content):
            key_bytes, image_bytes = _ENTRY.unpack_from(content, position)
            position += _ENTRY.size
            key = content[position : position + key_bytes].decode()
            position += key_bytes
            images[key] = CodeImage.from_bytes(content[position : position + image_bytes])
            position += image_bytes
        return images
    except (struct.error, UnicodeDecodeError, CodeImageError) as error:
        return Stale(f"the saved state cannot be read: {error}")
