"""Files that are no models of the format under test: a reader must not claim them."""

from __future__ import annotations

import io
import json
import pickle
import struct
import zipfile
import zlib

import numpy as np

from lite_core.container.layout import MAGIC

__all__ = ["foreign_files"]


def foreign_files() -> dict[str, bytes]:
    """Return the bytes of files of well-known kinds, by a description."""
    random = np.random.default_rng(0)
    array = io.BytesIO()
    np.save(array, np.arange(6, dtype=np.float32))
    return {
        "an empty file": b"",
        "one line break": b"\n",
        "an English text": b"This is a text. It has two sentences.\n",
        "a Python source": b'"""A module."""\n\nimport os\n\nprint(os.name)\n',
        "an empty JSON object": b"{}",
        "a JSON object of another program": json.dumps({"name": "settings", "version": 1, "items": [1, 2]}).encode(),
        "a TOML file": b'[project]\nname = "example"\n',
        "a web page": b"<!doctype html>\n<html><head><title>Page</title></head><body></body></html>\n",
        "4 KiB of zeros": bytes(4096),
        "4 KiB of random bytes": random.bytes(4096),
        "4 KiB of bytes 0xFF": b"\xff" * 4096,
        "a PNG image": _png(),
        "a zip archive with a text": _zip(),
        "a Python pickle of a dictionary": pickle.dumps({"weight": [1.0, 2.0]}),
        "a NumPy array": array.getvalue(),
        "compressed data of zlib": zlib.compress(b"compressed " * 20),
        "the beginning of a .lite file": MAGIC + bytes(248),
        "an ELF header": b"\x7fELF\x02\x01\x01" + bytes(57),
    }


def _png() -> bytes:
    """Return a grey image of one pixel."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    chunks = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0\x80")) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunks


def _zip() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("read me.txt", "This archive has a text.")
    return content.getvalue()
