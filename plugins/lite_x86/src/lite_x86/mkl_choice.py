"""The choice between MKL and Lite's own kernels for large matrix products, by measurement on this machine."""

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

from lite_compiler.disk_cache import DiskCache
from lite_core.backend import Buffer, Options
from lite_core.builder import GraphBuilder
from lite_core.ir import Graph, TensorType
from lite_core.memory import HostMemory
from lite_cpu.executable import CpuExecutable
from lite_cpu.external import ExternalSgemm, no_external_sgemm
from lite_cpu.lowering.weights import WeightCache
from lite_cpu.machine_code.library import KernelLibrary
from lite_cpu.sources import sources_version
from lite_x86.detect import this_processor
from lite_x86.mkl import Mkl, Search
from lite_x86.options import MklSetting

__all__ = ["Choice", "Times", "choose"]

logger = logging.getLogger("lite.x86.mkl")

#: Rows, columns and depth of the measured product.
_SIZE = 512
#: A round of both takes about 5 ms on AVX2, so the measurement takes 20 to 30 ms.
_ROUNDS = 5
#: With MKL, a bias or an activation needs an extra pass over memory; smaller gains are not worth it.
_WORTHWHILE = 0.95


@dataclass(frozen=True, slots=True)
class Times:
    """The shortest times of one product with one thread, in seconds."""

    mkl: float
    own: float

    @property
    def mkl_is_faster(self) -> bool:
        """True if MKL is faster by enough to be worth using."""
        return self.mkl < _WORTHWHILE * self.own

    def __str__(self) -> str:
        size = " x ".join([str(_SIZE)] * 3)
        return f"{size} took {1e3 * self.mkl:.1f} ms, own kernels {1e3 * self.own:.1f} ms"


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen product, None for Lite's own kernels, and the reason, which is empty if there is no MKL."""

    sgemm: ExternalSgemm | None
    reason: str = ""


def choose(setting: MklSetting, search: Search, library: KernelLibrary) -> Choice:
    """Choose the implementation of large matrix products, and log the choice.

    Args:
        setting: the setting of the session or the environment.
        search: the result of the search for MKL.
        library: compiles Lite's kernels for the measurement, which is stored in the folder of the library's cache.
    """
    always = setting.value == "always"
    mkl = search.mkl
    if mkl is None:
        if always:
            logger.warning("%s has no effect, MKL: %s", setting.source, search.outcome)
        return Choice(None)
    sgemm = ExternalSgemm("MKL", mkl.sgemm, "win64cc" if sys.platform == "win32" else "")
    if not mkl.sequential:
        choice = _rejected(mkl, "other code in this process uses it with threads")
    elif always:
        choice = _accepted(mkl, sgemm, setting.source)
    else:
        times = _times(mkl, sgemm, library)
        choice = _accepted(mkl, sgemm, str(times)) if times.mkl_is_faster else _rejected(mkl, str(times))
    logger.info("%s", choice.reason)
    return choice


def _accepted(mkl: Mkl, sgemm: ExternalSgemm, reason: str) -> Choice:
    return Choice(sgemm, f"MKL {mkl.version} computes large matrix products: {reason}")


def _rejected(mkl: Mkl, reason: str) -> Choice:
    return Choice(None, f"MKL {mkl.version} found, not used: {reason}")


def _times(mkl: Mkl, sgemm: ExternalSgemm, library: KernelLibrary) -> Times:
    """Return the times, measured once on a machine and again when MKL or Lite's kernels change."""
    kernels = f"{library.machine.name}, lite_cpu {sources_version()}"
    key = f"{this_processor().model}, {kernels}, MKL {mkl.version} at {mkl.path}"
    files = DiskCache(library.cache.folder, ".json", logger)
    name = f"sgemm-{hashlib.sha256(key.encode()).hexdigest()}"
    times = _read_times(files, name)
    if times is None:
        times = _measure(sgemm, library)
        text = json.dumps({"measured": key, "mkl_seconds": times.mkl, "own_seconds": times.own}, indent=2)
        files.write(name, text.encode())
    return times


def _read_times(files: DiskCache, name: str) -> Times | None:
    """Return the times stored in a file; None if there are none or, with a warning, if they cannot be read."""
    content = files.read(name)
    if content is None:
        return None
    try:
        stored = json.loads(content)
        return Times(float(stored["mkl_seconds"]), float(stored["own_seconds"]))
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        logger.warning("%s cannot be read (%r): MKL is measured again", files.path(name), error)
        return None


def _measure(sgemm: ExternalSgemm, library: KernelLibrary) -> Times:
    """Measure one MatMul compiled with and without MKL, in alternating runs; return the shortest times."""
    # Imported late: if the times are stored, a restored model runs without the compiler.
    from lite_cpu.lowering.compile import compile_graph
    from lite_cpu.peak import measure_peak_flops

    graph = _product()
    x = _host_buffer(np.full((_SIZE, _SIZE), 0.5, np.float32))
    y = _host_buffer(np.empty((_SIZE, _SIZE), np.float32))
    best = []
    candidates = []
    for offered in (lambda: sgemm, no_external_sgemm):
        compiled = compile_graph(graph, Options(threads=1), library, WeightCache(), offered)
        executable = CpuExecutable(compiled, 1, partial(measure_peak_flops, library))
        candidates.append((executable, _host_buffer(np.empty(executable.scratch_bytes, np.uint8))))
        best.append(float("inf"))
    for number in range(1 + _ROUNDS):
        for i, (executable, scratch) in enumerate(candidates):
            start = time.perf_counter()
            executable.run([x], [y], scratch)
            if number:  # the first round touches new memory, and MKL loads its code for this processor
                best[i] = min(best[i], time.perf_counter() - start)
    return Times(*best)


def _host_buffer(array: np.ndarray[Any, Any]) -> Buffer:
    return Buffer(TensorType.of_array(array), HostMemory(), array)


def _product() -> Graph:
    builder = GraphBuilder("product")
    weights = builder.constant(np.full((_SIZE, _SIZE), 0.5, np.float32))
    builder.output(builder.add("MatMul", [builder.input("x", "float32", (_SIZE, _SIZE)), weights]), "y")
    return builder.build()
