"""Linker from an ELF object to a flat image: it lays out the sections and resolves all references between them.

It supports what kernels need: 64-bit little-endian relocatable objects with code and read-only data. It refuses
everything that needs a dynamic linker or writable memory (functions of other libraries, absolute addresses,
variables), because such an image could not be copied to any address or shared by threads.
Source of the layout: "Tool Interface Standard (TIS) Executable and Linking Format", version 1.2, and its 64-bit form.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lite_cpu.machine_code.image import CODE_ALIGNMENT, CodeImage, CodeImageError
from lite_cpu.machine_code.relocations import PAGE_BYTES, RELOCATIONS

__all__ = ["flatten"]

_ELF_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")

_ELF64_LITTLE_ENDIAN = b"\x7fELF\x02\x01"
_RELOCATABLE = 1
_ARCHITECTURES = {62: "x86_64", 183: "aarch64"}

_SYMBOL_TABLE, _RELOCATIONS_WITH_ADDEND, _NOTE = 2, 4, 7  # section types
_WRITABLE, _ALLOCATED, _EXECUTABLE = 1, 2, 4  # section flags
_FUNCTION = 2  # symbol type
_GLOBAL = 1  # symbol binding


@dataclass(frozen=True, slots=True)
class _Section:
    name: str
    type: int
    flags: int
    data: bytes
    link: int
    info: int
    alignment: int

    @property
    def in_image(self) -> bool:
        # NOTE: unwind tables are left out, because no exception or profiler unwinds the stack through a kernel.
        return bool(self.flags & _ALLOCATED and self.data) and self.type != _NOTE and self.name != ".eh_frame"


@dataclass(frozen=True, slots=True)
class _Symbol:
    name: str
    binding: int
    type: int
    section: int
    value: int


def flatten(elf: bytes) -> CodeImage:
    """Lay out the code and constants of an object file in one block and resolve all references.

    Args:
        elf: an ELF64 relocatable object of one of the architectures in
            :data:`lite_cpu.machine_code.relocations.RELOCATIONS`.

    Returns:
        The image; its entries are the object's global functions.

    Raises:
        CodeImageError: the object is of another kind, has undefined symbols or writable data, or has references that
            depend on the address it is loaded at.
    """
    architecture, sections = _read_sections(elf)
    symbols = _read_symbols(sections)
    undefined = sorted(symbol.name for symbol in symbols[1:] if symbol.section == 0)
    if undefined:
        raise CodeImageError(
            f"compiled code refers to {', '.join(map(repr, undefined))}, which it does not define; "
            "kernels call nothing outside themselves: emit the operation inline"
        )
    offsets, image, alignment = _lay_out(sections)
    if _relocate(image, architecture, sections, symbols, offsets):
        alignment = max(alignment, PAGE_BYTES)
    entries = {
        symbol.name: offsets[symbol.section] + symbol.value
        for symbol in symbols
        if symbol.type == _FUNCTION and symbol.binding == _GLOBAL
    }
    if not entries:
        raise CodeImageError("compiled code has no function that can be called; give the kernel external linkage")
    return CodeImage(bytes(image), entries, architecture, alignment)


def _read_sections(elf: bytes) -> tuple[str, list[_Section]]:
    if len(elf) < _ELF_HEADER.size or not elf.startswith(_ELF64_LITTLE_ENDIAN):
        raise CodeImageError(f"expected a 64-bit little-endian ELF object, found bytes that start with {elf[:6]!r}")
    _, kind, machine, _, _, _, table, _, _, _, _, _, count, names = _ELF_HEADER.unpack_from(elf)
    architecture = _ARCHITECTURES.get(machine)
    if kind != _RELOCATABLE or architecture is None:
        raise CodeImageError(
            f"expected a relocatable ELF object for {' or '.join(_ARCHITECTURES.values())}, "
            f"found type {kind} for ELF machine {machine}"
        )
    headers = [_SECTION_HEADER.unpack_from(elf, table + index * _SECTION_HEADER.size) for index in range(count)]
    names_at = headers[names][4]
    sections = []
    for name, type_, flags, _, offset, size, link, info, alignment, _ in headers:
        data = elf[offset : offset + size]
        sections.append(_Section(_string(elf, names_at + name), type_, flags, data, link, info, max(alignment, 1)))
    return architecture, sections


def _read_symbols(sections: Sequence[_Section]) -> list[_Symbol]:
    table = next(section for section in sections if section.type == _SYMBOL_TABLE)
    names = sections[table.link].data
    return [
        _Symbol(_string(names, name), info >> 4, info & 0xF, section, value)
        for name, info, _, section, value, _ in _SYMBOL.iter_unpack(table.data)
    ]


def _string(table: bytes, offset: int) -> str:
    return table[offset : table.index(b"\0", offset)].decode()


def _lay_out(sections: Sequence[_Section]) -> tuple[dict[int, int], bytearray, int]:
    """Lay out code first, then constants.

    Returns:
        The offset of each section in the image, by section number; the image; the alignment it needs, in bytes.
    """
    kept = [index for index, section in enumerate(sections) if section.in_image]
    image, offsets, alignment = bytearray(), {}, CODE_ALIGNMENT
    for index in sorted(kept, key=lambda index: not sections[index].flags & _EXECUTABLE):
        section = sections[index]
        if section.flags & _WRITABLE:
            raise CodeImageError(
                f"compiled code has {len(section.data)} bytes of writable data ({section.name}); kernels keep no "
                "state: make variables constant, and tables of addresses a switch"
            )
        image.extend(bytes(-len(image) % section.alignment))
        offsets[index] = len(image)
        image += section.data
        alignment = max(alignment, section.alignment)
    return offsets, image, alignment


def _relocate(
    image: bytearray,
    architecture: str,
    sections: Sequence[_Section],
    symbols: Sequence[_Symbol],
    offsets: Mapping[int, int],
) -> bool:
    """Resolve all references; return True if one of them requires that the image is aligned to a page."""
    by_page = False
    for table in sections:
        if table.type != _RELOCATIONS_WITH_ADDEND or table.info not in offsets:
            continue
        for offset, info, addend in _RELOCATION.iter_unpack(table.data):
            symbol = symbols[info >> 32]
            kind = RELOCATIONS[architecture].get(info & 0xFFFFFFFF)
            if kind is None or symbol.section not in offsets:
                raise CodeImageError(
                    f"{sections[table.info].name}+{offset:#x} refers to {symbol.name or 'a section'!r} by "
                    f"{architecture} relocation {info & 0xFFFFFFFF}, which depends on where the code is loaded; "
                    "compile position-independent code without thread-local variables"
                )
            kind.patch(image, offsets[table.info] + offset, offsets[symbol.section] + symbol.value + addend)
            by_page = by_page or kind.by_page
    return by_page
