"""Paddle-Lite's side of the comparisons of programs with LoD: runs programs with the real Paddle-Lite.

Usage: ``python lod_paddle_lite.py FOLDER ...``, with ``__model__``, ``feeds.npz`` and ``offsets.json`` in each folder;
writes ``results.npz`` and ``levels.json`` there. It runs in an environment of its own, which has no Lite.
"""

import json
import sys
from pathlib import Path

import numpy as np


def main(folder):
    import paddlelite.lite as lite

    config = lite.CxxConfig()
    config.set_model_dir(str(folder))
    config.set_valid_places([lite.Place(lite.TargetType.X86, lite.PrecisionType.FP32),
                             lite.Place(lite.TargetType.Host, lite.PrecisionType.FP32)])  # fmt: skip
    predictor = lite.create_paddle_predictor(config)
    offsets = json.loads((folder / "offsets.json").read_text())
    with np.load(folder / "feeds.npz") as feeds:
        for number, name in enumerate(offsets):
            tensor = predictor.get_input(number)
            tensor.from_numpy(feeds[name])
            tensor.set_lod(offsets[name])
    predictor.run()
    outputs = [predictor.get_output(number) for number in range(len(predictor.get_output_names()))]
    np.savez(folder / "results.npz", **{str(n): output.numpy() for n, output in enumerate(outputs)})
    (folder / "levels.json").write_text(json.dumps([output.lod() for output in outputs]))


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        main(Path(argument))
