"""Paddle-Lite's wheel in its own environment: its converter and its predictor, which may end their processes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_PREDICT = """
import sys
import numpy as np
from paddlelite.lite import MobileConfig, create_paddle_predictor

model, values, target = sys.argv[1:]
config = MobileConfig()
config.set_model_from_file(model)
predictor = create_paddle_predictor(config)
arrays = np.load(values)
for index, name in enumerate(predictor.get_input_names()):
    predictor.get_input(index).from_numpy(arrays[name])
predictor.run()
np.savez(target, *(np.array(predictor.get_output(i).numpy()) for i in range(len(predictor.get_output_names()))))
"""


def convert(python: Path, model: Path, params: Path, target: Path, options: list[str], env: dict[str, str]) -> bytes:
    """Run Paddle-Lite's converter; return the file, with zeros for the bytes of its header that are left to chance."""
    command = [str(python), str(python.with_name("paddle_lite_opt"))]
    command += [f"--model_file={model}", f"--param_file={params}", f"--optimize_out={target}", *options]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, **env})
    content = bytearray(target.with_name(f"{target.name}.nb").read_bytes())
    end = content.index(b"\0", 2)
    content[end:18] = bytes(18 - end)
    return bytes(content)


def predict(python: Path, model: Path, inputs: dict[str, Array], folder: Path) -> list[Array]:
    """Return the outputs of Paddle-Lite's predictor, which may end its process."""
    values, target = folder / "inputs.npz", folder / "outputs.npz"
    np.savez(values, **inputs)  # type: ignore[arg-type]
    command = [str(python), "-c", _PREDICT, str(model), str(values), str(target)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"Paddle-Lite's predictor ended with {done.returncode}: {done.stderr[-400:]}")
    with np.load(target) as outputs:
        return [outputs[name] for name in outputs.files]
