"""Detection of the processor: instructions, model, caches and the cores that are worth using.

On Linux the kernel tells a process what the processor has (the bits of ``getauxval``, ``arch/arm64/include/uapi/asm/
hwcap.h``) and describes the cores in ``/sys``. Emulators and hypervisors may hide features; what they report counts.
"""

from __future__ import annotations

import ctypes
import functools
import logging
import platform
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from lite_arm.levels import EXTENSIONS, machine_with
from lite_arm.systems import system
from lite_cpu.machine import Machine
from lite_cpu.system_files import cache_bytes, describe_caches

__all__ = ["Processor", "Words", "features_of_words", "is_arm_64", "machine_for", "model_name", "this_processor"]

logger = logging.getLogger("lite.arm.detect")

_SYSTEM = Path("/")

_AT_HWCAP, _AT_HWCAP2 = 16, 26

# The bits of the first and the second word, by LLVM's names of the features. Arithmetic with float16 needs both the
# scalar (FPHP) and the vector instructions (ASIMDHP).
_FIRST_WORD: Mapping[str, int] = {
    "neon": 1 << 1,
    "crc": 1 << 7,
    "lse": 1 << 8,
    "fullfp16": 1 << 9 | 1 << 10,
    "dotprod": 1 << 20,
    "sve": 1 << 22,
    "fp16fml": 1 << 23,
}
_SECOND_WORD: Mapping[str, int] = {"sve2": 1 << 1, "i8mm": 1 << 13, "bf16": 1 << 14}

# macOS's names of the features beyond ARMv8.0 (`sysctl hw.optional.arm`).
_MACOS_NAMES: Mapping[str, str] = {
    "dotprod": "FEAT_DotProd",
    "fullfp16": "FEAT_FP16",
    "i8mm": "FEAT_I8MM",
    "bf16": "FEAT_BF16",
}

# Names of cores by implementer and part, the numbers of the register MIDR_EL1 (ARM's technical reference manuals;
# Linux: arch/arm64/include/asm/cputype.h).
_PARTS: Mapping[tuple[int, int], str] = {
    (0x41, 0xD03): "Cortex-A53",
    (0x41, 0xD04): "Cortex-A35",
    (0x41, 0xD05): "Cortex-A55",
    (0x41, 0xD07): "Cortex-A57",
    (0x41, 0xD08): "Cortex-A72",
    (0x41, 0xD09): "Cortex-A73",
    (0x41, 0xD0A): "Cortex-A75",
    (0x41, 0xD0B): "Cortex-A76",
    (0x41, 0xD0C): "Neoverse N1",
    (0x41, 0xD0D): "Cortex-A77",
    (0x41, 0xD40): "Neoverse V1",
    (0x41, 0xD41): "Cortex-A78",
    (0x41, 0xD42): "Cortex-A78AE",
    (0x41, 0xD44): "Cortex-X1",
    (0x41, 0xD46): "Cortex-A510",
    (0x41, 0xD47): "Cortex-A710",
    (0x41, 0xD48): "Cortex-X2",
    (0x41, 0xD49): "Neoverse N2",
    (0x41, 0xD4B): "Cortex-A78C",
    (0x41, 0xD4D): "Cortex-A715",
    (0x41, 0xD4E): "Cortex-X3",
    (0x41, 0xD4F): "Neoverse V2",
    (0x41, 0xD80): "Cortex-A520",
    (0x41, 0xD81): "Cortex-A720",
    (0x41, 0xD82): "Cortex-X4",
    (0x4E, 0x004): "NVIDIA Carmel",
}


class Words(NamedTuple):
    """The words in which Linux describes a processor's instructions: the auxiliary values AT_HWCAP and AT_HWCAP2."""

    first: int
    second: int


class Processor(NamedTuple):
    """The properties of the processor that the system reports.

    Attributes:
        model: names of the cores, each with its number if there are several kinds: ``4 x Cortex-A76, 4 x Cortex-A55``.
        features: the features that kernels may use, by LLVM's names; empty if the system reports none.
        cache_bytes: the sizes in bytes of the data and unified caches of one fast core, by level.
        clock_hertz: the highest clock of a fast core in Hz; 0 if unknown.
    """

    model: str
    features: frozenset[str]
    cache_bytes: Mapping[int, int]
    clock_hertz: float = 0.0

    @property
    def caches(self) -> str:
        """A description of the caches."""
        return describe_caches(self.cache_bytes)


def is_arm_64() -> bool:
    """Return True if this process runs 64-bit ARM code."""
    return platform.machine().lower() in ("aarch64", "arm64") and sys.maxsize > 1 << 32


@functools.cache
def this_processor() -> Processor:
    """Return this processor; it is detected once."""
    cpuinfo = _SYSTEM / "proc/cpuinfo"
    text = cpuinfo.read_text() if cpuinfo.exists() else ""
    fastest = _fastest_core(_SYSTEM)
    return Processor(
        model_name(text) or _macos_text("machdep.cpu.brand_string") or "64-bit ARM processor",
        _features(),
        cache_bytes(fastest / "cache"),
        _number(fastest / "cpufreq/cpuinfo_max_freq") * 1e3,
    )


def machine_for(processor: Processor) -> Machine:
    """Return the machine of a processor's level, with its caches."""
    machine, sizes = machine_with(processor.features), processor.cache_bytes
    return machine.with_caches(sizes.get(1, machine.l1_bytes), sizes.get(2, machine.l2_bytes))


def features_of_words(words: Words) -> frozenset[str]:
    """Return the features in the words of Linux, by LLVM's names."""
    tables = ((words.first, _FIRST_WORD), (words.second, _SECOND_WORD))
    return frozenset(name for word, table in tables for name, bits in table.items() if word & bits == bits)


def model_name(cpuinfo: str) -> str:
    """Return the names of the cores in Linux's ``/proc/cpuinfo``, the last kind first; empty if it names none.

    Systems number their fast cores last.
    """
    implementers = re.findall(r"^CPU implementer\s*:\s*(0x[0-9a-fA-F]+)", cpuinfo, re.MULTILINE)
    parts = re.findall(r"^CPU part\s*:\s*(0x[0-9a-fA-F]+)", cpuinfo, re.MULTILINE)
    counts: dict[str, int] = {}
    for implementer, part in reversed(list(zip(implementers, parts))):
        numbers = int(implementer, 16), int(part, 16)
        name = _PARTS.get(numbers, f"ARM processor {numbers[0]:#04x}-{numbers[1]:#05x}")
        counts[name] = counts.get(name, 0) + 1
    if len(counts) < 2:
        return "".join(counts)
    return ", ".join(f"{count} x {name}" for name, count in counts.items())


def _features() -> frozenset[str]:
    if system() == "linux":
        # The values are unsigned; ctypes takes results for signed integers of 32 bits unless told otherwise.
        ask = ctypes.CDLL(None).getauxval
        ask.restype, ask.argtypes = ctypes.c_ulong, [ctypes.c_ulong]
        return features_of_words(Words(ask(_AT_HWCAP), ask(_AT_HWCAP2)))
    added = {name for name in EXTENSIONS if _macos_text(f"hw.optional.arm.{_MACOS_NAMES[name]}") == "\x01"}
    return frozenset({"neon", *added})  # which every 64-bit ARM processor has that runs macOS or Windows


def _macos_text(name: str) -> str:
    """Return a value of macOS's ``sysctl`` up to its first zero byte; empty on other systems and for unknown names."""
    if system() != "darwin":
        return ""
    value, size = ctypes.create_string_buffer(256), ctypes.c_size_t(256)
    failed = ctypes.CDLL(None).sysctlbyname(name.encode(), value, ctypes.byref(size), None, ctypes.c_size_t(0))
    return "" if failed else value.value.decode(errors="replace")


def _fastest_core(root: Path) -> Path:
    """Return the folder in ``/sys`` of the core with the highest capacity, or else the highest clock."""
    cores = sorted((root / "sys/devices/system/cpu").glob("cpu[0-9]*"))
    by_speed = [(_number(core / "cpu_capacity"), _number(core / "cpufreq/cpuinfo_max_freq"), core) for core in cores]
    return max(by_speed, default=(0.0, 0.0, root / "sys/devices/system/cpu/cpu0"))[2]


def _number(file: Path) -> float:
    try:
        return float(file.read_text())
    except (OSError, ValueError) as error:
        logger.debug("%s is unknown: %s", file, error)
        return 0.0
