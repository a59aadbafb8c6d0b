"""The consistency check, and the independence of outputs from later runs."""

from __future__ import annotations

import gc
import itertools
import threading
from typing import Any

import numpy as np
import pytest

from lite_core.backend import Buffer, Device, Options, Partition, Yes
from lite_core.builder import GraphBuilder
from lite_core.errors import LiteError
from lite_core.ir import Graph, Node
from lite_core.plugins import plugins_with
from lite_core.session import Session, load
from lite_tools.cli.fallback import check_required
from lite_tools.diagnostics import check_consistency

X = np.array([[1.0, -2.0, 3.0]], np.float32)


def network() -> Graph:
    b = GraphBuilder("net")
    x = b.input("x", "float32", ["n", 3])
    b.output(b.add("Relu", [x], name="first"), "y")
    return b.build()


class Unsteady:
    """A backend whose results may depend on earlier runs."""

    name = "unsteady"

    def __init__(self, offset: Any) -> None:
        self._offset = offset

    def probe(self) -> list[Device]:
        return [Device(self.name)]

    def supports(self, node: Node, device: Device) -> Yes:
        return Yes()

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        return Executable(self._offset)


class Executable:
    scratch_bytes = 0

    def __init__(self, offset: Any) -> None:
        self._offset = offset

    def run(self, inputs: list[Buffer], outputs: list[Buffer], scratch: Buffer | None) -> None:
        np.maximum(inputs[0].data, 0, out=outputs[0].data)
        outputs[0].data[0, 1] += self._offset()


class Reuses(Unsteady):
    """A backend that returns the same memory in each run."""

    def compile(self, part: Partition, device: Device, options: Options) -> ReusesMemory:
        return ReusesMemory()


class ReusesMemory:
    scratch_bytes = 0

    def __init__(self) -> None:
        self._result = np.empty((1, 3), np.float32)

    def run(self, inputs: list[Buffer], outputs: list[Buffer], scratch: Buffer | None) -> None:
        np.maximum(inputs[0].data, 0, out=self._result)
        outputs[0].data = self._result


def session_on(backend: Any) -> Session:
    return load(network(), backend="unsteady", fallback="never", plugins=plugins_with(backend))


def test_consistent_backend_passes() -> None:
    report = check_consistency(lambda: session_on(Unsteady(lambda: 0)), {"x": X}, runs=3)
    assert report.ok
    assert (report.runs, report.sessions, report.threads) == (21, 3, 4)


def test_drifting_result_is_reported_with_run_and_size() -> None:
    numbers = itertools.count()
    report = check_consistency(lambda: session_on(Unsteady(lambda: next(numbers))), {"x": X}, runs=2)
    assert not report.ok
    assert (report.differences[0].where, report.differences[0].output) == ("run 1 of session 1", "y")
    assert report.differences[0].largest == 1
    assert {d.elements for d in report.differences} == {1}


def test_smallest_difference_counts() -> None:
    numbers = itertools.chain([0.0], itertools.repeat(-0.0))
    report = check_consistency(lambda: session_on(Unsteady(lambda: next(numbers))), {"x": X - 1}, runs=1)
    assert report.ok  # 0 + -0 is 0
    tiny = itertools.chain([0.0], itertools.repeat(1e-30))
    assert not check_consistency(lambda: session_on(Unsteady(lambda: next(tiny))), {"x": X}, runs=1).ok


def test_equal_nan_is_not_a_difference() -> None:
    assert check_consistency(lambda: session_on(Unsteady(lambda: np.nan)), {"x": X}, runs=2).ok


def test_memory_that_a_backend_reuses_is_not_returned_to_the_caller() -> None:
    assert check_consistency(lambda: session_on(Reuses(None)), {"x": X}, runs=2).ok


@pytest.mark.parametrize("backend", [Unsteady(lambda: 0), Reuses(None)], ids=["own", "reused"])
def test_outputs_are_independent_of_later_runs_threads_and_the_session(backend: Any) -> None:
    session = session_on(backend)
    kept = session.run({"x": X})["y"]
    expected = kept.copy()
    session.run({"x": X + 5})
    np.testing.assert_array_equal(kept, expected)
    threads = [threading.Thread(target=session.run, args=({"x": X + i},)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(kept, expected)
    del session
    gc.collect()
    np.testing.assert_array_equal(kept, expected)
    kept[...] = 7  # writing to an output must not affect other sessions
    np.testing.assert_array_equal(session_on(backend).run({"x": X})["y"], expected)


def test_requiring_a_backend() -> None:
    session = session_on(Unsteady(lambda: 0))
    check_required(session, "unsteady", 0.0, "m.onnx")
    check_required(session, "x86", 1.0, "m.onnx")
    with pytest.raises(LiteError, match=r"1 of 1 nodes .*'x86'(.|\n)*Relu"):
        check_required(session, "x86", 0.5, "m.onnx")
