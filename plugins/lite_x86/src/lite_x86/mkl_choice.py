"""Whether MKL computes large matrix products: where it measured faster than Lite's own kernels on this machine."""

from __future__ import annotations

import hashlib
import json
import logging
import sys
import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from lite_core.backend import Buffer, Options
from lite_core.builder import GraphBuilder
from lite_core.ir import Graph, TensorType
from lite_core.memory import HostMemory
from lite_core.storage import DiskCache
from lite_cpu.executable import CpuExecutable
from lite_cpu.external import ExternalSgemm, no_external_sgemm
from lite_cpu.lowering.weights import WeightCache
from lite_cpu.machine_code.library import KernelLibrary
from lite_x86.detect import this_processor
from lite_x86.mkl import Mkl, Search
from lite_x86.options import MklSetting

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


def choose(setting: MklSetting, search: Search, library: KernelLibrary) -> Choice:
    """Choose what computes large matrix products, and log it.

    Args:
        setting: what the session or the user wants.
        search: what was found.
        library: compiles the kernels to compare with; its cache's folder keeps the measurement.
    """
    always = setting.value == "always"
    mkl = search.mkl
    if mkl is None:
        if always:
            logger.warning("%s has no effect, MKL: %s", setting.source, search.outcome)
        return Choice(None)
    sgemm = ExternalSgemm("MKL", mkl.sgemm, "win64cc" if sys.platform == "win32" else "")
    if not mkl.sequential:
        choice = _refused(mkl, "other code in this process uses it with threads")
    elif always:
        choice = _taken(mkl, sgemm, setting.source)
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
    files = DiskCache(library.cache.folder, ".json", logger)
    name = f"sgemm-{hashlib.sha256(key.encode()).hexdigest()}"
    times = _kept(files, name)
    if times is None:
        times = _measure(sgemm, library)
        text = json.dumps({"measured": key, "mkl_seconds": times.mkl, "own_seconds": times.own}, indent=2)
        files.write(name, text.encode())
    return times


def _kept(files: DiskCache, name: str) -> Times | None:
    """The measurement in a file; None, with a line in the log, where it cannot be read."""
    content = files.read(name)
    if content is None:
        return None
    try:
        kept = json.loads(content)
        return Times(float(kept["mkl_seconds"]), float(kept["own_seconds"]))
    except (ValueError, KeyError, TypeError) as error:
        logger.warning("%s cannot be read (%r): MKL is measured again", files.path(name), error)
        return None


def _measure(sgemm: ExternalSgemm, library: KernelLibrary) -> Times:
    """The best of several runs of one MatMul, compiled both ways, in turns."""
    # Imported late: where the measurement is kept, a restored model runs without the compiler.
    from lite_cpu.lowering.compile import compile_graph
    from lite_cpu.peak import measure_peak_flops

    graph = _product()
    x = _in_main_memory(np.full((_SIZE, _SIZE), 0.5, np.float32))
    y = _in_main_memory(np.empty((_SIZE, _SIZE), np.float32))
    best = []
    candidates = []
    for offered in (lambda: sgemm, no_external_sgemm):
        compiled = compile_graph(graph, Options(threads=1), library, WeightCache(), offered)
        executable = CpuExecutable(compiled, 1, partial(measure_peak_flops, library))
        candidates.append((executable, _in_main_memory(np.empty(executable.scratch_bytes, np.uint8))))
        best.append(float("inf"))
    for number in range(1 + _ROUNDS):
        for i, (executable, scratch) in enumerate(candidates):
            start = time.perf_counter()
            executable.run([x], [y], scratch)
            if number:  # the first round fetches memory, and MKL loads its code for this processor
                best[i] = min(best[i], time.perf_counter() - start)
    return Times(*best)


def _in_main_memory(array: np.ndarray[Any, Any]) -> Buffer:
    return Buffer(TensorType.of_array(array), HostMemory(), array)


def _product() -> Graph:
    builder = GraphBuilder("product")
    weights = builder.constant(np.full((_SIZE, _SIZE), 0.5, np.float32))
    builder.output(builder.add("MatMul", [builder.input("x", "float32", (_SIZE, _SIZE)), weights]), "y")
    return builder.build()
