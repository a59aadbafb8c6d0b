"""The same answer every time: what the check finds, and that outputs are the caller's own."""

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
    """A backend whose answers may depend on what ran before."""

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
    """A backend that answers with the same memory each time."""

    def compile(self, part: Partition, device: Device, options: Options) -> ReusesMemory:
        return ReusesMemory()


class ReusesMemory:
    scratch_bytes = 0

    def __init__(self) -> None:
        self._answer = np.empty((1, 3), np.float32)

    def run(self, inputs: list[Buffer], outputs: list[Buffer], scratch: Buffer | None) -> None:
        np.maximum(inputs[0].data, 0, out=self._answer)
        outputs[0].data = self._answer


def session_on(backend: Any) -> Session:
    return load(network(), backend="unsteady", fallback="never", plugins=plugins_with(backend))


def test_a_steady_backend_is_found_steady() -> None:
    report = check_consistency(lambda: session_on(Unsteady(lambda: 0)), {"x": X}, runs=3)
    assert report.ok
    assert (report.runs, report.sessions, report.threads) == (21, 3, 4)


def test_an_answer_that_drifts_is_found_with_its_place_and_size() -> None:
    numbers = itertools.count()
    report = check_consistency(lambda: session_on(Unsteady(lambda: next(numbers))), {"x": X}, runs=2)
    assert not report.ok
    assert str(report.differences[0]) == "run 1 of session 1: output 'y' differs in 1 element(s), by 1 at most"
    assert {d.elements for d in report.differences} == {1}


def test_the_smallest_difference_counts() -> None:
    numbers = itertools.chain([0.0], itertools.repeat(-0.0))
    report = check_consistency(lambda: session_on(Unsteady(lambda: next(numbers))), {"x": X - 1}, runs=1)
    assert report.ok  # 0 + -0 is 0
    tiny = itertools.chain([0.0], itertools.repeat(1e-30))
    assert not check_consistency(lambda: session_on(Unsteady(lambda: next(tiny))), {"x": X}, runs=1).ok


def test_a_nan_that_stays_is_no_difference() -> None:
    assert check_consistency(lambda: session_on(Unsteady(lambda: np.nan)), {"x": X}, runs=2).ok


def test_memory_that_a_backend_uses_again_does_not_reach_the_caller() -> None:
    assert check_consistency(lambda: session_on(Reuses(None)), {"x": X}, runs=2).ok


@pytest.mark.parametrize("backend", [Unsteady(lambda: 0), Reuses(None)], ids=["own", "reused"])
def test_outputs_outlive_later_runs_other_threads_and_the_session(backend: Any) -> None:
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
    kept[...] = 7  # and they can be written, without anybody else noticing
    np.testing.assert_array_equal(session_on(backend).run({"x": X})["y"], expected)


def test_requiring_a_backend() -> None:
    session = session_on(Unsteady(lambda: 0))
    check_required(session, "unsteady", 0.0)
    check_required(session, "x86", 1.0)
    with pytest.raises(
        LiteError, match=r"1 of 1 nodes run elsewhere than on 'x86', 100.0% where 50.0% may:\n  1 x Relu"
    ):
        check_required(session, "x86", 0.5)
