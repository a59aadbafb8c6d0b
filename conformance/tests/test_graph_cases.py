"""Level 3 on a correct backend, and on backends with one error each that tests of single operators do not find."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from graph_backends import Array, FarMemory, FarWalker, Storage, Values, Walker, producer, record_of, subject_of

from lite_conformance.cases import contract
from lite_conformance.cases.case import Case, Context, Settings
from lite_conformance.cases.graphs import cases
from lite_conformance.judge.outcome import Replay
from lite_conformance.reports.record import Status
from lite_core.ir import Graph, Node

CASES: dict[str, Case] = {case.name: case for case in cases()}


# **** correct backends ****


def test_case_names_are_unique_and_have_the_prefix() -> None:
    repeated = [name for name, number in Counter(case.name for case in cases()).items() if number > 1]
    assert not repeated
    assert all(case.level == 3 and case.suite == "graphs" and case.name.startswith("graph[") for case in cases())


def test_correct_backend_passes_all_cases() -> None:
    subject = subject_of(Walker())
    records = [record_of(CASES, name, subject) for name in CASES]
    assert [f"{r.case}: {r.status} {r.reason}" for r in records if r.status is not Status.PASSED] == []


def test_backend_with_separate_memory_passes() -> None:
    names = [name for name in CASES if "partitions" in name or "output" in name or "dynamic-conv" in name]
    subject = subject_of(FarWalker())
    records = [record_of(CASES, name, subject) for name in names]
    assert [f"{r.case}: {r.reason}" for r in records if r.status is not Status.PASSED] == []


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_correct_backend_passes_with_other_seeds(seed: int) -> None:
    context = Context(subject_of(Walker()), Settings("walker", seed))
    for name, case in CASES.items():
        if seed == 1 or name.startswith(("graph[f16", "graph[bf16", "graph[partitions")) or "dynamic" in name:
            case.run(context)


def test_one_supported_operator_suffices_for_partitions() -> None:
    class OnlyRelu(Walker):
        takes = frozenset({"Relu"})

    subject = subject_of(OnlyRelu())
    records = {name: record_of(CASES, name, subject) for name in CASES if "partitions" in name}
    statuses = Counter(r.status for r in records.values())
    assert not any(s.is_bad for s in statuses), statuses
    assert records["graph[partitions-diamond,copied]"].status is Status.PASSED
    assert records["graph[partitions-fallback]"].status is Status.PASSED
    assert records["graph[partitions-zero-size]"].status is Status.PASSED
    bools = records["graph[partitions-bool-in]"]
    assert bools.status is Status.UNSUPPORTED
    assert "bool" in bools.reason


def test_refused_node_makes_the_graph_unsupported() -> None:
    class NoConv(Walker):
        takes = frozenset({"Relu", "Add", "BatchNormalization"})

    for name in ("graph[f32,residual-block]", "graph[f32,residual-block,optimized]", "graph[f32,dynamic-conv]"):
        record = record_of(CASES, name, NoConv())
        assert record.status is Status.UNSUPPORTED
        assert "walker has no Conv" in record.reason


def test_failure_has_a_replay() -> None:
    kept: list[Replay] = []
    record_of(CASES, "graph[f32,if-branches]", _OtherBranch(), kept.append)
    (replay,) = kept
    assert [node.op for node in replay.graph.nodes] == ["If"]


def test_replay_of_a_session_has_the_graph_after_the_passes() -> None:
    kept: list[Replay] = []
    record_of(CASES, "graph[f32,conv-output-and-relu]", _LosesFusedValues(), kept.append)
    record_of(CASES, "graph[f32,gelu-inside-is-output]", _Doubles(), kept.append)
    record_of(CASES, "graph[f32,matmul-add-gelu,optimized]", _Doubles(), kept.append)
    assert [node.op for node in kept[0].graph.nodes] == ["Conv", "Relu"]
    assert "Erf" in kept[1].graph.op_counts()
    assert "Gelu" in kept[2].graph.op_counts()


# **** wrong backends ****


class _Doubles(Walker):
    """Doubles the outputs."""

    def finish(self, graph: Graph, known: Values) -> list[Array]:
        return [2 * a for a in super().finish(graph, known)]


class _InPlace(Walker):
    """Writes results of element-wise operators over their operands, although these have later uses."""

    def compute(self, graph: Graph, node: Node, known: Values) -> list[Array]:
        results = super().compute(graph, node, known)
        first = node.inputs[0] if node.inputs else None
        inside = first is not None and first not in graph.inputs and first not in graph.constants
        if inside and node.op in ("Relu", "Tanh", "Sub", "Neg") and results[0].shape == known[first].shape:
            known[first] = results[0]
        return results


class _FreesTooEarly(Walker):
    """Frees values after their first use, so that later uses read zeros."""

    def compute(self, graph: Graph, node: Node, known: Values) -> list[Array]:
        results = super().compute(graph, node, known)
        for value in node.used():
            if value not in graph.inputs and value not in graph.constants:
                known[value] = np.zeros_like(known[value])
        return results

    def finish(self, graph: Graph, known: Values) -> list[Array]:
        return [known[v] for v in graph.outputs]


class _LosesFusedValues(Walker):
    """Fuses Conv, BatchNormalization and Relu, and returns the end of the chain for its intermediate values."""

    def finish(self, graph: Graph, known: Values) -> list[Array]:
        after: dict[Any, Any] = {}
        for node in graph.nodes:
            before = producer(graph, node)
            if before and before.op in ("Conv", "BatchNormalization") and node.op in ("BatchNormalization", "Relu"):
                after[before.outputs[0]] = node.outputs[0]
        results = []
        for value in graph.outputs:
            while value in after:
                value = after[value]
            results.append(known[value])
        return results


class _ActivatesTooLate(Walker):
    """Computes Conv, Relu, Add as Conv, Add, Relu."""

    def compute(self, graph: Graph, node: Node, known: Values) -> list[Array]:
        relu = producer(graph, node) if node.op == "Add" else None
        conv = producer(graph, relu) if relu is not None and relu.op == "Relu" else None
        if conv is not None and conv.op == "Conv":
            return [np.maximum(known[conv.outputs[0]] + known[node.inputs[1]], 0)]
        return super().compute(graph, node, known)


class _PadsWithTheShift(Walker):
    """Folds a shift into the next convolution as if the shift applied to its padding."""

    def compute(self, graph: Graph, node: Node, known: Values) -> list[Array]:
        shift = producer(graph, node) if node.op == "Conv" else None
        if shift is not None and shift.op == "Add":
            pads: Any = node.attributes["pads"]
            top, left, bottom, right = pads
            around: Any = ((0, 0), (0, 0), (top, bottom), (left, right))
            padded = np.pad(known[node.inputs[0]], around, mode="edge")
            bare = Node(node.op, node.inputs, node.outputs, {**node.attributes, "pads": (0,) * 4}, name=node.name)
            return super().compute(graph, bare, {**known, node.inputs[0]: padded})
        return super().compute(graph, node, known)


class _OtherBranch(Walker):
    def compute(self, graph: Graph, node: Node, known: Values) -> list[Array]:
        if node.op == "If":
            branches = {"then_branch": node.attributes["else_branch"], "else_branch": node.attributes["then_branch"]}
            node = Node(node.op, node.inputs, node.outputs, branches, name=node.name)
        return super().compute(graph, node, known)


class _AlwaysThen(Walker):
    def compute(self, graph: Graph, node: Node, known: Values) -> list[Array]:
        return super().compute(graph, node, {**known, node.inputs[0]: np.array(True)} if node.op == "If" else known)


class _OneTripTooMany(Walker):
    def compute(self, graph: Graph, node: Node, known: Values) -> list[Array]:
        if node.op == "Loop" and node.inputs[0] is not None:
            known = {**known, node.inputs[0]: known[node.inputs[0]] + 1}
        return super().compute(graph, node, known)


class _RemembersShapes(Walker):
    """Returns the results of Shape for the first signature in later runs."""

    def __init__(self) -> None:
        self._seen: dict[str, Array] = {}

    def compute(self, graph: Graph, node: Node, known: Values) -> list[Array]:
        results = super().compute(graph, node, known)
        return [self._seen.setdefault(node.name, results[0])] if node.op == "Shape" else results


class _RemembersResults(Walker):
    """Returns the outputs of the first run with the same shapes."""

    def __init__(self) -> None:
        self._seen: dict[tuple[object, ...], list[Array]] = {}

    def finish(self, graph: Graph, known: Values) -> list[Array]:
        key = tuple((v.name, known[v].shape) for v in graph.inputs)
        return self._seen.setdefault(key, super().finish(graph, known))


class _FirstWidth(Walker):
    """Computes as many columns as the first signature has, and zeros for the rest."""

    def __init__(self) -> None:
        self._width = 0

    def compute(self, graph: Graph, node: Node, known: Values) -> list[Array]:
        results = super().compute(graph, node, known)
        if node.op == "Conv":
            self._width = self._width or results[0].shape[-1]
            results[0] = results[0].copy()
            results[0][..., self._width :] = 0
        return results


class _FixedSizes(Walker):
    """Returns results whose size depends on data in the size of the first such result, padded with zeros."""

    def __init__(self) -> None:
        self._size = 0

    def compute(self, graph: Graph, node: Node, known: Values) -> list[Array]:
        (result, *rest) = super().compute(graph, node, known)
        if node.op == "NonZero":
            self._size = self._size or result.shape[1]
            padded = np.zeros((result.shape[0], self._size), result.dtype)
            kept = min(self._size, result.shape[1])
            padded[:, :kept] = result[:, :kept]
            result = padded
        return [result, *rest]


class _OutputsInNodeOrder(Walker):
    """Returns outputs in the order of their nodes, not of the graph's outputs."""

    def finish(self, graph: Graph, known: Values) -> list[Array]:
        made = [v for node in graph.nodes for v in node.outputs if v in graph.outputs]
        return [known[v] for v in made] if len(made) == len(graph.outputs) else super().finish(graph, known)


class _RejectsEmpty(Walker):
    """Raises on tensors without elements."""

    def begin(self, graph: Graph, known: Values) -> None:
        if any(known[v].size == 0 for v in graph.inputs):
            raise ZeroDivisionError("no elements")


class _ClaimsMainMemory(FarWalker):
    """Declares its memory as main memory, so that nothing is copied."""

    name = "claims"

    class _Claiming(FarMemory):
        space = "host"

    tensors = _Claiming()


class _OneStagingBuffer(FarWalker):
    """Downloads tensors of the same shape into the same array, which the next download overwrites."""

    name = "staging"

    class _Staging(FarMemory):
        def __init__(self) -> None:
            self._staged: dict[tuple[object, ...], Array] = {}

        def download(self, data: Storage) -> Array:
            staged = self._staged.setdefault((data.content.shape, data.content.dtype), np.empty_like(data.content))
            np.copyto(staged, data.content)
            return staged

    def __init__(self) -> None:
        self.tensors = self._Staging()


class _UploadsOnce(FarWalker):
    """Uses the first contents of each input in all runs, as if inputs were uploaded only once."""

    name = "once"

    def __init__(self) -> None:
        self._seen: dict[str, Array] = {}

    def begin(self, graph: Graph, known: Values) -> None:
        for value in graph.inputs:
            known[value] = self._seen.setdefault(value.name, known[value].copy())


WRONG: list[tuple[Callable[[], Walker], str, str]] = [
    (_InPlace, "graph[f32,used-twice]", "wrong"),
    (_InPlace, "graph[f32,in-place-traps]", "wrong"),
    (_InPlace, "graph[f32,output-used-inside]", "wrong"),
    (_FreesTooEarly, "graph[f32,diamond]", "wrong"),
    (_FreesTooEarly, "graph[f16,residual-block]", "wrong"),
    (_FreesTooEarly, "graph[f32,output-used-inside]", "wrong"),
    (_LosesFusedValues, "graph[f32,fused-intermediates-are-outputs]", "wrong"),
    (_LosesFusedValues, "graph[bf16,fused-intermediates-are-outputs]", "wrong"),
    (_LosesFusedValues, "graph[f32,conv-output-and-relu,optimized]", "wrong"),
    (_ActivatesTooLate, "graph[f32,conv-relu-add]", "wrong"),
    (_PadsWithTheShift, "graph[f32,mul-add-conv]", "wrong"),
    (_OtherBranch, "graph[f32,if-branches]", "run 1: "),
    (_AlwaysThen, "graph[f32,if-branches]", "run 2: "),
    (_AlwaysThen, "graph[i64,if-branches,optimized]", "run 2, shapes"),
    (_AlwaysThen, "graph[f32,if-in-if]", "run 3: "),
    (_OneTripTooMany, "graph[f32,loop-trip-count]", "is float32[6, 2, 3]"),
    (_OneTripTooMany, "graph[i64,loop-in-loop]", "wrong"),
    (_RemembersShapes, "graph[f32,dynamic-reshape-computed]", "run 2, shapes [[3, 4, 32]]"),
    (_RemembersResults, "graph[f32,dynamic-conv]", "run 5, shapes"),
    (_RemembersResults, "graph[f32,dynamic-mlp]", "wrong"),
    (_RemembersResults, "graph[f32,swap]", "run 2: "),
    (_FirstWidth, "graph[f32,dynamic-conv]", "run 2, shapes [[3, 3, 8, 32]]"),
    (_FixedSizes, "graph[f32,dynamic-nonzero-output]", "run 2"),
    (_FixedSizes, "graph[f32,dynamic-nonzero-inside]", "run 2"),
    (_OutputsInNodeOrder, "graph[f32,swap]", "wrong"),
    (_RejectsEmpty, "graph[f32,dynamic-mlp]", "ZeroDivisionError"),
    (_RejectsEmpty, "graph[partitions-zero-size]", "ZeroDivisionError"),
    (_ClaimsMainMemory, "graph[partitions-sandwich]", "failed with"),
    (_ClaimsMainMemory, "graph[partitions-diamond]", "failed with"),
    (_OneStagingBuffer, "graph[partitions-many-at-once]", "wrong"),
    (_OneStagingBuffer, "graph[partitions-outputs-everywhere,copied]", "wrong"),
    (_UploadsOnce, "graph[partitions-sandwich,copied]", "run 2: "),
    (_UploadsOnce, "graph[partitions-alternating]", "wrong"),
]


@pytest.mark.parametrize(("make", "name", "reason"), WRONG, ids=lambda x: getattr(x, "__name__", None))
def test_wrong_backend_fails(make: Callable[[], Walker], name: str, reason: str) -> None:
    record = record_of(CASES, name, make())
    assert record.status is Status.FAILED, record.reason
    assert reason in record.reason


def test_memory_that_claims_to_be_main_memory_is_told_to_change_its_name() -> None:
    """The suite asks the backend itself: a session may move its nodes to another device."""
    checks = {case.name: case for case in contract.cases()}
    assert record_of(checks, "contract[memory]", FarWalker()).status is Status.PASSED
    record = record_of(checks, "contract[memory]", _ClaimsMainMemory())
    assert record.status is Status.FAILED
    assert "calls its space 'host', which is main memory" in record.reason
    assert "allocate() returned Storage" in record.reason


def test_ignored_pin_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    from lite_conformance.cases.graphs import partitions
    from lite_core.session import load

    monkeypatch.setattr(partitions, "load", lambda graph, *_, **kwargs: load(graph, "host", plugins=kwargs["plugins"]))
    record = record_of(CASES, "graph[partitions-sandwich]", Walker())
    assert record.status is Status.FAILED
    assert "runs on 'host'" in record.reason
