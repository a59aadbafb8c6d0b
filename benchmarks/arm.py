"""Table of how well the inner loops of Lite's kernels use 64-bit ARM processors, by LLVM's model of these processors.

    python benchmarks/arm.py [--record | --check]

Layers of real models are lowered for ARM; of each, the kernel with the most operations is compiled and disassembled,
and llvm-mca analyses its inner loops: the product's is the one with the most multiply-adds, the transforms of
Winograd's convolution are all others. The share is that of the peak: the multiply-adds (for transforms, all arithmetic
with vectors) alone, over the whole loop. Caches and branches have no part in it, and a model of a processor is not
the processor: the numbers compare kernels with each other. Neoverse N1 stands for Cortex-A76, of which LLVM has no
model of its own.

``--record`` writes ``docs/results/arm/kernels.json``, from which `make docs` makes the page. ``--check`` compares with
the file: the end is an error if a share is more than 2 % of the peak lower. A Debian or Ubuntu for x86-64 is needed
(``scripts/arm_environment.py``).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))
sys.path.insert(0, str(Path(__file__).resolve().parent))
from emulated.kernel_file import FILE, Row, read, write
from emulated.loops import Analyser, Loop

from arm_environment import DEFAULT, ArmEnvironment
from debian_packages import PackageError
from lite_arm.levels import features_of, machine_of_level
from lite_core.backend import Options
from lite_core.builder import GraphBuilder
from lite_core.ir import Graph
from lite_cpu.emitter import Emitter
from lite_cpu.kernels.base import Kernel
from lite_cpu.lowering.compile import lower_graph
from lite_cpu.lowering.weights import WeightCache
from lite_cpu.machine import Machine
from lite_cpu.machine_code.library import KernelLibrary
from lite_cpu.machine_code.objects import compile_ir

#: LLVM's processors: two vectors a cycle, out of order; one vector a cycle, in order; and one with every instruction.
PROCESSORS = ("neoverse-n1", "cortex-a53", "neoverse-n2")
#: How much lower than recorded a share may be, of the peak.
TOLERANCE = 0.02


@dataclass(frozen=True)
class Layer:
    """A layer whose kernel is analysed.

    Attributes:
        title: the layer in words.
        graph: makes the layer.
        levels: the levels of ARM processors that its kernel differs on.
        precision: the precision that the session allows.
    """

    title: str
    graph: Callable[[], Graph]
    levels: tuple[str, ...] = ("arm-v8",)
    precision: str = "float32"


def convolution(shape: Sequence[int], channels: int, window: int, stride: int = 1, depthwise: bool = False) -> Graph:
    """Return a convolution with padding; ``shape`` is height, width and channels of its input."""
    height, width, inputs = shape
    builder = GraphBuilder("convolution")
    weights = np.zeros((channels, 1 if depthwise else inputs, window, window), np.float32)
    attributes = {"strides": (stride, stride), "pads": (window // 2,) * 4, "group": inputs if depthwise else 1}
    x = builder.input("x", "float32", (1, inputs, height, width))
    builder.output(builder.add("Conv", [x, builder.constant(weights)], attributes), "y")
    return builder.build()


def integer_convolution(shape: Sequence[int], channels: int, window: int, depthwise: bool = False) -> Graph:
    """Return a convolution of 8-bit integers with padding."""
    height, width, inputs = shape
    builder = GraphBuilder("convolution")
    weights = builder.constant(np.ones((channels, 1 if depthwise else inputs, window, window), np.int8))
    zeros = [builder.constant(np.array(zero, dtype)) for zero, dtype in ((5, np.uint8), (0, np.int8))]
    attributes = {"pads": (window // 2,) * 4, "group": inputs if depthwise else 1}
    x = builder.input("x", "uint8", (1, inputs, height, width))
    builder.output(builder.add("ConvInteger", [x, weights, *zeros], attributes), "y")
    return builder.build()


_INTEGERS = ("arm-v8", "arm-v8+dotprod", "arm-v8+dotprod+fp16+i8mm")
_BFLOAT16 = ("arm-v8+dotprod+fp16+i8mm+bf16",)
_FLOAT16 = ("arm-v8+dotprod+fp16",)
LAYERS = (
    Layer("1x1, 14x14x512 to 512 (mobilenet_v1)", lambda: convolution((14, 14, 512), 512, 1)),
    Layer("3x3 stride 2, 56x56x64 to 128 (resnet18)", lambda: convolution((56, 56, 64), 128, 3, 2)),
    Layer("3x3, 28x28x128 to 128 (resnet18)", lambda: convolution((28, 28, 128), 128, 3)),
    Layer("3x3, 7x7x512 to 512 (resnet18)", lambda: convolution((7, 7, 512), 512, 3)),
    Layer("depthwise 3x3, 56x56x128 (mobilenet_v1)", lambda: convolution((56, 56, 128), 128, 3, 1, True)),
    Layer("depthwise 3x3 stride 2, 56x56x128 (mobilenet_v1)", lambda: convolution((56, 56, 128), 128, 3, 2, True)),
    Layer("depthwise 5x5, 14x14x240 (mobilenet_v3_small)", lambda: convolution((14, 14, 240), 240, 5, 1, True)),
    Layer("depthwise 5x5 stride 2, 28x28x96 (mobilenet_v3_small)", lambda: convolution((28, 28, 96), 96, 5, 2, True)),
    Layer("8-bit 1x1, 14x14x512 to 512", lambda: integer_convolution((14, 14, 512), 512, 1), _INTEGERS),
    Layer("8-bit 3x3, 28x28x128 to 128", lambda: integer_convolution((28, 28, 128), 128, 3), _INTEGERS),
    Layer("8-bit depthwise 3x3, 56x56x128", lambda: integer_convolution((56, 56, 128), 128, 3, True)),
    Layer("bfloat16 1x1, 14x14x512 to 512", lambda: convolution((14, 14, 512), 512, 1), _BFLOAT16, "bfloat16"),
    Layer("bfloat16 3x3, 28x28x128 to 128", lambda: convolution((28, 28, 128), 128, 3), _BFLOAT16, "bfloat16"),
    Layer("bfloat16 1x1, 14x14x510 to 512 (BFDOT)", lambda: convolution((14, 14, 510), 512, 1), _BFLOAT16, "bfloat16"),
    Layer("float16 1x1, 14x14x512 to 512", lambda: convolution((14, 14, 512), 512, 1), _FLOAT16, "float16"),
    Layer("float16 3x3 stride 2, 56x56x64 to 128", lambda: convolution((56, 56, 64), 128, 3, 2), _FLOAT16, "float16"),
)


def kernel_of(layer: Layer, machine: Machine) -> Kernel:
    """Return the kernel with the most operations that a layer is lowered to."""
    library = KernelLibrary(machine, runs_here=False)
    options = Options(threads=1, precision=layer.precision)
    steps = lower_graph(layer.graph(), options, library, WeightCache()).steps
    return max(steps, key=lambda step: step.flops).kernel


def inner_loops(kernel: Kernel, machine: Machine, analyser: Analyser) -> dict[str, list[Loop]]:
    """Return the loops of a kernel that take its time, by what they are for."""
    emitter = Emitter(machine)
    kernel.emit(emitter)
    loops = analyser.loops(compile_ir(emitter.text(), machine, optimize=kernel.optimize).code)
    if kernel.symbol != "winograd":
        return {kernel.symbol: [max(loops, key=lambda loop: len(loop.arithmetic(every=False)))]}
    # Products multiply by elements of vectors, as no transform does; those of the edges of a block have fewer rows.
    products = [loop for loop in loops if any(line.endswith("]") for line in loop.arithmetic(every=False))]
    transforms = [loop for loop in loops if loop not in products and len(loop.arithmetic(every=True)) >= 10]
    largest = max(products, key=lambda loop: len(loop.arithmetic(every=False)))
    return {"winograd, product": [largest], "winograd, transforms": transforms}


def analyse(layer: Layer, level: str, analyser: Analyser) -> list[Row]:
    """Return the rows of a layer at a level, with the processors that have its instructions."""
    machine = machine_of_level(level)
    able = [name for name in PROCESSORS if features_of(machine) <= features_of(machine_of_level(name))]
    rows = []
    for part, loops in inner_loops(kernel_of(layer, machine), machine, analyser).items():
        every = part.endswith("transforms")
        shares = {name: analyser.share(loops, name, every) for name in able}
        counts = (
            sum(len(loop.arithmetic(every)) for loop in loops),
            sum(len(loop.instructions) for loop in loops),
            sum(loop.stack_accesses for loop in loops),
        )
        rows.append(Row(layer.title, level, part, *counts, {name: round(share, 3) for name, share in shares.items()}))
    return rows


def worse(rows: Sequence[Row], recorded: Sequence[Row]) -> list[str]:
    """Return a line for each share that is lower than recorded."""
    before = {(row.layer, row.level, row.part): row.shares for row in recorded}
    return [
        f"{row.layer}, {row.level}, {row.part}: {share:.0%} on {name}, {earlier:.0%} is recorded"
        for row in rows
        for name, share in row.shares.items()
        if (earlier := before.get((row.layer, row.level, row.part), {}).get(name, 0.0)) > share + TOLERANCE
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, and write or compare it if that is asked for."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("--environment", type=Path, default=DEFAULT, help="the ARM environment; default: .venv-arm")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--record", action="store_true", help="write the table into the file that is in the repository")
    what.add_argument("--check", action="store_true", help="compare with this file")
    options = parser.parse_args(arguments)
    environment = ArmEnvironment(options.environment)
    try:
        environment.make(["mca"])
    except PackageError as error:
        sys.exit(f"arm.py: {error}")
    analyser = Analyser(environment.folder / "bin")
    rows = []
    for layer in LAYERS:
        for level in layer.levels:
            for row in analyse(layer, level, analyser):
                show(row)
                rows.append(row)
    if options.record:
        write(rows)
        print(f"recorded: {FILE}; `make docs` makes the page from it")
    if options.check and (found := worse(rows, read())):
        sys.exit("lower than recorded:\n" + "\n".join(found))


def show(row: Row) -> None:
    """Print a line of the table."""
    shares = ", ".join(f"{name} {share:4.0%}" for name, share in row.shares.items())
    about = f"{row.arithmetic:3} of {row.instructions:3} instructions, {row.stack_accesses:2} on the stack"
    print(f"{row.layer:54} {row.level:24} {row.part:20} {about}: {shares}", flush=True)


if __name__ == "__main__":
    main()
