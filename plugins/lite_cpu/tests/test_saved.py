"""Saved programs: restored in this and in another process, without a compiler, with the same results."""

from __future__ import annotations

import ctypes
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agreement import MACHINES, normal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from levels import LevelBackend, backend_for, runnable_machines
from random_graphs import Example, image_graphs
from saving import (
    DEVICE,
    GRAPHS,
    Sketch,
    assert_same,
    buffers,
    compiled,
    convolutions,
    refusal,
    restored,
    run,
    saved,
    transformer,
)

from lite_compiler.staging import StagedExecutable
from lite_core import GraphBuilder
from lite_core.backend import Options, Partition, Stale
from lite_core.errors import ExecutionError
from lite_core.ir import DType, Graph
from lite_cpu.executable import CpuExecutable
from lite_cpu.external import ExternalSgemm
from lite_cpu.machine import Machine

Array = np.ndarray[Any, Any]


# **** the same results ****


@MACHINES
@GRAPHS
@pytest.mark.parametrize("threads", [1, 2])
def test_results_are_the_same(machine: Machine, make: Callable[[], Example], threads: int) -> None:
    example = make()
    if example.graph.inputs[0].dtype is DType.FLOAT16 and not machine.half:
        pytest.skip("the machine has no float16")
    assert_same(machine, example, threads=threads)


@MACHINES
def test_results_of_random_graphs_are_the_same(machine: Machine) -> None:
    @settings(
        max_examples=15,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(example=image_graphs(), threads=st.sampled_from([1, 2]))
    def check(example: Example, threads: int) -> None:
        assert_same(machine, example, threads=threads)

    check()


@pytest.mark.parametrize("options", [{"precision": "bfloat16"}, {"exact": True}], ids=str)
def test_options_are_part_of_the_compatibility(options: dict[str, Any]) -> None:
    machine, example = runnable_machines()[-1], convolutions()
    assert_same(machine, example, **options)
    pieces = saved(compiled(machine, example.graph, **options))
    assert "the saved program is for" in refusal(machine, pieces, example.graph)


def test_restored_executable_saves_the_same_pieces() -> None:
    machine, example = runnable_machines()[-1], transformer()
    pieces = saved(compiled(machine, example.graph))
    assert restored(machine, pieces, example.graph).save() == pieces


def test_saving_is_reproducible() -> None:
    machine, example = runnable_machines()[-1], convolutions()
    executable = compiled(machine, example.graph)
    assert executable.save() == executable.save()
    assert executable.save() == saved(compiled(machine, example.graph))


def test_faults_are_reported_with_the_node() -> None:
    b = GraphBuilder("gather")
    indices = b.input("indices", "int64", [2])
    b.output(b.add("Gather", [b.constant(normal(5, 3)), indices], name="look"), "y")
    machine, graph = runnable_machines()[-1], b.build()
    again = restored(machine, saved(compiled(machine, graph)), graph)
    assert run(again, graph, {"indices": np.array([0, -1])})[0].shape == (2, 3)
    with pytest.raises(ExecutionError, match=r"'look' .*index 7 is out of range for a dimension of 5"):
        run(again, graph, {"indices": np.array([0, 7])})


def test_profiles_name_the_same_kernels_and_work() -> None:
    machine, example = runnable_machines()[-1], convolutions()
    executable = compiled(machine, example.graph, threads=2)
    again = restored(machine, saved(executable), example.graph, threads=2)

    def profile(of: CpuExecutable) -> list[tuple[str, tuple[str, ...], float, float]]:
        times = of.run_profiled(*buffers(of, example.graph, example.inputs))
        assert all(time.seconds >= 0 for time in times)
        return [(time.name, time.nodes, time.flops, time.bytes) for time in times]

    assert profile(again) == profile(executable)


def test_external_product_is_called_at_its_address_in_this_process() -> None:
    """The saved address belongs to another process and is replaced by the address of the function in this one."""
    calls: list[int] = []

    def function(number: int) -> Any:
        """Return a ``cblas_sgemm`` of contiguous square matrices that records its number."""

        def sgemm(*arguments: Any) -> None:
            calls.append(number)
            size = arguments[3]
            a, b, c = (
                np.ctypeslib.as_array((ctypes.c_float * size**2).from_address(arguments[i])).reshape(size, size)
                for i in (7, 9, 12)
            )
            np.matmul(a, b, out=c)

        matrix = [ctypes.c_void_p, ctypes.c_int]
        return ctypes.CFUNCTYPE(None, *[ctypes.c_int] * 6, ctypes.c_float, *matrix, *matrix, ctypes.c_float, *matrix)(
            sgemm
        )

    functions = [function(number) for number in range(2)]
    addresses = [ctypes.cast(f, ctypes.c_void_p).value for f in functions]

    class Offering(LevelBackend):
        address = 0

        def external_sgemm(self, options: Options) -> ExternalSgemm | None:
            return ExternalSgemm("Other", self.address)

    g = Sketch()
    example = g.done(g.add("MatMul", g.input(300, 300), g.constant(300, 300)))
    machine, part = runnable_machines()[-1], Partition("part", example.graph)
    first, second = Offering(machine), Offering(machine)
    first.address, second.address = addresses[0] or 0, addresses[1] or 0
    executable = first.compile(part, DEVICE, Options())
    assert isinstance(executable, CpuExecutable)
    pieces = saved(executable)
    expected = run(executable, example.graph, example.inputs)
    again = second.restore(pieces, part, DEVICE, Options())
    assert isinstance(again, CpuExecutable)
    assert run(again, example.graph, example.inputs)[0].tobytes() == expected[0].tobytes()
    assert calls == [0, 1]
    assert "another library" in refusal(machine, pieces, example.graph)


# **** threads ****


@pytest.mark.parametrize(("planned", "threads"), [(2, 2), (4, 2), (2, 4), (1, 1)])
def test_program_is_restored_for_fewer_and_for_twice_as_many_threads(planned: int, threads: int) -> None:
    machine, example = runnable_machines()[-1], convolutions()
    executable = compiled(machine, example.graph, threads=planned)
    again = restored(machine, saved(executable), example.graph, threads=threads)
    expected = run(executable, example.graph, example.inputs)
    assert run(again, example.graph, example.inputs)[0].tobytes() == expected[0].tobytes()


@pytest.mark.parametrize(("planned", "threads"), [(1, 2), (2, 1), (2, 5)])
def test_other_numbers_of_threads_compile_with_saved_kernels_and_weights(planned: int, threads: int) -> None:
    machine, example = runnable_machines()[-1], convolutions()
    pieces = saved(compiled(machine, example.graph, threads=planned))
    backend, part = LevelBackend(machine), Partition("part", example.graph)
    answer = backend.restore(pieces, part, DEVICE, Options(threads=threads))
    assert isinstance(answer, Stale)
    assert f"among {planned} thread(s), not {threads}" in answer.reason
    backend.compile(part, DEVICE, Options(threads=threads))
    assert weights_outside(backend, pieces) == 0


# **** weights ****


def is_view_of(array: Array, pieces: Sequence[memoryview]) -> bool:
    """Return True if an array is a view of one of the pieces."""
    return any(np.shares_memory(array, piece) for piece in pieces if piece.nbytes)


def weights_outside(backend: LevelBackend, pieces: Sequence[memoryview]) -> int:
    """Return the number of packed weights of a backend that are not views of pieces."""
    return sum(not is_view_of(made, pieces) for _, sources, made in backend._share().weights._made.items() if sources)


def test_programs_for_other_sizes_and_threads_save_the_same_weights() -> None:
    def pieces(width: int, threads: int) -> list[bytes]:
        g = Sketch()
        y = g.add("Conv", g.input(1, 8, 16, width), g.constant(24, 8, 3, 3), g.constant(24))
        y = g.add("ReduceMean", g.add("Conv", y, g.constant(40, 24, 1, 1)), g.b.ints(2, 3), keepdims=0)
        example = g.done(g.add("MatMul", y, g.constant(40, 10)))
        return [*map(bytes, compiled(runnable_machines()[-1], example.graph, threads=threads).save())]

    (program, *weights), *others = [pieces(width, threads) for width in (16, 24) for threads in (1, 2)]
    assert max(map(len, weights)) >= 4 * 24 * 8 * 9
    for other_program, *other_weights in others:
        assert other_program != program
        assert other_weights == weights


def test_weights_are_used_in_place_and_shared_with_other_plans() -> None:
    """A program for another size, compiled after one was restored, uses the restored packed weights."""
    machine = runnable_machines()[-1]

    def graph(width: int) -> Graph:
        b = GraphBuilder("widths")
        x = b.input("x", "float32", [1, 8, 16, width])
        first, second, third = (b.constant(normal(*n)) for n in ((24, 8, 3, 3), (40, 24, 1, 1), (10, 40)))
        y = b.add("Conv", [b.add("Conv", [x, first]), second])
        y = b.add("ReduceMean", [y, b.ints(2, 3)], {"keepdims": 0})
        b.output(b.add("Gemm", [y, third], {"transB": 1}), "y")
        return b.build()

    narrow, wider = graph(16), graph(20)
    wider.constants = dict(zip(wider.constants, narrow.constants.values()))  # the same arrays for every size
    pieces = saved(compiled(machine, narrow))
    backend = LevelBackend(machine)
    executable = backend.restore(pieces, Partition("part", narrow), DEVICE, Options())
    assert isinstance(executable, CpuExecutable)
    owners = [o for o in executable._program._owners if isinstance(o, np.ndarray) and o.nbytes > 1000]
    assert owners
    assert all(is_view_of(array, pieces) for array in owners)
    wide = backend.compile(Partition("part", wider), DEVICE, Options())
    assert isinstance(wide, CpuExecutable)
    assert weights_outside(backend, pieces) == 0
    inputs = {"x": normal(1, 8, 16, 20)}
    expected = run(compiled(machine, wider), wider, inputs)
    assert run(wide, wider, inputs)[0].tobytes() == expected[0].tobytes()
    # A program that was compiled with restored weights can be saved and restored, too.
    again = restored(machine, saved(wide), wider)
    assert run(again, wider, inputs)[0].tobytes() == expected[0].tobytes()


def test_sessions_share_the_weights_of_the_first() -> None:
    machine, example = runnable_machines()[-1], convolutions()
    executable = compiled(machine, example.graph)
    backend, part = LevelBackend(machine), Partition("part", example.graph)
    copies = [saved(executable) for _ in range(10)]
    many = [backend.restore(pieces, part, DEVICE, Options()) for pieces in copies]
    arrays = [[o for o in e._program._owners if isinstance(o, np.ndarray)] for e in many]  # type: ignore[union-attr]
    packed = [array for array in arrays[0] if is_view_of(array, copies[0])]
    assert sum(array.nbytes for array in packed) > 10_000
    for other in arrays[1:]:
        assert all(any(array is o for o in other) for array in packed if array.nbytes > 1000)


def test_constants_that_are_not_packed_are_not_saved() -> None:
    b = GraphBuilder("table")
    b.output(b.add("Gather", [b.constant(normal(1000, 64)), b.input("i", "int64", [3])]), "y")
    machine, graph = runnable_machines()[-1], b.build()
    pieces = saved(compiled(machine, graph))
    assert sum(piece.nbytes for piece in pieces) < 100_000
    again = restored(machine, pieces, graph)
    found = run(again, graph, {"i": np.array([1, 5, 999])})[0]
    assert np.array_equal(found, next(iter(graph.constants.values()))[[1, 5, 999]])


def test_partitions_with_data_dependent_shapes_are_not_saved() -> None:
    b = GraphBuilder("staged")
    x = b.input("x", "float32", [6])
    b.output(b.add("Compress", [x, b.input("keep", "bool", [6])]), "y")
    executable = backend_for(runnable_machines()[-1]).compile(Partition("part", b.build()), DEVICE, Options())
    assert isinstance(executable, StagedExecutable)
    assert not hasattr(executable, "save")


# **** in another process ****

_FRESH = """
import sys
own = ("emitter", "machine_code.objects", "kernels", "lowering.compile")
for name in ("llvmlite", *(f"lite_cpu.{{module}}" for module in own)):
    sys.modules[name] = None  # an attempt to import it fails
import pickle
import numpy as np
from pathlib import Path
from lite_core.backend import Buffer, Device, Options, Partition
from lite_core.ir import TensorType
from lite_core.memory import HostMemory
sys.path.insert(0, {tests!r})
from lite_cpu.backend import CpuBackend
from lite_cpu import machine as machines

class Level(CpuBackend):
    def machine(self):
        return next(m for m in vars(machines).values() if getattr(m, "name", "") == {level!r})
    def probe(self):
        return [Device("level")]

folder = Path({folder!r})
graph, inputs, expected = pickle.loads((folder / "graph").read_bytes())
pieces = [memoryview(np.memmap(file, np.uint8, "r")) for file in sorted((folder / "pieces").iterdir())]
executable = Level("level").restore(pieces, Partition("part", graph), Device("level"), Options(threads=2))
outputs = [np.empty_like(array) for array in expected]
scratch = np.empty(executable.scratch_bytes, np.uint8)
def buffer(array):
    return Buffer(TensorType.of_array(array), HostMemory(), array)
executable.run([buffer(a) for a in inputs], [buffer(a) for a in outputs], buffer(scratch))
assert all(one.tobytes() == other.tobytes() for one, other in zip(outputs, expected))
loaded = [n for n, m in sys.modules.items() if m is not None and n.startswith("lite_cpu.")]
print(*loaded)
"""


@GRAPHS
def test_another_process_needs_no_compiler(make: Callable[[], Example], tmp_path: Path) -> None:
    machine, example = runnable_machines()[-1], make()
    executable = compiled(machine, example.graph, threads=2)
    (tmp_path / "pieces").mkdir()
    for number, piece in enumerate(executable.save()):
        (tmp_path / f"pieces/{number:03}").write_bytes(piece)
    arrays = [example.inputs[v.name] for v in example.graph.inputs]
    expected = run(executable, example.graph, example.inputs)
    (tmp_path / "graph").write_bytes(pickle.dumps((example.graph, arrays, expected)))
    program = _FRESH.format(tests=str(Path(__file__).parent), level=machine.name, folder=str(tmp_path))
    environment = {**os.environ, "LITE_CACHE_DIR": str(tmp_path / "empty")}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    lowering = [name for name in done.stdout.split() if name.startswith(("lite_cpu.lowering", "lite_cpu.kernels"))]
    assert lowering == ["lite_cpu.lowering", "lite_cpu.lowering.weights"]
