"""Code for 64-bit ARM, made on any processor: no kernel uses the register that some systems keep for themselves."""

from __future__ import annotations

import inspect
import pkgutil
import re
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module

import pytest

import lite_cpu.kernels
from lite_compiler.chains import Apply
from lite_conformance.cases.operators import all_tables
from lite_core.backend import Options
from lite_core.errors import LiteError
from lite_core.ir import DType
from lite_cpu.chains import Chain, Operand
from lite_cpu.emitter import Emitter
from lite_cpu.kernels.attention import Attention
from lite_cpu.kernels.base import Kernel
from lite_cpu.kernels.depthwise import Axis, Depthwise, Edges
from lite_cpu.kernels.depthwise_pointwise import DepthwisePointwise
from lite_cpu.kernels.external_product import ExternalProduct
from lite_cpu.kernels.packing import Contiguous
from lite_cpu.kernels.peak import Peak
from lite_cpu.kernels.reading import Empty, Read
from lite_cpu.kernels.winograd import Winograd
from lite_cpu.kernels.winograd_weights import WinogradWeights
from lite_cpu.lowering.compile import lower_graph
from lite_cpu.lowering.weights import WeightCache
from lite_cpu.machine import Machine
from lite_cpu.machine_code.library import KernelLibrary
from lite_cpu.machine_code.objects import assembly_of

lite_arm = pytest.importorskip("lite_arm.levels", reason="lite-arm is not installed")

F32 = DType.FLOAT32

#: Different kernels of one class that are looked at.
_EACH = 4


def kernels_of_graphs() -> Iterator[Kernel]:
    """Return kernels that no operator alone is lowered to, and those that measure."""
    plain = Chain(Operand(F32))
    relu = Chain(Operand(F32), (), (Apply("Relu", (0,), F32),))
    yield from (Winograd(outputs, relu) for outputs in (2, 4))
    yield from (WinogradWeights(outputs) for outputs in (2, 4))
    yield Attention(plain, plain, Contiguous.DEPTH, Contiguous.COLUMNS)
    across, down = Axis(3, 1, 1, 7), Axis(3, 1, 1, 2)
    yield DepthwisePointwise(Depthwise(across, down, False, relu, Edges.of(across, 1, 14, 14)), relu)
    yield ExternalProduct(transposed=False)
    yield from (Peak(), Empty(), Read())


def kernels_of_operators(machine: Machine) -> Iterator[Kernel]:
    """Return the kernels of the conformance cases in the types that kernels differ for."""
    library, weights = KernelLibrary(machine), WeightCache()
    for table in all_tables():
        for _, dtype, case in table.cases():
            if dtype in (F32, DType.UINT8, DType.INT64):
                graph, _ = case.build(dtype, 0)
                if not all(value.type.is_static for value in graph.defined()):
                    continue
                try:
                    steps = lower_graph(graph, Options(), library, weights).steps
                except LiteError:  # there is no kernel for this case
                    continue
                yield from (step.kernel for step in steps)


def classes_of_kernels() -> set[type[Kernel]]:
    found, new = set(), [Kernel]
    for module in pkgutil.iter_modules(lite_cpu.kernels.__path__):
        import_module(f"lite_cpu.kernels.{module.name}")
    while new:
        new = [each for kind in new for each in kind.__subclasses__()]
        found.update(new)
    return {kind for kind in found if not inspect.isabstract(kind)}


@pytest.mark.full("cpu")
@pytest.mark.parametrize("level", ["arm-v8", "arm-v8+dotprod+fp16+i8mm+bf16"])
def test_no_kernel_uses_x18(level: str) -> None:
    machine = lite_arm.machine_of_level(level)
    kernels: dict[type[Kernel], dict[str, Kernel]] = defaultdict(dict)
    for kernel in (*kernels_of_graphs(), *kernels_of_operators(machine)):
        of_class = kernels[type(kernel)]
        if len(of_class) < _EACH:
            of_class.setdefault(kernel.key(machine), kernel)
    assert kernels.keys() == classes_of_kernels()
    for kernel in (kernel for of_class in kernels.values() for kernel in of_class.values()):
        k = Emitter(machine)
        kernel.emit(k)
        code = assembly_of(k.text(), machine, optimize=kernel.optimize)
        assert not re.search(r"\b[xw]18\b", code), kernel.key(machine)
