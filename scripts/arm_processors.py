"""Processors that qemu emulates, and the files in which Linux would describe them.

qemu's user mode gives programs the host's ``/proc`` and ``/sys``, which describe another processor: ONNX Runtime, for
one, ends at its import. Files in the folder that takes the place of ``/`` come first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PROCESSORS", "EmulatedProcessor", "write_system_files"]

_BASE = "fp asimd evtstrm aes pmull sha1 sha2 crc32 cpuid"


@dataclass(frozen=True)
class EmulatedProcessor:
    """A processor of qemu.

    Attributes:
        implementer: number of the maker of the core, as in the register MIDR_EL1.
        part: number of the core, as in that register.
        caches: sizes in KiB of the first-level data cache, and of the second level; those of common systems.
        features: the line ``Features`` of ``/proc/cpuinfo``.
    """

    implementer: int
    part: int
    caches: tuple[int, int]
    features: str = _BASE


_ARMV8_2 = f"{_BASE} atomics fphp asimdhp asimdrdm lrcpc dcpop asimddp"
_EVERYTHING = f"{_ARMV8_2} sve fhm sve2 i8mm bf16"

#: By qemu's names: ARMv8.0 twice, 8.2 with fp16 and dot products twice, and everything that qemu has.
PROCESSORS: Mapping[str, EmulatedProcessor] = {
    "cortex-a53": EmulatedProcessor(0x41, 0xD03, (32, 512)),
    "cortex-a72": EmulatedProcessor(0x41, 0xD08, (32, 1024)),
    "cortex-a76": EmulatedProcessor(0x41, 0xD0B, (64, 512), _ARMV8_2),
    "neoverse-n1": EmulatedProcessor(0x41, 0xD0C, (64, 1024), _ARMV8_2),
    "max": EmulatedProcessor(0x00, 0x051, (64, 1024), _EVERYTHING),
}


def write_system_files(root: Path, processor: EmulatedProcessor, cores: int) -> None:
    """Write ``/proc/cpuinfo`` and the descriptions of cores and caches in ``/sys`` below a folder."""
    _write(root / "proc/cpuinfo", "\n".join(_cpuinfo(processor, number) for number in range(cores)))
    folder = root / "sys/devices/system/cpu"
    everyone = f"0-{cores - 1}" if cores > 1 else "0"
    for name in ("online", "possible", "present"):
        _write(folder / name, everyone)
    first, second = processor.caches
    for number in range(cores):
        _write(folder / f"cpu{number}/cpu_capacity", "1024")
        own = folder / f"cpu{number}/cache"
        for index, (level, kind, size, shared) in enumerate(
            [(1, "Data", first, str(number)), (1, "Instruction", first, str(number)), (2, "Unified", second, everyone)]
        ):
            values = {"level": level, "type": kind, "size": f"{size}K", "shared_cpu_list": shared}
            for name, value in {**values, "coherency_line_size": 64}.items():
                _write(own / f"index{index}" / name, str(value))


def _cpuinfo(processor: EmulatedProcessor, number: int) -> str:
    return (
        f"processor\t: {number}\nBogoMIPS\t: 48.00\nFeatures\t: {processor.features}\n"
        f"CPU implementer\t: {processor.implementer:#04x}\nCPU architecture: 8\nCPU variant\t: 0x0\n"
        f"CPU part\t: {processor.part:#05x}\nCPU revision\t: 0\n"
    )


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{text}\n")
