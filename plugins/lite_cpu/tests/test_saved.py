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
    content,
    convolutions,
    refusal,
    restored,
    run,
    saved,
    split,
    transformer,
)

from lite_compiler.staging import StagedExecutable
from lite_core import GraphBuilder
from lite_core.backend import Options, Partition, Stale
from lite_core.errors import ExecutionError
from lite_core.ir import DType, Graph, SavedWeights
from lite_cpu.executable import CpuExecutable
from lite_cpu.external import ExternalSgemm
from lite_cpu.machine import Machine
from lite_cpu.saved.frame import read_frame

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
    assert [content(piece) for piece in executable.save()] == saved(compiled(machine, example.graph))


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


class Elsewhere(LevelBackend):
    """A backend for a processor that is not this one."""

    def runs_here(self, machine: Machine) -> bool:
        return False


def test_code_for_another_processor_is_compiled_without_being_run(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, graph = runnable_machines()[-1], convolutions().graph
    pieces = saved(compiled(machine, graph))

    def run_it(*_: Any) -> None:
        raise AssertionError("code for another processor is run")

    monkeypatch.setattr("lite_cpu.lowering.winograd.prepare_winograd", run_it)
    executable = Elsewhere(machine).compile(Partition("part", graph), DEVICE, Options())
    assert isinstance(executable, CpuExecutable)
    assert saved(executable) == pieces


# **** threads ****


@pytest.mark.parametrize(("planned", "threads"), [(2, 2), (4, 2), (2, 4), (1, 1)])
def test_program_is_restored_for_fewer_and_for_twice_as_many_threads(planned: int, threads: int) -> None:
    machine, example = runnable_machines()[-1], convolutions()
    executable = compiled(machine, example.graph, threads=planned)
    again = restored(machine, saved(executable), example.graph, threads=threads)
    expected = run(executable, example.graph, example.inputs)
    assert run(again, example.graph, example.inputs)[0].tobytes() == expected[0].tobytes()


@pytest.mark.parametrize(("planned", "threads"), [(1, 2), (2, 1), (2, 5)])
def test_other_numbers_of_threads_compile_with_saved_weights(planned: int, threads: int) -> None:
    machine, example = runnable_machines()[-1], convolutions()
    pieces = saved(compiled(machine, example.graph, threads=planned))
    backend, part = LevelBackend(machine), Partition("part", example.graph)
    answer = backend.restore(pieces, part, DEVICE, Options(threads=threads))
    assert isinstance(answer, Stale)
    assert f"among {planned} thread(s), not {threads}" in answer.reason
    backend.compile(part, DEVICE, Options(threads=threads))
    assert packed_again(backend) == 0


# **** weights ****


def is_view_of(array: Array, pieces: Sequence[memoryview]) -> bool:
    """Return True if an array is a view of one of the pieces."""
    return any(np.shares_memory(array, piece) for piece in pieces if piece.nbytes)


def large_weights(executable: object, graph: Graph) -> list[Array]:
    """Return the weights that a restored program reads besides the constants of the graph, without small ones."""
    assert isinstance(executable, CpuExecutable)
    constants = [array for array in graph.constants.values() if array.size]
    arrays = [owner for owner in executable._program._owners if isinstance(owner, np.ndarray) and owner.nbytes > 1000]
    return [array for array in arrays if not any(np.shares_memory(array, constant) for constant in constants)]


def packed_again(backend: LevelBackend) -> int:
    """Return the number of weights that a backend packed although it has restored none for the same constants."""
    weights = backend._share().weights
    restored_ones = {id(array) for _, _, array in weights._offered.items()}
    return sum(id(made) not in restored_ones for _, sources, made in weights._made.items() if sources)


def test_programs_for_other_sizes_and_threads_save_the_same_weights() -> None:
    def pieces(width: int, threads: int) -> list[memoryview]:
        g = Sketch()
        y = g.add("Conv", g.input(1, 8, 16, width), g.constant(24, 8, 3, 3), g.constant(24))
        y = g.add("Conv", y, g.constant(24, 24, 5, 5))
        y = g.add("ReduceMean", g.add("Conv", y, g.constant(40, 24, 1, 1)), g.b.ints(2, 3), keepdims=0)
        example = g.done(g.add("MatMul", y, g.constant(40, 10)))
        return saved(compiled(runnable_machines()[-1], example.graph, threads=threads))

    (code, weights), *others = [split(pieces(width, threads)) for width in (16, 24) for threads in (1, 2)]
    assert max(map(len, weights)) >= 4 * 24 * 24 * 25
    for other_code, other_weights in others:
        assert other_code[0] != code[0]
        assert other_code[1] == code[1], "the runtime differs"
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
    used = large_weights(executable, narrow)
    assert len(used) == 3
    assert sum(is_view_of(array, pieces) for array in used) == 2  # the first convolution's are made from its filters
    wide = backend.compile(Partition("part", wider), DEVICE, Options())
    assert isinstance(wide, CpuExecutable)
    assert packed_again(backend) == 0
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
    first, *others = [large_weights(each, example.graph) for each in many]
    assert sum(array.nbytes for array in first if is_view_of(array, copies[0])) > 5_000
    assert sum(array.nbytes for array in first) > 10_000
    for other in others:
        assert [*map(id, other)] == [*map(id, first)]


def test_weights_are_constants_in_the_layouts_that_they_state() -> None:
    """Each piece of weights is a constant of the graph in a layout, bit for bit, unless it was computed otherwise."""
    machine, laid_out = runnable_machines()[-1], 0
    for make in (convolutions, transformer):
        graph = make().graph
        constants = {value.name: array for value, array in graph.constants.items()}
        for piece in compiled(machine, graph).save():
            if isinstance(piece, SavedWeights) and piece.layout is not None:
                laid_out += 1
                packed = np.empty(piece.layout.shape, np.float32)
                piece.layout.pack(constants[piece.constant], packed)
                assert packed.tobytes() == bytes(piece.data)
    assert laid_out >= 5


@GRAPHS
def test_programs_tables_and_indices_are_saved_as_code(make: Callable[[], Example]) -> None:
    """Weights are read from files that are not trusted, so they may hold no sizes, indices or addresses."""
    code, arrays = split(compiled(runnable_machines()[-1], make().graph).save())
    assert not any(isinstance(piece, SavedWeights) for piece in code)
    described = read_frame(memoryview(content(code[0]))).description["constants"]
    entries = [entry for entry in described if "fingerprint" in entry]
    for entry, piece in zip(entries, arrays, strict=True):
        dtype = DType(entry["dtype"])
        is_number = dtype.is_floating or dtype in (DType.INT8, DType.UINT8, DType.INT16, DType.UINT16)
        assert isinstance(piece, SavedWeights) == is_number


def test_weights_of_winograd_are_made_again_instead_of_saved() -> None:
    g = Sketch()
    example = g.done(g.add("Conv", g.input(1, 16, 20, 20), g.constant(48, 16, 3, 3)))
    machine, graph = runnable_machines()[-1], example.graph
    executable = compiled(machine, graph)
    assert sum(len(content(piece)) for piece in split(executable.save())[1]) < 1000
    assert [*executable.constants_read()] == [value.name for value in graph.constants]
    for threads in (1, 2):
        executable = compiled(machine, graph, threads=threads)
        again = restored(machine, saved(executable), graph, threads=threads)
        (made,) = large_weights(again, graph)
        assert made.nbytes > next(iter(graph.constants.values())).nbytes
        expected = run(executable, graph, example.inputs)
        assert run(again, graph, example.inputs)[0].tobytes() == expected[0].tobytes()


@MACHINES
@pytest.mark.parametrize("zero", [3, range(100, 148)], ids=["bytes", "16 bits"])
def test_panels_of_8_bit_weights_are_made_again_instead_of_saved(zero: int | range, machine: Machine) -> None:
    """The weights minus the zero points of 48 columns do not fit 8 bits."""
    g = Sketch()
    points = [g.b.constant(np.array(7, np.uint8)), g.b.constant(np.array(zero, np.uint8))]
    image = g.input(1, 30, 9, 9, dtype="uint8")
    product = g.add("MatMulInteger", g.input(20, 70, dtype="uint8"), g.constant(70, 48, dtype="uint8"), *points)
    example = g.done(product, g.add("ConvInteger", image, g.constant(48, 30, 3, 3, dtype="uint8"), *points))
    executable = compiled(machine, example.graph)
    assert sum(len(content(piece)) for piece in split(executable.save())[1]) < 1000  # the sums of the columns
    again = restored(machine, saved(executable), example.graph)
    assert max(array.nbytes for array in large_weights(again, example.graph)) >= 48 * 30 * 9
    assert_same(machine, example)


@GRAPHS
def test_only_the_listed_constants_are_read(make: Callable[[], Example]) -> None:
    """The elements of other constants are undefined when a program is restored."""
    machine, example = runnable_machines()[-1], make()
    executable = compiled(machine, example.graph)
    read = executable.constants_read()
    assert set(read) <= {value.name for value in example.graph.constants}
    expected = run(executable, example.graph, example.inputs)
    graph = example.graph.copy()
    for value, array in example.graph.constants.items():
        if value.name not in read:
            graph.constants[value] = np.full_like(array, 77 if value.dtype.is_integer else np.nan)
    again = restored(machine, saved(executable), graph)
    assert [*again.constants_read()] == [*read]
    for one, other in zip(expected, run(again, graph, example.inputs)):
        assert one.tobytes() == other.tobytes()


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
    for number, piece in enumerate(saved(executable)):
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
