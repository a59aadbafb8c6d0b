"""The compared engines: each loads a model and runs it in its fastest way.

Every engine does the same work on the same terms: it receives its input once, in memory bound to the engine;
one inference is ``run()``; the result is the first output as an array, returned in the engine's cheapest way. All
compute in float32 unless the job allows fewer bits. A loader has run the model once before it returns. The libraries
are imported inside the loaders: a worker process imports one of them, the parent none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from side_by_side.conditions import Condition

Array = np.ndarray[Any, Any]
Inputs = Mapping[str, Array]
Run = Callable[[], Array]


#: OpenVINO's names of the types that it may compute in.
_OPENVINO_TYPES = {"float32": "f32", "bfloat16": "bf16", "float16": "f16"}


@dataclass(frozen=True)
class Job:
    """A worker's task: the model to load, and the engine to load it in.

    Attributes:
        engine: a key of ``ENGINES``.
        files: the files of the model, in the form that the engine's loader reads.
        input_file: an ``.npz`` file with the model's inputs.
        threads: number of threads the engine may compute with.
        backend: for Lite only, the backend to use.
        alone: the process is stopped while other engines compute: its threads may spin after a run.
        precision: ``"float32"``, or the type that the engine may compute a float32 model in.
        may_use_host: for Lite only, False if a model that only ``host`` runs is an error.
    """

    engine: str
    files: tuple[str, ...]
    input_file: str
    threads: int
    backend: str
    alone: bool = False
    precision: str = "float32"
    may_use_host: bool = False


@dataclass(frozen=True)
class Described:
    """A loaded model whose engine says what it computes in.

    Attributes:
        run: runs the model.
        computes: the engine's words.
    """

    run: Run
    computes: str


def load_lite(job: Job, inputs: Inputs) -> Described:
    """Load Lite, with its input and output arrays bound.

    Raises:
        RuntimeError: another backend than ``host`` was wanted, and only ``host`` runs the model.
    """
    import lite_core as lite

    precision = None if job.precision == "float32" else job.precision  # a .lite file has its own
    session = lite.load(job.files[0], backend=job.backend, threads=job.threads, precision=precision)
    binding = session.bind(inputs)  # runs once, to allocate the outputs
    if job.backend != "host" and not job.may_use_host and session.devices == ("host",):
        raise RuntimeError(f"only host runs the model: {'; '.join(session.notes) or session.describe()}")
    first = next(iter(session.outputs))
    return Described(lambda: binding.run()[first], "; ".join(session.computes))


def load_onnxruntime(job: Job, inputs: Inputs) -> Run:
    """Load ONNX Runtime's CPU provider with every optimization, its inputs and output bound."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = job.threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    if not job.alone:
        # Its threads spin during a run, which is fastest, and stop with it, so that they disturb no other engine.
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


def load_openvino(job: Job, inputs: Inputs) -> Described:
    """Load OpenVINO's CPU device, tuned for latency, sharing memory with the caller."""
    import openvino

    hints = {
        "INFERENCE_NUM_THREADS": job.threads,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": _OPENVINO_TYPES[job.precision],
        "NUM_STREAMS": 1,
    }
    compiled = openvino.Core().compile_model(job.files[0], "CPU", hints)
    request = compiled.create_infer_request()

    def run() -> Array:
        output: Array = request.infer(dict(inputs), share_inputs=True, share_outputs=True)[0]
        return output

    run()
    used = compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name()
    return Described(run, next((name for name, short in _OPENVINO_TYPES.items() if short == used), used))


def load_paddle(job: Job, inputs: Inputs) -> Run:
    """Load Paddle Inference with oneDNN and all its graph optimizations, on its default executor.

    The newer executor, ``enable_new_executor``, is no alternative: asked for one thread it uses 1.2 to 1.4
    processors on small models, and with two its median is longer. PIR programs run without oneDNN and without reuse of
    memory: Paddle 3.3.1 refuses those of PP-OCRv5 with either.
    """
    from paddle import inference

    config = inference.Config(*job.files)
    config.disable_gpu()
    config.disable_glog_info()
    config.set_cpu_math_library_num_threads(job.threads)
    config.switch_ir_optim(True)
    if job.files[0].endswith(".json"):
        config.disable_mkldnn()
    else:
        config.enable_mkldnn()
        config.enable_memory_optim()
    predictor = inference.create_predictor(config)
    for name, array in inputs.items():
        input_handle = predictor.get_input_handle(name)
        input_handle.reshape(array.shape)
        input_handle.copy_from_cpu(array)
    output_handle = predictor.get_output_handle(predictor.get_output_names()[0])

    def run() -> Array:
        predictor.run()
        output: Array = output_handle.copy_to_cpu()
        return output

    run()
    return run


def load_paddle_lite(job: Job, inputs: Inputs) -> Run:
    """Load Paddle-Lite's predictor for mobile models, which has one thread in its x86 wheel."""
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


def load_iree(job: Job, inputs: Inputs) -> Run:
    """Load IREE's compiled module, with its task system if there are several threads, and its inputs in its buffers."""
    from iree import runtime

    runtime.flags.parse_flags(f"--task_topology_group_count={job.threads}")
    config = runtime.Config("local-sync" if job.threads == 1 else "local-task")
    module = runtime.VmModule.mmap(config.vm_instance, job.files[0])
    context = runtime.SystemContext(config=config)
    context.add_vm_module(module)
    # A model is exported as one function, and once more under a name with an ending for asynchronous calls.
    (name,) = (found for found in module.function_names if "$" not in found and not found.startswith("__"))
    function = context.modules[module.name][name]
    arrays = [runtime.asdevicearray(config.device, array) for array in inputs.values()]

    def run() -> Array:
        results = function(*arrays)
        output: Array = (results[0] if isinstance(results, tuple) else results).to_host()
        return output

    run()
    return run


@dataclass(frozen=True)
class Engine:
    """An engine that can be measured.

    Attributes:
        name: name in ``--peers``.
        title: name in tables and charts.
        distribution: the package whose version identifies it.
        reads: the files of a model that it loads: the original model, only Paddle's program and parameters, or a
            converted copy.
        load: loads a job's model, runs it once, and returns a function that runs it again; called in a worker process.
        max_threads: maximal number of threads it can compute with; ``None`` is no limit.
        in_turns: environment variables of its processes, unless the engine is measured alone.
        held: environment variables that hold it to each processor level; a level that is missing it cannot be held to.
        startup_only: True for a second entry of an engine that differs in its startup only, and is not timed otherwise.
        narrow: the types besides float32 that it can be allowed to compute a float32 model in.
    """

    name: str
    title: str
    distribution: str
    reads: Literal["model", "paddle", "onnx", "paddle_lite", "lite", "iree"]
    load: Callable[[Job, Inputs], Run | Described]
    max_threads: int | None = None
    in_turns: Mapping[str, str] = field(default_factory=dict)
    held: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    startup_only: bool = False
    narrow: frozenset[str] = frozenset()

    def can_run(self, condition: Condition) -> bool:
        """Return True if the engine has so many threads, and can be held to the level."""
        enough = self.max_threads is None or condition.threads <= self.max_threads
        return enough and (not condition.level or condition.level in self.held)

    def environment(self, condition: Condition) -> Mapping[str, str]:
        """Return the environment variables of its processes under a condition."""
        return {**({} if condition.alone else self.in_turns), **self.held.get(condition.level, {})}


LITE = "lite"
LITE_FILE = "lite_file"
# NOTE: OpenMP's threads would spin for 200 ms after each run, in the next engine's turn. With 1 ms they still
# spin between parallel regions, and the engine's own times change by less than 3 %.
_SHORT_SPIN = {"KMP_BLOCKTIME": "1"}
_ONEDNN = {"avx2": {"ONEDNN_MAX_CPU_ISA": "AVX2"}}
_LITE = {"avx2": {"LITE_X86_LEVEL": "v3"}}
_HALVES = frozenset({"bfloat16", "float16"})
ENGINES: dict[str, Engine] = {
    engine.name: engine
    for engine in (
        Engine(LITE, "Lite", "lite-core", "model", load_lite, held=_LITE, narrow=_HALVES),
        Engine(LITE_FILE, "Lite from .lite", "lite-core", "lite", load_lite, startup_only=True),
        Engine("onnxruntime", "ONNX Runtime", "onnxruntime", "onnx", load_onnxruntime),
        Engine("openvino", "OpenVINO", "openvino", "onnx", load_openvino, held=_ONEDNN, narrow=_HALVES),
        Engine("paddle", "Paddle oneDNN", "paddlepaddle", "paddle", load_paddle, in_turns=_SHORT_SPIN, held=_ONEDNN),
        Engine("paddle_lite", "Paddle-Lite", "paddlelite", "paddle_lite", load_paddle_lite, 1, _SHORT_SPIN),
        Engine("iree", "IREE", "iree-base-runtime", "iree", load_iree, held={"avx2": {}}),
    )
}
