"""Benchmark of a decoder: the time of a token beside ONNX Runtime's and the bandwidth of main memory.

    python benchmarks/decoding.py [--folder FOLDER] [--tokens 60] [--threads 1 2] [--json]

The models are those of examples/decoding, with 123 million weights in products. Lite and ONNX Runtime generate in
turns, and between the turns the bandwidth is measured. Each length of the caches of ``past`` needs a plan, which the
session keeps: the time of a token is without it, and the time of the first text shows it. The share is what a step must
read, weights and caches, each second, relative to what the same threads read from main memory.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import lite_core as lite

sys.path.insert(0, str(Path(__file__).parents[1] / "examples/decoding"))

from generate import generate, read_bandwidth, step_bytes
from make_model import Decoder, make_model

#: The forms of the model, each with the bits of a weight.
FORMS = (("past", 32), ("buffer", 32), ("buffer", 4))
#: Rounds of turns.
ROUNDS = 3


def by_onnxruntime(path: Path, threads: int, prompt: list[int], count: int, decoder: Decoder) -> list[float]:
    """Return the seconds of each step after the prompt; caches of fixed length are bound to past and present."""
    import onnxruntime as runtime

    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    given = [value.name for value in session.get_inputs()]
    is_buffer = "position_ids" not in given
    shape = (1, decoder.groups, decoder.positions if is_buffer else 0, decoder.size)
    caches = {n: runtime.OrtValue.ortvalue_from_numpy(np.zeros(shape, np.float32)) for n in given if "past" in n}
    seconds, ids, total = [], np.array([prompt]), len(prompt)
    for _ in range(count):
        start = time.perf_counter()
        bound = session.io_binding()
        bound.bind_cpu_input("input_ids", ids)
        bound.bind_cpu_input("attention_mask", np.ones((1, total), np.int64))
        if not is_buffer:
            bound.bind_cpu_input("position_ids", np.arange(total - ids.shape[1], total)[None])
        bound.bind_output("logits")
        for name, cache in caches.items():
            bound.bind_ortvalue_input(name, cache)
            present = name.replace("past_key_values", "present")
            if is_buffer:
                bound.bind_ortvalue_output(present, cache)
            else:
                bound.bind_output(present)
        session.run_with_iobinding(bound)
        logits, *presents = bound.get_outputs()
        caches = caches if is_buffer else dict(zip(caches, presents))
        ids, total = np.array([[int(logits.numpy()[0, -1].argmax())]]), total + 1
        seconds.append(time.perf_counter() - start)
    return seconds[1:]


def measure(path: Path, threads: int, count: int, decoder: Decoder) -> dict[str, Any]:
    """Return the medians of a model: milliseconds of a token by engine, and the share of the bandwidth."""
    prompt = [int(token) for token in np.random.default_rng(1).integers(0, decoder.words, 16)]
    session = lite.load(path, backend="x86", threads=threads, plans=count + len(prompt))
    generate(session, prompt, 2)
    first = median(generate(session, prompt, count).seconds[2:])
    own, other, read = [], [], []
    for _ in range(ROUNDS):
        own += generate(session, prompt, count).seconds[1:]
        other += by_onnxruntime(path, threads, prompt, count, decoder)
        read.append(read_bandwidth(threads))
    step, bandwidth = median(own), median(read)
    share = step_bytes(session, len(prompt) + count // 2) / step / bandwidth
    return {
        "lite_ms": 1e3 * step,
        "first_ms": 1e3 * first,
        "onnxruntime_ms": 1e3 * median(other),
        "read_gb_s": bandwidth / 1e9,
        "share": share,
    }


def main() -> None:
    """Read the command line, measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="keep the models, of up to 0.6 GB each, in this folder")
    parser.add_argument("--tokens", type=int, default=60)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    decoder, found = Decoder(), []
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for form, bits in FORMS:
            path = folder / f"{form}-{bits}.onnx"
            if not path.exists():
                make_model(path, decoder, form, bits)
            for threads in options.threads:
                figures = measure(path, threads, options.tokens, decoder)
                found.append({"form": form, "bits": bits, "threads": threads, **figures})
                if not options.json:
                    line = "{form:7} {bits:2} bits, {threads} thread(s): Lite {lite_ms:6.1f} ms a token "
                    line += "({first_ms:.1f} at first), ONNX Runtime {onnxruntime_ms:6.1f} ms, "
                    line += "{share:.0%} of {read_gb_s:.1f} GB/s"
                    print(line.format(**found[-1]), flush=True)
    if options.json:
        print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
