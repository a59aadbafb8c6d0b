"""Measure one model of the zoo: Lite beside the engine that the model was made for.

    python -m side_by_side.zoo_measure NAME FOLDER BACKEND SECONDS THREADS ...

The last line of standard output is the row as JSON, see :class:`~side_by_side.zoo_results.Row`. The engines run in
separate processes, which end with this one: the caller sets the time limit.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lite_tools.checking.comparison import largest_difference
from side_by_side.conditions import Condition
from side_by_side.engines import ENGINES, LITE, Job
from side_by_side.fix_shapes import fix_shapes
from side_by_side.timing import SLICE_SECONDS, Turns, take_turns
from side_by_side.worker import end_with_parent
from side_by_side.worker_process import BENCHMARKS, WorkerError, WorkerProcess
from side_by_side.zoo_table import ZooModel, files_of, make_inputs, read_table

Array = np.ndarray[Any, Any]


def measure(model: ZooModel, folder: Path, backend: str, seconds: float, threads: Sequence[int]) -> dict[str, Any]:
    """Return the row of a model, without what all rows of a run have in common.

    Args:
        model: the model.
        folder: where archives and models are kept.
        backend: the backend that Lite uses.
        seconds: how long each engine computes with each number of threads.
        threads: the numbers of threads.

    Raises:
        Unavailable: the model cannot be had.
    """
    files = files_of(model, folder)
    row: dict[str, Any] = {"model": model.name, "engine": model.engine, "timings": {}, "memory": {}}
    with tempfile.TemporaryDirectory() as own:
        input_file = Path(own) / "inputs.npz"
        inputs = make_inputs(model)
        np.savez(input_file, **inputs)  # type: ignore[arg-type]
        answers, refusals = {}, {}
        for engine in (LITE, model.engine):
            try:
                answers[engine], about = _outputs(engine, backend, files, input_file, Path(own) / f"{engine}.npz")
                row |= {key: about[key] for key in ("native", "notes") if key in about}
            except WorkerError as error:
                refusals[engine] = str(error)
        row["refusal"], row["peer_refusal"] = refusals.get(LITE, ""), refusals.get(model.engine, "")
        if not refusals:
            row["difference"] = _greatest_difference(answers[model.engine], answers[LITE], model.scale)
        timed = {engine: files for engine in (LITE, model.engine) if engine not in refusals}
        if "onnxruntime" in timed:
            # ONNX Runtime optimizes more for shapes that it knows, and cannot bind outputs of wrongly declared shapes.
            fixed = Path(own) / "fixed.onnx"
            fix_shapes(Path(files[0]), {name: array.shape for name, array in inputs.items()}, fixed)
            timed["onnxruntime"] = (str(fixed),)
        for count in threads:
            try:
                times, memory = _times(timed, input_file, backend, seconds, count)
            except WorkerError as error:
                row["notes"] = [*row.get("notes", ()), f"{count} threads: {error}"]
                continue
            row["timings"][str(count)] = times
            row["memory"] = row["memory"] or memory
    return row


def _outputs(
    engine: str, backend: str, files: Sequence[str], input_file: Path, target: Path
) -> tuple[list[Array], dict[str, Any]]:
    """Return the outputs of a model in one engine, and what the engine says about it.

    Raises:
        WorkerError: the engine could not load or run it.
    """
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([str(BENCHMARKS), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "side_by_side.zoo_outputs", engine, backend, str(input_file), str(target), *files]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", env=variables)
    if done.returncode:
        raise WorkerError(last_words(done.stderr) or f"the process ended with {done.returncode}")
    with np.load(target) as arrays:
        return [arrays[str(i)] for i in range(len(arrays.files))], json.loads(done.stdout.splitlines()[-1])


def last_words(text: str) -> str:
    """Return the message of the error that ended a process, in one line, without the folders of files."""
    lines = text.strip().splitlines()
    starts = [i for i, line in enumerate(lines) if re.match(r"[\w.]+(Error|Exception|Fail)\w*\b", line)]
    message = " ".join(line.strip() for line in (lines[starts[-1] :] if starts else lines[-1:]))
    return re.sub(r"(/[\w.-]+)+/", "", message)[:600]


def _greatest_difference(expected: Sequence[Array], found: Sequence[Array], scale: float) -> float | None:
    """Return the largest difference of an output as a share of ``scale``, or of its range if that is 0.

    None is the difference of shapes, and of finite values and others.
    """
    if len(expected) != len(found):
        return None
    differences = [0.0]
    for ours, theirs in zip(found, expected):
        if ours.shape != theirs.shape:
            return None
        if theirs.dtype.kind in "OSU":
            differences.append(float(np.mean(ours != theirs)) if theirs.size else 0.0)
        elif scale:
            differences.append(float(np.abs(ours - theirs).max()) / scale)
        else:
            differences.append(largest_difference(theirs, ours))
    worst = float(np.max(differences))  # NaN if one is NaN
    return worst if math.isfinite(worst) else None


def _times(
    files: Mapping[str, tuple[str, ...]], input_file: Path, backend: str, seconds: float, threads: int
) -> tuple[dict[str, Mapping[str, float]], dict[str, int]]:
    """Return the times of a run in each engine in milliseconds, and the peak memory of each process in bytes.

    With several threads each engine works alone, at its own settings: the process of the other is stopped.

    Raises:
        WorkerError: an engine could not load or run the model.
    """
    condition = Condition(threads=threads, alone=threads > 1)
    with contextlib.ExitStack() as stack:
        workers: dict[str, WorkerProcess] = {}
        for engine, own in files.items():
            job = Job(engine, own, str(input_file), threads, backend, condition.alone, may_use_host=True)
            environment = ENGINES[engine].environment(condition)
            workers[engine] = stack.enter_context(WorkerProcess(job, Path(sys.executable), environment))
        turns = {engine: Turns(worker) for engine, worker in workers.items()}
        take_turns(list(turns.values()), math.ceil(seconds / SLICE_SECONDS), seconds)
        memory = {engine: worker.peak_memory_bytes for engine, worker in workers.items()}
        return {engine: _summary(turn) for engine, turn in turns.items()}, memory


def _summary(turns: Turns) -> dict[str, float]:
    times = turns.milliseconds
    cpu = turns.cpu_per_wall * statistics.fmean(times)
    return {"median": round(statistics.median(times), 4), "minimum": min(times), "cpu": round(cpu, 4)}


def main() -> None:
    """Measure the model of the command line."""
    end_with_parent()
    name, folder, backend, seconds, *threads = sys.argv[1:]
    row = measure(read_table()[name], Path(folder), backend, float(seconds), [int(count) for count in threads])
    print(json.dumps(row))


if __name__ == "__main__":
    main()
