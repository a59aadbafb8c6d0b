"""Run `.nb` files in Paddle-Lite's own predictor; needs the interpreter of its environment, and nothing of Lite.

    python paddle_lite_runner.py FOLDER

For each ``NAME.nb`` in the folder, ``NAME.inputs.npz`` has its inputs by name, and ``NAME.outputs.npz`` receives its
outputs in order; ``NAME.lod.json`` may have sequence offsets of inputs, level by level. Paddle-Lite ends the process
for every error, so each model runs in a process of its own, whose last words are in ``NAME.errors``.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np
from paddlelite.lite import MobileConfig, create_paddle_predictor


def run(model: Path) -> None:
    """Run one model and write its outputs."""
    config = MobileConfig()
    config.set_model_from_file(str(model))
    predictor = create_paddle_predictor(config)
    lod = model.with_suffix(".lod.json")
    offsets = json.loads(lod.read_text()) if lod.exists() else {}
    with np.load(model.with_suffix(".inputs.npz")) as inputs:
        for name in predictor.get_input_names():
            predictor.get_input_by_name(name).from_numpy(inputs[name])
            if name in offsets:
                predictor.get_input_by_name(name).set_lod(offsets[name])
    predictor.run()
    outputs = [np.array(predictor.get_output(i).numpy()) for i in range(len(predictor.get_output_names()))]
    np.savez(model.with_suffix(".outputs.npz"), *outputs)


def main() -> None:
    """Run every model of the folder."""
    for model in sorted(Path(sys.argv[1]).glob("*.nb")):
        child = os.fork()
        if child == 0:
            errors = os.open(model.with_suffix(".errors"), os.O_WRONLY | os.O_CREAT)
            os.dup2(errors, 2)
            run(model)
            os._exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
