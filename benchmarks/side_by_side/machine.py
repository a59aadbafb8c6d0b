"""Description of the machine that the results belong to."""

from __future__ import annotations

import os
import platform
from pathlib import Path

_SHOWN_EXTENSIONS = (
    "sse4_2",
    "avx2",
    "fma",
    "f16c",
    "avx512f",
    "avx512_vnni",
    "avx512_bf16",
    "amx_tile",
    "asimd",
    "sve",
)


def describe() -> dict[str, object]:
    """Return the processor, its vector extensions, cores, memory, and the machine's load."""
    info = _first_processor()
    flags = info.get("flags", info.get("Features", "")).split()
    return {
        "processor": info.get("model name", platform.machine()),
        "architecture": platform.machine(),
        "extensions": [flag for flag in _SHOWN_EXTENSIONS if flag in flags],
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load_average": os.getloadavg()[0],
    }


def _first_processor() -> dict[str, str]:
    """Return the first block of /proc/cpuinfo."""
    block = Path("/proc/cpuinfo").read_text().partition("\n\n")[0]
    pairs = (line.partition(":") for line in block.splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}
