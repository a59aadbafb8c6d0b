"""Time from process start to first result, and peak memory, with one thread, measured from outside the process."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence

from side_by_side.conditions import Condition
from side_by_side.contenders import Contender
from side_by_side.models import ConversionError, ModelOnDisk
from side_by_side.results import FirstResult, LeftOut
from side_by_side.worker_process import WorkerError

CACHE_VARIABLE = "LITE_CACHE_DIR"


def measure(
    contenders: Sequence[Contender], model: ModelOnDisk, repeats: int
) -> tuple[list[FirstResult], list[LeftOut]]:
    """Start every engine on one model ``repeats`` times with an empty cache, and each time again with a filled cache.

    The libraries and model files are in the system's page cache: a first round is not counted.
    """
    left_out: list[LeftOut] = []
    found: dict[str, FirstResult] = {}
    for repeat in range(repeats + 1):
        for contender in contenders:
            name = contender.engine.name
            if any(entry.engine == name for entry in left_out):
                continue
            result = found.setdefault(name, FirstResult(model.name, name, [], [], [], []))
            with tempfile.TemporaryDirectory() as cache:
                try:
                    cold = start(contender, model, cache)
                    warm = start(contender, model, cache)
                except (ConversionError, WorkerError) as error:
                    left_out.append(LeftOut(name, f"first result: {error}", model.name))
                    del found[name]
                    continue
            if repeat:
                result.cold_seconds.append(cold[0])
                result.cold_bytes.append(cold[1])
                result.warm_seconds.append(warm[0])
                result.warm_bytes.append(warm[1])
    return list(found.values()), left_out


def start(contender: Contender, model: ModelOnDisk, cache: str) -> tuple[float, int]:
    """Start one process, with its caches in the folder ``cache``; return seconds and peak bytes at its first result.

    Raises:
        ConversionError, WorkerError: raised by :meth:`Contender.start`.
    """
    with contender.start(model, Condition(), environment={CACHE_VARIABLE: cache}) as worker:
        return worker.first_result_seconds, worker.peak_memory_bytes
