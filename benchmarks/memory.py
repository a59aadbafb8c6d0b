"""Benchmark of the memory of loaded models: what a process keeps, its peak, and what stays after models are dropped.

    python benchmarks/memory.py [--large] [--layers N] [--only NAME ...]

Each row is a process of its own: five networks together, each of them alone, ResNet-50 as a ``.lite`` file. With
``--large`` also transformers of more than 1 GB in float32 and float16, with their weights in a file beside the ONNX
model, in Lite and in ONNX Runtime; their files, 1.7 GB, are in a temporary folder. All figures are MiB above those of
the process after its imports:

- *own*: anonymous memory after the first run; *mapped*: pages of files after it, which the system can take back;
- *peak*: the largest resident size, with pages of files;
- *dropped*: anonymous memory after the sessions were deleted.

Kernels are compiled before, by a process that is not measured. Linux only.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "models"))
import catalog  # noqa: E402
from large_transformer import write_transformer  # noqa: E402

FIVE = ("resnet50", "mobilenet_v2", "mobilenet_v3_large", "resnet18", "squeezenet1_1")
_MIB = 1 << 20
_PICTURE, _TOKENS = (1, 3, 224, 224), (1, 128)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true", help="also transformers of more than 1 GB")
    parser.add_argument("--layers", type=int, default=22, metavar="N", help="their layers, 48 MiB each; default: 22")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="measure only these rows")
    parser.add_argument("--measure", metavar="JSON", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


# **** the measured process ****


def resident() -> dict[str, float]:
    """Return this process's anonymous memory, its mapped pages of files, and its peak, in MiB."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    own, mapped, peak = (int(status[field].split()[0]) / 1024 for field in ("RssAnon", "RssFile", "VmHWM"))
    return {"own": own, "mapped": mapped, "peak": peak}


def measure(engine: str, models: Iterable[str]) -> dict[str, float]:
    """Load models, run each once, and drop them; return the memory of each stage and the seconds of loading."""
    load = _lite() if engine == "lite" else _onnxruntime()
    start, seconds = resident(), 0.0
    sessions = []
    for model in models:
        began = time.perf_counter()
        session, run = load(model)
        seconds += time.perf_counter() - began
        sessions.append(session)
        run()
    after = resident()
    del session, run
    sessions.clear()
    gc.collect()
    found = {name: after[name] - start[name] for name in ("own", "mapped")}
    found["peak"] = after["peak"] - start["own"] - start["mapped"]
    return {**found, "dropped": resident()["own"] - start["own"], "seconds": seconds}


def _lite() -> Callable[[str], tuple[Any, Callable[[], object]]]:
    import lite_core as lite

    def load(model: str) -> tuple[Any, Callable[[], object]]:
        session = lite.load(model, backend="x86", threads=1, saved="trust")
        return session, lambda: session.run({name: _input(type_.rank) for name, type_ in session.inputs.items()})

    return load


def _onnxruntime() -> Callable[[str], tuple[Any, Callable[[], object]]]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1

    def load(model: str) -> tuple[Any, Callable[[], object]]:
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        return session, lambda: session.run(None, {i.name: _input(len(i.shape)) for i in session.get_inputs()})

    return load


def _input(rank: int) -> np.ndarray[Any, Any]:
    """Return a picture, or numbers of tokens."""
    return np.zeros(_PICTURE, np.float32) if rank == len(_PICTURE) else np.arange(_TOKENS[1])[None]


# **** the table ****


def in_new_process(engine: str, models: Sequence[Path]) -> dict[str, float]:
    """Measure in a process of its own, after another one has compiled the kernels."""
    task = json.dumps([engine, list(map(str, models))])
    command = [sys.executable, __file__, "--measure", task]
    for _ in range(2):
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def size_of(model: Path) -> int:
    """Return the bytes of a model's files: of the file, or of all files in its folder."""
    files = [model] if model.suffix == ".lite" else [f for f in model.parent.iterdir() if f.is_file()]
    return sum(file.stat().st_size for file in files)


def show(row: str, engine: str, models: Sequence[Path]) -> None:
    """Measure a row and print it."""
    found, size = in_new_process(engine, models), sum(map(size_of, models)) / _MIB
    numbers = " | ".join(f"{found[name]:.0f}" for name in ("own", "mapped", "peak", "dropped"))
    print(f"| {row} | {engine} | {size:.0f} | {numbers} | {found['seconds']:.2f} |", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    options = parse(arguments)
    if options.measure:
        print(json.dumps(measure(*json.loads(options.measure))))
        return

    def wanted(row: str) -> bool:
        return not options.only or row in options.only

    print("| model | engine | files | own | mapped | peak | dropped | load, s |\n|---|---|" + "--:|" * 6)
    with tempfile.TemporaryDirectory(prefix="lite-memory-") as folder:
        programs = {name: catalog.ensure(f"{name}-legacy").model for name in FIVE}
        if wanted("five together"):
            show("five together", "lite", list(programs.values()))
        for name, path in programs.items():
            if wanted(name):
                show(name, "lite", [path])
        if wanted("resnet50.lite"):
            file = Path(folder) / "resnet50.lite"
            shape = ["--targets", "x86", "--input-shape", "x".join(map(str, _PICTURE))]
            command = [sys.executable, "-m", "lite_core", "convert", programs["resnet50"], "-o", file, *shape]
            subprocess.run(list(map(str, command)), check=True, capture_output=True)
            show("resnet50.lite", "lite", [file])
        for dtype in ("float32", "float16") if options.large else ():
            model = write_transformer(Path(folder) / dtype, layers=options.layers, width=1024, dtype=dtype)
            for engine in ("lite", "onnxruntime"):
                if wanted(f"transformer, {dtype}"):
                    show(f"transformer, {dtype}", engine, [model])


if __name__ == "__main__":
    main()
