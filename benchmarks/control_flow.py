"""Benchmark of loops and branches: models with Loop, Scan and If in Lite, ONNX Runtime and Paddle Inference.

    python benchmarks/control_flow.py [--threads 1 2] [--seconds 4] [--paddle] [--json]

The models are built here, with random weights:

- ``attention``: the loop that reads the structure of a table from features (a GRU with attention), at most 100 words;
- ``greedy``: a decoder of GRU, product and ArgMax that feeds each word back, 200 words, and collects the logits;
- ``cached``: a decoder of one transformer layer, whose caches of keys and values grow with each of 64 words;
- ``scan``: a recurrent layer written as a Scan, 256 elements;
- ``branch``: an If between two recurrent networks for two sampling rates.

Engines run in turns for some seconds each; a row has the median times in milliseconds, and the peer's over Lite's. With
``--paddle``, a ``while`` loop with a GRU, which Paddle itself exports, is compared with Paddle Inference.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import lite_core as lite
from lite_core.builder import GraphBuilder
from lite_core.ir import Graph, Value
from lite_onnx.writer import to_model

Array = np.ndarray[Any, Any]
Run = Callable[[], object]

#: How often each engine runs before it is measured.
WARM_UPS = 3
#: Runs of a turn. The first one is not measured, because threads of the other engine may still wait in a loop.
RUNS_OF_A_TURN = 6

_random = np.random.default_rng(0)


def _weights(b: GraphBuilder, *shape: int) -> Value:
    return b.constant(_random.normal(0, shape[0] ** -0.5, shape).astype(np.float32))


def _linear(b: GraphBuilder, x: Value, rows: int, columns: int) -> Value:
    return b.add("Gemm", [x, _weights(b, rows, columns), _weights(b, columns)])


def _gru(b: GraphBuilder, x: Value, state: Value, rows: int, size: int) -> Value:
    """Add a GRU cell of operators, as exporters write it; return the next state."""
    new, old = _linear(b, x, rows, 3 * size), _linear(b, state, size, 3 * size)
    parts = [b.add_node("Split", [v], {"axis": 1, "num_outputs": 3}, outputs=3) for v in (new, old)]
    reset, update = (b.add("Sigmoid", [b.add("Add", [parts[0][i], parts[1][i]])]) for i in (0, 1))
    candidate = b.add("Tanh", [b.add("Add", [parts[0][2], b.add("Mul", [reset, parts[1][2]])])])
    return b.add("Add", [candidate, b.add("Mul", [update, b.add("Sub", [state, candidate])])])


def _while_unfinished(b: GraphBuilder, word: Value, last: int) -> Value:
    """Return the condition that a word is not the one that ends the text."""
    return b.add("Not", [b.add("Squeeze", [b.add("Equal", [word, b.constant(np.array([last]))])])])


def _loop(b: GraphBuilder, most: int, initial: Sequence[Value], body: GraphBuilder, outputs: int) -> list[Value]:
    start = [b.constant(np.array(most)), b.constant(np.array(True))]
    return b.add_node("Loop", [*start, *initial], {"body": body.build()}, outputs=outputs)


def _body(b: GraphBuilder, *carried: tuple[str, Sequence[int | None]]) -> tuple[GraphBuilder, list[Value]]:
    body = GraphBuilder("body", outer=b)
    values = [body.input("iteration", "int64", []), body.input("going_on", "bool", [])]
    return body, [*values, *[body.input(f"carried_{i}", dtype, shape) for i, (dtype, shape) in enumerate(carried)]]


def attention() -> Graph:
    """Return the loop over attention; it never meets the word that ends it."""
    b, size, words = GraphBuilder("attention"), 256, 50
    features = b.input("features", "float32", [1, 256, 96])
    body, (_, _, state, word) = _body(b, ("float32", (1, size)), ("int64", (1,)))
    one_hot = body.add("OneHot", [word, b.constant(np.array(words)), b.constant(np.array([0, 1], np.float32))])
    keys = body.add("MatMul", [features, _weights(b, 96, size)])
    query = body.add("Unsqueeze", [_linear(body, state, size, size), b.ints(1)])
    scores = body.add("MatMul", [body.add("Tanh", [body.add("Add", [keys, query])]), _weights(b, size, 1)])
    shares = body.add("Transpose", [body.add("Softmax", [scores], {"axis": 1})], {"perm": (0, 2, 1)})
    context = body.add("Squeeze", [body.add("MatMul", [shares, features]), b.ints(1)])
    after = _gru(body, body.add("Concat", [context, one_hot], {"axis": 1}), state, 96 + words, size)
    logits = _linear(body, _linear(body, after, size, size), size, words)
    following = body.add("ArgMax", [logits], {"axis": 1, "keepdims": 0})
    for value in (_while_unfinished(body, following, -1), after, following, logits):
        body.output(value)
    start = [b.constant(np.zeros((1, size), np.float32)), b.constant(np.array([0]))]
    b.output(_loop(b, 100, start, body, 3)[2], "structure")
    return b.build()


def greedy() -> Graph:
    """Return a decoder of a GRU whose words are fed back."""
    b, size, words = GraphBuilder("greedy"), 128, 64
    state = b.input("state", "float32", [1, size])
    body, (_, _, before, word) = _body(b, ("float32", (1, size)), ("int64", (1,)))
    embedded = body.add("Gather", [_weights(b, words, 64), word])
    after = _gru(body, embedded, before, 64, size)
    logits = _linear(body, after, size, words)
    following = body.add("ArgMax", [logits], {"axis": 1, "keepdims": 0})
    for value in (_while_unfinished(body, following, -1), after, following, logits):
        body.output(value)
    b.output(_loop(b, 200, [state, b.constant(np.array([0]))], body, 3)[2], "logits")
    return b.build()


def cached() -> Graph:
    """Return a decoder with attention to all earlier words, which continues a text of eight words."""
    b, size, heads, words = GraphBuilder("cached"), 256, 4, 256
    part = size // heads
    past = [b.input(name, "float32", [1, heads, 8, part]) for name in ("keys", "values")]
    body, (_, _, word, *caches) = _body(b, ("int64", (1,)), *[("float32", (1, heads, None, part))] * 2)

    def normalized(x: Value) -> Value:
        return body.add("LayerNormalization", [x, b.constant(np.ones(size, np.float32)), _weights(b, size)])

    def in_heads(x: Value) -> Value:
        rows = body.add("Reshape", [_linear(body, x, size, size), b.ints(1, 1, heads, part)])
        return body.add("Transpose", [rows], {"perm": (0, 2, 1, 3)})

    x = body.add("Gather", [_weights(b, words, size), word])
    before = normalized(x)
    query = in_heads(before)
    keys, values = (body.add("Concat", [cache, in_heads(before)], {"axis": 2}) for cache in caches)
    scores = body.add("MatMul", [query, body.add("Transpose", [keys], {"perm": (0, 1, 3, 2)})])
    scaled = body.add("Mul", [scores, b.constant(np.float32(part**-0.5))])
    context = body.add("MatMul", [body.add("Softmax", [scaled], {"axis": 3}), values])
    rows = body.add("Reshape", [body.add("Transpose", [context], {"perm": (0, 2, 1, 3)}), b.ints(1, size)])
    x = body.add("Add", [x, _linear(body, rows, size, size)])
    wide = body.add("Relu", [_linear(body, normalized(x), size, 4 * size)])
    x = body.add("Add", [x, _linear(body, wide, 4 * size, size)])
    logits = _linear(body, normalized(x), size, words)
    following = body.add("ArgMax", [logits], {"axis": 1, "keepdims": 0})
    for value in (_while_unfinished(body, following, -1), following, keys, values, logits):
        body.output(value)
    b.output(_loop(b, 64, [b.constant(np.array([0])), *past], body, 4)[3], "logits")
    return b.build()


def scan() -> Graph:
    """Return a recurrent layer as a Scan."""
    b, size = GraphBuilder("scan"), 64
    sequence, state = b.input("sequence", "float32", [256, 1, 32]), b.input("state", "float32", [1, size])
    body = GraphBuilder("body", outer=b)
    before, element = body.input("before", "float32", [1, size]), body.input("element", "float32", [1, 32])
    after = body.add("Tanh", [body.add("Add", [_linear(body, element, 32, size), _linear(body, before, size, size)])])
    body.output(after)
    body.output(body.add("Identity", [after]))
    results = b.add_node("Scan", [state, sequence], {"body": body.build(), "num_scan_inputs": 1}, outputs=2)
    b.output(results[1], "states")
    return b.build()


def branch() -> Graph:
    """Return an If between two networks, as a voice detector for two sampling rates has it."""
    b = GraphBuilder("branch")
    sound, rate = b.input("sound", "float32", [1, 1, 512]), b.input("rate", "int64", [])
    state = b.input("state", "float32", [1, 1, 64])
    branches = {}
    for name, stride in (("then_branch", 64), ("else_branch", 32)):
        inner = GraphBuilder(name, outer=b)
        bands = inner.add("Conv", [sound, _weights(b, 64, 1, 2 * stride)], {"strides": (stride,)})
        x = inner.add("Relu", [inner.add("Conv", [bands, _weights(b, 64, 64, 3)], {"pads": (1, 1)})])
        steps = inner.add("Transpose", [x], {"perm": (2, 0, 1)})
        lstm = [steps, _weights(b, 1, 256, 64), _weights(b, 1, 256, 64), _weights(b, 1, 512), None, state, state]
        _, hidden, _ = inner.add_node("LSTM", lstm, {"hidden_size": 64}, outputs=3)
        inner.output(inner.add("Sigmoid", [_linear(inner, inner.add("Reshape", [hidden, b.ints(1, 64)]), 64, 1)]))
        branches[name] = inner.build()
    is_high = b.add("Equal", [rate, b.constant(np.array(16000))])
    b.output(b.add_node("If", [is_high], branches, outputs=1)[0], "voice")
    return b.build()


def feeds_of(graph: Graph) -> dict[str, Array]:
    """Return random inputs for a model."""
    return {
        value.name: np.array(16000) if value.name == "rate" else _random.normal(0, 1, value.shape).astype(np.float32)
        for value in graph.inputs
    }


def in_onnxruntime(path: Path, feeds: Mapping[str, Array], threads: int) -> Run:
    import onnxruntime as runtime

    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, dict(feeds))


def in_paddle(path: Path, feeds: Mapping[str, Array], threads: int) -> Run:
    from paddle import inference

    config = inference.Config(str(path), str(path.with_suffix(".pdiparams")))
    config.disable_gpu()
    config.disable_glog_info()
    config.set_cpu_math_library_num_threads(threads)
    predictor = inference.create_predictor(config)

    def run() -> list[Array]:
        for name, array in feeds.items():
            predictor.get_input_handle(name).copy_from_cpu(array)
        predictor.run()
        return [predictor.get_output_handle(name).copy_to_cpu() for name in predictor.get_output_names()]

    return run


def export_while(folder: Path) -> Path:
    """Export a ``while`` loop of a GRU cell with Paddle, and return the path of the model."""
    import paddle

    class Decoder(paddle.nn.Layer):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.cell = paddle.nn.GRUCell(128, 128)
            self.words = paddle.nn.Linear(128, 64)

        def forward(self, state: Any) -> Any:
            count, total = paddle.zeros([1], "int64"), paddle.zeros([1, 64])
            while count < 200:
                state, _ = self.cell(state, state)
                total = total + self.words(state)
                count = count + 1
            return total

    paddle.seed(0)
    spec = [paddle.static.InputSpec([1, 128], "float32", "state")]
    paddle.jit.save(paddle.jit.to_static(Decoder(), spec), str(folder / "while"))
    return next(path for path in (folder / "while.json", folder / "while.pdmodel") if path.exists())


def in_turns(runs: Mapping[str, Run], seconds: float) -> dict[str, float]:
    """Return the median time of each function, in milliseconds."""
    for run in runs.values():
        for _ in range(WARM_UPS):
            run()
    times: dict[str, list[float]] = {name: [] for name in runs}
    end = time.perf_counter() + seconds * len(runs)
    while time.perf_counter() < end:
        for name, run in runs.items():
            run()
            for _ in range(RUNS_OF_A_TURN - 1):
                start = time.perf_counter()
                run()
                times[name].append(time.perf_counter() - start)
    return {name: 1e3 * median(found) for name, found in times.items()}


def measure(
    name: str, path: Path, feeds: Mapping[str, Array], peer: Run, threads: int, seconds: float
) -> dict[str, Any]:
    """Return a row: the times of both engines, their ratio, and the share of nodes that run natively."""
    session = lite.load(path, backend="x86", threads=threads)
    devices = [assignment.device for assignment in session.assignment()]
    times = in_turns({"lite": lambda: session.run(dict(feeds)), "peer": peer}, seconds)
    native = sum(device != "host" for device in devices) / len(devices)
    return {
        "model": name,
        "threads": threads,
        "lite_ms": times["lite"],
        "peer_ms": times["peer"],
        "ratio": times["peer"] / times["lite"],
        "native": native,
    }


def main() -> None:
    """Read the command line, measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=4.0, help="for each engine and row")
    parser.add_argument("--paddle", action="store_true", help="compare a while loop with Paddle Inference")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        cases: list[tuple[str, Path, dict[str, Array], Any]] = []
        for make in (attention, greedy, cached, scan, branch):
            graph = make()
            path = folder / f"{make.__name__}.onnx"
            path.write_bytes(to_model(graph).SerializeToString())
            cases.append((make.__name__, path, feeds_of(graph), in_onnxruntime))
        if options.paddle:
            state = _random.normal(0, 1, (1, 128)).astype(np.float32)
            cases.append(("while", export_while(folder), {"state": state}, in_paddle))
        for threads in options.threads:
            for name, path, feeds, engine in cases:
                row = measure(name, path, feeds, engine(path, feeds, threads), threads, options.seconds)
                rows.append(row)
                if not options.json:
                    line = "{model:10} {threads} thread(s): Lite {lite_ms:7.3f} ms, {native:4.0%} native; "
                    print((line + "peer {peer_ms:7.3f} ms; ratio {ratio:5.2f}").format(**row), flush=True)
    if options.json:
        print(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
