"""Generate text with a decoder of make_model.py: greedily, with caches that are updated in place.

    python make_model.py model.onnx --form buffer
    python generate.py model.onnx --tokens 200

The words are numbers, because the model's weights are random. The last line has the tokens per second, and the bytes of
weights and caches that a step reads each second, as a share of what the same threads read from main memory.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import lite_core as lite

__all__ = ["Generated", "generate", "read_bandwidth", "step_bytes"]

Array = np.ndarray[Any, Any]

_PAST, _PRESENT = "past_key_values", "present"


class Generated(NamedTuple):
    """The generated tokens, and the seconds of the prompt and of each later step, with planning."""

    tokens: list[int]
    seconds: list[float]


def generate(session: lite.Session, prompt: Sequence[int], count: int, positions: int = 512) -> Generated:
    """Generate ``count`` tokens after a prompt, each the most likely one; ``positions`` is the length of the caches."""
    caches = {name: _cache(type.shape, positions) for name, type in session.inputs.items() if name.startswith(_PAST)}
    is_buffer = "position_ids" not in session.inputs
    return (_with_buffers if is_buffer else _with_past)(session, caches, np.array([prompt]), count)


def _cache(shape: Any, positions: int) -> Array:
    return np.zeros((1, shape[1], positions, shape[3]), np.float32)


def _with_past(session: lite.Session, caches: dict[str, Array], prompt: Array, count: int) -> Generated:
    """Generate with caches that grow: past and present are parts of one array.

    Each length needs another plan, which takes a small part of a step; the session keeps as many as ``plans`` says.
    """
    tokens: list[int] = []
    seconds, ids, past = [], prompt, 0
    for _ in range(count):
        start = time.perf_counter()
        total = past + ids.shape[1]
        inputs = {"input_ids": ids, "attention_mask": np.ones((1, total), np.int64)}
        inputs["position_ids"] = np.arange(past, total)[None]
        inputs |= {name: cache[:, :, :past] for name, cache in caches.items()}
        out = {name.replace(_PAST, _PRESENT): cache[:, :, :total] for name, cache in caches.items()}
        logits = session.run(inputs, out=out)["logits"]
        tokens.append(int(logits[0, -1].argmax()))
        ids, past = np.array([tokens[-1:]]), total
        seconds.append(time.perf_counter() - start)
    return Generated(tokens, seconds)


def _with_buffers(session: lite.Session, caches: dict[str, Array], prompt: Array, count: int) -> Generated:
    """Generate with caches of a fixed length, bound once; the mask tells how many positions are in use."""
    positions = next(iter(caches.values())).shape[2]
    mask = np.zeros((1, positions), np.int64)
    mask[:, : prompt.shape[1]] = 1
    out = {name.replace(_PAST, _PRESENT): cache for name, cache in caches.items()}
    start = time.perf_counter()
    logits = session.run({"input_ids": prompt, "attention_mask": mask, **caches}, out=out)["logits"]
    tokens = [int(logits[0, -1].argmax())]
    seconds = [time.perf_counter() - start]
    ids, last = np.zeros((1, 1), np.int64), np.empty((1, 1, logits.shape[2]), np.float32)
    step = session.bind({"input_ids": ids, "attention_mask": mask, **caches}, {"logits": last, **out})
    for position in range(prompt.shape[1], prompt.shape[1] + count - 1):
        start = time.perf_counter()
        ids[0, 0], mask[0, position] = tokens[-1], 1
        step.run()
        tokens.append(int(last[0, 0].argmax()))
        seconds.append(time.perf_counter() - start)
    return Generated(tokens, seconds)


# **** what a step reads ****


def step_bytes(session: lite.Session, positions: int) -> int:
    """Return the bytes of the weights of products and of the caches that a step reads after ``positions`` positions."""
    graph = session.graph
    tables = {node.inputs[0] for node in graph.nodes if node.op in ("Gather", "RotaryEmbedding")}
    tables |= {value for node in graph.nodes if node.op == "RotaryEmbedding" for value in node.inputs[1:3]}
    halves = {value for value in graph.constants if value.dtype.value in ("int4", "uint4")}  # stored in bytes
    used = {value: array.nbytes for value, array in graph.constants.items() if value not in tables}
    weights = sum(size // 2 if value in halves else size for value, size in used.items())
    caches = [type.shape for name, type in session.inputs.items() if name.startswith(_PAST)]
    return weights + sum(4 * positions * int(shape[1]) * int(shape[3]) for shape in caches)  # type: ignore[index,arg-type]


def read_bandwidth(threads: int, turns: int = 9) -> float:
    """Return the bytes per second that a number of threads read from main memory: the median of several turns."""
    from lite_cpu.aligned import aligned_empty
    from lite_cpu.kernels.reading import Read
    from lite_cpu.machine_code.cache import KernelCache
    from lite_cpu.machine_code.library import KernelLibrary
    from lite_cpu.runtime import Program, Step
    from lite_x86.backend import X86Backend

    library, kernel, size = KernelLibrary(X86Backend().machine(), KernelCache(None)), Read(2048), 256 << 20
    memory = aligned_empty((threads * size // 4 + 1024,), np.float32)
    memory.fill(0.5)
    sums = [aligned_empty((64,), np.float32) for _ in range(threads)]
    program = Program([Step(library.addresses([kernel])[kernel], [(1, 0), (2, 0)], [size, 0], 1, 1)], 0, 0, [library])

    def read(thread: int) -> None:
        program.run([0, memory.ctypes.data + thread * size, sums[thread].ctypes.data])

    with ThreadPoolExecutor(threads) as pool:
        seconds = []
        for _ in range(turns):
            start = time.perf_counter()
            list(pool.map(read, range(threads)))
            seconds.append(time.perf_counter() - start)
    return threads * size / float(np.median(seconds))


def main() -> None:
    """Read the command line, generate, and print the tokens and the speed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path, metavar="MODEL.onnx")
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    session = lite.load(options.path, backend="x86", threads=options.threads, plans=options.tokens + 1)
    prompt = [int(token) for token in np.random.default_rng(1).integers(0, 1000, 16)]
    generate(session, prompt, options.tokens)  # plans and compiles
    found = generate(session, prompt, options.tokens)
    print(*found.tokens)
    step, read = float(np.median(found.seconds[1:])), read_bandwidth(options.threads)
    share = step_bytes(session, len(prompt) + options.tokens // 2) / step / read
    print(
        f"{1 / step:.1f} tokens/s, {1e3 * step:.1f} ms a step, {share:.0%} of the read bandwidth {read / 1e9:.1f} GB/s"
    )


if __name__ == "__main__":
    main()
