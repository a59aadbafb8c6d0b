"""Taps: values inside a model that runs return or hand to functions, while outputs stay as they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from device_memory import Memory

import lite_core as lite
from lite_core.backend import Buffer, Device, Executable, No, Options, Partition, Yes
from lite_core.builder import GraphBuilder
from lite_core.errors import InputError
from lite_core.ir import Graph, Node, Origin
from lite_core.ops.evaluate import evaluate_graph
from lite_core.plugins import plugins_with
from lite_core.session import RunProfile, Session
from lite_core.session.session import STORED_TAPS
from lite_tools.taps import Tap, print_tap
from lite_tools.writing import write_model

Array = np.ndarray[Any, Any]

X = np.array([-1.5, 0.5, 2], np.float32)
VALUES = {"negated": -X, "absolute": np.abs(X), "root": np.sqrt(np.abs(X)), "y": np.exp(np.sqrt(np.abs(X)))}


class Opaque:
    """A backend with separate memory that fuses a partition into one kernel, which shows only its outputs.

    Args:
        ops: the operators that it runs.
        noise: is added to the outputs of each run, multiplied by the number of the run.
    """

    name = "opaque"

    def __init__(self, *ops: str, noise: float = 0.0) -> None:
        self._ops, self._noise, self._memory = ops, noise, Memory("opaque")
        self.partitions: list[list[str]] = []

    def probe(self) -> list[Device]:
        return [Device(self.name)]

    def supports(self, node: Node, device: Device) -> Yes | No:
        return Yes() if node.op in self._ops else No(f"opaque has no {node.op}")

    def memory(self, device: Device) -> Memory:
        return self._memory

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        self.partitions.append([node.name for node in part.graph.nodes])
        return OpaqueRun(part.graph, self._noise)


class OpaqueRun:
    scratch_bytes = 0

    def __init__(self, graph: Graph, noise: float) -> None:
        self._graph, self._noise, self._runs = graph, noise, 0

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        self._runs += 1
        for buffer, result in zip(outputs, evaluate_graph(self._graph, [b.data.content for b in inputs])):
            content = (buffer.data or buffer.allocate(result.shape)).content
            content[...] = result + np.float32(self._noise * self._runs) if self._noise else result


def chain() -> Graph:
    b = GraphBuilder("chain")
    negated = b.add("Neg", [b.input("x", "float32", ["n"])], output="negated", name="first")
    root = b.add("Sqrt", [b.add("Abs", [negated], output="absolute")], output="root")
    b.output(b.add("Exp", [root]), "y")
    return b.build()


def session_on(*ops: str, noise: float = 0.0, **options: Any) -> tuple[Session, Opaque]:
    backend = Opaque(*ops, noise=noise)
    return lite.load(chain(), ["opaque", "host"], plugins=plugins_with(backend), **options), backend


ALL = ("Neg", "Abs", "Sqrt", "Exp")


# **** what is returned ****


@pytest.mark.parametrize("ops", [(), ("Abs", "Sqrt"), ALL], ids=["host", "partly", "one kernel"])
def test_outputs_names_the_values_that_a_run_returns(ops: Sequence[str]) -> None:
    session, _ = session_on(*ops)
    found = session.run({"x": X}, outputs=["root", "first", "abs*", "x", "y"])
    assert [*found] == ["root", "negated", "absolute", "x", "y"]
    for name, array in found.items():
        np.testing.assert_array_equal(array, VALUES.get(name, X))
        assert array.flags.writeable
        assert not np.shares_memory(array, X)
    assert [*session.run({"x": X})] == ["y"]


@pytest.mark.parametrize("ops", [(), ALL], ids=["host", "one kernel"])
def test_taps_are_returned_beside_the_outputs(ops: Sequence[str]) -> None:
    session, _ = session_on(*ops, taps=["before:sqrt*"])
    found = session.run({"x": X})
    assert [*found] == ["y", "absolute"]
    np.testing.assert_array_equal(found["absolute"], VALUES["absolute"])


def test_a_node_is_also_found_by_its_name_in_the_model_that_was_read() -> None:
    graph = chain()
    graph.nodes[1].origin = Origin("abs", "abs_0.tmp_0")
    for pattern, found in (("abs_0.*", "absolute"), ("before:abs_0.tmp_0", "negated")):
        assert [*lite.load(graph, "host").run({"x": X}, outputs=[pattern])] == [found]


def test_functions_receive_the_values_in_the_order_of_the_graph() -> None:
    taps: list[Tap] = []
    session, _ = session_on("Abs", "Sqrt", taps={"y": taps.append, "*o*": taps.append, "x": None})
    assert [*session.run({"x": X})] == ["y", "x"]
    assert [(tap.value, tap.node, tap.op, tap.device) for tap in taps] == [
        ("absolute", "abs", "Abs", "opaque"),
        ("root", "sqrt", "Sqrt", "opaque"),
        ("y", "exp", "Exp", "host"),
    ]
    assert ["separately" in tap.kernel for tap in taps] == [True, False, False]
    np.testing.assert_array_equal(taps[0].array, VALUES["absolute"])


def test_a_printed_tap_is_one_line_with_the_facts(capsys: pytest.CaptureFixture[str]) -> None:
    session, _ = session_on(taps={"first": print_tap, "root": print_tap})
    session.run({"x": np.array([np.nan, np.inf, 4, 1, 9], np.float32)})
    first, second = capsys.readouterr().err.splitlines()
    assert (
        first == "tap negated (Neg first, kernel host on host): float32[5] min -9 max -1 mean -4.66667 NaN 1 Inf 1 "
        "[nan -inf -4 -1 ...]"
    )
    assert second.startswith("tap root (Sqrt sqrt")
    print_tap(Tap("none", np.empty((0, 2), bool)))
    assert capsys.readouterr().err == "tap none: bool[0, 2] NaN 0 Inf 0 []\n"


# **** values that exist only inside a kernel ****


def test_a_fused_value_is_computed_separately_and_a_note_says_so() -> None:
    session, backend = session_on(*ALL)
    plain, _ = session_on(*ALL)
    found = session.run({"x": X}, outputs=["absolute", "y"])
    assert found["y"].tobytes() == plain.run({"x": X})["y"].tobytes()
    assert backend.partitions == [["first", "abs", "sqrt", "exp"], ["first"], ["abs"]]
    (note,) = session.notes
    assert "separately" in note
    assert "absolute" in note
    session.run({"x": X}, outputs=["absolute"])
    session.run({"x": X[:2]}, outputs=["absolute"])
    assert len(session.notes) == 1
    assert len(backend.partitions) == 6  # the same plan served again; other sizes got plans of their own


def test_a_fused_value_is_computed_from_what_the_same_run_left_in_memory() -> None:
    backend = Opaque("Neg", "Sqrt", "Exp", noise=1.0)
    session = lite.load(chain(), ["opaque", "host"], plugins=plugins_with(backend), placement={"abs": "host"})
    found = session.run({"x": X}, outputs=["negated", "absolute", "root", "y"])
    noise = found["negated"] + X
    assert np.all(noise == noise[0])
    assert noise[0] >= 1
    np.testing.assert_array_equal(found["absolute"], np.abs(found["negated"]))
    # The first run of the node by itself adds 1.
    np.testing.assert_array_equal(found["root"], np.sqrt(found["absolute"]) + 1)


def test_a_backend_of_kernels_shows_all_values_in_one_run() -> None:
    backend, runs = lite.KernelBackend("kernels"), Counter[str]()
    for op, function in (("Neg", np.negative), ("Abs", np.abs), ("Sqrt", np.sqrt)):

        def kernel(x: Array, *, out: Array, op: str = op, function: Any = function) -> None:
            runs[op] += 1
            function(x, out=out)

        backend.kernel(op)(kernel)
    session = lite.load(chain(), ["kernels", "host"], plugins=plugins_with(backend))
    found = session.run({"x": X}, outputs=[*VALUES])
    for name, array in VALUES.items():
        assert found[name].tobytes() == array.tobytes()
    assert runs == {"Neg": 1, "Abs": 1, "Sqrt": 1}
    assert "separately" not in " ".join(session.notes)


def test_all_values_in_memory_need_one_run() -> None:
    backend = Opaque(*ALL, noise=1.0)
    session = lite.load(chain(), "opaque", plugins=plugins_with(backend))
    assert session.run({"x": X}, outputs=["y"])["y"].tobytes() == (VALUES["y"] + 1).tobytes()


# **** control flow ****


def looped() -> Graph:
    """A sum of doubled numbers ``n`` times; a branch of an If that the data decide."""
    b = GraphBuilder("looped")
    x, n = b.input("x", "float32", [2]), b.input("n", "int64", [])
    inner = GraphBuilder("body", outer=b)
    inner.input("i", "int64", [])
    go, state = inner.input("go", "bool", []), inner.input("state", "float32", [2])
    doubled = inner.add("Mul", [state, inner.constant(np.float32(2))], output="doubled")
    for value in (go, inner.add("Add", [doubled, x], output="after")):
        inner.output(value)
    (final,) = b.add_node("Loop", [n, None, x], {"body": inner.build()}, outputs=1, name="loop")
    branches = {}
    for key, op in (("then_branch", "Neg"), ("else_branch", "Abs")):
        branch = GraphBuilder(key, outer=b)
        branch.output(branch.add("Exp", [branch.add(op, [final], output=f"{op}_value")]))
        branches[key] = branch.build()
    large = b.add("Greater", [b.add("ReduceMax", [final], {"keepdims": 0}), b.constant(np.float32(5))])
    (y,) = b.add_node("If", [large], branches, outputs=1, name="if")
    b.output(y, "y")
    return b.build()


@pytest.mark.parametrize("ops", [(), ("Mul",), ("Mul", "Add"), ("Neg", "Exp", "Abs")], ids="+".join)
def test_a_value_inside_a_loop_is_a_list_of_all_that_were_computed(ops: Sequence[str]) -> None:
    session = lite.load(looped(), ["opaque", "host"], plugins=plugins_with(Opaque(*ops)))
    for trips, wanted in ((2, [[2, 4], [6, 12]]), (3, [[2, 4], [6, 12], [14, 28]]), (0, [])):
        inputs = {"x": np.array([1, 2], np.float32), "n": np.array(trips)}
        found: dict[str, Any] = session.run(inputs, outputs=["doubled", "Neg_value", "Abs_value", "y"])
        assert [array.tolist() for array in found["doubled"]] == wanted
        assert [len(found[name]) for name in ("Neg_value", "Abs_value")] == ([0, 1] if trips == 0 else [1, 0])
        assert found["y"].tobytes() == lite.load(looped(), "host").run(inputs)["y"].tobytes()


# **** together with other arguments ****


def test_a_pattern_that_names_nothing_is_refused_with_near_names() -> None:
    session, _ = session_on()
    with pytest.raises(InputError, match=r"outputs names 'roots'.*near: root.*lite inspect"):
        session.run({"x": X}, outputs=["roots"])
    with pytest.raises(InputError, match="taps names 'before:nothing'"):
        session_on(taps=["before:nothing"])
    for wrong in ("root", {"root": 1}, [1], 5):
        with pytest.raises(InputError, match="taps must be a list of names"):
            session_on(taps=wrong)
    for wrong in ("root", [1], 5):
        with pytest.raises(InputError, match="outputs must be a list of names"):
            session.run({"x": X}, outputs=wrong)  # type: ignore[arg-type]


def test_taps_work_with_out_profile_timeout_and_bindings() -> None:
    taps: list[Tap] = []
    session, _ = session_on(*ALL, taps={"root": taps.append})
    out, profile = np.empty(3, np.float32), RunProfile()
    assert session.run({"x": X}, out={"y": out}, profile=profile, timeout=600)["y"] is out
    assert [len(profile.partitions), len(taps)] == [1, 1]
    binding = session.bind({"x": X.copy()})
    for count in (3, 4):
        np.testing.assert_array_equal(binding.run()["y"], VALUES["y"])
        assert len(taps) == count


def test_threads_receive_the_values_of_their_own_runs() -> None:
    session, _ = session_on("Abs", "Sqrt", taps=["absolute"])

    def run(number: int) -> bool:
        found = session.run({"x": np.full(3, -number, np.float32)})
        return bool((found["absolute"] == number).all() and (found["y"] == np.exp(np.sqrt(np.float32(number)))).all())

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(run, range(40)))


def test_taps_stored_in_a_file_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "chain.lite"
    write_model(path, chain(), metadata={STORED_TAPS: "root\nbefore:exp"})
    session = lite.load(path, "host")
    assert "root, before:exp" in " ".join(session.notes)
    assert [*session.run({"x": X})] == ["y"]
    assert capsys.readouterr().err.count("tap root (") == 1  # although two patterns name it
    lite.load(path, "host", taps=()).run({"x": X})
    assert capsys.readouterr().err == ""
