"""Files in which Linux describes the caches of a core."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from pathlib import Path

__all__ = ["cache_bytes", "describe_caches"]

logger = logging.getLogger("lite.cpu.detect")

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def cache_bytes(folder: Path) -> dict[int, int]:
    """Return the sizes in bytes of a core's data and unified caches, by level.

    Args:
        folder: a folder such as Linux's ``/sys/devices/system/cpu/cpu0/cache``; without it, no caches are known.
    """
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


def describe_caches(sizes: Mapping[int, int]) -> str:
    """Return a description of caches: ``L1 32 KiB, L2 1024 KiB``."""
    return ", ".join(f"L{level} {size >> 10} KiB" for level, size in sorted(sizes.items())) or "unknown"
