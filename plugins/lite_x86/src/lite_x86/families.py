"""Facts about families of x86 processors: the numbers that choices use until `lite tune` has measured them.

Vendors number their processors by family and model. The numbers are those in Linux: ``arch/x86/kernel/cpu/amd.c`` has
the ranges of Zen, ``arch/x86/include/asm/intel-family.h`` Intel's models. A processor that is not listed is judged by
its features.

Sources of facts that were not measured with Lite: AMD's software optimization guides (56305 for Zen 3, 57647 for Zen 4,
58455 for Zen 5), Intel's optimization reference manual (248966), https://uops.info for throughputs of instructions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from lite_cpu.machine import Machine
from lite_cpu.tuning import Tuning
from lite_x86.detect import TILE_FEATURES, Identity

__all__ = ["Family", "family_of", "family_tuning"]


class Family(NamedTuple):
    """A family of processors that are alike for the choices of kernels.

    Attributes:
        name: readable name, for example ``AMD Zen 4``.
        tile_rows: rows of the register tile with AVX-512; 0 leaves it to the number of registers.
        winograd_weight: the price of a Winograd weight with AVX-512, see :class:`~lite_cpu.tuning.Tuning`; 0 for the
            default.
    """

    name: str
    tile_rows: int = 0
    winograd_weight: float = 0.0

    def tuning(self, machine: Machine) -> Tuning:
        """Return the numbers for kernels of a machine, which may be of a lower level than the processor.

        Narrower vectors compute fewer operations in the time of reading a weight.
        """
        general, source = Tuning(), f"defaults for {self.name}"
        price = max(general.winograd_weight, self.winograd_weight * machine.vector_bytes / 64)
        return Tuning(self.tile_rows if machine.vector_bytes == 64 else 0, price, source=source)


# Measured with Lite. Zen 4 computes a 512-bit multiply-add in two passes, one per cycle, so a tile of 7 rows already
# keeps its units busy, and one of 14 takes a quarter longer where weights come from memory. A Granite Rapids core
# computes two per cycle and reads 13 to 15 GB/s from memory beside 172 to 199 GFLOP/s: a weight of four bytes takes the
# time of 50 operations. The other Xeons with two units of 512 bits (248966) were not measured.
_ZEN_4 = Family("AMD Zen 4")
_TWO_PORTS = Family("Intel Xeon with two 512-bit multiply-add units", tile_rows=14, winograd_weight=50.0)

# Not measured. Zen 5 computes two 512-bit multiply-adds per cycle like these Xeons, except in its mobile processors,
# which compute them in two passes like Zen 4 (58455). What a weight costs there is unknown: the default stays.
_ZEN_5 = Family("AMD Zen 5", tile_rows=14)
_ZEN_5_MOBILE = Family("AMD Zen 5 for mobile computers")

# Not measured. Zen 1 computes 256-bit instructions in two passes, Zen 2 and 3 in one; all have AVX2 without AVX-512.
_ZEN_1, _ZEN_2, _ZEN_3 = Family("AMD Zen"), Family("AMD Zen 2"), Family("AMD Zen 3")

# Not measured. Client processors with AVX-512 have one 512-bit multiply-add unit, made of two of 256 bits (248966).
_ONE_PORT = Family("Intel Core with one 512-bit multiply-add unit")
_HYBRID = Family("Intel Core with performance and efficient cores")
_CORE_AVX2 = Family("Intel Core or Xeon with AVX2")
_EFFICIENT = Family("Intel with efficient cores only")

#: AMD: the number of the family, then ranges of models, both ends included.
_AMD: Mapping[int, tuple[tuple[int, int, Family], ...]] = {
    0x17: (
        (0x00, 0x2F, _ZEN_1),
        (0x30, 0x4F, _ZEN_2),
        (0x50, 0x5F, _ZEN_1),
        (0x60, 0x7F, _ZEN_2),
        (0x90, 0x91, _ZEN_2),
        (0xA0, 0xAF, _ZEN_2),
    ),
    0x19: ((0x00, 0x0F, _ZEN_3), (0x10, 0x1F, _ZEN_4), (0x20, 0x5F, _ZEN_3), (0x60, 0xAF, _ZEN_4)),
    0x1A: ((0x00, 0x1F, _ZEN_5), (0x20, 0x2F, _ZEN_5_MOBILE), (0x40, 0x4F, _ZEN_5), (0x60, 0x6F, _ZEN_5_MOBILE)),
}

#: Models of Intel's family 6.
_INTEL: Mapping[int, Family] = {
    **dict.fromkeys((0x3C, 0x3F, 0x45, 0x46, 0x3D, 0x47, 0x4F, 0x56), _CORE_AVX2),  # Haswell, Broadwell
    **dict.fromkeys((0x4E, 0x5E, 0x8E, 0x9E, 0xA5, 0xA6), _CORE_AVX2),  # Skylake to Comet Lake
    0x55: _TWO_PORTS,  # Skylake, Cascade Lake and Cooper Lake; some of the smallest have one unit
    **dict.fromkeys((0x6A, 0x6C, 0x8F, 0xCF, 0xAD, 0xAE), _TWO_PORTS),  # Ice Lake to Granite Rapids
    **dict.fromkeys((0x66, 0x7D, 0x7E, 0x8C, 0x8D, 0xA7), _ONE_PORT),  # Cannon Lake to Rocket Lake
    **dict.fromkeys((0x97, 0x9A, 0xB7, 0xBA, 0xBF, 0xAA, 0xAC, 0xC5, 0xC6, 0xB5, 0xBD), _HYBRID),  # from Alder Lake on
    **dict.fromkeys((0xBE, 0xAF, 0xB6, 0xDD), _EFFICIENT),  # from Gracemont on
}


def family_of(identity: Identity, features: frozenset[str]) -> Family | None:
    """Return the family of a processor; None if neither its numbers nor its features say more than its level.

    Args:
        identity: the processor's numbers.
        features: its features.
    """
    if identity.vendor == "AuthenticAMD":
        ranges = _AMD.get(identity.family, ())
        return next((family for first, last, family in ranges if first <= identity.model <= last), None)
    if identity.vendor == "GenuineIntel" and identity.family == 6 and identity.model in _INTEL:
        return _INTEL[identity.model]
    # Among Intel's processors only those for servers have AMX, and all of them two 512-bit units.
    if identity.vendor == "GenuineIntel" and not features.isdisjoint(TILE_FEATURES):
        return _TWO_PORTS._replace(name="Intel processors with AMX")
    return None


def family_tuning(identity: Identity, features: frozenset[str], machine: Machine) -> Tuning:
    """Return what is known of a processor's family for the kernels of a machine."""
    family = family_of(identity, features)
    return Tuning() if family is None else family.tuning(machine)
