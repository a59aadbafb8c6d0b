"""Benchmark of the OpenCL backend against the x86 backend, and against the limits of its device.

    python benchmarks/opencl.py [--device opencl:1] [--threads N] [--only TEXT] [--seconds S] [--model NAME ...]
                                [--tune]

Kernels are the cases of benchmarks/kernels.py, timed by the device's clock: their rates are shares of the device's
multiply-add peak and of its memory bandwidth, both measured right afterwards. Models are those of
tests/models/catalog.py, or files: whole runs, copies of inputs and outputs included. Both backends run interleaved in
one process, because only ratios within one run are comparable. With --tune a tuned session runs interleaved with them;
earlier tuning results are not used, and new ones are not kept. PoCL uses as many threads as the processor has; to
change that, set both POCL_MAX_PTHREAD_COUNT and --threads.
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
from lite_core.backend import Unavailable
from lite_core.ir import Graph
from lite_core.schedule.profile import RunProfile
from lite_opencl.device.devices import find_devices
from lite_opencl.device.runtime import DeviceRuntime, runtime_of
from lite_opencl.programs.library import BUILD_OPTIONS
from lite_opencl.tuning.table import TuningTable

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "tests" / "models")]

Array = np.ndarray[Any, Any]

Inputs = Callable[[lite.Session], Mapping[str, Array]]

MODELS = ("mobilenet_v1-legacy", "resnet18-legacy")
RANDOM = np.random.default_rng(0)

#: One work item computes independent chains of multiply-adds, of 8 elements each.
CHAINS, ROUNDS, WIDTH = 10, 1024, 8


def multiply_adds_source() -> str:
    """Return a kernel of multiply-adds only. Each chain is a variable: compilers keep arrays in memory."""
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
    """The measured limits of a device: multiply-adds count as two operations, a copy reads and writes."""

    gflops: float
    gigabytes_per_second: float


@dataclass(frozen=True)
class Measurement:
    """Medians of one case in milliseconds; fields that are not measured for it are 0."""

    case: str
    kernels: list[str]
    opencl: float
    x86: float
    tuned: float = 0.0
    tuning_seconds: float = 0.0
    gflops: float = 0.0
    of_peak: float = 0.0
    of_bandwidth: float = 0.0

    @property
    def ratio(self) -> float:
        """Return OpenCL's time over the time of x86."""
        return self.opencl / self.x86 if self.x86 else 0.0


def best_seconds(enqueue: Callable[[cl.CommandQueue], cl.Event], queue: cl.CommandQueue) -> float:
    """Return the shortest of several times, by the device's clock."""
    events = [enqueue(queue) for _ in range(50)]
    cl.wait_for_events(events)
    return min(1e-9 * (event.profile.end - event.profile.start) for event in events)


def measure_limits(runtime: DeviceRuntime) -> Limits:
    """Measure the rates of a kernel of multiply-adds only, and of a copy of 32 MiB."""
    items, size = 1 << 12 if runtime.found.kind == "CPU" else 1 << 18, 32 << 20
    flags = cl.mem_flags.READ_WRITE
    source, target = (cl.Buffer(runtime.context, flags, size) for _ in range(2))
    kernel = cl.Kernel(cl.Program(runtime.context, multiply_adds_source()).build(list(BUILD_OPTIONS)), "multiply_adds")
    kernel.set_args(target, np.float32(0.5), np.float32(1))
    queue = runtime.profiling_queue
    computing = best_seconds(lambda q: cl.enqueue_nd_range_kernel(q, kernel, (items,), (64,)), queue)
    copying = best_seconds(lambda q: cl.enqueue_copy(q, target, source, byte_count=size), queue)
    return Limits(2 * WIDTH * CHAINS * ROUNDS * items / computing / 1e9, 2 * size / copying / 1e9)


def runtime_for(device: str) -> DeviceRuntime:
    """Return the process's runtime of a device, ``opencl`` or ``opencl:1``."""
    found = find_devices()
    if isinstance(found, Unavailable):
        raise SystemExit(f"opencl.py: {found.reason}. {found.remedy}")
    return runtime_of(found[int(device.partition(":")[2] or 0)], device)


@dataclass(frozen=True)
class ComparedSessions:
    """Sessions of a model on the device, on x86 and, if requested, tuned on the device."""

    sessions: Mapping[str, lite.Session]
    tuning_seconds: float

    @staticmethod
    def of(
        model: Graph | Path, device: str, threads: int, inputs: Inputs, *, tune: bool, **options: Any
    ) -> ComparedSessions:
        """Load the sessions and run each once; ``inputs`` returns the inputs for a session."""
        runtime_for(device).tuning = TuningTable(runtime_for(device).found, None)
        both = {label: lite.load(model, backend=label, threads=threads, **options) for label in (device, "x86")}
        arrays = inputs(both[device])
        for session in both.values():
            session.run(arrays)
        start = time.perf_counter()
        if tune:
            both["tuned"] = lite.load(model, backend=device, threads=threads, tune=True, **options)
            both["tuned"].run(arrays)
        return ComparedSessions(both, time.perf_counter() - start if tune else 0.0)


def profiled(session: lite.Session, inputs: Mapping[str, Array]) -> RunProfile:
    """Run once and return the profile."""
    profile = RunProfile()
    session.run(inputs, profile=profile)
    return profile


def interleave(runs: Mapping[str, Callable[[], float]], seconds: float) -> dict[str, list[float]]:
    """Call the runs interleaved for some seconds and collect the seconds they return; a first call is not counted."""
    times: dict[str, list[float]] = {label: [] for label in runs}
    for run in runs.values():
        run()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[next(iter(runs))]) < 5:
        for label, run in runs.items():
            times[label].append(run())
    return times


def measure_kernel(case: Any, options: argparse.Namespace) -> Measurement:
    """Measure one node on both backends, kernels only. ``case`` is one of benchmarks/kernels.py."""

    def inputs(session: lite.Session) -> dict[str, Array]:
        return {name: RANDOM.random(type_.shape, np.float32) for name, type_ in session.inputs.items()}

    compared = ComparedSessions.of(
        case.graph, options.device, options.threads, inputs, tune=options.tune, fallback="never"
    )
    x = inputs(compared.sessions[options.device])
    seen: dict[str, RunProfile] = {}

    def run(label: str) -> float:
        seen[label] = profiled(compared.sessions[label], x)
        return sum(kernel.seconds for kernel in seen[label].kernels)

    times = interleave({label: lambda label=label: run(label) for label in compared.sessions}, options.seconds)
    peak = measure_limits(runtime_for(options.device))
    median = statistics.median(times[options.device])
    moved = sum(kernel.bytes for kernel in seen[options.device].kernels)
    return Measurement(
        f"{case.kind}: {case.name}",
        [kernel.kernel for kernel in seen[options.device].kernels],
        1e3 * median,
        1e3 * statistics.median(times["x86"]),
        1e3 * statistics.median(times.get("tuned", [0])),
        compared.tuning_seconds,
        case.flops / median / 1e9,
        case.flops / median / 1e9 / peak.gflops,
        moved / median / 1e9 / peak.gigabytes_per_second,
    )


def measure_model(name: str, options: argparse.Namespace) -> Measurement:
    """Measure whole runs of a model of the catalog, or of a file with an input of known size."""
    given: dict[str, Any] = {}
    if Path(name).exists():
        model = Path(name)

        def inputs(session: lite.Session) -> Mapping[str, Array]:
            return {
                key: RANDOM.random([n if isinstance(n, int) else 1 for n in type_.shape or ()]).astype(
                    type_.dtype.numpy
                )
                for key, type_ in session.inputs.items()
            }
    else:
        import catalog

        files = catalog.ensure(name)
        model, given["reader_options"] = files.model, {"params": files.params}

        def inputs(session: lite.Session) -> Mapping[str, Array]:
            return catalog.example_input(name)

    compared = ComparedSessions.of(model, options.device, options.threads, inputs, tune=options.tune, **given)
    device = compared.sessions[options.device]
    arrays = inputs(device)

    def run(label: str) -> float:
        start = time.perf_counter()
        compared.sessions[label].run(arrays)
        return time.perf_counter() - start

    times = interleave({label: lambda label=label: run(label) for label in compared.sessions}, 5 * options.seconds)
    profile = profiled(device, arrays)
    slowest = [f"{op} {share / profile.seconds:.0%}" for op, share in list(profile.by_op().items())[:3]]
    medians = {label: 1e3 * statistics.median(seconds) for label, seconds in times.items()}
    return Measurement(
        name, slowest, medians[options.device], medians["x86"], medians.get("tuned", 0.0), compared.tuning_seconds
    )


def table(measurements: Sequence[Measurement], head: str) -> str:
    """Format the measurements as Markdown."""
    columns = ["case", "kernels, or slowest operators", "OpenCL, ms", "x86, ms", "OpenCL / x86"]
    columns += ["tuned, ms", "tuned / OpenCL", "tuning, s", "GFLOP/s", "of peak", "of memory"]
    rows = [columns, ["---"] * len(columns)]
    for f in measurements:
        tuned = [f"{f.tuned:.3f}", f"{f.tuned / f.opencl:.2f}", f"{f.tuning_seconds:.1f}"] if f.tuned else [""] * 3
        rates = [f"{f.gflops:.1f}", f"{f.of_peak:.0%}", f"{f.of_bandwidth:.0%}"] if f.gflops else ["", "", ""]
        kernels = ", ".join(dict.fromkeys(f.kernels))
        rows.append([f.case, kernels, f"{f.opencl:.3f}", f"{f.x86:.3f}", f"{f.ratio:.2f}", *tuned, *rates])
    return "\n".join([head, "", *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def tuning_text(found: Measurement) -> str:
    """Describe the gain of tuning, if it was measured."""
    return f"  tuned {found.tuned / found.opencl:.2f} in {found.tuning_seconds:.0f} s" if found.tuned else ""


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="opencl", help="default: opencl, the best")
    parser.add_argument("--threads", type=int, default=2, help="threads of x86; default: 2")
    parser.add_argument("--only", default="", metavar="TEXT", help="run only kernels whose name contains this")
    parser.add_argument("--seconds", type=float, default=1.0, help="how long each case runs; default: 1")
    parser.add_argument("--model", nargs="*", default=MODELS, metavar="NAME", help=f"default: {' '.join(MODELS)}")
    parser.add_argument("--tune", action="store_true", help="measure a tuned session, too, and how long tuning takes")
    parser.add_argument(
        "--startup", type=int, metavar="N", help="measure only process starts with the models, N times for each case"
    )
    default = ROOT / "out" / "opencl"
    parser.add_argument("--out", type=Path, default=default, metavar="FOLDER", help="default: out/opencl")
    options = parser.parse_args()
    if options.startup:
        import opencl_startup

        for name in options.model:
            starts = opencl_startup.measure_startup(name, options.device, options.threads, options.startup)
            print(opencl_startup.report(starts), flush=True)
        return
    import kernels  # from this folder; imported here because it needs the CPU backends

    measurements = []
    for case in kernels.cases():
        if options.only in f"{case.kind} {case.name}":
            found = measure_kernel(case, options)
            measurements.append(found)
            print(
                f"{found.case:70} {found.ratio:6.2f} x86  {found.of_peak:4.0%} of peak{tuning_text(found)}", flush=True
            )
    for name in options.model:
        found = measure_model(name, options)
        measurements.append(found)
        print(
            f"{name:70} {found.ratio:6.2f} x86  {found.opencl:.1f} ms, {found.x86:.1f} ms{tuning_text(found)}",
            flush=True,
        )
    if not measurements:
        raise SystemExit(f"opencl.py: no case contains {options.only!r}, and there is no model")
    runtime = runtime_for(options.device)
    peak = measure_limits(runtime)
    head = (
        f"{runtime.found.name} ({runtime.found.platform}); x86 with {options.threads} thread(s). Measured limits of "
        f"the device: {peak.gflops:.0f} GFLOP/s of multiply-adds, {peak.gigabytes_per_second:.1f} GB/s copied."
    )
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "opencl.md").write_text(table(measurements, head))
    everything = {
        "device": runtime.found.identity,
        "limits": asdict(peak),
        "findings": [asdict(f) for f in measurements],
    }
    (options.out / "opencl.json").write_text(json.dumps(everything, indent=1) + "\n")
    print(f"\n{head}\nwritten: {options.out / 'opencl.md'}, {options.out / 'opencl.json'}")


if __name__ == "__main__":
    main()
