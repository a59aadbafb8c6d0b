"""The zip file of a submission: written the same every time, read within limits.

A bundle comes from somebody else. Its directory is checked before a file is unpacked: few files, with known names, none
twice, no links, no folders, no encryption; and no file is unpacked beyond the limits, whatever its directory says.
"""

from __future__ import annotations

import io
import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

from lite_conformance.reports.files import replace_bytes
from lite_core.errors import LiteError

__all__ = ["MANIFEST", "README", "WAIVERS", "ArchiveError", "read_archive", "write_archive"]

MANIFEST, README, WAIVERS = "manifest.json", "README.md", "conformance.toml"
_NAMES = re.compile(
    r"manifest\.json|README\.md|conformance\.toml"
    r"|must_pass/[a-z0-9][a-z0-9-]{0,60}\.txt|reports/[A-Za-z0-9][A-Za-z0-9._-]{0,100}\.json"
)
_MIB = 2**20
_MOST_BYTES, _MOST_UNPACKED, _MOST_FILES = 64 * _MIB, 64 * _MIB, 64
_MOST_DIRECTORY_BYTES = 2**16
_END = struct.Struct("<4s4H2LH")  # the record at the end of a zip file
_END_MARK, _FIRST_MARK = b"PK\x05\x06", b"PK\x03\x04"
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 0x1
_EPOCH = (1980, 1, 1, 0, 0, 0)


class ArchiveError(LiteError):
    """A file is not a bundle, is damaged, or exceeds a limit."""


def write_archive(file: str | os.PathLike[str], contents: Mapping[str, bytes]) -> None:
    """Write a bundle. Equal contents give equal bytes: there are no times in it.

    Raises:
        OSError: the file cannot be written.
    """
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(contents):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # so that it does not depend on the platform
            entry.external_attr = (stat.S_IFREG | 0o644) << 16
            archive.writestr(entry, contents[name])
    replace_bytes(file, memory.getvalue())


def read_archive(file: str | os.PathLike[str]) -> dict[str, bytes]:
    """Return the files of a bundle by their names.

    Raises:
        ArchiveError: the file cannot be read, is no zip file, is damaged, has other files than a bundle, or exceeds a
            limit.
    """
    try:
        with Path(file).open("rb") as stream:
            data = stream.read(_MOST_BYTES + 1)
    except OSError as error:
        raise ArchiveError(f"{os.fspath(file)!r} cannot be read: {error.strerror or error}") from error
    if len(data) > _MOST_BYTES:
        raise ArchiveError(f"the file is larger than {_MOST_BYTES // _MIB} MiB")
    _check_end(data)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return _unpack(archive)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OSError) as error:
        raise ArchiveError(f"the zip file is damaged: {error}") from error


def _check_end(data: bytes) -> None:
    """Check the record at the end, before the directory that it describes is read."""
    if not data.startswith(_FIRST_MARK) or len(data) < _END.size:
        raise ArchiveError("it is not a zip file")
    mark, disk, first_disk, count_here, count, size, offset, comment = _END.unpack(data[-_END.size :])
    if mark != _END_MARK or comment or disk or first_disk or count_here != count:
        raise ArchiveError("the zip file does not end as a bundle does: it is cut off, or something follows it")
    if count > _MOST_FILES or size > _MOST_DIRECTORY_BYTES:
        raise ArchiveError(f"the zip file says that it has {count} files; a bundle has at most {_MOST_FILES}")
    if offset + size + _END.size != len(data):
        raise ArchiveError("the zip file is damaged: its directory is not where it says")


def _unpack(archive: zipfile.ZipFile) -> dict[str, bytes]:
    contents: dict[str, bytes] = {}
    left = _MOST_UNPACKED
    for entry in archive.infolist():
        _check_entry(entry, contents)
        with archive.open(entry) as stream:
            content = stream.read(left + 1)
        left -= len(content)
        if left < 0:
            raise ArchiveError(f"its files have more than {_MOST_UNPACKED // _MIB} MiB when they are unpacked")
        contents[entry.filename] = content
    return contents


def _check_entry(entry: zipfile.ZipInfo, before: Mapping[str, bytes]) -> None:
    name = entry.orig_filename
    if not _NAMES.fullmatch(name) or name != entry.filename:
        raise ArchiveError(f"a bundle has no file {name!r}")
    if name in before:
        raise ArchiveError(f"the file {name!r} is in it twice")
    if entry.flag_bits & _ENCRYPTED:
        raise ArchiveError(f"the file {name!r} is encrypted")
    if entry.compress_type not in _METHODS:
        raise ArchiveError(f"the file {name!r} has compression method {entry.compress_type}; bundles have 0 and 8")
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        raise ArchiveError(f"{name!r} is a link or another special file")
