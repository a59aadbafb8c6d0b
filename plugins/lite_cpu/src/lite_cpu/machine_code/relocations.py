"""Relocations: patching of references between the parts of an image, on x86-64 and AArch64.

Numbers and formulas are those of the processors' ELF supplements: "System V ABI, AMD64 supplement", section 4.4,
and "ELF for the Arm 64-bit Architecture", section 5.7. S + A is the target, P the patched offset.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lite_cpu.machine_code.image import CodeImageError

__all__ = ["PAGE_BYTES", "RELOCATIONS", "Relocation"]

#: Unit of AArch64's ADRP, independent of the page size of the operating system.
PAGE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Relocation:
    """A kind of reference.

    Attributes:
        patch: called with the image, the offset to patch and the target, both as byte offsets in the image.
        by_page: the result is right only if the image is aligned to :data:`PAGE_BYTES`.
    """

    patch: Callable[[bytearray, int, int], None]
    by_page: bool = False


def _signed_field(value: int, bits: int) -> int:
    """Return ``value`` as a two's complement field of ``bits`` bits."""
    if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise CodeImageError(
            f"a reference spans {value} units, more than {bits} bits can hold; split the kernel into smaller functions"
        )
    return value & ((1 << bits) - 1)


def _data(size: int) -> Relocation:
    """Return the relocation S + A - P, stored as an integer of ``size`` bytes."""

    def patch(image: bytearray, offset: int, target: int) -> None:
        image[offset : offset + size] = _signed_field(target - offset, 8 * size).to_bytes(size, "little")

    return Relocation(patch)


def _set_bits(image: bytearray, offset: int, mask: int, bits: int) -> None:
    """Replace the bits under ``mask`` of the 32-bit instruction at ``offset``."""
    (instruction,) = struct.unpack_from("<I", image, offset)
    struct.pack_into("<I", image, offset, instruction & ~mask | bits)


def _branch(bits: int, shift: int) -> Relocation:
    """Return the relocation (S + A - P) / 4, stored in ``bits`` bits from bit ``shift`` of the instruction."""

    def patch(image: bytearray, offset: int, target: int) -> None:
        instructions, rest = divmod(target - offset, 4)
        if rest:
            raise CodeImageError(f"a branch or literal load reaches byte {target}, not a multiple of 4 bytes away")
        _set_bits(image, offset, ((1 << bits) - 1) << shift, _signed_field(instructions, bits) << shift)

    return Relocation(patch)


def _set_address(image: bytearray, offset: int, value: int) -> None:
    """Write the operand of ADR or ADRP: 21 bits, of which the lowest two are stored apart from the others."""
    field = _signed_field(value, 21)
    _set_bits(image, offset, 0x60FFFFE0, (field & 3) << 29 | (field >> 2) << 5)


def _address(image: bytearray, offset: int, target: int) -> None:
    _set_address(image, offset, target - offset)


def _page(image: bytearray, offset: int, target: int) -> None:
    _set_address(image, offset, target // PAGE_BYTES - offset // PAGE_BYTES)


def _in_page(itemsize: int) -> Relocation:
    """Return the relocation (S + A) modulo the page, in units of ``itemsize`` bytes: immediate of ADD, LDR and STR."""

    def patch(image: bytearray, offset: int, target: int) -> None:
        units, rest = divmod(target % PAGE_BYTES, itemsize)
        if rest:
            raise CodeImageError(f"a load of {itemsize} bytes reaches byte {target}, which is not aligned to them")
        _set_bits(image, offset, 0xFFF << 10, units << 10)

    return Relocation(patch, by_page=True)


_X86_64 = {
    2: _data(4),  # R_X86_64_PC32
    4: _data(4),  # R_X86_64_PLT32: the called function is in this image, so the call needs no table
    24: _data(8),  # R_X86_64_PC64
}

_AARCH64 = {
    260: _data(8),  # R_AARCH64_PREL64
    261: _data(4),  # R_AARCH64_PREL32
    262: _data(2),  # R_AARCH64_PREL16
    273: _branch(19, 5),  # R_AARCH64_LD_PREL_LO19
    274: Relocation(_address),  # R_AARCH64_ADR_PREL_LO21
    275: Relocation(_page, by_page=True),  # R_AARCH64_ADR_PREL_PG_HI21
    277: _in_page(1),  # R_AARCH64_ADD_ABS_LO12_NC
    278: _in_page(1),  # R_AARCH64_LDST8_ABS_LO12_NC
    279: _branch(14, 5),  # R_AARCH64_TSTBR14
    280: _branch(19, 5),  # R_AARCH64_CONDBR19
    282: _branch(26, 0),  # R_AARCH64_JUMP26
    283: _branch(26, 0),  # R_AARCH64_CALL26
    284: _in_page(2),  # R_AARCH64_LDST16_ABS_LO12_NC
    285: _in_page(4),  # R_AARCH64_LDST32_ABS_LO12_NC
    286: _in_page(8),  # R_AARCH64_LDST64_ABS_LO12_NC
    299: _in_page(16),  # R_AARCH64_LDST128_ABS_LO12_NC
}

#: Supported relocations by architecture and number.
RELOCATIONS: Mapping[str, Mapping[int, Relocation]] = {"x86_64": _X86_64, "aarch64": _AARCH64}
