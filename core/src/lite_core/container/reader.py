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

from lite_core.container.graph_decoder import GraphDecoder, decode_packed
from lite_core.container.layout import FORMAT_VERSION, WEIGHTS, constant_section, from_json
from lite_core.container.mapping import MappedFile, map_file
from lite_core.container.records import Section, TargetRecord
from lite_core.container.targets_decoder import decode_targets
from lite_core.container.trust import code_digest, is_trusted
from lite_core.container.types_decoder import LocalNames
from lite_core.container.upgrades import upgrade
from lite_core.errors import ModelFormatError
from lite_core.ir import Array, Graph, PanelLayout, TensorType, aligned_empty, evaluate_shape

__all__ = ["ModelFile"]

_CODE, _PACKED = "code/", "packed/"


class ModelFile:
    """A mapped model file. Its parts are decoded on access; it stays mapped while any of them is used. Thread-safe.

    The file must not be modified in place or truncated while it is mapped. Replacing it by a rename is safe, as
    :func:`~lite_core.container.write_model` does.

    Attributes:
        path: the path it was opened with.
    """

    def __init__(self, path: Path, mapped: MappedFile) -> None:
        self.path = path
        self._mapped = mapped
        self._names = LocalNames()
        # Keeps the arrays alive, so that all graphs of this object share them.
        self._constants: dict[tuple[int, TensorType], Array] = {}

    @staticmethod
    def open(path: str | os.PathLike[str]) -> ModelFile:
        """Map a file and check its header, its size and its table; nothing else is read.

        Raises:
            ModelFormatError: the file is missing, not a ``.lite`` file, truncated, damaged, or of a newer format.
        """
        file = Path(path)
        with _errors_about(file):
            if sys.byteorder != "little":
                raise ModelFormatError("its numbers are little-endian, this machine's are not; they are not converted")
            return ModelFile(file, map_file(file))

    @property
    def producer(self) -> str:
        """Name and version of the program that wrote the file: ``"lite-core 0.1.0"``."""
        return self._mapped.header.producer

    @property
    def format_version(self) -> int:
        """The version of the format that the file was written in."""
        return self._mapped.header.version

    @property
    def metadata(self) -> Mapping[str, str]:
        """Metadata of the file; the metadata of the model is that of the graph."""
        return self._mapped.table.metadata

    @property
    def optimized(self) -> bool:
        """True if the passes were run before the graph was written."""
        return self._mapped.table.optimized

    @property
    def sections(self) -> tuple[Section, ...]:
        """All sections, in the order of the table."""
        return tuple(self._mapped.table.sections.values())

    def section(self, name: str) -> memoryview:
        """Return the bytes of a section, read-only and aligned to 64 bytes.

        Raises:
            ModelFormatError: the section does not exist, or is damaged (verified on first access).
        """
        return self.contents([name])[0]

    def contents(self, names: Sequence[str]) -> list[memoryview]:
        """Return the bytes of several sections, as :meth:`section` does; they are verified in parallel.

        A name ``packed/N`` stands for a constant in the order that a program reads.

        Raises:
            ModelFormatError: a section does not exist, or some are damaged: all of these are named.
        """
        with _errors_about(self.path):
            stored = list(map(self.section_of, names))
            found = self._mapped.contents(stored)
            return [self._panels(name) if _is_packed(name) else data for name, data in zip(names, found)]

    def section_of(self, name: str) -> str:
        """Return the section with a piece of saved state: for ``packed/N`` that of the constant, else ``name``."""
        return constant_section(self._packed_number(name)[0]) if _is_packed(name) else name

    @property
    def has_code(self) -> bool:
        """True if a prepared plan contains state that a backend saved, all of which counts as code."""
        return bool(self._first_pieces)

    @cached_property
    def digest_covers_code(self) -> bool:
        """True if the digest covers the graph, the targets and the first piece of every saved state."""
        sealed = {section.name for section in self.sections if section.sealed}
        return sealed >= {"graph", "targets", *self._first_pieces}

    @cached_property
    def _first_pieces(self) -> set[str]:
        saved = [parts for t in self.targets for parts in (t.kernels, *(plan.partitions for plan in t.plans))]
        return {part.sections[0] for parts in saved for part in parts if part.sections}

    @cached_property
    def code_digest(self) -> str:
        """The digest of the file's code, see :mod:`lite_core.container.trust`. Reads no weights.

        Raises:
            ModelFormatError: a section that it covers is damaged.
        """
        names = [section.name for section in self.sections if section.sealed]
        with _errors_about(self.path):
            return code_digest(dict(zip(names, self._mapped.contents(names))))

    def code_is_trusted(self, saved: str) -> bool:
        """Return True if the file's code may be used. ``saved`` is one of :data:`lite_core.container.trust.SAVED`."""
        if saved != "own" or not self.digest_covers_code:
            return saved == "trust"
        return is_trusted(self.code_digest, self._mapped.table.seal)

    def graph(self, *, verify: bool = True) -> Graph:
        """Return a new graph at each call; its constants are always the same read-only arrays.

        Args:
            verify: verify the checksums of all constants, which reads them. A caller that uses only some constants
                passes False, and calls :meth:`verify_constants` for the constants that it reads.

        Raises:
            ModelFormatError: the graph or a constant is damaged or invalid.
        """
        with _errors_about(self.path, "graph"), self._mapped.lock:
            graph = GraphDecoder(self._graph_document, self._constant, self._names).graph
            if noted := self._graph_document.get("packages"):
                from lite_core.ops.missing import note_packages  # not at the top: prepared plans need no operators

                note_packages(noted)
            constants = list(self._constants.values())
        if verify:
            self.verify_constants(constants)
        return graph

    def verify_constants(self, arrays: Iterable[Array]) -> None:
        """Verify the sections of some constants of this file's graphs; other arrays are ignored.

        Raises:
            ModelFormatError: names the damaged sections.
        """
        wanted = {id(array) for array in arrays}
        with _errors_about(self.path):
            found = {number for (number, _), array in list(self._constants.items()) if id(array) in wanted}
            if found & self.stripped:
                raise ModelFormatError(
                    "it was converted with --strip, without the constants that only other shapes, targets and settings "
                    "than the prepared ones need (`lite inspect` lists the plans): convert the model without --strip"
                )
            self._mapped.verify([constant_section(number) for number in sorted(found)])
            self._mapped.unpack(found)

    @cached_property
    def targets(self) -> tuple[TargetRecord, ...]:
        """The record of each target, in the order given to the conversion.

        Raises:
            ModelFormatError: the section is damaged, or does not fit the graph.
        """
        with _errors_about(self.path, "targets"), self._mapped.lock:
            document = upgrade("targets", from_json(self.section("targets")), self.format_version, FORMAT_VERSION)
            names = {name for name, section in self._mapped.table.sections.items() if _is_saved(section)}
            names.update(f"{_PACKED}{number}" for number in range(len(self._packed)))
            return decode_targets(document, self._graph_document["graph"], names, self._names)

    def verify(self) -> None:
        """Verify every section.

        Raises:
            ModelFormatError: names all damaged sections.
        """
        with _errors_about(self.path):
            self._mapped.verify(self._mapped.table.sections)

    @cached_property
    def _graph_document(self) -> Any:
        return upgrade("graph", from_json(self.section("graph")), self.format_version, FORMAT_VERSION)

    @cached_property
    def _packed(self) -> list[tuple[int, PanelLayout]]:
        return decode_packed(self._graph_document)

    @cached_property
    def _layouts(self) -> dict[int, PanelLayout]:
        """The layout of each array that is stored in panels, by its number."""
        return dict(reversed(self._packed))

    @cached_property
    def stripped(self) -> set[int]:
        """The numbers of constants that the file lacks, because its prepared plans do not read them."""
        with _errors_about(self.path, "graph"):
            return {int(number) for number in self._graph_document.get("stripped", [])}

    def _packed_number(self, name: str) -> tuple[int, PanelLayout]:
        return self._packed[int(name.removeprefix(_PACKED))]

    def _panels(self, name: str) -> memoryview:
        """Return a verified constant in the order of a packed section, which is made if the file stores another one."""
        number, layout = self._packed_number(name)
        stored = self._layouts[number]
        panels = self._mapped.panels(number, stored)
        if layout != stored:
            plain = next(array for (n, _), array in self._constants.items() if n == number)
            self._mapped.unpack([number])
            layout.check(plain.size)
            panels = aligned_empty(layout.shape, np.float32)
            layout.pack(plain, panels)
        panels.flags.writeable = False
        return panels.reshape(-1).view(np.uint8).data

    def _constant(self, number: int, type: TensorType) -> Array:
        if number in self.stripped:
            array = np.broadcast_to(np.zeros((), type.dtype.numpy), evaluate_shape(type.shape or (), {}))
        else:
            array = self._mapped.constant(number, type, self._layouts.get(number))
        self._constants[number, type] = array
        return array

    def __repr__(self) -> str:
        return f"<ModelFile {str(self.path)!r}: {len(self.sections)} sections, {self.producer}>"


def _is_packed(name: str) -> bool:
    return name.startswith(_PACKED)


def _is_saved(section: Section) -> bool:
    """Return True if a section may hold saved state: code that the seal covers, or weights."""
    return section.name.startswith(WEIGHTS) or (section.sealed and section.name.startswith(_CODE))


class _ModelFileError(ModelFormatError):
    """A ModelFormatError whose message already names the file."""


@contextmanager
def _errors_about(path: Path, section: str = "") -> Iterator[None]:
    """Convert errors of reading to ModelFormatError with the file's path and, if given, the section's name."""
    try:
        yield
    except _ModelFileError:
        raise
    except ModelFormatError as error:
        raise _ModelFileError(f"model {str(path)!r}: {error}") from error
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise _ModelFileError(
            f"model {str(path)!r}: section {section!r} is not valid ({type(error).__name__}: {error}); "
            "it was not written by Lite: convert the model again"
        ) from error
