"""Zero copy: arrays are shared with devices that work in main memory, and keep their owners."""

from __future__ import annotations

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from device_memory import Memory, Storage
from test_memory_spaces import SecondDevice, X, network

from lite_core.backend import Buffer
from lite_core.builder import GraphBuilder
from lite_core.ir import Graph
from lite_core.ops.evaluate import evaluate_graph
from lite_core.plugins import plugins_with
from lite_core.schedule import RunProfile
from lite_core.session import Session, load

Array = np.ndarray[Any, Any]


class Wrapped(Storage):
    """Storage over an array; if the device works on a copy, the array is stale until it is synchronized."""

    def __init__(self, array: Array, copies: bool) -> None:
        super().__init__(array.copy() if copies else array)
        self.array = array


class SharedMemory(Memory):
    """A memory space that checks the contract of ``wrap`` and records what was wrapped, by weak references.

    Args:
        copies: the device writes to a copy until it is told to synchronize.
        alignment: ``wrap_alignment``.
    """

    def __init__(self, space: str, copies: bool = False, alignment: int = 64) -> None:
        super().__init__(space)
        self.wrap_alignment = alignment
        self.wrapped: list[weakref.ref[Wrapped]] = []
        self.writable: list[bool] = []
        self._copies = copies

    def wrap(self, array: Array) -> Wrapped:
        assert array.flags.c_contiguous
        assert array.nbytes
        assert array.ctypes.data % self.wrap_alignment == 0
        storage = Wrapped(array, self._copies)
        self.wrapped.append(weakref.ref(storage))
        self.writable.append(array.flags.writeable)
        return storage

    def synchronize(self, data: Wrapped) -> None:
        if data.content is not data.array:
            np.copyto(data.array, data.content)

    def view(self, data: Storage, offset: int, type: Any) -> Storage:
        shape = tuple(type.shape)
        return Storage(np.ndarray(shape, type.dtype.numpy, buffer=data.content.data, offset=offset))


def shared(name: str, ops: set[str], **options: Any) -> tuple[SecondDevice, SharedMemory]:
    """Return a backend whose tensors are in main memory, and its memory."""
    backend = SecondDevice(name, ops)
    memory = backend.tensors = SharedMemory(name, **options)
    return backend, memory


def exponential(**options: Any) -> tuple[Session, SharedMemory]:
    """Return a session that computes ``exp(x)`` on a device in main memory, and the memory of the device."""
    backend, memory = shared("near", {"Exp"}, **options)
    b = GraphBuilder("exponential")
    b.output(b.add("Exp", [b.input("x", "float32", ["n", 4])]), "y")
    return load(b.build(), backend="near", fallback="never", plugins=plugins_with(backend)), memory


def aligned(array: Array, alignment: int = 64, beyond: int = 0) -> Array:
    """Return a copy that begins ``beyond`` bytes after a multiple of ``alignment``."""
    block = np.empty(array.nbytes + alignment + beyond, np.uint8)
    start = -block.ctypes.data % alignment + beyond
    copy: Array = block[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def rows(count: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal((count, 4)).astype(np.float32)


@pytest.mark.parametrize("copies", [False, True])
@pytest.mark.parametrize("count", [0, 1, 2])
@pytest.mark.parametrize("order", [["a", "b"], ["b", "a"], ["a"], ["b"]])
def test_values_cross_spaces_in_both_directions(order: list[str], count: int, copies: bool) -> None:
    a, _ = shared("a", {"Neg", "Mul", "Relu", "NonZero"}, copies=copies)
    b, _ = shared("b", {"Exp", "Add", "Neg"}, copies=copies, alignment=4)
    session = load(network(), backend=order, plugins=plugins_with(a, b))
    given = aligned(X[:count])
    expected = evaluate_graph(network(), [given])
    outputs = list(session.run({"x": given}).values())
    for array, right in zip(outputs, expected):
        np.testing.assert_array_equal(array, right)
        assert sum(np.shares_memory(array, other) for other in [given, *outputs]) == (1 if array.size else 0)


@pytest.mark.parametrize("copies", [False, True])
def test_plan_and_profile_show_zero_copies(copies: bool) -> None:
    session, memory = exponential(copies=copies)
    profile, x = RunProfile(), aligned(rows(3))
    np.testing.assert_array_equal(session.run({"x": x}, profile=profile)["y"], np.exp(x))
    assert (memory.uploads, memory.downloads) == (0, 0)
    assert [(c.value, c.source, c.target, c.bytes) for c in profile.copies] == [
        ("x", "host", "near", 0),
        ("y", "near", "host", 0),
    ]
    assert str(profile).count("zero copy") == 2
    assert str(session.plan({"x": (3, 4)}).describe()).count(", zero copy") == 2


@pytest.mark.parametrize(
    "x",
    [
        pytest.param(aligned(rows(3), beyond=4), id="unaligned"),
        pytest.param(np.repeat(rows(3), 2, axis=1)[:, ::2], id="not contiguous"),
        pytest.param(np.asfortranarray(rows(3)), id="column-major"),
        pytest.param(rows(0), id="empty"),
    ],
)
def test_arrays_that_cannot_be_shared_are_copied(x: Array) -> None:
    # A contiguous copy may begin at a multiple of 4096 by chance, but hardly of 16 MiB.
    session, memory = exponential(alignment=2**24)
    np.testing.assert_array_equal(session.run({"x": x})["y"], np.exp(x))
    assert memory.uploads == 1
    assert memory.downloads == (1 if x.size == 0 else 0)


def test_a_read_only_input_is_shared_and_no_input_can_be_written() -> None:
    session, memory = exponential()
    x = aligned(rows(3))
    x.flags.writeable = False
    np.testing.assert_array_equal(session.run({"x": x})["y"], np.exp(x))
    assert memory.uploads == 0
    session.run({"x": aligned(rows(3))})
    assert memory.writable == 2 * [False, True]  # the input, the output


def test_outputs_do_not_change_with_later_runs() -> None:
    session, _ = exponential()
    inputs = [rows(5, seed) for seed in range(4)]
    outputs = [session.run({"x": x})["y"] for x in inputs]
    for x, y in zip(inputs, outputs):
        np.testing.assert_array_equal(y, np.exp(x))
        assert not any(np.shares_memory(y, other) for other in outputs if other is not y)


@pytest.mark.parametrize("fails", [False, True])
def test_no_reference_to_arrays_outlives_a_run(fails: bool) -> None:
    session, memory = exponential()
    session.run({"x": rows(3)})
    x = aligned(rows(3))
    owner = weakref.ref(x.base)
    if fails:
        memory.synchronize = None  # type: ignore[assignment,method-assign]
        with pytest.raises(Exception, match=r"'y' from near to host"):
            session.run({"x": x})
    else:
        session.run({"x": x})
    del x
    gc.collect()  # an error and its traceback refer to each other
    assert owner() is None
    assert all(storage() is None for storage in memory.wrapped)


@pytest.mark.parametrize("beyond", [0, 4])
@pytest.mark.parametrize("copies", [False, True])
def test_outputs_are_written_into_the_callers_arrays(copies: bool, beyond: int) -> None:
    session, memory = exponential(copies=copies)
    x, y = aligned(rows(3)), aligned(np.zeros((3, 4), np.float32), beyond=beyond)
    assert session.run({"x": x}, out={"y": y})["y"] is y
    np.testing.assert_array_equal(y, np.exp(x))
    assert memory.downloads == 0
    binding = session.bind({"x": x}, {"y": y})
    x[...] = 0
    assert binding.run()["y"] is y
    assert (y == 1).all()


def test_an_output_array_that_overlaps_an_input() -> None:
    session, _ = exponential()
    block = aligned(rows(5))
    x, y = block[:3], block[2:]
    expected = np.exp(x)
    session.run({"x": x}, out={"y": y})
    np.testing.assert_array_equal(y, expected)


def test_one_array_for_two_inputs() -> None:
    backend, memory = shared("near", {"Mul"})
    b = GraphBuilder("product")
    b.output(b.add("Mul", [b.input("p", "float32", [3, 4]), b.input("q", "float32", [3, 4])]), "y")
    session = load(b.build(), backend="near", fallback="never", plugins=plugins_with(backend))
    x = aligned(rows(3))
    np.testing.assert_array_equal(session.run({"p": x, "q": x})["y"], x * x)
    assert memory.uploads == 0


def crossing() -> Graph:
    """Return a graph with values of host that the device reads early and late, and outputs that both read."""
    b = GraphBuilder("crossing")
    x = b.input("x", "float32", ["n", 4])
    first = b.add("Neg", [x])
    y = b.add("Exp", [first])
    for _ in range(3):
        y = b.add("Exp", [b.add("Neg", [b.add("Relu", [y])])])
    late = b.add("Mul", [first, y])
    b.output(y, "y")
    b.output(late, "late")
    b.output(b.add("Neg", [late]), "later")
    return b.build()


@pytest.mark.parametrize("copies", [False, True])
def test_shared_memory_is_not_reused_while_the_device_reads_it(copies: bool) -> None:
    backend, memory = shared("near", {"Exp", "Mul"}, copies=copies)
    session = load(crossing(), backend=["near", "host"], plugins=plugins_with(backend), optimize=False)
    x = rows(6)
    steps = session.plan({"x": x.shape}).describe()
    memory.writable.clear()  # copies were measured
    for array, right in zip(session.run({"x": x}).values(), evaluate_graph(crossing(), [x])):
        np.testing.assert_array_equal(array, right)
    assert memory.downloads == 0
    assert sum(memory.writable) == steps.count("from near to host") > 3


def test_storage_that_replaces_shared_storage_is_copied() -> None:
    backend, memory = shared("near", {"Exp"})
    compile_ = backend.compile

    def compile_replacing(part: Any, device: Any, options: Any) -> Any:
        executable = compile_(part, device, options)

        def run(inputs: list[Buffer], outputs: list[Buffer], scratch: Buffer) -> None:
            outputs[0].data = Storage(np.exp(inputs[0].data.content))

        executable.run = run  # type: ignore[method-assign]
        return executable

    backend.compile = compile_replacing  # type: ignore[method-assign]
    b = GraphBuilder("exponential")
    b.output(b.add("Exp", [b.input("x", "float32", [3, 4])]), "y")
    session = load(b.build(), backend="near", fallback="never", plugins=plugins_with(backend))
    x = rows(3)
    np.testing.assert_array_equal(session.run({"x": x})["y"], np.exp(x))
    assert memory.downloads == 1


@pytest.mark.parametrize("copies", [False, True])
def test_sixteen_threads_with_the_same_input_array(copies: bool) -> None:
    backend, _ = shared("near", {"Exp", "Mul"}, copies=copies)
    session = load(crossing(), backend=["near", "host"], plugins=plugins_with(backend), optimize=False)
    arrays = [aligned(rows(5, seed)) for seed in range(3)]
    expected = [evaluate_graph(crossing(), [x]) for x in arrays]
    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(lambda i: list(session.run({"x": arrays[i % 3]}).values()), range(96)))
    for i, outputs in enumerate(results):
        for array, right in zip(outputs, expected[i % 3]):
            np.testing.assert_array_equal(array, right)
