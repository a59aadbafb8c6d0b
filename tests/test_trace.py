"""Traces of profiles: the format, the order of steps, and everything that the events carry."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import container_graphs
import jsonschema
import numpy as np
import pytest
from discrete_memory import DiscreteMemoryBackend
from measuring import Measuring, X, network

from lite_core import KernelBackend
from lite_core.plugins import plugins_with
from lite_core.session import RunProfile, Session, load
from lite_onnx import write
from lite_tools.cli.program import main
from lite_tools.commands.profile_rows import UNACCOUNTED, operator_rows, unaccounted_seconds
from lite_tools.commands.trace import trace_document

SCHEMA = json.loads((Path(__file__).parent / "trace_event_schema.json").read_text())


def traced(session: Session, inputs: dict[str, np.ndarray]) -> tuple[RunProfile, list[dict[str, Any]]]:
    """Run twice; return the second profile, and its trace's complete events, after the trace was validated."""
    profile = RunProfile()
    for _ in range(2):
        session.run(inputs, profile=profile)
    document = trace_document(profile, session.plan({name: a.shape for name, a in inputs.items()}), "network")
    jsonschema.validate(json.loads(json.dumps(document, allow_nan=False)), SCHEMA)
    assert "beginnings are not" in document["otherData"]["times"]
    return profile, [event for event in document["traceEvents"] if event["ph"] == "X"]


def end(event: dict[str, Any]) -> float:
    return float(event["ts"] + event["dur"])


def test_kernels_lie_in_their_partition() -> None:
    session = load(network(), backend="measuring", fallback="never", plugins=plugins_with(Measuring()))
    _, (part, *kernels) = traced(session, {"x": X})
    assert (part["cat"], part["name"], part["args"]["nodes"]) == ("partition", "measuring/0", 3)
    assert [(k["name"], k["ts"], k["dur"]) for k in kernels] == [("exp_relu", 0, 2000), ("neg", 2000, 1000)]
    assert end(part) == end(kernels[-1])  # this backend's clock gave the kernels more time than the partition took
    assert part["args"]["measured_ms"] < 3
    assert kernels[0]["args"] == {
        "op": "Exp+Relu",
        "nodes": ["first", "second"],
        "flops": 4e6,
        "gflops_per_second": pytest.approx(2),
        "bytes": 8e6,
        "gigabytes_per_second": pytest.approx(4),
        "share_of_peak": 0.25,
    }
    assert "flops" not in kernels[1]["args"]


def test_steps_follow_each_other_with_copies_between_them() -> None:
    backend = DiscreteMemoryBackend(refused=["Relu"])
    session = load(network(), backend=["discrete", "host"], placement={"second": "host"}, plugins=plugins_with(backend))
    profile, events = traced(session, {"x": X})
    steps = [event for event in events if event["cat"] != "kernel"]
    assert len(profile.copies) == sum(event["cat"] == "copy" for event in steps)
    assert all(b["ts"] == pytest.approx(end(a)) for a, b in pairwise(steps))
    assert [event["cat"] for event in steps if event["cat"] == "copy"]
    tracks = {event["cat"]: event["tid"] for event in steps}
    assert tracks["copy"] != tracks["partition"]
    first = next(event for event in steps if event["cat"] == "copy")
    assert first["args"]["bytes"] == X.nbytes
    assert first["args"]["gigabytes_per_second"] > 0


def test_partitions_of_bodies_follow_their_node() -> None:
    backend = KernelBackend("toy")

    @backend.kernel("Add")
    def add(a: np.ndarray, b: np.ndarray, *, out: np.ndarray) -> None:
        np.add(a, b, out=out)

    session = load(container_graphs.loop(), backend="toy", plugins=plugins_with(backend))
    profile, events = traced(session, {"x": np.ones(2, np.float32), "trips": np.array(3)})
    names = [event["name"] for event in events if event["cat"] == "partition"]
    assert names == [part.partition for part in profile.partitions]
    assert any("body" in name for name in names)
    assert [event["name"] for event in events if event["cat"] == "kernel"] == ["add"]


def test_rows_add_up_to_the_time_of_the_partition() -> None:
    session = load(network(), backend="measuring", fallback="never", plugins=plugins_with(Measuring()))
    profile, _ = traced(session, {"x": X})
    (part,) = profile.partitions
    rows = operator_rows(profile)
    assert [(row.op, row.kernels) for row in rows] == [("Exp+Relu", 1), ("Neg", 1), (UNACCOUNTED, 0)]
    assert sum(row.seconds for row in rows) == pytest.approx(part.seconds)
    assert sum(row.share for row in rows) == pytest.approx(1)
    assert unaccounted_seconds(profile) + profile.accounted_seconds() == pytest.approx(profile.seconds)


def test_command_warms_up_and_writes_the_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def run(*options: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as end:
            main(["run", str(tmp_path / "network.onnx"), "-s", "2x3", "-b", "x86", *options])
        assert isinstance(end.value.code, int)
        return end.value.code, *capsys.readouterr()

    write(network(), tmp_path / "network.onnx")
    code, shown, _ = run("--profile", "--trace", str(tmp_path / "trace.json"))
    assert code == 0
    assert "profile of one run, after 3 others" in shown
    assert "ui.perfetto.dev" in shown
    document = json.loads((tmp_path / "trace.json").read_text())
    jsonschema.validate(document, SCHEMA)
    assert document["otherData"]["model"] == "network.onnx"
    as_json = json.loads(run("--warmup", "1", "--json")[1])
    assert as_json["warmup_runs"] == 1
    whole = sum(part["seconds"] for part in as_json["partitions"])
    assert sum(row["seconds"] for row in as_json["operators"]) == pytest.approx(whole)
    code, _, told = run("--trace", "no/where/trace.json")
    assert (code, "--trace" in told) == (2, True)
