"""Description of the machine that the results belong to."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from side_by_side.conditions import Condition
from side_by_side.engines import ENGINES, LITE

_SHOWN_EXTENSIONS = (
    "sse4_2",
    "avx2",
    "fma",
    "f16c",
    "avx_vnni",
    "avx512f",
    "avx512_vnni",
    "avx512_bf16",
    "avx512_fp16",
    "amx_tile",
    "asimd",
    "sve",
)

_REPORT = """
import json, sys
from lite_core.plugins import available_backends
backend = available_backends()[sys.argv[1]]
print(json.dumps([*backend.report()] if hasattr(backend, "report") else []))
"""


def describe(backend: str, levels: Iterable[str]) -> dict[str, object]:
    """Return the processor, its vector extensions, cores, memory, the machine's load, and Lite's view of it.

    Args:
        backend: the backend that Lite uses; ``auto`` is x86.
        levels: the levels of the conditions.
    """
    info = _first_processor()
    flags = info.get("flags", info.get("Features", "")).split()
    return {
        "processor": info.get("model name", platform.machine()),
        "microarchitecture": microarchitecture(),
        "family": info.get("cpu family", ""),
        "model": info.get("model", ""),
        "stepping": info.get("stepping", ""),
        "architecture": platform.machine(),
        "extensions": [flag for flag in _SHOWN_EXTENSIONS if flag in flags],
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": " ".join([platform.system(), *re.findall(r"^\d+\.\d+", platform.release())]),
        "python": platform.python_version(),
        "load_average": os.getloadavg()[0],
        "lite": {level: _findings("x86" if backend == "auto" else backend, level) for level in levels},
    }


@cache
def microarchitecture() -> str:
    """Return LLVM's name of this processor, such as ``znver4``: virtual machines often hide the model's name."""
    code = "from llvmlite import binding; print(binding.get_host_cpu_name())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def file_stem(microarchitecture: str, processor: str) -> str:
    """Return a processor's name for names of files: small letters, digits and hyphens."""
    name = processor if microarchitecture == "unknown" else microarchitecture
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def own_file_stem() -> str:
    """Return :func:`file_stem` of this processor."""
    return file_stem(microarchitecture(), _first_processor().get("model name", platform.machine()))


def revision() -> str:
    """Return the commit of Lite's sources, with ``+`` if files have changed since; empty outside a repository."""
    here = Path(__file__).parent
    commands = [["git", "rev-parse", "--short", "HEAD"], ["git", "status", "--porcelain", "--untracked-files=no"]]
    try:
        commit, changes = (
            subprocess.run(command, cwd=here, capture_output=True, text=True, check=True).stdout.strip()
            for command in commands
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f"{commit}{'+' if changes else ''}"


def _findings(backend: str, level: str) -> list[str]:
    """Return the lines of ``lite doctor`` about a backend at a level: features, caches, tuning, libraries."""
    variables = {**os.environ, **ENGINES[LITE].environment(Condition(level))}
    done = subprocess.run([sys.executable, "-c", _REPORT, backend], capture_output=True, text=True, env=variables)
    if done.returncode:
        return [f"no report of {backend}: {done.stderr.strip()[-200:]}"]
    return [str(line) for line in json.loads(done.stdout) if not line.startswith(" ")]  # without each place searched


def _first_processor() -> dict[str, str]:
    """Return the first block of /proc/cpuinfo."""
    block = Path("/proc/cpuinfo").read_text().partition("\n\n")[0]
    pairs = (line.partition(":") for line in block.splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}
