"""The beginning of Paddle-Lite's model files, by which they are recognised. Imports nothing that reading needs."""

from __future__ import annotations

import struct

__all__ = ["FOLDER_FILES", "HEADER", "VERSIONS", "looks_like_model", "looks_like_topology"]

#: Container version, version of the converter, bytes of the topology.
HEADER = struct.Struct("<H16sQ")
#: Container versions.
VERSIONS = (0, 1, 2)
#: Names of the files in a folder that Paddle-Lite wrote before version 2.3: topology and parameters.
FOLDER_FILES = ("__model__.nb", "param.nb")
_BEFORE_VARIABLES = struct.Struct("<Qii")


def looks_like_model(head: bytes) -> bool:
    """Return True if the first 26 bytes of a file are the header of a ``.nb`` file."""
    if len(head) < HEADER.size:
        return False
    version, text, size = HEADER.unpack_from(head)
    name, end, _ = text.partition(b"\0")
    readable = name.isascii() and name.decode().isprintable()
    return version in VERSIONS and bool(name and end) and readable and size < 2**40


def looks_like_topology(head: bytes) -> bool:
    """Return True if a ``__model__.nb`` begins with a list of few blocks, the first of which has no parent."""
    if len(head) < _BEFORE_VARIABLES.size:
        return False
    blocks, index, parent = _BEFORE_VARIABLES.unpack_from(head)
    return 0 < blocks < 2**16 and index == 0 and parent in (0, -1)
