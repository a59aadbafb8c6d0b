"""Compile an ONNX model with IREE for this processor, or for a level of x86-64.

    python to_iree.py MODEL PROCESSOR TARGET

``PROCESSOR`` is ``host`` or the name of a processor that LLVM knows, for example ``x86-64-v3``. The module contains the
weights; a job with one thread and one with several run the same module.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_OPSET = 17  # of older ones, IREE lacks BatchNormalization, Unsqueeze and others
_OPTIONS = (
    "--iree-input-type=onnx",
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-opt-level=O3",
)
#: Options of the importer and of the compiler, the best first. Data tiling takes 12 % less time on MobileNet v3 small
#: (Zen 4; micro-kernels change nothing there), but fails on some models. To infer shapes, the importer propagates
#: constants, and for some models it then contradicts itself.
_ATTEMPTS = tuple(
    (importer, compiler)
    for importer in ((), ("--no-data-prop",))
    for compiler in (("--iree-opt-data-tiling=true",), ())
)


def convert(model: Path, processor: str, target: Path) -> None:
    """Write the compiled copy of an ONNX model; if all attempts fail, end with the error of the first one."""
    errors = []
    for importer, compiler in _ATTEMPTS:
        errors.append(_attempt(model, processor, target, importer, compiler))
        if not errors[-1]:
            return
    raise SystemExit(errors[0])


def _attempt(
    model: Path, processor: str, target: Path, importer_options: Sequence[str], compiler_options: Sequence[str]
) -> str:
    """Import and compile with these options; return the error, or an empty text."""
    tools = Path(sys.executable).parent
    imported, unfinished = target.with_suffix(".mlir"), target.with_suffix(".unfinished.vmfb")
    importer = [str(tools / "iree-import-onnx"), str(model), *_newer_opset(model), *importer_options]
    compiler = [str(tools / "iree-compile"), str(imported), *_OPTIONS, f"--iree-llvmcpu-target-cpu={processor}"]
    try:
        error = _call([*importer, "-o", str(imported)])
        error = error or _call([*compiler, *compiler_options, "-o", str(unfinished)])
        if not error:
            os.replace(unfinished, target)
        return error
    finally:
        imported.unlink(missing_ok=True)
        unfinished.unlink(missing_ok=True)


def _newer_opset(model: Path) -> list[str]:
    """Return the option that lets the importer write an old model in the oldest opset that IREE reads well."""
    import onnx

    opset = next(entry.version for entry in onnx.load(model).opset_import if entry.domain in ("", "ai.onnx"))
    return ["--opset-version", str(_OPSET)] if opset < _OPSET else []


def _call(command: list[str]) -> str:
    """Run a tool; return an empty text, or the first error that it printed if it failed."""
    done = subprocess.run(command, capture_output=True, text=True)
    if not done.returncode:
        return ""
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    errors = [line for line in lines if "error:" in line] or lines[-1:] or ["no message"]
    return f"{Path(command[0]).name} ended with {done.returncode}: {errors[0][:300]}"


if __name__ == "__main__":
    convert(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
