"""The engines that can be measured on this machine, and the start of their workers."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from side_by_side.conditions import Condition
from side_by_side.engines import Engine, Job, load_lite
from side_by_side.models import ModelOnDisk
from side_by_side.worker_process import WorkerProcess

_VERSION = "import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))"


@dataclass(frozen=True)
class Contender:
    """An engine in the Python environment where it is installed.

    Attributes:
        engine: the engine.
        python: the interpreter of its environment.
        version: the version of its distribution.
        backend: for Lite, the backend to use.
    """

    engine: Engine
    python: Path
    version: str
    backend: str

    def start(
        self,
        model: ModelOnDisk,
        condition: Condition,
        environment: Mapping[str, str] | None = None,
        precision: str = "float32",
    ) -> WorkerProcess:
        """Start a worker and wait for its first result.

        Args:
            model: the model.
            condition: the number of threads, and the other circumstances.
            environment: variables of the process beside the engine's own.
            precision: the type that the engine may compute a float32 model in.

        Raises:
            ConversionError: the model could not be converted for this engine.
            WorkerError: the engine could not load or run it.
        """
        job = Job(
            engine=self.engine.name,
            files=self.files(model, condition),
            input_file=str(model.input_file),
            threads=condition.threads,
            backend=self.backend,
            alone=condition.alone,
            precision=precision,
        )
        return WorkerProcess(job, self.python, {**self.engine.environment(condition), **(environment or {})})

    def supports(self, model: ModelOnDisk) -> bool:
        """Return True if the engine reads models of this kind, directly or converted."""
        return model.is_paddle or self.engine.reads not in ("paddle", "paddle_lite")

    def files(self, model: ModelOnDisk, condition: Condition) -> tuple[str, ...]:
        """Return the model's files in the form this engine reads; missing ones are converted."""
        match self.engine.reads:
            case "iree":
                return (str(model.iree(self.python, condition.processor)),)
            case "onnx":
                return (str(model.onnx()),)
            case "lite":
                return (str(model.lite(self.backend)),)
            case "paddle_lite":
                return (str(model.paddle_lite(self.python)),)
            case "model" | "paddle":
                return model.files


def find(engine: Engine, python: Path, backend: str) -> Contender | str:
    """Return the engine in the environment of ``python``, or the reason why it is missing."""
    if not python.exists():
        return f"there is no environment {python.parent.parent}; see benchmarks/README.md"
    command = [str(python), "-c", _VERSION, engine.distribution]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return f"{engine.distribution} is not installed in {python.parent.parent}"
    return Contender(engine, python, done.stdout.strip(), backend if engine.load is load_lite else "")
