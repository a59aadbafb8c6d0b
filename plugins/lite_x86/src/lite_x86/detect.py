"""Detection of the processor, and of the :class:`~lite_cpu.machine.Machine` that kernels are compiled for.

Levels are those of the x86-64 psABI (https://gitlab.com/x86-psABIs/x86-64-ABI, section 3.1.1). Features have LLVM's
names everywhere. On Linux only files of the kernel are read; on other systems llvmlite detects the features.
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
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from lite_core.errors import InputError
from lite_cpu.machine import X86_64_V2, X86_64_V3, X86_64_V4, Machine
from lite_cpu.system_files import cache_bytes, describe_caches
from lite_x86 import tile_permission

__all__ = [
    "KNOWN_FEATURES",
    "TILE_FEATURES",
    "Identity",
    "Processor",
    "cache_bytes",
    "clock_hertz",
    "features_of",
    "is_x86_64",
    "machine_for",
    "machine_of_level",
    "missing_features",
    "parse_cpuinfo",
    "parse_identity",
    "permitted_features",
    "this_machine",
    "this_processor",
    "usable_cores",
]

logger = logging.getLogger("lite.x86.detect")

_CPUINFO = Path("/proc/cpuinfo")
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_HIGHEST_CLOCK = Path("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq")

_LEVELS: Mapping[str, Machine] = {"v2": X86_64_V2, "v3": X86_64_V3, "v4": X86_64_V4}

# The features that each level of the psABI adds to the level below.
_REQUIRED: Mapping[str, frozenset[str]] = {
    "v2": frozenset({"cx16", "sahf", "popcnt", "sse3", "sse4.1", "sse4.2", "ssse3"}),
    "v3": frozenset({"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"}),
    "v4": frozenset({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}),
}

# Features beyond a level that kernels use if the processor has them, with their suffixes of the machine's name.
_EXTENSIONS: Mapping[str, Mapping[str, str]] = {
    "v2": {},
    "v3": {"avxvnni": "vnni"},
    "v4": {"avx512vnni": "vnni", "avx512bf16": "bf16", "avx512fp16": "fp16", "amx-tile": "amx"},
}

#: The features of matrix tiles. Kernels use them together or not at all.
TILE_FEATURES = frozenset({"amx-tile", "amx-int8", "amx-bf16"})

# The features that an extension consists of, if they are several.
_CONSISTS_OF: Mapping[str, frozenset[str]] = {"amx-tile": TILE_FEATURES}

#: The features that decide which kernels a processor gets.
KNOWN_FEATURES = TILE_FEATURES.union(*_REQUIRED.values(), *_EXTENSIONS.values())

# LLVM's names of the features that Linux names differently.
_LINUX_NAMES: Mapping[str, str] = {
    "abm": "lzcnt",
    "amx_bf16": "amx-bf16",
    "amx_int8": "amx-int8",
    "amx_tile": "amx-tile",
    "avx512_bf16": "avx512bf16",
    "avx512_fp16": "avx512fp16",
    "avx512_vnni": "avx512vnni",
    "avx_vnni": "avxvnni",
    "bmi1": "bmi",
    "lahf_lm": "sahf",
    "pni": "sse3",
    "sse4_1": "sse4.1",
    "sse4_2": "sse4.2",
}


class Identity(NamedTuple):
    """The numbers by which a vendor identifies a processor; empty and -1 if they are unknown.

    Attributes:
        vendor: ``GenuineIntel`` or ``AuthenticAMD``, as the instruction CPUID returns it.
        family: the family, with the extended family added.
        model: the model, with the extended model included.
        stepping: the revision of the model.
    """

    vendor: str = ""
    family: int = -1
    model: int = -1
    stepping: int = -1


class Processor(NamedTuple):
    """The properties of the processor that the system reports.

    Attributes:
        model: the model name.
        features: the features, by LLVM's names.
        cache_bytes: the sizes in bytes of the data and unified caches of one core, by level; unknown caches are left
            out.
        clock_hertz: the highest clock in Hz; 0 if unknown.
        identity: the vendor's numbers of the processor.
    """

    model: str
    features: frozenset[str]
    cache_bytes: Mapping[int, int]
    clock_hertz: float = 0.0
    identity: Identity = Identity()

    @property
    def caches(self) -> str:
        """A description of the caches."""
        return describe_caches(self.cache_bytes)


def is_x86_64() -> bool:
    """Return True if this process runs 64-bit x86 code."""
    return platform.machine().lower() in ("x86_64", "amd64") and sys.maxsize > 1 << 32


def usable_cores() -> int:
    """Return the number of logical processors that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def this_processor() -> Processor:
    """Return this processor; it is detected once."""
    text = _CPUINFO.read_text() if _CPUINFO.exists() else ""
    model, features = parse_cpuinfo(text)
    if not features:
        model, features = _ask_llvm()
    features = permitted_features(features)
    return Processor(model, features, cache_bytes(_CACHES), clock_hertz(text, _HIGHEST_CLOCK), parse_identity(text))


@cache
def this_machine() -> Machine:
    """Return the machine that kernels are compiled for; ``LITE_X86_LEVEL`` is read once.

    Raises:
        ValueError: see :func:`machine_for`.
    """
    machine = machine_for(this_processor(), os.environ.get("LITE_X86_LEVEL", ""))
    logger.info("kernels are compiled for %s (%s)", machine.name, this_processor().model)
    return machine


def parse_cpuinfo(text: str) -> tuple[str, frozenset[str]]:
    """Return the model and the features of the first processor in Linux's ``/proc/cpuinfo``.

    Linux leaves out features of the processor that the system does not support.
    """
    first = _first_processor(text)
    flags = first.get("flags", "").split()
    return first.get("model name", "unknown"), frozenset(_LINUX_NAMES.get(flag, flag) for flag in flags)


def parse_identity(text: str) -> Identity:
    """Return the vendor's numbers of the first processor in Linux's ``/proc/cpuinfo``."""
    found = _first_processor(text)
    numbers = [found.get(name, "") for name in ("cpu family", "model", "stepping")]
    return Identity(found.get("vendor_id", ""), *(int(number) if number.isdecimal() else -1 for number in numbers))


def _first_processor(cpuinfo: str) -> dict[str, str]:
    """Return the fields of the first processor by name."""
    lines = (line.partition(":") for line in cpuinfo.partition("\n\n")[0].splitlines())
    return {name.strip(): value.strip() for name, _, value in lines}


def clock_hertz(cpuinfo: str, highest_clock: Path) -> float:
    """Return the processor's highest clock in Hz, or else the higher of its current clock and the clock in its name.

    Args:
        cpuinfo: Linux's ``/proc/cpuinfo``, which contains the current clock of each processor.
        highest_clock: Linux's ``cpuinfo_max_freq``, in kHz; virtual machines do not have it.

    Returns:
        The clock, or 0 if none of these is available.
    """
    try:
        return float(highest_clock.read_text()) * 1e3
    except (OSError, ValueError) as error:
        logger.debug("the highest clock is unknown: %s", error)
    current = [float(clock) * 1e6 for clock in re.findall(r"^cpu MHz\s*:\s*([\d.]+)", cpuinfo, re.MULTILINE)]
    nominal = [float(clock) * 1e9 for clock in re.findall(r"^model name.*@ ([\d.]+)GHz", cpuinfo, re.MULTILINE)]
    return max([*current, *nominal], default=0.0)


def missing_features(level: str, features: frozenset[str]) -> list[str]:
    """Return the features that level ``"v2"``, ``"v3"`` or ``"v4"`` requires and ``features`` lacks."""
    included = list(_REQUIRED)[: list(_REQUIRED).index(level) + 1]
    return sorted(frozenset().union(*(_REQUIRED[name] for name in included)) - features)


def machine_for(processor: Processor, forced: str = "") -> Machine:
    """Return the machine of the highest level that a processor has, with its extensions and caches.

    Args:
        processor: the properties of the processor.
        forced: ``"v2"``, ``"v3"`` or ``"v4"`` to use a lower level, or a level with some of its extensions, such as
            ``"v4+vnni"``, to use no others; a level that the processor lacks, or that does not exist, is ignored with a
            warning in the log.

    Raises:
        ValueError: the processor lacks x86-64-v2.
    """
    supported = [level for level in _LEVELS if not missing_features(level, processor.features)]
    if not supported:
        raise ValueError(
            f"{processor.model} lacks {', '.join(missing_features('v2', processor.features))} of x86-64-v2"
        )
    level = supported[-1]
    wanted, _, labels = forced.partition("+")
    if wanted in supported and forced in (f"{wanted}{extra}" for extra in _extension_texts(wanted)):
        chosen = {f: label for f, label in _EXTENSIONS[wanted].items() if label in labels.split("+") or not labels}
        return _with_extensions(_LEVELS[wanted], chosen, processor)
    if forced in _LEVELS:
        absent = ", ".join(missing_features(forced, processor.features))
        logger.warning("LITE_X86_LEVEL=%s is refused, %s lacks %s; %s is used", forced, processor.model, absent, level)
    elif forced:
        logger.warning("LITE_X86_LEVEL=%s is none of %s; %s is used", forced, ", ".join(_LEVELS), level)
    return _with_extensions(_LEVELS[level], _EXTENSIONS[level], processor)


def machine_of_level(name: str) -> Machine:
    """Return the machine of a level, such as ``x86-64-v3`` or ``x86-64-v4+vnni``.

    Raises:
        InputError: there is no such level; the message lists all.
    """
    if is_x86_64() and this_processor().features and this_machine().name == name:
        return this_machine()
    levels = {f"{_LEVELS[level].name}{extra}": level for level in _LEVELS for extra in _extension_texts(level)}
    if name not in levels:
        raise InputError(f"x86 has no level {name!r}; the levels are: {', '.join(levels)}")
    level = levels[name]
    labels = name.split("+")[1:]
    present = frozenset().union(*(_parts(feature) for feature, label in _EXTENSIONS[level].items() if label in labels))
    return _with_extensions(_LEVELS[level], _EXTENSIONS[level], Processor(name, present, {}))


def features_of(machine: Machine) -> frozenset[str]:
    """Return the features that code for a machine may use, by LLVM's names."""
    level = next(level for level, base in _LEVELS.items() if machine.name.split("+")[0] == base.name)
    extensions = [_parts(feature) for feature in _EXTENSIONS[level] if f"+{feature}" in machine.features]
    return frozenset(missing_features(level, frozenset())).union(*extensions)


def permitted_features(features: frozenset[str]) -> frozenset[str]:
    """Return the features that this process may use: matrix tiles need the system's permission, or they are logged."""
    if features.isdisjoint(TILE_FEATURES) or not (reason := tile_permission.refusal()):
        return features
    logger.warning("kernels do without the processor's matrix tiles (AMX): %s", reason)
    return features - TILE_FEATURES


def _parts(extension: str) -> frozenset[str]:
    return _CONSISTS_OF.get(extension, frozenset({extension}))


def _extension_texts(level: str) -> list[str]:
    """Return the endings of a level's names: nothing, and each combination of its extensions in their order."""
    labels = list(_EXTENSIONS[level].values())
    chosen = [each for count in range(len(labels) + 1) for each in combinations(labels, count)]
    return ["".join(f"+{label}" for label in each) for each in chosen]


def _with_extensions(base: Machine, extensions: Mapping[str, str], processor: Processor) -> Machine:
    present = {feature: label for feature, label in extensions.items() if _parts(feature) <= processor.features}
    features = [part for feature in present for part in (feature, *sorted(_parts(feature) - {feature}))]
    machine = replace(
        base,
        name="+".join([base.name, *present.values()]),
        features=(*base.features, *(f"+{feature}" for feature in features)),
        dot_product="vnni" in present.values(),
        bf16_dot="bf16" in present.values(),
        half_products="fp16" in present.values(),
        matrix_tiles="amx" in present.values(),
    )
    sizes = processor.cache_bytes
    return machine.with_caches(sizes.get(1, base.l1_bytes), sizes.get(2, base.l2_bytes))


def _ask_llvm() -> tuple[str, frozenset[str]]:
    # Imported here because it takes tens of milliseconds and Linux does not need it.
    try:
        from llvmlite import binding
    except ImportError as error:
        logger.warning("the processor's features are unknown: %s; pip install 'lite-cpu[compile]'", error)
        return "unknown", frozenset()
    features: Mapping[str, bool] = binding.get_host_cpu_features()
    return binding.get_host_cpu_name(), frozenset(name for name, present in features.items() if present)
