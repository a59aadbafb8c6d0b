"""Convert a Paddle program for Paddle-Lite on x86 with ``paddle_lite_opt`` 2.13.

    python to_paddle_lite.py MODEL PARAMS PADDLE_LITE_OPT TARGET

Needs paddlepaddle, for its message classes. Programs of Paddle 2.6 and later lack the output XShape of
``flatten_contiguous_range`` and the attribute ``threshold`` of ``relu6``. Without them ``paddle_lite_opt`` 2.13
crashes, so they are added first.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any


def _messages() -> Any:
    """Return Paddle's protobuf classes, which are created when they are imported."""
    from paddle.base.proto import framework_pb2

    return framework_pb2


def complete(program: Any) -> None:
    """Add to a ``ProgramDesc``, in place, the parts that newer versions of Paddle leave out."""
    messages = _messages()
    for block in program.blocks:
        variables = {variable.name: variable for variable in block.vars}
        for op in block.ops:
            if op.type == "flatten_contiguous_range" and not _has_output(op, "XShape"):
                flattened = next(slot for slot in op.outputs if slot.parameter == "Out").arguments[0]
                shape = block.vars.add()
                shape.CopyFrom(variables[flattened])
                shape.name = f"{flattened}.xshape"
                op.outputs.add(parameter="XShape", arguments=[shape.name])
            elif op.type == "relu6" and all(attribute.name != "threshold" for attribute in op.attrs):
                op.attrs.add(name="threshold", type=messages.FLOAT, f=6.0)


def _has_output(op: Any, parameter: str) -> bool:
    """Return True if the op writes this output; a slot without variables is removed."""
    for slot in list(op.outputs):
        if slot.parameter == parameter and not slot.arguments:
            op.outputs.remove(slot)
    return any(slot.parameter == parameter for slot in op.outputs)


def convert(model: Path, params: Path, optimizer: Path, target: Path) -> None:
    """Write the ``.nb`` copy of a Paddle program."""
    program = _messages().ProgramDesc()
    program.ParseFromString(model.read_bytes())
    complete(program)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        completed = folder / "completed.pdmodel"
        completed.write_bytes(program.SerializeToString())
        command = [str(optimizer), f"--model_file={completed}", f"--param_file={params}"]
        command += [f"--optimize_out={folder / 'optimized'}", "--valid_targets=x86"]
        done = subprocess.run(command, capture_output=True, text=True)
        optimized = folder / "optimized.nb"
        if done.returncode or not optimized.exists():
            raise SystemExit(f"{optimizer} ended with {done.returncode}: {(done.stdout + done.stderr)[-400:]}")
        unfinished = target.with_suffix(".unfinished.nb")
        shutil.copyfile(optimized, unfinished)
        unfinished.replace(target)


if __name__ == "__main__":
    convert(*(Path(argument) for argument in sys.argv[1:]))
