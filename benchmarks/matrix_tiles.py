"""Benchmark of products in matrix tiles (AMX), bytes and bfloat16, against vector registers and the float32 peak.

    python benchmarks/matrix_tiles.py [--threads N] [--only TEXT] [--seconds S]
    python benchmarks/matrix_tiles.py --emulated

Every case is a model of one product, run by a session on this processor and by one that uses vector registers instead
of tiles, in turns; their outputs are compared first. A time is that of the kernels, without conversions of the model's
input and output; rates are medians, as multiples of the multiply-add peak, which is measured before each case. Without
AMX nothing is measured; ``--emulated`` then compares the outputs, with emulated tiles.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

import lite_core as lite
from lite_core.backend import Device
from lite_core.builder import GraphBuilder
from lite_core.ir import Graph, Value
from lite_core.plugins.backends import plugins_with
from lite_core.schedule.profile import RunProfile
from lite_cpu.backend import CpuBackend
from lite_cpu.machine import Machine
from lite_cpu.machine_code.library import KernelLibrary
from lite_cpu.peak import measure_peak_flops
from lite_x86 import detect, tunings

#: Kernels before and after the product.
CONVERSIONS = {"copy", "transpose", "elementwise"}
RANDOM = np.random.default_rng(0)

#: Rows, depth, columns: pointwise convolutions of ResNet-50, layers of a small encoder, and a large square.
PRODUCTS = [
    (3136, 64, 64), (3136, 64, 256), (784, 256, 256), (784, 512, 128), (196, 512, 512), (196, 1024, 256),
    (49, 2048, 512), (128, 384, 1536), (512, 512, 512), (1, 2048, 1000),
]  # fmt: skip
#: Input channels, output channels, height and width, kernel, stride.
CONVOLUTIONS = [
    (3, 64, 224, 7, 2), (64, 64, 56, 3, 1), (128, 128, 28, 3, 1), (256, 256, 14, 3, 1), (512, 512, 7, 3, 1),
    (24, 24, 56, 3, 1),
]  # fmt: skip


class OneMachine(CpuBackend):
    """A backend with the kernels for one machine."""

    def __init__(self, machine: Machine) -> None:
        super().__init__("tiles" if machine.matrix_tiles else "vectors")
        self._machine = machine

    def machine(self) -> Machine:
        return self._machine

    def probe(self) -> Sequence[Device]:
        return [Device(self.name, name=self._machine.name)]


@dataclass(frozen=True)
class Case:
    """A model of one product, the precision that it runs in, and its operations."""

    name: str
    graph: Graph
    precision: str
    operations: int

    def session(self, backend: CpuBackend, threads: int) -> lite.Session:
        """Return the model on one machine."""
        options = {"plugins": plugins_with(backend), "threads": threads, "precision": self.precision}
        return lite.load(self.graph, backend=backend.name, fallback="never", **options)

    def inputs(self) -> dict[str, np.ndarray]:
        """Return an input of normally distributed numbers."""
        (value,) = self.graph.inputs
        return {value.name: RANDOM.standard_normal(value.shape).astype(np.float32)}


def build(op: str, shape: Sequence[int], weights: Sequence[int], precision: str, **attributes: object) -> Graph:
    """Build a product with ReLU, of float32 or, for the precision "int8", of dequantized bytes."""
    b = GraphBuilder("product")
    w = RANDOM.integers(-127, 128, tuple(weights)).astype(np.int8)
    depth = weights[0] if op == "MatMul" else np.prod(weights[1:])
    scale = np.float32(0.02 / depth**0.5)

    def rounded(x: Value, step: float) -> Value:
        if precision != "int8":
            return x
        parameters = [b.constant(np.float32(step)), b.constant(np.uint8(100))]
        return b.add("DequantizeLinear", [b.add("QuantizeLinear", [x, *parameters]), *parameters])

    x = rounded(b.input("x", "float32", tuple(shape)), 0.03)
    if precision == "int8":
        right = b.add("DequantizeLinear", [b.constant(w), b.constant(scale)])
    else:
        right = b.constant(w * scale)
    b.output(rounded(b.add("Relu", [b.add(op, [x, right], attributes)]), 0.02), "y")
    return b.build()


def cases() -> list[Case]:
    """Return every case, of bytes and of bfloat16."""
    found = []
    for precision in ("int8", "bfloat16"):
        allowed = "float32" if precision == "int8" else precision
        for rows, depth, columns in PRODUCTS:
            graph = build("MatMul", (rows, depth), (depth, columns), precision)
            name = f"{precision}, {rows} x {depth} x {columns}"
            found.append(Case(name, graph, allowed, 2 * rows * depth * columns))
        for channels, outputs, size, kernel, stride in CONVOLUTIONS:
            attributes = {"strides": (stride,) * 2, "pads": (kernel // 2,) * 4}
            weights = (outputs, channels, kernel, kernel)
            graph = build("Conv", (1, channels, size, size), weights, precision, **attributes)
            name = f"{precision}, {channels} to {outputs}, {size} x {size}, {kernel} x {kernel}, stride {stride}"
            operations = 2 * (-(-size // stride)) ** 2 * outputs * channels * kernel**2
            found.append(Case(name, graph, allowed, operations))
    return found


def seconds_of(session: lite.Session, inputs: dict[str, np.ndarray]) -> float:
    """Run once and return the time of the kernels that multiply."""
    profile = RunProfile()
    session.run(inputs, profile=profile)
    return sum(k.seconds for k in profile.kernels if k.kernel not in CONVERSIONS)


def difference(sessions: Sequence[lite.Session], inputs: dict[str, np.ndarray]) -> float:
    """Return the greatest difference between the outputs of two sessions, as a share of their range."""
    one, other = (session.run(inputs)["y"].astype(np.float64) for session in sessions)
    return float(np.abs(one - other).max() / max(np.abs(other).max(), 1e-30))


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1, help="default: 1")
    parser.add_argument("--only", default="", metavar="TEXT", help="run only cases whose name contains this")
    parser.add_argument("--seconds", type=float, default=0.5, help="how long each case runs; default: 0.5")
    parser.add_argument("--emulated", action="store_true", help="compare outputs of emulated tiles, measure nothing")
    options = parser.parse_args()
    machine = detect.this_machine()
    machine = machine.with_tuning(tunings.in_use(machine))
    if options.emulated:
        plain = tuple(feature for feature in machine.features if not feature.startswith("+amx"))
        machine = replace(machine, name=f"{machine.name} emulated", features=plain, matrix_tiles=True)
    elif not machine.matrix_tiles:
        raise SystemExit(f"no AMX here: {detect.this_processor().model} is {machine.name}; see --emulated")
    backends = [OneMachine(machine), OneMachine(replace(machine, name="vectors", matrix_tiles=False))]
    library = KernelLibrary(backends[1].machine())
    chosen = [case for case in cases() if options.only in case.name]
    if not chosen:
        raise SystemExit(f"matrix_tiles.py: no case contains {options.only!r}")
    print(f"{detect.this_processor().model}, {machine.name}, threads: {options.threads}")
    for case in chosen:
        sessions, inputs = [case.session(backend, options.threads) for backend in backends], case.inputs()
        line = f"{case.name:50} outputs differ by {difference(sessions, inputs):.0e}"
        if not options.emulated:
            # The clock drifts: each case is compared with the peak measured just before it.
            peak = measure_peak_flops(library) * options.threads
            times: list[list[float]] = [[], []]
            end = time.perf_counter() + options.seconds
            while time.perf_counter() < end or len(times[0]) < 5:
                for samples, session in zip(times, sessions):
                    samples.append(seconds_of(session, inputs))
            tiles, vectors = (case.operations / float(np.median(samples)) for samples in times)
            line += f"; tiles {tiles / 1e12:5.2f} TOP/s, {tiles / peak:5.1f} x peak, {tiles / vectors:4.1f} x vectors"
        print(line, flush=True)


if __name__ == "__main__":
    main()
