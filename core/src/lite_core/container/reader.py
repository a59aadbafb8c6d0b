"""Reading model files."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from lite_core.container.graph_codec import GraphDecoder
from lite_core.container.layout import FORMAT_VERSION, constant_section, from_json
from lite_core.container.mapping import MappedFile, map_file
from lite_core.container.records import Section, TargetRecord
from lite_core.container.targets_codec import decode_targets
from lite_core.container.types_codec import NamesHere
from lite_core.container.upgrades import upgraded
from lite_core.errors import ModelFormatError
from lite_core.ir import Graph, TensorType

__all__ = ["ModelFile"]

Array = np.ndarray[Any, Any]


class ModelFile:
    """A model file, mapped. What is asked for is decoded; the file stays mapped while anything of it is used.

    May be used by several threads at once. The file must not be changed in place or cut off meanwhile;
    :func:`~lite_core.container.write_model` and whatever else replaces it by a rename does no harm.

    Attributes:
        path: where it was opened.
    """

    def __init__(self, path: Path, mapped: MappedFile) -> None:
        self.path = path
        self._mapped = mapped
        self._names = NamesHere()
        # Held on to, so that the arrays of every graph are the same while this object lives.
        self._constants: dict[tuple[int, TensorType], Array] = {}

    @staticmethod
    def open(path: str | os.PathLike[str]) -> ModelFile:
        """Map a file and check its header, its size and its table; nothing else is read.

        Raises:
            ModelFormatError: there is no such file, it is foreign, cut off, damaged, or of a newer format.
        """
        file = Path(path)
        with _errors_about(file):
            if sys.byteorder != "little":
                raise ModelFormatError(
                    "its numbers are little-endian, this machine's are not; Lite does not convert them"
                )
            return ModelFile(file, map_file(file))

    @property
    def producer(self) -> str:
        """What wrote the file: ``"lite-core 0.1.0"``."""
        return self._mapped.header.producer

    @property
    def format_version(self) -> int:
        """The version of the format that the file was written in."""
        return self._mapped.header.version

    @property
    def metadata(self) -> Mapping[str, str]:
        """What was written about the file as a whole; what is known of the model is the graph's own metadata."""
        return self._mapped.table.metadata

    @property
    def optimized(self) -> bool:
        """Whether the passes were run before the graph was written."""
        return self._mapped.table.optimized

    @property
    def sections(self) -> tuple[Section, ...]:
        """Every section, in the order in which they lie in the file."""
        return tuple(self._mapped.table.sections.values())

    def section(self, name: str) -> memoryview:
        """The bytes of a section, read-only; they begin at a multiple of 64.

        Raises:
            ModelFormatError: there is no such section, or it is damaged (verified when first asked for).
        """
        return self.contents([name])[0]

    def contents(self, names: Sequence[str]) -> list[memoryview]:
        """The bytes of several sections, as :meth:`section`; threads share the work of verifying them.

        Raises:
            ModelFormatError: there is no such section, or some are damaged: all are named.
        """
        with _errors_about(self.path):
            return self._mapped.contents(names)

    def graph(self, *, verify: bool = True) -> Graph:
        """The graph, a new one each time; its constants are the same read-only arrays each time.

        Args:
            verify: compare the checksums of the constants, which reads all of them. A caller that uses few says False
                and asks :meth:`verify_constants` about those.

        Raises:
            ModelFormatError: the graph or a constant is damaged, or is none.
        """
        with _errors_about(self.path, "graph"), self._mapped.lock:
            graph = GraphDecoder(self._graph_document, self._constant, self._names).graph
            constants = list(self._constants.values())
        if verify:
            self.verify_constants(constants)
        return graph

    def verify_constants(self, arrays: Iterable[Array]) -> None:
        """Verify the sections of some constants of this file's graphs; other arrays are passed over.

        Raises:
            ModelFormatError: names those that are damaged.
        """
        wanted = {id(array) for array in arrays}
        with _errors_about(self.path):
            found = [number for (number, _), array in list(self._constants.items()) if id(array) in wanted]
            self._mapped.verify([constant_section(number) for number in dict.fromkeys(found)])

    @cached_property
    def targets(self) -> tuple[TargetRecord, ...]:
        """What was decided and saved for each target, in the order in which they were asked for.

        Raises:
            ModelFormatError: the section is damaged, or does not fit the graph.
        """
        with _errors_about(self.path, "targets"), self._mapped.lock:
            document = upgraded("targets", from_json(self.section("targets")), self.format_version, FORMAT_VERSION)
            return decode_targets(document, self._graph_document["graph"], self._mapped.table.sections, self._names)

    def verify(self) -> None:
        """Verify every section.

        Raises:
            ModelFormatError: names all that are damaged.
        """
        with _errors_about(self.path):
            self._mapped.verify(self._mapped.table.sections)

    @cached_property
    def _graph_document(self) -> Any:
        return upgraded("graph", from_json(self.section("graph")), self.format_version, FORMAT_VERSION)

    def _constant(self, number: int, type: TensorType) -> Array:
        array = self._mapped.constant(number, type)
        self._constants[number, type] = array
        return array

    def __repr__(self) -> str:
        return f"<ModelFile {str(self.path)!r}: {len(self.sections)} sections, {self.producer}>"


class _ModelFileError(ModelFormatError):
    """One that already names its file."""


@contextmanager
def _errors_about(path: Path, section: str = "") -> Iterator[None]:
    """Make every error of what is read a ModelFormatError that names the file, and the section where there is one."""
    try:
        yield
    except _ModelFileError:
        raise
    except ModelFormatError as error:
        raise _ModelFileError(f"model {str(path)!r}: {error}") from error
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise _ModelFileError(
            f"model {str(path)!r}: section {section!r} is not valid ({type(error).__name__}: {error}); "
            "it was not written by Lite as it is: convert the model again"
        ) from error
