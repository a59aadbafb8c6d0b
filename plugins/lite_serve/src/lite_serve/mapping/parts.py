"""The parts of a dataset: what is done, written and finished as a whole."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from lite_core.errors import InputError

__all__ = ["FORMATS", "Part", "files_of", "format_of"]

#: The formats of datasets, each with the suffixes of its files.
FORMATS = {
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".feather", ".ipc"),
    "jsonl": (".jsonl", ".ndjson"),
    "csv": (".csv", ".tsv"),
    "npy": (".npy",),
    "npz": (".npz",),
    "images": (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff"),
}
_FORMAT_OF = {suffix: name for name, suffixes in FORMATS.items() for suffix in suffixes}


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of a dataset whose results are one file.

    Attributes:
        index: its number, counted from 0 in the order of the rows.
        path: the file, relative to the folder of the dataset; of pictures, the first one.
        size: the bytes of the file; of pictures, of all of them.
        mtime_ns: the time when the file was changed, in nanoseconds; of pictures, that of the one changed last.
        groups: the row groups of a Parquet file or the record batches of an Arrow file; empty for other formats.
        start: the first of its rows within its groups, or within the file; of JSON lines, the first byte.
        rows: the number of its rows; None if it is not known before they are read.
        stop: the end of its bytes in a file of JSON lines; None for other formats.
        first_row: the number of its first row in the file, for messages; None if it is not known.
        pictures: the pictures of a folder, relative to it.
        digest: the SHA-256 of the paths, sizes and times of pictures; empty for other formats.
    """

    index: int
    path: str
    size: int
    mtime_ns: int
    groups: tuple[int, ...] = ()
    start: int = 0
    rows: int | None = None
    stop: int | None = None
    first_row: int | None = 0
    pictures: tuple[str, ...] = ()
    digest: str = ""

    def identity(self) -> dict[str, Any]:
        """Return what distinguishes it from other parts, and from itself before its file was changed, as plain data."""
        about = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}
        return {**about, "pictures": []}

    @staticmethod
    def of(identity: dict[str, Any]) -> Part:
        """Return the part that :meth:`identity` described.

        Raises:
            (TypeError, KeyError): it describes none.
        """
        known = {f.name: identity[f.name] for f in fields(Part)}
        plain: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in known.items()}
        return Part(**plain)

    def __str__(self) -> str:
        """Name the part in messages: ``a.parquet, rows 0 to 65535``."""
        if self.pictures:
            return f"pictures {self.pictures[0]} to {self.pictures[-1]}" if len(self.pictures) > 1 else self.path
        if self.stop is not None:
            return f"{self.path}, bytes {self.start} to {self.stop}"
        if self.rows is None or self.first_row is None:
            return self.path
        return f"{self.path}, rows {self.first_row} to {self.first_row + self.rows - 1}"


def format_of(path: Path, given: str = "") -> str:
    """Return the format of a dataset.

    Args:
        path: a file, or a folder with files of one format.
        given: the format that the user has named; empty to find it by the names of files.

    Raises:
        InputError: there is no such file, or the format is not known.
    """
    if not path.exists():
        raise InputError(f"there is no file or folder {str(path)!r}")
    if given:
        return given
    known = ", ".join(suffix for suffixes in FORMATS.values() for suffix in suffixes)
    if path.is_file():
        if found := _FORMAT_OF.get(path.suffix.lower()):
            return found
        raise InputError(f"{path.name} has none of the suffixes {known}; name its format with --format")
    counts = Counter(_FORMAT_OF[file.suffix.lower()] for file in _visible(path) if file.suffix.lower() in _FORMAT_OF)
    if not counts:
        raise InputError(f"the folder {str(path)!r} contains no file with one of the suffixes {known}")
    if len(counts) > 1:
        listed = ", ".join(f"{count} of {name}" for name, count in counts.most_common())
        raise InputError(f"the folder {str(path)!r} contains files of several formats: {listed}; choose with --format")
    return next(iter(counts))


def files_of(path: Path, format: str) -> list[Path]:
    """Return the files of a dataset, sorted by their paths.

    Those of other formats, and files and folders whose names begin with a dot or an underscore, are left out.
    """
    if path.is_file():
        return [path]
    return sorted(
        (file for file in _visible(path) if _FORMAT_OF.get(file.suffix.lower()) == format),
        key=lambda file: file.relative_to(path).parts,
    )


def _visible(folder: Path) -> Iterator[Path]:
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        yield from (Path(root, name) for name in names if not name.startswith((".", "_")))
