"""Benchmark of the x86 backend's kernels against the machine's measured multiply-add peak, its memory, and MKL.

    python benchmarks/kernels.py [--threads N] [--only TEXT] [--seconds S] [--out FOLDER]

Every case is a model of one node, run by a session; its time is the time of its kernels, the median over many
runs, without conversions of the model's input and output. Matrix products are also computed by MKL (where it is
found, see `lite doctor`) and by NumPy's BLAS, interleaved with Lite. A convolution's operations are counted by its
definition, so a Winograd convolution can exceed the peak. Set LITE_X86_LEVEL=v3 to measure the AVX2 kernels on a
machine with AVX-512.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

import lite_core as lite
from lite_core.builder import GraphBuilder
from lite_core.ir import Graph
from lite_core.schedule.profile import RunProfile
from lite_cpu.machine_code.library import KernelLibrary
from lite_cpu.peak import measure_peak_flops
from lite_x86 import detect, mkl

ROOT = Path(__file__).resolve().parents[1]
CONVERSIONS = {"copy", "transpose"}
RANDOM = np.random.default_rng(0)

#: Pixels, input channels, output channels: the pointwise convolutions of MobileNet and ResNet at 224 x 224.
POINTWISE = [
    (12544, 32, 64), (3136, 64, 128), (784, 256, 256), (196, 512, 512), (49, 1024, 1024),
    (12544, 96, 16), (49, 960, 160),
]  # fmt: skip
#: Channels, height and width of the input, kernel, stride: layers of MobileNet v1, v2 and v3 and of ShuffleNet v2.
DEPTHWISE = [
    (32, 112, 3, 1), (64, 112, 3, 2), (128, 56, 3, 1), (144, 56, 3, 2), (256, 28, 3, 1), (240, 28, 3, 2),
    (512, 14, 3, 1), (512, 14, 3, 2), (1024, 7, 3, 1),
    (120, 28, 5, 1), (72, 56, 5, 2), (672, 14, 5, 2), (576, 7, 5, 1),
    (58, 56, 3, 2), (116, 14, 3, 1), (232, 7, 3, 1),
]  # fmt: skip
#: Input channels, output channels, height and width, kernel, stride.
DENSE = [
    (3, 64, 224, 7, 2), (3, 32, 224, 3, 2),
    (64, 64, 56, 3, 1), (128, 128, 28, 3, 1), (256, 256, 14, 3, 1), (512, 512, 7, 3, 1),
    (64, 128, 56, 3, 2), (24, 24, 160, 3, 1),
]  # fmt: skip
#: Rows, depth, columns.
PRODUCTS = [(1, 1280, 1000), (40, 120, 360), (128, 384, 384), (128, 384, 1536), (128, 1536, 384), (512, 512, 512)]


@dataclass(frozen=True)
class Case:
    """A model of one node: its kind of kernel, its name, its graph, and its operations by definition."""

    kind: str
    name: str
    graph: Graph
    flops: int
    product: tuple[int, int, int] | None = None


@dataclass
class Measurement:
    """Times of a case: median and quartiles in microseconds, and the rates computed from them."""

    kind: str
    case: str
    kernels: list[str]
    microseconds: float
    quartiles: tuple[float, float]
    gflops: float
    peak_share: float
    gigabytes_per_second: float
    others: dict[str, float] = field(default_factory=dict)


def convolution(
    kind: str, inputs: int, outputs: int, height: int, width: int, kernel: int, stride: int, groups: int = 1
) -> Case:
    """Build a convolution with bias and ReLU, padded to keep its size at stride 1."""
    builder = GraphBuilder("convolution")
    x = builder.input("x", "float32", (1, inputs, height, width))
    w = builder.constant(RANDOM.standard_normal((outputs, inputs // groups, kernel, kernel)).astype(np.float32) * 0.1)
    bias = builder.constant(RANDOM.standard_normal(outputs).astype(np.float32))
    pad = kernel // 2
    attributes = {"strides": (stride, stride), "pads": (pad,) * 4, "group": groups}
    y = builder.add("Relu", [builder.add("Conv", [x, w, bias], attributes)])
    builder.output(y, "y")
    rows, columns = -(-height // stride), -(-width // stride)
    flops = 2 * rows * columns * outputs * inputs // groups * kernel * kernel
    name = f"{inputs} to {outputs} channels, {height} x {width}, {kernel} x {kernel}, stride {stride}"
    return Case(kind, name, builder.build(), flops)


def pointwise(pixels: int, inputs: int, outputs: int) -> Case:
    """Build a pointwise convolution over a row of pixels."""
    made = convolution("pointwise", inputs, outputs, 1, pixels, 1, 1)
    name = f"{pixels} pixels, {inputs} to {outputs}"
    return Case("pointwise", name, made.graph, made.flops, (pixels, inputs, outputs))


def product(rows: int, depth: int, columns: int) -> Case:
    """Build a matrix product with a constant."""
    builder = GraphBuilder("product")
    x = builder.input("x", "float32", (rows, depth))
    y = builder.add("MatMul", [x, builder.constant(RANDOM.standard_normal((depth, columns)).astype(np.float32))])
    builder.output(y, "y")
    shape = (rows, depth, columns)
    return Case("matrix product", " x ".join(map(str, shape)), builder.build(), 2 * rows * depth * columns, shape)


def cases() -> list[Case]:
    """Return every case, kind by kind."""
    return [
        *(pointwise(*shape) for shape in POINTWISE),
        *(convolution("depthwise", c, c, n, n, k, s, c) for c, n, k, s in DEPTHWISE),
        *(convolution("dense", i, o, n, n, k, s) for i, o, n, k, s in DENSE),
        *(product(*shape) for shape in PRODUCTS),
    ]


def measure(case: Case, threads: int, seconds: float, peak_gflops: float) -> Measurement:
    """Run a case for some seconds, interleaved with the same product in other libraries."""
    session = lite.load(case.graph, backend="x86", threads=threads, fallback="never")
    (name, type_), *_ = session.inputs.items()
    x = {name: RANDOM.random(type_.shape, np.float32)}
    other_runs = other_products(case.product, threads) if case.product else {}
    times: list[float] = []
    other_times: dict[str, list[float]] = {library: [] for library in other_runs}
    kernels: list[str] = []
    moved = 0.0
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        profile = RunProfile()
        session.run(x, profile=profile)
        counted = [k for k in profile.kernels if k.kernel not in CONVERSIONS]
        times.append(sum(k.seconds for k in counted))
        kernels, moved = [k.kernel for k in counted], sum(k.bytes for k in counted)
        for library, run in other_runs.items():
            start = time.perf_counter()
            run()
            other_times[library].append(time.perf_counter() - start)
    low, median, high = np.percentile(times, [25, 50, 75])
    gflops = case.flops / median / 1e9
    return Measurement(
        kind=case.kind,
        case=case.name,
        kernels=kernels,
        microseconds=median * 1e6,
        quartiles=(low * 1e6, high * 1e6),
        gflops=gflops,
        peak_share=gflops / peak_gflops,
        gigabytes_per_second=moved / median / 1e9,
        others={
            library: case.flops / float(np.median(times_of_library)) / 1e9
            for library, times_of_library in other_times.items()
        },
    )


def other_products(shape: tuple[int, int, int], threads: int) -> dict[str, Callable[[], object]]:
    """Return the same product in NumPy's BLAS and in MKL; NumPy uses the threads of the process (OMP_NUM_THREADS)."""
    rows, depth, columns = shape
    a, b = RANDOM.random((rows, depth), np.float32), RANDOM.random((depth, columns), np.float32)
    c = np.empty((rows, columns), np.float32)
    others: dict[str, Callable[[], object]] = {"NumPy": lambda: np.matmul(a, b, out=c)}
    found = mkl.search().mkl
    if found is not None and threads == 1:
        i, p, f = ctypes.c_int, ctypes.c_void_p, ctypes.c_float
        sgemm = ctypes.CFUNCTYPE(None, i, i, i, i, i, i, f, p, i, p, i, f, p, i)(found.sgemm)
        row_major, plain = 101, 111
        arguments = (
            row_major, plain, plain, rows, columns, depth,
            1.0, a.ctypes.data, depth, b.ctypes.data, columns, 0.0, c.ctypes.data, columns,
        )  # fmt: skip
        others["MKL"] = lambda: sgemm(*arguments)
    return others


def memory_bandwidth() -> float:
    """Return the bytes per second of a 64 MiB copy, counting reads and writes: the best of several."""
    source = np.ones(16 << 20, np.float32)
    target = np.empty_like(source)
    best = float("inf")
    for _ in range(8):
        start = time.perf_counter()
        np.copyto(target, source)
        best = min(best, time.perf_counter() - start)
    return 2 * source.nbytes / best


def table(measurements: Sequence[Measurement], head: str) -> str:
    """Format the measurements as Markdown."""
    columns = ["kind", "case", "kernels", "µs (quartiles)", "GFLOP/s", "of peak", "GB/s", "others, GFLOP/s"]
    rows = [columns, ["---"] * len(columns)]
    for f in measurements:
        others = ", ".join(f"{name} {rate:.0f}" for name, rate in f.others.items())
        spread = f"{f.microseconds:.1f} ({f.quartiles[0]:.1f} to {f.quartiles[1]:.1f})"
        kernels = ", ".join(dict.fromkeys(f.kernels))
        rates = [f"{f.gflops:.1f}", f"{100 * f.peak_share:.0f} %", f"{f.gigabytes_per_second:.1f}"]
        rows.append([f.kind, f.case, kernels, spread, *rates, others])
    return "\n".join([head, "", *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1, help="default: 1")
    parser.add_argument("--only", default="", metavar="TEXT", help="run only cases whose kind or name contains this")
    parser.add_argument("--seconds", type=float, default=0.5, help="how long each case runs; default: 0.5")
    default = ROOT / "out" / "kernels"
    parser.add_argument("--out", type=Path, default=default, metavar="FOLDER", help="default: out/kernels")
    options = parser.parse_args()
    machine = detect.this_machine()
    library = KernelLibrary(machine)
    bandwidth = memory_bandwidth() / 1e9
    measurements, peaks = [], []
    for case in cases():
        if options.only in f"{case.kind} {case.name}":
            # The clock frequency drifts: each case is compared with the peak measured just before it.
            peaks.append(measure_peak_flops(library) * options.threads / 1e9)
            measurements.append(measure(case, options.threads, options.seconds, peaks[-1]))
            found = measurements[-1]
            rate = f"{found.gflops:7.1f} GFLOP/s {100 * found.peak_share:4.0f} %"
            print(f"{found.kind:15} {found.case:50} {rate}", flush=True)
    if not measurements:
        raise SystemExit(f"kernels.py: no case contains {options.only!r}")
    head = (
        f"{detect.this_processor().model}, {machine.name}, threads: {options.threads}. Multiply-add peak "
        f"{min(peaks):.0f} to {max(peaks):.0f} GFLOP/s (measured before each case), memory {bandwidth:.1f} GB/s."
    )
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "kernels.md").write_text(table(measurements, head))
    listed = [asdict(f) for f in measurements]
    everything = {"machine": machine.name, "peaks": peaks, "memory": bandwidth, "findings": listed}
    (options.out / "kernels.json").write_text(json.dumps(everything, indent=1) + "\n")
    print(f"\n{head}\nwritten: {options.out / 'kernels.md'}, {options.out / 'kernels.json'}")


if __name__ == "__main__":
    main()
