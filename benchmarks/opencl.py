"""The OpenCL backend against the processor's own backend, and against the limits of the device it runs on.

    python benchmarks/opencl.py [--device opencl:1] [--threads N] [--only TEXT] [--seconds S] [--model NAME ...]

Kernels are the cases of benchmarks/kernels.py, by the device's own clock: their rates as shares of the device's
multiply-add peak and of its memory bandwidth, both measured just after. Models are those of tests/models/catalog.py,
or files: whole runs, copies of inputs and outputs included. Both backends run in turns in one process, because only
ratios within one run count. PoCL takes as many threads as the processor has; POCL_MAX_PTHREAD_COUNT and --threads
together change that.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl

import lite_core as lite
from lite_core.ir import Graph
from lite_core.schedule.profile import RunProfile
from lite_opencl.programs import BUILD_OPTIONS
from lite_opencl.runtime import DeviceRuntime, started_runtimes

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "tests" / "models")]

Array = np.ndarray[Any, Any]

MODELS = ("mobilenet_v1-legacy", "resnet18-legacy")
RANDOM = np.random.default_rng(0)

#: One work item computes chains of multiply-adds that do not wait for each other, of 8 elements each.
CHAINS, ROUNDS, WIDTH = 10, 1024, 8


def multiply_adds() -> str:
    """A kernel of nothing else. Its chains have names: compilers keep arrays in memory."""
    chains = range(CHAINS)
    lines = [
        "__kernel __attribute__((reqd_work_group_size(64, 1, 1)))",
        "void multiply_adds(__global float8* y, const float a, const float b) {",
        *(f"    float8 x{i} = (float8)(get_global_id(0) + {i});" for i in chains),
        f"    for (int round = 0; round < {ROUNDS}; ++round) {{",
        *(f"        x{i} = x{i} * a + b;" for i in chains),
        "    }",
        f"    y[get_global_id(0)] = {' + '.join(f'x{i}' for i in chains)};",
        "}",
    ]
    return "\n".join(lines)


@dataclass(frozen=True)
class Limits:
    """What a device can do at most: multiply-adds count two operations, a copy reads and writes."""

    gflops: float
    gigabytes_per_second: float


@dataclass(frozen=True)
class Finding:
    """Medians of one case in milliseconds; what is not measured for it is 0."""

    case: str
    kernels: list[str]
    opencl: float
    x86: float
    gflops: float = 0.0
    of_peak: float = 0.0
    of_bandwidth: float = 0.0

    @property
    def ratio(self) -> float:
        """How often x86 is done while OpenCL is once."""
        return self.opencl / self.x86 if self.x86 else 0.0


def best_seconds(enqueue: Callable[[cl.CommandQueue], cl.Event], queue: cl.CommandQueue) -> float:
    """The shortest time of several, by the device's clock."""
    events = [enqueue(queue) for _ in range(50)]
    cl.wait_for_events(events)
    return min(1e-9 * (event.profile.end - event.profile.start) for event in events)


def limits(runtime: DeviceRuntime) -> Limits:
    """Measured: what a kernel of nothing but multiply-adds, and a copy of 32 MiB, reach."""
    items, size = 1 << 12 if runtime.found.kind == "CPU" else 1 << 18, 32 << 20
    flags = cl.mem_flags.READ_WRITE
    source, target = (cl.Buffer(runtime.context, flags, size) for _ in range(2))
    kernel = cl.Kernel(cl.Program(runtime.context, multiply_adds()).build(list(BUILD_OPTIONS)), "multiply_adds")
    kernel.set_args(target, np.float32(0.5), np.float32(1))
    queue = runtime.profiling_queue
    computing = best_seconds(lambda q: cl.enqueue_nd_range_kernel(q, kernel, (items,), (64,)), queue)
    copying = best_seconds(lambda q: cl.enqueue_copy(q, target, source, byte_count=size), queue)
    return Limits(2 * WIDTH * CHAINS * ROUNDS * items / computing / 1e9, 2 * size / copying / 1e9)


def sessions(model: Graph | Path, device: str, threads: int, **options: Any) -> dict[str, lite.Session]:
    """The model on the device and on x86."""
    return {label: lite.load(model, backend=label, threads=threads, **options) for label in (device, "x86")}


def profiled(session: lite.Session, inputs: Mapping[str, Array]) -> RunProfile:
    """What one run took."""
    profile = RunProfile()
    session.run(inputs, profile=profile)
    return profile


def in_turns(runs: Mapping[str, Callable[[], float]], seconds: float) -> dict[str, list[float]]:
    """What each run says it took, again and again for some seconds, after once that does not count."""
    taken: dict[str, list[float]] = {label: [] for label in runs}
    for run in runs.values():
        run()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(taken[next(iter(runs))]) < 5:
        for label, run in runs.items():
            taken[label].append(run())
    return taken


def measure_kernel(name: str, graph: Graph, flops: int, device: str, seconds: float, threads: int) -> Finding:
    """One node on both; the times are those of kernels alone."""
    both = sessions(graph, device, threads, fallback="never")
    ((input_name, type_),) = both[device].inputs.items()
    x = {input_name: RANDOM.random(type_.shape, np.float32)}
    seen: dict[str, RunProfile] = {}

    def run(label: str) -> float:
        seen[label] = profiled(both[label], x)
        return sum(kernel.seconds for kernel in seen[label].kernels)

    taken = in_turns({label: lambda label=label: run(label) for label in both}, seconds)
    runtime = next(r for r in started_runtimes() if r.memory.space == device)
    most = limits(runtime)
    median = statistics.median(taken[device])
    moved = sum(kernel.bytes for kernel in seen[device].kernels)
    return Finding(
        name,
        [kernel.kernel for kernel in seen[device].kernels],
        1e3 * median,
        1e3 * statistics.median(taken["x86"]),
        flops / median / 1e9,
        flops / median / 1e9 / most.gflops,
        moved / median / 1e9 / most.gigabytes_per_second,
    )


def measure_model(name: str, device: str, seconds: float, threads: int) -> Finding:
    """Whole runs of a model of the catalog, or of a file with an input of known size."""
    if Path(name).exists():
        both = sessions(Path(name), device, threads)
        inputs = {
            key: RANDOM.random([n if isinstance(n, int) else 1 for n in type_.shape or ()]).astype(type_.dtype.numpy)
            for key, type_ in both[device].inputs.items()
        }
    else:
        import catalog

        files = catalog.ensure(name)
        both = sessions(files.model, device, threads, params=files.params)
        inputs = catalog.example_input(name)

    def run(label: str) -> float:
        start = time.perf_counter()
        both[label].run(inputs)
        return time.perf_counter() - start

    taken = in_turns({label: lambda label=label: run(label) for label in both}, seconds)
    profile = profiled(both[device], inputs)
    slowest = [f"{op} {share / profile.seconds:.0%}" for op, share in list(profile.by_op().items())[:3]]
    return Finding(name, slowest, *(1e3 * statistics.median(taken[label]) for label in both))


def table(findings: Sequence[Finding], head: str) -> str:
    """The findings as Markdown."""
    columns = ["case", "kernels, or slowest operators", "OpenCL, ms", "x86, ms", "OpenCL / x86"]
    columns += ["GFLOP/s", "of peak", "of memory"]
    rows = [columns, ["---"] * len(columns)]
    for f in findings:
        rates = [f"{f.gflops:.1f}", f"{f.of_peak:.0%}", f"{f.of_bandwidth:.0%}"] if f.gflops else ["", "", ""]
        kernels = ", ".join(dict.fromkeys(f.kernels))
        rows.append([f.case, kernels, f"{f.opencl:.3f}", f"{f.x86:.3f}", f"{f.ratio:.2f}", *rates])
    return "\n".join([head, "", *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="opencl", help="default: opencl, the best")
    parser.add_argument("--threads", type=int, default=2, help="of x86; default: 2")
    parser.add_argument("--only", default="", metavar="TEXT", help="kernels whose family or name contains this")
    parser.add_argument("--seconds", type=float, default=1.0, help="how long each case runs; default: 1")
    parser.add_argument("--model", nargs="*", default=MODELS, metavar="NAME", help=f"default: {' '.join(MODELS)}")
    default = ROOT / "out" / "opencl"
    parser.add_argument("--out", type=Path, default=default, metavar="FOLDER", help="default: out/opencl")
    options = parser.parse_args()
    import kernels  # of this folder: imported here because it needs the CPU backends' own measurements

    findings = []
    for case in kernels.cases():
        if options.only in f"{case.family} {case.name}":
            name = f"{case.family}: {case.name}"
            findings.append(
                measure_kernel(name, case.graph, case.flops, options.device, options.seconds, options.threads)
            )
            print(f"{name:70} {findings[-1].ratio:6.2f} x86  {findings[-1].of_peak:4.0%} of peak", flush=True)
    for name in options.model:
        findings.append(measure_model(name, options.device, 5 * options.seconds, options.threads))
        found = findings[-1]
        print(f"{name:70} {found.ratio:6.2f} x86  {found.opencl:.1f} ms, {found.x86:.1f} ms", flush=True)
    if not findings:
        raise SystemExit(f"opencl.py: no case contains {options.only!r}, and there is no model")
    runtime = next(r for r in started_runtimes() if r.memory.space == options.device)
    most = limits(runtime)
    head = (
        f"{runtime.found.name} ({runtime.found.platform}); x86 with {options.threads} thread(s). Measured limits of "
        f"the device: {most.gflops:.0f} GFLOP/s of multiply-adds, {most.gigabytes_per_second:.1f} GB/s copied."
    )
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "opencl.md").write_text(table(findings, head))
    everything = {"device": runtime.found.identity, "limits": asdict(most), "findings": [asdict(f) for f in findings]}
    (options.out / "opencl.json").write_text(json.dumps(everything, indent=1) + "\n")
    print(f"\n{head}\nwritten: {options.out / 'opencl.md'}, {options.out / 'opencl.json'}")


if __name__ == "__main__":
    main()
