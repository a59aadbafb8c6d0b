"""Run Paddle's own inference on a model and store its outputs, which Lite is compared with.

    python tests/models/paddle_answers.py MODEL PARAMS INPUTS.npz ANSWER.npz [MODEL PARAMS INPUTS ANSWER ...]

``INPUTS.npz`` holds one array for each model input, under the input's name; ``ANSWER.npz`` receives the
outputs under their names, in the model's order. Several models in one call share the seconds that importing
Paddle costs. Needs paddlepaddle. Graph optimisation and oneDNN are off, so that the outputs are those of the
unmodified model, from Paddle's ordinary CPU kernels.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np


def answer(model: Path, params: Path, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the outputs of ``model``, name to array, in the model's order.

    Args:
        model: a ``.pdmodel``, ``__model__`` or PIR ``.json`` file.
        params: the combined parameter file of the model.
        inputs: one array for each input of the model, by name.

    Raises:
        ValueError: the names in ``inputs`` differ from the names of the model's inputs.
    """
    from paddle import inference

    config = inference.Config(str(model), str(params))
    config.disable_gpu()
    config.disable_mkldnn()
    config.switch_ir_optim(False)
    config.set_cpu_math_library_num_threads(2)
    config.disable_glog_info()
    predictor = inference.create_predictor(config)
    if set(predictor.get_input_names()) != set(inputs):
        raise ValueError(
            f"{model}: its inputs are {predictor.get_input_names()}, but the values given are for {list(inputs)}"
        )
    for name, value in inputs.items():
        handle = predictor.get_input_handle(name)
        handle.reshape(value.shape)
        handle.copy_from_cpu(np.ascontiguousarray(value))
    predictor.run()
    return {name: predictor.get_output_handle(name).copy_to_cpu() for name in predictor.get_output_names()}


def main() -> None:
    """Read the command line, compute the outputs and write them."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("files", nargs="+", type=Path, metavar="MODEL PARAMS INPUTS ANSWER")
    files = parser.parse_args().files
    if len(files) % 4:
        parser.error(f"the number of files must be a multiple of four, not {len(files)}")
    for model, params, inputs_file, answer_file in zip(*[iter(files)] * 4):
        start = time.perf_counter()
        with np.load(inputs_file) as inputs:
            outputs = answer(model, params, dict(inputs))
        unfinished = answer_file.with_suffix(".unfinished.npz")
        np.savez(unfinished, **outputs)
        os.replace(unfinished, answer_file)
        shapes = ", ".join(f"{name} {list(value.shape)}" for name, value in outputs.items())
        print(f"{model}: {shapes}, {time.perf_counter() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
