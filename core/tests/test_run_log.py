"""The log at the level debug: the device of each node, each kernel as it starts, and what is left after a crash."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Sequence

import numpy as np
import pytest

import lite_core as lite
from lite_core.backend import Buffer, Device, Executable, Options, Partition, Yes
from lite_core.ir import Node
from lite_core.ops.evaluate import evaluate_graph
from lite_core.plugins import plugins_with
from lite_core.schedule import RunProfile

CRASH = """
import ctypes
import numpy as np
import lite_core as lite
from lite_core.plugins import plugins_with

toy = lite.KernelBackend("toy")

@toy.kernel("Relu")
def relu(x):
    return np.maximum(x, 0)

@toy.kernel("Neg")
def wrong_pointer(x):
    ctypes.string_at(0)

b = lite.GraphBuilder("two")
b.output(b.add("Neg", [b.add("Relu", [b.input("x", "float32", [2])], name="sound")], name="culprit"), "y")
session = lite.load(b.build(), "toy", plugins=plugins_with(toy))
session.run({"x": np.ones(2, np.float32)}, profile=PROFILE)
"""


class OneCall:
    """A backend whose executables are one native call: they cannot be observed."""

    name = "onecall"
    scratch_bytes = 0

    def probe(self) -> Sequence[Device]:
        return [Device(self.name)]

    def supports(self, node: Node, device: Device) -> Yes:
        return Yes()

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        self.graph = part.graph
        return self

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        for buffer, array in zip(outputs, evaluate_graph(self.graph, [b.data for b in inputs])):
            buffer.store(array)


def two_nodes() -> lite.Graph:
    b = lite.GraphBuilder("two")
    b.output(b.add("Neg", [b.add("Exp", [b.input("x", "float32", [2])], name="first")], name="second"), "y")
    return b.build()


def negating() -> lite.KernelBackend:
    toy = lite.KernelBackend("toy")

    @toy.kernel("Neg")
    def negate(x: np.ndarray) -> np.ndarray:
        return -x

    return toy


def lines_of(caplog: pytest.LogCaptureFixture, logger: str) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == logger]


@pytest.mark.parametrize("profile", ["None", "True"])
def test_last_line_of_a_crash_names_the_kernel(profile: str) -> None:
    environment = {**os.environ, "GLOG_v": "5"}
    environment.pop("LITE_LOG", None)
    command = [sys.executable, "-c", CRASH.replace("PROFILE", profile)]
    died = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert died.returncode < 0
    log, _, stack = died.stderr.partition("Fatal Python error")
    last = log.strip().splitlines()[-1]
    assert all(name in last for name in ("toy/0", "on toy", "wrong_pointer", "culprit")), last
    assert "sound" not in last
    assert "in wrong_pointer" in stack  # faulthandler's stack


def test_each_node_with_its_device_and_reasons(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "lite.schedule")
    lite.load(two_nodes(), "toy", plugins=plugins_with(negating())).prepare()
    lines = lines_of(caplog, "lite.schedule")
    assert "Exp 'first' on host; not toy: backend 'toy' has no kernel for Exp" in lines
    assert "Neg 'second' on toy" in lines


def test_each_kernel_is_logged_before_it_runs(caplog: pytest.LogCaptureFixture) -> None:
    session = lite.load(two_nodes(), "toy", plugins=plugins_with(negating()))
    x = {"x": np.ones(2, np.float32)}
    silent = session.run(x)
    assert not lines_of(caplog, "lite.run")
    caplog.set_level(logging.DEBUG, "lite.run")
    np.testing.assert_array_equal(session.run(x)["y"], silent["y"])
    kernels = [line for line in lines_of(caplog, "lite.run") if "kernel" in line]
    assert ["first" in kernels[0], "second" in kernels[1], len(kernels)] == [True, True, 2]
    assert all(name in kernels[1] for name in ("toy/1", "on toy", "negate"))


def test_a_logged_run_is_profiled(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "lite.run")
    profile = RunProfile()
    session = lite.load(two_nodes(), "toy", plugins=plugins_with(negating()))
    session.run({"x": np.ones(2, np.float32)}, profile=profile)
    assert [part.device for part in profile.partitions] == ["host", "toy"]
    assert [kernel.nodes for kernel in profile.kernels] == [("first",), ("second",)]


@pytest.mark.parametrize("profile", [None, True])
def test_a_partition_that_cannot_be_observed(caplog: pytest.LogCaptureFixture, profile: bool | None) -> None:
    caplog.set_level(logging.DEBUG, "lite.run")
    session = lite.load(two_nodes(), "onecall", plugins=plugins_with(OneCall()))
    session.run({"x": np.ones(2, np.float32)}, profile=profile)
    (line,) = [line for line in lines_of(caplog, "lite.run") if "kernel" in line]
    assert all(name in line for name in ("onecall/0", "first", "second"))


def test_bodies_of_control_flow(caplog: pytest.LogCaptureFixture) -> None:
    outer = lite.GraphBuilder("outer")
    x, condition = outer.input("x", "float32", [2]), outer.input("condition", "bool", [])
    body, other = lite.GraphBuilder("body", outer=outer), lite.GraphBuilder("other", outer=outer)
    body.output(body.add("Neg", [x], name="inside"), "negated")
    other.output(other.add("Identity", [x]), "same")
    chosen = outer.add("If", [condition], {"then_branch": body.build(), "else_branch": other.build()})
    outer.output(chosen, "y")
    caplog.set_level(logging.DEBUG, "lite.run")
    session = lite.load(outer.build(), "toy", plugins=plugins_with(negating()))
    profile = RunProfile()
    session.run({"x": np.ones(2, np.float32), "condition": np.array(True)}, profile=profile)
    assert any("negate" in line and "inside" in line for line in lines_of(caplog, "lite.run"))
    assert "toy" in {part.device for part in profile.partitions}
