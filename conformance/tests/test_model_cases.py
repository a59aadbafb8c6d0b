"""Level 4 on a correct backend, and on backends whose error must be found in a whole network."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from graph_backends import Array, Values, Walker, producer, record_of

from lite_conformance.cases.case import Case, Settings
from lite_conformance.cases.models import cases, whole
from lite_conformance.cases.networks import NETWORKS
from lite_conformance.judge.outcome import Replay
from lite_conformance.reports.record import Status
from lite_conformance.run.repro import write_script
from lite_core.builder import GraphBuilder
from lite_core.errors import ModelFormatError
from lite_core.ir import Graph, Node, Origin

CASES: dict[str, Case] = {case.name: case for case in cases(Settings("walker"))}


# **** names ****


def test_each_network_is_a_case() -> None:
    assert list(CASES) == [f"model[{network.name}]" for network in NETWORKS]
    assert all(case.level == 4 and case.suite == "models" and case.timeout_factor > 1 for case in CASES.values())


def test_files_of_the_same_name_get_distinct_case_names() -> None:
    files = ("a/one/m.onnx", "b/one/m.onnx", "c/m.onnx", "other.onnx", "other.onnx", f"x/{NETWORKS[0].name}")
    names = [case.name for case in cases(Settings("walker", models=files))][len(NETWORKS) :]
    assert names == [
        "model[a/one/m.onnx]",
        "model[b/one/m.onnx]",
        "model[c/m.onnx]",
        "model[other.onnx]",
        "model[other.onnx,2]",
        f"model[x/{NETWORKS[0].name}]",
    ]


# **** networks ****


@pytest.mark.parametrize("name", CASES)
def test_correct_backend_passes(name: str) -> None:
    record = record_of(CASES, name, Walker())
    assert record.status is Status.PASSED, record.reason
    assert record.examples == 2


class _WrongHardSigmoid(Walker):
    """Ignores the node's slope and computes with the default."""

    def compute(self, graph: Graph, node: Node, known: Values) -> list[Array]:
        if node.op == "HardSigmoid":
            node = Node(node.op, node.inputs, node.outputs, {}, name=node.name)
        return super().compute(graph, node, known)


class _WrongFusion(Walker):
    """Replaces HardSwish after a convolution with Relu; HardSwish alone is correct."""

    def compute(self, graph: Graph, node: Node, known: Values) -> list[Array]:
        results = super().compute(graph, node, known)
        before = producer(graph, node)
        if node.op == "HardSwish" and before is not None and before.op == "Conv":
            return [np.maximum(known[node.inputs[0]], 0)]
        return results


class _SlightlyTooLarge(Walker):
    """Makes every result slightly too large: within tolerance for each node, but not for the whole network."""

    def compute(self, graph: Graph, node: Node, known: Values) -> list[Array]:
        results = super().compute(graph, node, known)
        return [a * np.float32(1 + 2.4e-5) if a.dtype == np.float32 else a for a in results]


class _FailsOnMul(Walker):
    def compute(self, graph: Graph, node: Node, known: Values) -> list[Array]:
        if node.op == "Mul":
            raise ZeroDivisionError("no inverse")
        return super().compute(graph, node, known)


def test_first_wrong_node_is_named_and_has_a_replay(tmp_path: Path) -> None:
    kept: list[Replay] = []
    record = record_of(CASES, "model[glyph_classifier]", _WrongHardSigmoid(), kept.append)
    assert record.status is Status.FAILED
    assert "the first wrong node is HardSigmoid" in record.reason
    assert record.measured is not None
    assert record.measured.wrong
    table = record.details.splitlines()
    assert "nodes ran alone" in table[0]
    assert "wrong" in table[1]
    assert "HardSigmoid" in table[1]
    (replay,) = kept
    assert [node.op for node in replay.graph.nodes] == ["HardSigmoid"]
    script = write_script(tmp_path, record.case, Settings("host"), replay)
    assert "HardSigmoid" in script.read_text()


def test_node_that_raises_is_named() -> None:
    record = record_of(CASES, "model[glyph_classifier]", _FailsOnMul())
    assert record.status is Status.FAILED
    assert "the first wrong node is Mul" in record.reason
    assert "no inverse" in record.reason


def test_wrong_fusion_is_suspected() -> None:
    record = record_of(CASES, "model[glyph_classifier]", _WrongFusion())
    assert record.status is Status.FAILED
    assert "every node is right when it runs alone" in record.reason
    assert "suspect a fusion" in record.reason


def test_accumulated_errors_are_distinguished_from_a_wrong_node() -> None:
    record = record_of(CASES, "model[glyph_classifier]", _SlightlyTooLarge())
    assert record.status is Status.FAILED
    assert "small errors add up" in record.reason


def test_refused_nodes_run_on_host_and_do_not_count_as_passed() -> None:
    class NoSoftmax(Walker):
        takes = frozenset({"Conv", "Mul", "HardSwish", "HardSigmoid", "Relu", "Add", "Gemm", "GlobalAveragePool"})

    record = record_of(CASES, "model[glyph_classifier]", NoSoftmax())
    assert record.status is Status.UNSUPPORTED
    assert "nodes refused: " in record.reason
    assert "Softmax (1): walker has no Softmax" in record.reason
    assert "agrees" in record.reason


def test_wrong_node_fails_although_others_are_refused() -> None:
    class NoConv(_WrongHardSigmoid):
        takes = frozenset({"HardSigmoid"})

    record = record_of(CASES, "model[glyph_classifier]", NoConv())
    assert record.status is Status.FAILED
    assert "the first wrong node is HardSigmoid" in record.reason


def test_completely_refused_network_is_not_run() -> None:
    class Nothing(Walker):
        takes = frozenset({"Det"})

    record = record_of(CASES, "model[upscaler]", Nothing())
    assert record.status is Status.UNSUPPORTED
    assert "agrees" not in record.reason
    assert " more operator(s)" in record.reason


def test_outputs_must_solve_the_task() -> None:
    unsolved = dataclasses.replace(NETWORKS[0], task_error=lambda seed, outputs: "3 of 4 are wrong")
    case = Case("model[unsolved]", 4, "models", lambda context: whole.run_network(context, unsolved))
    record = record_of({"model[unsolved]": case}, "model[unsolved]", Walker())
    assert record.status is Status.FAILED
    assert record.reason.endswith("3 of 4 are wrong")


def test_examples_have_two_signatures() -> None:
    for network in NETWORKS:
        graph = network.build()
        for seed in (0, 5):
            examples = [
                [a.shape for a in inputs]
                for (_, inputs, _), _ in zip(whole.stable_examples(network, graph, seed), range(2))
            ]
            assert examples[0] != examples[1]


# **** files ****


def _file_case(monkeypatch: pytest.MonkeyPatch, read: Callable[[str], Graph]) -> dict[str, Case]:
    monkeypatch.setattr(whole, "read_model", read)
    return {case.name: case for case in cases(Settings("walker", models=("folder/m.model",)))}


def _model(path: str) -> Graph:
    random = np.random.default_rng(0)
    b = GraphBuilder("m")
    x = b.input("x", "float32", ["n", 3, 8, 8])
    weight, shift = (b.constant(random.standard_normal(shape).astype(np.float32)) for shape in ((4, 3, 3, 3), (4,)))
    y = b.add("Conv", [x, weight, shift], {"pads": (1, 1, 1, 1)}, origin=Origin("conv2d", "stem"))
    y = b.add("Elu", [y], {"alpha": 0.5}, name="act", origin=Origin("elu", "after_stem"))
    b.output(b.add("GlobalMaxPool", [y]), "pooled")
    b.output(b.add("ArgMax", [y], {"axis": 1}), "best")
    return b.build()


def test_a_model_file_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    record = record_of(_file_case(monkeypatch, _model), "model[m.model]", Walker())
    assert record.status is Status.PASSED, record.reason


def test_wrong_node_is_reported_with_its_origin(monkeypatch: pytest.MonkeyPatch) -> None:
    class WrongConv(Walker):
        def compute(self, graph: Graph, node: Node, known: Values) -> list[Array]:
            results = super().compute(graph, node, known)
            return [results[0] * np.float32(1.01)] if node.op == "Conv" else results

    record = record_of(_file_case(monkeypatch, _model), "model[m.model]", WrongConv())
    assert record.status is Status.FAILED
    assert "the first wrong node is Conv" in record.reason
    assert "from conv2d 'stem'" in record.reason


def test_unreadable_model_file_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(path: str) -> Graph:
        raise ModelFormatError(f"{path} is damaged")

    record = record_of(_file_case(monkeypatch, damaged), "model[m.model]", Walker())
    assert record.status is Status.ERROR
    assert "m.model is damaged" in record.reason


def test_model_that_rejects_random_inputs_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    def fixed_size(path: str) -> Graph:
        b = GraphBuilder("fixed_size")
        x = b.input("x", "float32", ["n"])
        b.output(b.add("Reshape", [b.add("Relu", [x]), b.ints(7, 11)]), "y")
        return b.build()

    record = record_of(_file_case(monkeypatch, fixed_size), "model[m.model]", Walker())
    assert record.status is Status.SKIPPED
    assert "random inputs" in record.reason
