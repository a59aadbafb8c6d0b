"""Write all outputs of a model in one engine, in a process of its own.

    python -m side_by_side.zoo_outputs ENGINE BACKEND INPUTS TARGET FILE [FILE]

``INPUTS`` and ``TARGET`` are ``.npz`` files; the outputs are named ``0``, ``1`` ... in the model's order. The last line
of standard output is JSON: the ``names`` of the outputs and, from Lite, ``native``, the share of the time that its
nodes take in compiled code, and ``notes``, what it says about nodes that are not compiled.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from side_by_side.worker import end_with_parent

Array = np.ndarray[Any, Any]
Answer = tuple[dict[str, Array], dict[str, Any]]

_PROFILED_RUNS = 7


def of_lite(files: Sequence[str], inputs: Mapping[str, Array], backend: str) -> Answer:
    """Run Lite with one thread."""
    import lite_core as lite

    session = lite.load(files[0], backend=backend, threads=1)
    outputs = session.run(inputs)
    shares = []
    for _ in range(_PROFILED_RUNS):
        session.run(inputs, profile=True)
        shares.append(native_share(session.last_profile.partitions))
    return outputs, {"native": round(statistics.median(shares), 3), "notes": list(session.notes)}


def native_share(partitions: Sequence[Any]) -> float:
    """Return the share of the partitions' time that is not spent on ``host``.

    The time of a loop or branch on ``host`` includes that of the partitions inside, whose names begin with its name.
    """
    native = sum(part.seconds for part in partitions if part.device != "host")
    whole = sum(part.seconds for part in partitions if not any(_is_inside(part, other) for other in partitions))
    return min(native / whole, 1.0)


def _is_inside(part: Any, other: Any) -> bool:
    return bool(part.partition.startswith(f"{other.partition}/"))


def of_onnxruntime(files: Sequence[str], inputs: Mapping[str, Array]) -> Answer:
    """Run ONNX Runtime with one thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(files[0], options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(inputs)))), {}


def of_paddle(files: Sequence[str], inputs: Mapping[str, Array]) -> Answer:
    """Run Paddle Inference with one thread, without oneDNN, whose sums are less exact."""
    from paddle import inference

    config = inference.Config(*files)
    config.disable_gpu()
    config.disable_glog_info()
    config.disable_mkldnn()
    config.set_cpu_math_library_num_threads(1)
    predictor = inference.create_predictor(config)
    for name, array in inputs.items():
        handle = predictor.get_input_handle(name)
        handle.reshape(array.shape)
        handle.copy_from_cpu(array)
    predictor.run()
    return {name: predictor.get_output_handle(name).copy_to_cpu() for name in predictor.get_output_names()}, {}


def main() -> None:
    """Run the engine of the command line."""
    end_with_parent()
    engine, backend, input_file, target, *files = sys.argv[1:]
    with np.load(input_file) as loaded:
        inputs = dict(loaded)
    if engine == "lite":
        outputs, about = of_lite(files, inputs, backend)
    else:
        outputs, about = {"onnxruntime": of_onnxruntime, "paddle": of_paddle}[engine](files, inputs)
    np.savez(target, **{str(i): array for i, array in enumerate(outputs.values())})
    print(json.dumps({"names": list(outputs), **about}))


if __name__ == "__main__":
    main()
