"""Whether MKL computes large matrix products: where it measured faster than Lite's own kernels on this machine."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lite_core.backend import Options
from lite_core.builder import GraphBuilder
from lite_core.ir import Graph
from lite_cpu.executable import CpuExecutable
from lite_cpu.external import ExternalSgemm, no_external_sgemm
from lite_cpu.lowering.compile import compile_graph
from lite_cpu.lowering.weights import WeightCache
from lite_cpu.machine_code.library import KernelLibrary
from lite_x86.detect import this_processor
from lite_x86.mkl import Mkl, Search

__all__ = ["Choice", "Times", "choose"]

logger = logging.getLogger("lite.x86.mkl")

#: Rows, columns and depth of the product that is measured.
_SIZE = 512
#: With a round of both taking about 5 ms on AVX2, the measurement takes 20 to 30 ms.
_ROUNDS = 5
#: Smaller gains are not worth the pass over memory that a bias or an activation then needs.
_WORTHWHILE = 0.95


@dataclass(frozen=True, slots=True)
class Times:
    """What one product took with one thread, in seconds, at best."""

    mkl: float
    own: float

    @property
    def mkl_is_faster(self) -> bool:
        """By enough to be worth using."""
        return self.mkl < _WORTHWHILE * self.own

    def __str__(self) -> str:
        size = " x ".join([str(_SIZE)] * 3)
        return f"{size} took {1e3 * self.mkl:.1f} ms, own kernels {1e3 * self.own:.1f} ms"


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen, None for Lite's own kernels, and why: empty where there is no MKL to choose."""

    sgemm: ExternalSgemm | None
    reason: str = ""


def choose(search: Search, library: KernelLibrary, environment: Mapping[str, str]) -> Choice:
    """Choose what computes large matrix products, and log it.

    Args:
        search: what was found.
        library: compiles the kernels to compare with; its cache's folder keeps the measurement.
        environment: ``LITE_MKL=always`` chooses MKL unmeasured.
    """
    always = environment.get("LITE_MKL", "").lower() == "always"
    mkl = search.mkl
    if mkl is None:
        if always:
            logger.warning("LITE_MKL=always has no effect, MKL: %s", search.outcome)
        return Choice(None)
    sgemm = ExternalSgemm("MKL", mkl.sgemm, "win64cc" if sys.platform == "win32" else "")
    if not mkl.sequential:
        choice = _refused(mkl, "other code in this process uses it with threads")
    elif always:
        choice = _taken(mkl, sgemm, "LITE_MKL=always")
    else:
        times = _times(mkl, sgemm, library)
        choice = _taken(mkl, sgemm, str(times)) if times.mkl_is_faster else _refused(mkl, str(times))
    logger.info("%s", choice.reason)
    return choice


def _taken(mkl: Mkl, sgemm: ExternalSgemm, why: str) -> Choice:
    return Choice(sgemm, f"MKL {mkl.version} computes large matrix products: {why}")


def _refused(mkl: Mkl, why: str) -> Choice:
    return Choice(None, f"MKL {mkl.version} found, not used: {why}")


def _times(mkl: Mkl, sgemm: ExternalSgemm, library: KernelLibrary) -> Times:
    """Measured once on a machine, and again when MKL or Lite's kernels change."""
    key = f"{this_processor().model}, {library.identity}, MKL {mkl.version} at {mkl.path}"
    folder = library.cache.folder
    if folder is None:
        return _measure(sgemm, library)
    file = folder / f"sgemm-{hashlib.sha256(key.encode()).hexdigest()}.json"
    times = _read(file)
    if times is None:
        times = _measure(sgemm, library)
        _write(file, key, times)
    return times


def _read(file: Path) -> Times | None:
    """The measurement in a file; None, with a line in the log, where it cannot be read."""
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
        return Times(float(kept["mkl_seconds"]), float(kept["own_seconds"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        logger.warning("%s cannot be read (%r): MKL is measured again", file, error)
        return None


def _write(file: Path, key: str, times: Times) -> None:
    text = json.dumps({"measured": key, "mkl_seconds": times.mkl, "own_seconds": times.own}, indent=2)
    temporary = file.with_suffix(f".{os.getpid()}.tmp")
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, file)
    except OSError as error:
        logger.warning("%s cannot be written (%s): every process measures MKL again", file, error)
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def _measure(sgemm: ExternalSgemm, library: KernelLibrary) -> Times:
    """The best of several runs of one MatMul, compiled both ways, in turns."""
    graph = _product()
    x = np.full((_SIZE, _SIZE), 0.5, np.float32)
    y = np.empty_like(x)
    best = []
    candidates = []
    for offered in (lambda: sgemm, no_external_sgemm):
        compiled = compile_graph(graph, Options(threads=1), library, WeightCache(), offered)
        executable = CpuExecutable(compiled, 1, library.peak_flops)
        candidates.append((executable, np.empty(executable.scratch_bytes, np.uint8)))
        best.append(float("inf"))
    for number in range(1 + _ROUNDS):
        for i, (executable, scratch) in enumerate(candidates):
            start = time.perf_counter()
            executable.run_arrays([x], [y], scratch)
            if number:  # the first round fetches memory, and MKL loads its code for this processor
                best[i] = min(best[i], time.perf_counter() - start)
    return Times(*best)


def _product() -> Graph:
    builder = GraphBuilder("product")
    weights = builder.constant(np.full((_SIZE, _SIZE), 0.5, np.float32))
    builder.output(builder.add("MatMul", [builder.input("x", "float32", (_SIZE, _SIZE)), weights]), "y")
    return builder.build()
