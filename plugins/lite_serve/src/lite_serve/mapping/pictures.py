"""A folder of pictures as a dataset: each picture is a row, prepared as `lite run` prepares it."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from lite_serve.mapping.job import PICTURES_OF_A_PART, Job
from lite_serve.mapping.parts import Part
from lite_serve.mapping.rows import Rows
from lite_tools.commands import UnavailableError

__all__ = ["PATH", "Pictures"]

#: The name of the column with the path of each picture.
PATH = "path"


class Pictures:
    """Pictures: parts are ranges of them, in the order of their paths. The rows are their paths."""

    def parts(self, job: Job, root: Path, files: list[Path]) -> Iterator[Part]:
        """Return the parts of files.

        Raises:
            UnavailableError: Pillow is not installed.
        """
        if importlib.util.find_spec("PIL") is None:
            raise UnavailableError("pictures need Pillow, which is not installed", "pip install 'lite-serve[map]'")
        most = job.part_rows or PICTURES_OF_A_PART
        for start in range(0, len(files), most):
            chosen = files[start : start + most]
            stats = [file.stat() for file in chosen]
            paths = tuple(file.relative_to(root).as_posix() for file in chosen)
            size, changed = sum(stat.st_size for stat in stats), max(stat.st_mtime_ns for stat in stats)
            told = repr([(path, stat.st_size, stat.st_mtime_ns) for path, stat in zip(paths, stats)])
            digest = hashlib.sha256(told.encode()).hexdigest()
            yield Part(0, paths[0], size, changed, (), 0, len(chosen), None, start, paths, digest)

    def schema(self, job: Job, file: Path) -> pa.Schema:
        """Return the columns."""
        return pa.schema([(PATH, pa.string())])

    def rows(self, job: Job, part: Part, file: Path, columns: list[str] | None, most: int) -> Iterator[Rows]:
        """Return the paths of a part's pictures."""
        for start in range(0, len(part.pictures), most):
            yield pa.RecordBatch.from_arrays([pa.array(part.pictures[start : start + most], pa.string())], [PATH])
