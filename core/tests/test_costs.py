"""Cost estimates of nodes and copies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from lite_core.backend import Device
from lite_core.builder import GraphBuilder
from lite_core.builtin import HostBackend, NullBackend
from lite_core.ir import Attribute, Node
from lite_core.memory import HostMemory
from lite_core.ops.work import Work, work_of
from lite_core.schedule import costs
from lite_core.schedule.costs import Costs, Link, measure_link
from lite_core.schedule.devices import Candidate

Array = np.ndarray[Any, Any]
Dims = Sequence[int | str]


def node_of(op: str, *shapes: Dims | Array, dtype: str = "float32", **attributes: Attribute) -> Node:
    """Return a node on inputs of these shapes; an array becomes a constant."""
    b = GraphBuilder()
    inputs = [
        b.constant(shape) if isinstance(shape, np.ndarray) else b.input(f"x{number}", dtype, shape)
        for number, shape in enumerate(shapes)
    ]
    b.add(op, inputs, attributes)
    return b.graph.nodes[-1]


@pytest.mark.parametrize(
    ("node", "flops", "bytes"),
    [
        (node_of("Relu", [2, 3]), 6, 48),
        (node_of("Add", [2, 3], [3]), 6, 60),
        (node_of("Mul", [2, 3], [2, 3], dtype="float16"), 6, 36),
        (node_of("ReduceSum", [4, 5], keepdims=0), 20, 84),
        (node_of("GlobalAveragePool", [1, 8, 7, 7]), 392, 1600),
        (node_of("Conv", [1, 8, 5, 5], [16, 8, 3, 3]), 2 * 16 * 9 * 72, 4 * (200 + 1152 + 144)),
        (node_of("Conv", [1, 8, 5, 5], [8, 1, 3, 3], group=8), 2 * 8 * 9 * 9, 4 * (200 + 72 + 72)),
        (node_of("ConvTranspose", [1, 8, 5, 5], [8, 4, 2, 2], strides=(2, 2)), 2 * 200 * 16, 4 * (200 + 128 + 400)),
        (node_of("MatMul", [7, 2, 3], [3, 5]), 2 * 7 * 2 * 3 * 5, 4 * (42 + 15 + 70)),
        (node_of("Gemm", [2, 3], [3, 5]), 2 * 2 * 3 * 5, 4 * (6 + 15 + 10)),
        (node_of("Gemm", [3, 2], [5, 3], transA=1, transB=1), 2 * 2 * 3 * 5, 4 * (6 + 15 + 10)),
        (node_of("MaxPool", [1, 2, 6, 6], kernel_shape=(3, 2), strides=(3, 2)), 12 * 6, 4 * (72 + 12)),
        (node_of("GRU", [5, 2, 3], [1, 12, 3], [1, 12, 4], hidden_size=4), 2 * 10 * 84, 4 * (30 + 36 + 48 + 40)),
        (node_of("Reshape", [2, 3], np.array([6])), 0, 0),
        (node_of("Gather", [1000, 8], np.array([1, 2])), 0, 2 * 64),
        (node_of("Shape", [1000, 8]), 0, 2 * 16),
    ],
    ids=lambda value: value.op if isinstance(value, Node) else "",
)
def test_work_of_operators(node: Node, flops: int, bytes: int) -> None:
    assert work_of(node) == Work(flops, bytes)


def test_unknown_sizes_and_subgraphs_are_unknown_work() -> None:
    assert work_of(node_of("Relu", ["n", 3])) is None
    assert work_of(node_of("NonZero", [2, 3])) is None
    body = GraphBuilder("then")
    body.output(body.constant(np.ones(3, np.float32)))
    branches = {"then_branch": body.build(), "else_branch": body.build()}
    assert work_of(node_of("If", [], dtype="bool", **branches)) is None


DEVICE = Device("null", flops=1000.0, bandwidth=100.0, launch_seconds=0.5)


@pytest.mark.parametrize(
    ("device", "seconds"),
    [
        (DEVICE, 0.5 + 48 / 100),
        (Device("null", flops=4.0, bandwidth=100.0), 6 / 4),
        (Device("null", flops=1000.0), None),
        (Device("null", bandwidth=100.0), None),
        (Device("null"), None),
    ],
)
def test_node_time_is_limited_by_arithmetic_or_memory(device: Device, seconds: float | None) -> None:
    assert Costs().node_seconds(node_of("Relu", [2, 3]), Candidate(NullBackend(), device)) == seconds


def test_host_is_measured_once_and_only_when_asked() -> None:
    backend = HostBackend()
    (device,) = backend.probe()  # type: ignore[misc]
    assert (device.flops, device.bandwidth) == (0, 0)
    measured = backend.measured(device)
    assert measured == backend.measured(device)
    assert all(math.isfinite(x) and x > 0 for x in (measured.flops, measured.bandwidth, measured.launch_seconds))
    seconds = Costs().node_seconds(node_of("Relu", [2, 3]), Candidate(backend, device))
    assert seconds is not None
    assert seconds > measured.launch_seconds


class Clock:
    """A clock that a memory advances, so that measurements are exact."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now


class SlowMemory(HostMemory):
    """A memory whose copies take a fixed time and a time for each byte; the first copy takes a second."""

    def __init__(self, clock: Clock, space: str = "slow") -> None:
        self.clock = clock
        self.space = space
        self.copies = 0

    def upload(self, array: Array, data: Array) -> None:
        self.clock.now += 1.0 if self.copies == 0 else 2e-6 + 1e-9 * array.nbytes
        self.copies += 1

    def download(self, data: Array) -> Array:
        self.clock.now += 5e-6 + 3e-9 * data.nbytes
        self.copies += 1
        return data


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(costs, "time", clock)
    monkeypatch.setattr(costs, "_links", dict(costs._links))
    return clock


def test_copies_are_measured_in_each_direction(clock: Clock) -> None:
    link = measure_link(SlowMemory(clock))
    assert link.upload == pytest.approx((2e-6, 1e-9))
    assert link.download == pytest.approx((5e-6, 3e-9))
    assert link.upload_seconds(1_000_000) == pytest.approx(1002e-6)
    assert link.download_seconds(1_000_000) == pytest.approx(3005e-6)


def test_slow_link_is_measured_fewer_times(clock: Clock) -> None:
    memory = SlowMemory(clock)
    measure_link(memory)
    # One warm-up for each size, five repetitions with the small tensor, and one with the large tensor.
    assert memory.copies == 2 + 2 * 5 + 2 * 1


def test_a_link_is_measured_once_for_all_devices_of_a_space(clock: Clock) -> None:
    class Backend(NullBackend):
        def memory(self, device: Device) -> SlowMemory:
            return memory

    memory = SlowMemory(clock)
    devices = [Candidate(Backend(), Device("null", index)) for index in range(2)]
    first = Costs().link(devices[0])
    copies = memory.copies
    assert Costs().link(devices[1]) == first
    assert memory.copies == copies


def test_main_memory_needs_no_copies() -> None:
    (device,) = HostBackend().probe()  # type: ignore[misc]
    assert Costs().link(Candidate(HostBackend(), device)) == Link("host")
    assert Link("host").upload_seconds(1 << 30) == 0
