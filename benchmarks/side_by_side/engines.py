"""The engines that are compared: how each loads a model and runs it, in the way that is fastest for it.

Every engine does the same work in the same terms: the input lies in memory that the engine has been given
once, one inference is ``run()``, and its answer is the first output as an array, by whatever way of handing
it over is the engine's cheapest. All compute in float32. A loader has run the model once when it returns.

The libraries are imported inside the loaders: a worker process imports one of them, the parent none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

Array = np.ndarray[Any, Any]
Inputs = Mapping[str, Array]
Run = Callable[[], Array]


@dataclass(frozen=True)
class Job:
    """What a worker process is to load.

    Attributes:
        engine: a key of ``ENGINES``.
        files: the files of the model, as the engine's loader wants them.
        input_file: an ``.npz`` file with the model's inputs.
        threads: how many threads the engine may compute with.
        backend: for Lite only, the backend to use.
    """

    engine: str
    files: tuple[str, ...]
    input_file: str
    threads: int
    backend: str


def load_lite(job: Job, inputs: Inputs) -> Run:
    """Lite, with its input and output arrays bound."""
    import lite_core as lite

    session = lite.load(job.files[0], backend=job.backend, threads=job.threads)
    binding = session.bind(inputs)  # which runs once, to allocate the outputs
    first = next(iter(session.outputs))
    return lambda: binding.run()[first]


def load_onnxruntime(job: Job, inputs: Inputs) -> Run:
    """ONNX Runtime's CPU provider with every optimisation, its inputs and output bound."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = job.threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    # Its threads spin while a run lasts, which is fastest, and stop with it, so that they disturb no other engine.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    session = onnxruntime.InferenceSession(job.files[0], options, providers=["CPUExecutionProvider"])
    first = session.get_outputs()[0].name
    output: Array = session.run([first], dict(inputs))[0]
    binding = session.io_binding()
    for name, array in inputs.items():
        binding.bind_cpu_input(name, array)
    binding.bind_ortvalue_output(first, onnxruntime.OrtValue.ortvalue_from_numpy(output))

    def run() -> Array:
        session.run_with_iobinding(binding)
        return output

    return run


def load_openvino(job: Job, inputs: Inputs) -> Run:
    """OpenVINO's CPU device, tuned for latency, in float32, sharing memory with the caller."""
    import openvino

    hints = {
        "INFERENCE_NUM_THREADS": job.threads,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",
        "NUM_STREAMS": 1,
    }
    request = openvino.Core().compile_model(job.files[0], "CPU", hints).create_infer_request()

    def run() -> Array:
        output: Array = request.infer(dict(inputs), share_inputs=True, share_outputs=True)[0]
        return output

    run()
    return run


def load_paddle(job: Job, inputs: Inputs) -> Run:
    """Paddle Inference with oneDNN and all its graph optimisations, on its default executor.

    The newer executor, ``enable_new_executor``, is no alternative: asked for one thread it uses 1.2 to 1.4
    processors on small models, and with two its median is longer.
    """
    from paddle import inference

    config = inference.Config(*job.files)
    config.disable_gpu()
    config.disable_glog_info()
    config.enable_mkldnn()
    config.set_cpu_math_library_num_threads(job.threads)
    config.switch_ir_optim(True)
    config.enable_memory_optim()
    predictor = inference.create_predictor(config)
    for name, array in inputs.items():
        taken = predictor.get_input_handle(name)
        taken.reshape(array.shape)
        taken.copy_from_cpu(array)
    given = predictor.get_output_handle(predictor.get_output_names()[0])

    def run() -> Array:
        predictor.run()
        output: Array = given.copy_to_cpu()
        return output

    run()
    return run


def load_paddle_lite(job: Job, inputs: Inputs) -> Run:
    """Paddle-Lite's predictor for mobile models, which has one thread in its x86 wheel."""
    from paddlelite.lite import MobileConfig, create_paddle_predictor

    config = MobileConfig()
    config.set_model_from_file(job.files[0])
    predictor = create_paddle_predictor(config)
    (array,) = inputs.values()
    predictor.get_input(0).from_numpy(array)

    def run() -> Array:
        predictor.run()
        output: Array = predictor.get_output(0).numpy()
        return output

    run()
    return run


@dataclass(frozen=True)
class Engine:
    """An engine that can be measured.

    Attributes:
        name: what ``--peers`` calls it.
        title: what tables and charts call it.
        distribution: the package whose version identifies it.
        reads: which files of a model it loads: the model as it was found, Paddle's program and parameters only, or a
            twin.
        load: loads a job's model, runs it once, and returns what runs it again; called in a worker process.
        most_threads: how many threads it can compute with; ``None`` is no limit.
        environment: variables that its processes are started with.
        only_starts: it is another entry's engine, which runs as fast, on a file that it starts from in another time.
    """

    name: str
    title: str
    distribution: str
    reads: Literal["model", "paddle", "onnx", "paddle_lite", "lite"]
    load: Callable[[Job, Inputs], Run]
    most_threads: int | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    only_starts: bool = False


LITE = "lite"
LITE_FILE = "lite_file"
# NOTE: OpenMP's threads would spin for 200 ms after each run, on the time of the next engine. With 1 ms they still
# spin from one parallel region to the next, and the engine's own times stay the same within 3 %.
_SHORT_SPIN = {"KMP_BLOCKTIME": "1"}
ENGINES: dict[str, Engine] = {
    engine.name: engine
    for engine in (
        Engine(LITE, "Lite", "lite-core", "model", load_lite),
        Engine(LITE_FILE, "Lite from .lite", "lite-core", "lite", load_lite, only_starts=True),
        Engine("onnxruntime", "ONNX Runtime", "onnxruntime", "onnx", load_onnxruntime),
        Engine("openvino", "OpenVINO", "openvino", "onnx", load_openvino),
        Engine("paddle", "Paddle oneDNN", "paddlepaddle", "paddle", load_paddle, environment=_SHORT_SPIN),
        Engine("paddle_lite", "Paddle-Lite", "paddlelite", "paddle_lite", load_paddle_lite, 1, _SHORT_SPIN),
    )
}
