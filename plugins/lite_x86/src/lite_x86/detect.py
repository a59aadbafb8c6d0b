"""Which processor this is, and the :class:`~lite_cpu.machine.Machine` that kernels are compiled for.

Levels are those of the x86-64 psABI (https://gitlab.com/x86-psABIs/x86-64-ABI, section 3.1.1). Features have
LLVM's names everywhere. On Linux nothing is asked but files of the kernel; elsewhere llvmlite is.
"""

from __future__ import annotations

import logging
import os
import platform
import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

from lite_cpu.machine import X86_64_V2, X86_64_V3, X86_64_V4, Machine

__all__ = [
    "KNOWN_FEATURES",
    "Processor",
    "cache_bytes",
    "clock_hertz",
    "is_x86_64",
    "lacking",
    "machine_of",
    "parse_cpuinfo",
    "this_machine",
    "this_processor",
    "usable_cores",
]

logger = logging.getLogger("lite.x86.detect")

_CPUINFO = Path("/proc/cpuinfo")
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_HIGHEST_CLOCK = Path("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq")

_LEVELS: Mapping[str, Machine] = {"v2": X86_64_V2, "v3": X86_64_V3, "v4": X86_64_V4}

# What each level needs on top of the one below; all of it belongs to the level in the psABI.
_NEEDED: Mapping[str, frozenset[str]] = {
    "v2": frozenset({"cx16", "sahf", "popcnt", "sse3", "sse4.1", "sse4.2", "ssse3"}),
    "v3": frozenset({"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"}),
    "v4": frozenset({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}),
}

# What kernels use beyond a level, where the processor has it: feature -> how the machine's name shows it.
_EXTENSIONS: Mapping[str, Mapping[str, str]] = {
    "v2": {},
    "v3": {"avxvnni": "vnni"},
    "v4": {"avx512vnni": "vnni", "avx512bf16": "bf16"},
}

#: The features that decide which kernels a processor gets.
KNOWN_FEATURES = frozenset().union(*_NEEDED.values(), *_EXTENSIONS.values())

# Linux's names of features where they are not LLVM's.
_LINUX_NAMES: Mapping[str, str] = {
    "abm": "lzcnt",
    "avx512_bf16": "avx512bf16",
    "avx512_vnni": "avx512vnni",
    "avx_vnni": "avxvnni",
    "bmi1": "bmi",
    "lahf_lm": "sahf",
    "pni": "sse3",
    "sse4_1": "sse4.1",
    "sse4_2": "sse4.2",
}

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class Processor(NamedTuple):
    """What the system says about the processor.

    Attributes:
        model: the name its maker gave it.
        features: what it can do, in LLVM's names.
        cache_bytes: size of its data and unified caches as one core sees them, in bytes, by level; what the
            system does not say is not in it.
        clock_hertz: its highest clock as far as the system says; 0 where it does not.
    """

    model: str
    features: frozenset[str]
    cache_bytes: Mapping[int, int]
    clock_hertz: float = 0.0

    @property
    def caches(self) -> str:
        """The caches as text."""
        known = [f"L{level} {size >> 10} KiB" for level, size in sorted(self.cache_bytes.items())]
        return ", ".join(known) or "unknown"


def is_x86_64() -> bool:
    """Whether this process runs 64-bit x86 code."""
    return platform.machine().lower() in ("x86_64", "amd64") and sys.maxsize > 1 << 32


def usable_cores() -> int:
    """How many logical processors this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def this_processor() -> Processor:
    """The processor at hand, read once."""
    text = _CPUINFO.read_text() if _CPUINFO.exists() else ""
    model, features = parse_cpuinfo(text)
    if not features:
        model, features = _ask_llvm()
    return Processor(model, features, cache_bytes(_CACHES), clock_hertz(text, _HIGHEST_CLOCK))


@cache
def this_machine() -> Machine:
    """What kernels are compiled for here; ``LITE_X86_LEVEL`` is read once.

    Raises:
        ValueError: see :func:`machine_of`.
    """
    machine = machine_of(this_processor(), os.environ.get("LITE_X86_LEVEL", ""))
    logger.info("kernels are compiled for %s (%s)", machine.name, this_processor().model)
    return machine


def parse_cpuinfo(text: str) -> tuple[str, frozenset[str]]:
    """The model and the features of the first processor in Linux's ``/proc/cpuinfo``.

    Linux leaves out what the processor has and the system does not support.
    """
    first = dict(re.findall(r"^(model name|flags)\s*:\s*(.*?)\s*$", text.partition("\n\n")[0], re.MULTILINE))
    flags = first.get("flags", "").split()
    return first.get("model name", "unknown"), frozenset(_LINUX_NAMES.get(flag, flag) for flag in flags)


def clock_hertz(cpuinfo: str, highest_clock: Path) -> float:
    """The processor's clock in Hz: the highest, or else the higher of the present one and the one in its name.

    Args:
        cpuinfo: Linux's ``/proc/cpuinfo``, which has the present clock of each processor.
        highest_clock: Linux's ``cpuinfo_max_freq``, in kHz; virtual machines do not have it.

    Returns:
        0 where none of them says.
    """
    try:
        return float(highest_clock.read_text()) * 1e3
    except (OSError, ValueError) as error:
        logger.debug("the highest clock is unknown: %s", error)
    present = [float(clock) * 1e6 for clock in re.findall(r"^cpu MHz\s*:\s*([\d.]+)", cpuinfo, re.MULTILINE)]
    nominal = [float(clock) * 1e9 for clock in re.findall(r"^model name.*@ ([\d.]+)GHz", cpuinfo, re.MULTILINE)]
    return max([*present, *nominal], default=0.0)


def cache_bytes(folder: Path) -> dict[int, int]:
    """Size in bytes of data and unified caches by level, from Linux's ``/sys/devices/system/cpu/cpu0/cache``."""
    sizes: dict[int, int] = {}
    for index in folder.glob("index*"):
        try:
            kind, level, size = ((index / name).read_text().strip() for name in ("type", "level", "size"))
        except OSError as error:
            logger.debug("a cache is left out: %s", error)
            continue
        number = re.fullmatch(r"(\d+)([KMG]?)", size)
        if kind != "Instruction" and number:
            sizes[int(level)] = int(number[1]) * _UNITS[number[2]]
    return sizes


def lacking(level: str, features: frozenset[str]) -> list[str]:
    """What a processor with these features lacks for ``"v2"``, ``"v3"`` or ``"v4"``; empty when nothing."""
    below = list(_NEEDED)[: list(_NEEDED).index(level) + 1]
    return sorted(frozenset().union(*(_NEEDED[name] for name in below)) - features)


def machine_of(processor: Processor, forced: str = "") -> Machine:
    """The highest level a processor has, with its extensions and its caches.

    Args:
        processor: what the system says.
        forced: ``"v2"``, ``"v3"`` or ``"v4"`` for a lower level; one that the processor has not, or that does
            not exist, is refused with a warning in the log.

    Raises:
        ValueError: the processor has not even x86-64-v2.
    """
    able = [level for level in _LEVELS if not lacking(level, processor.features)]
    if not able:
        raise ValueError(f"{processor.model} lacks {', '.join(lacking('v2', processor.features))} of x86-64-v2")
    level = able[-1]
    if forced in able:
        level = forced
    elif forced in _LEVELS:
        absent = ", ".join(lacking(forced, processor.features))
        logger.warning("LITE_X86_LEVEL=%s is refused, %s lacks %s; %s is used", forced, processor.model, absent, level)
    elif forced:
        logger.warning("LITE_X86_LEVEL=%s is none of %s; %s is used", forced, ", ".join(_LEVELS), level)
    return _extended(_LEVELS[level], _EXTENSIONS[level], processor)


def _extended(base: Machine, extensions: Mapping[str, str], processor: Processor) -> Machine:
    present = {feature: label for feature, label in extensions.items() if feature in processor.features}
    machine = replace(
        base,
        name="+".join([base.name, *present.values()]),
        features=(*base.features, *(f"+{feature}" for feature in present)),
        dot_product="vnni" in present.values(),
    )
    sizes = processor.cache_bytes
    return machine.with_caches(sizes.get(1, base.l1_bytes), sizes.get(2, base.l2_bytes))


def _ask_llvm() -> tuple[str, frozenset[str]]:
    # Imported here: it costs tens of milliseconds, and Linux does without it.
    try:
        from llvmlite import binding
    except ImportError as error:
        logger.warning("the processor's features are unknown: %s; pip install 'lite-cpu[compile]'", error)
        return "unknown", frozenset()
    features: Mapping[str, bool] = binding.get_host_cpu_features()
    return binding.get_host_cpu_name(), frozenset(name for name, present in features.items() if present)
