"""Profiles: partitions, kernels if the backend measures them, totals by operator, text and JSON."""

from __future__ import annotations

import json

import numpy as np
import pytest
from measuring import Measuring, X, network

from lite_core import GraphBuilder, KernelBackend
from lite_core.plugins import plugins_with
from lite_core.session import RunProfile, Session, load
from lite_tools.commands.profiles import print_profile


@pytest.fixture
def measured() -> Session:
    return load(network(), backend="measuring", fallback="never", plugins=plugins_with(Measuring()))


def test_profile_true_keeps_the_last_profile(measured: Session) -> None:
    assert measured.last_profile is None
    outputs = measured.run({"x": X}, profile=True)
    assert outputs["y"].tolist() == [[0, 0, 0]]
    assert measured.last_profile is not None
    assert [k.kernel for k in measured.last_profile.kernels] == ["exp_relu", "neg"]


def test_given_profile_holds_the_last_run(measured: Session) -> None:
    profile = RunProfile()
    for _ in range(2):
        measured.run({"x": X}, profile=profile)
    fused, neg = profile.kernels
    assert (fused.op, fused.nodes, fused.partition, fused.device) == (
        "Exp+Relu",
        ("first", "second"),
        "measuring/0",
        "measuring",
    )
    assert (fused.flops, fused.bytes, fused.peak_share, neg.peak_share) == (4e6, 8e6, 0.25, None)
    assert profile.by_op() == {"Exp+Relu": 0.002, "Neg": 0.001}
    assert list(profile.by_device()) == ["measuring"]


def test_a_run_without_a_profile_measures_nothing(measured: Session) -> None:
    measured.run({"x": X})
    measured.run({"x": X}, profile=False)
    assert measured.last_profile is None


def test_profile_as_text(measured: Session) -> None:
    profile = RunProfile()
    measured.run({"x": X}, profile=profile)
    profile.seconds = 0.004
    assert [" ".join(line.split()) for line in str(profile).splitlines()] == [
        "2.000 ms exp_relu (Exp+Relu): first, second",
        "1.000 ms neg (Neg): third",
        f"{profile.partitions[0].seconds * 1e3:.3f} ms measuring/0 on measuring, 3 nodes",
        "4.000 ms the whole run",
    ]


def test_profile_as_tables(measured: Session, capsys: pytest.CaptureFixture[str]) -> None:
    profile = RunProfile()
    measured.run({"x": X}, profile=profile)
    profile.seconds = 0.004
    print_profile(profile)
    kernels, ops, partitions = (
        [" ".join(line.split()) for line in text.splitlines()] for text in capsys.readouterr().out.split("\n\n")
    )
    assert kernels[1:] == [
        "exp_relu Exp+Relu 2.000 50.0% 2.0 4.0 25% first, second",
        "neg Neg 1.000 25.0% - - - third",
    ]
    part = profile.partitions[0].seconds
    rest = part - 0.003
    assert ops[1:] == [
        f"measuring/0 Exp+Relu 1 2.000 {0.002 / part:.1%}",
        f"Neg 1 1.000 {0.001 / part:.1%}",
        f"unaccounted {rest * 1e3:.3f} {rest / part:.1%}",
        f"sum 2 {part * 1e3:.3f} 100.0%",
    ]
    assert partitions[-1].endswith("4.000 100.0%")


def test_nodes_of_a_device_that_does_not_measure_kernels_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    b = GraphBuilder("two")
    b.output(b.add("Neg", [b.add("Neg", [b.add("Relu", [b.input("x", "float32", (2,))])])]))
    session, profile = load(b.build(), backend="host", optimize=False), RunProfile()
    session.run({"x": np.ones(2, np.float32)}, profile=profile)
    print_profile(profile, session.assignment())
    assert capsys.readouterr().out.endswith("host does not measure its kernels; its nodes are 2 x Neg, 1 x Relu\n")


def test_profile_as_json(measured: Session) -> None:
    measured.run({"x": X}, profile=True)
    assert measured.last_profile is not None
    data = json.loads(measured.last_profile.to_json())
    assert data["kernels"][0]["nodes"] == ["first", "second"]
    assert data["partitions"][0]["nodes"] == 3
    assert data["seconds_by_op"] == {"Exp+Relu": 0.002, "Neg": 0.001}


def test_backend_without_kernel_times_has_times_of_partitions() -> None:
    session = load(network(), backend="host", plugins=plugins_with())
    session.run({"x": X}, profile=True)
    profile = session.last_profile
    assert profile is not None
    assert [(p.device, p.nodes) for p in profile.partitions] == [("host", 3)]
    assert profile.kernels == []
    assert "host/0" in str(profile)


def test_kernel_backends_measure_each_kernel() -> None:
    backend = KernelBackend("toy")

    @backend.kernel("Exp")
    def exponential(x: np.ndarray, *, out: np.ndarray) -> None:
        np.exp(x, out=out)

    @backend.kernel("Relu")
    def relu(x: np.ndarray) -> np.ndarray:
        return np.maximum(x, 0)

    session = load(network(), backend="toy", plugins=plugins_with(backend))
    profile = RunProfile()
    outputs = session.run({"x": X}, profile=profile)
    np.testing.assert_allclose(outputs["y"], -np.exp(X), rtol=1e-6)
    assert [(k.kernel, k.op, k.nodes, k.bytes) for k in profile.kernels] == [
        ("exponential", "Exp", ("first",), 24),
        ("relu", "Relu", ("second",), 24),
    ]
    assert all(k.seconds > 0 for k in profile.kernels)
