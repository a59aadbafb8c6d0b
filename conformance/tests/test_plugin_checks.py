"""The checks of passes and readers, each with mistakes that it must find."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lite_conformance.cases.graphs.draft import Draft, GraphCase, GraphTable
from lite_conformance.cases.plugins.damage import check_flipped, check_truncated
from lite_conformance.cases.plugins.files import FileCase, FileTable
from lite_conformance.cases.plugins.formats import (
    check_file,
    check_foreign_files,
    check_round_trip,
    check_written_again,
)
from lite_conformance.cases.plugins.passes import check_pass, suite_graphs
from lite_conformance.cases.plugins.reading import opened
from lite_conformance.judge.outcome import Failure
from lite_core import GraphBuilder, ModelFormatError
from lite_core.ir import DType, Graph, Node, TensorType, Value
from lite_core.passes import DeadNodeElimination, PassResult, default_passes

# **** passes ****

table = GraphTable()


@table.case("relu-of-sum")
def _(g: Draft) -> None:
    g.output(g("Relu", g("Add", g.input(2, 3), g.weight(3))))


(CASE,) = table


class Rewrite:
    """A pass that edits the graph by a function, which returns what the pass reports."""

    name = "acme-rewrite"

    def __init__(self, edit: Callable[[Graph], Any]) -> None:
        self._edit = edit

    def __call__(self, graph: Graph) -> Any:
        reported = self._edit(graph)
        return PassResult(graph, reported) if isinstance(reported, bool) else reported


def other_operator(graph: Graph) -> bool:
    changed = graph.nodes[-1].op == "Relu"
    graph.nodes[-1].op = "Abs"
    return changed


def nearly_the_same(graph: Graph) -> bool:
    """Change the weights by two thousandths."""
    value, array = next(iter(graph.constants.items()))
    graph.constants[value] = array * np.float32(1.002)
    return True


def not_reported(graph: Graph) -> bool:
    return not in_circles(graph)


def in_circles(graph: Graph) -> bool:
    """Swap the operands of the sum."""
    graph.nodes[0].inputs = graph.nodes[0].inputs[::-1]
    return True


def insert_identity(graph: Graph) -> bool:
    last = graph.nodes[-1]
    (source,) = last.inputs
    assert source is not None
    inner = Value(f"inner_{len(graph.nodes)}", source.type)
    graph.nodes.insert(-1, Node("Identity", [source], [inner]))
    last.inputs = (inner,)
    return True


def insert_one_identity(graph: Graph) -> bool:
    """Insert an Identity if there is none, which Lite's own passes remove again."""
    return not any(node.op == "Identity" for node in graph.nodes) and insert_identity(graph)


def rename_output(graph: Graph) -> bool:
    changed = graph.outputs[0].name != "y"
    graph.outputs[0].name = "y"
    return changed


def fix_batch(graph: Graph) -> bool:
    changed = graph.inputs[0].type.shape != (1, 3)
    graph.inputs[0].type = TensorType(DType.FLOAT32, (1, 3))
    return changed


def remove_node(graph: Graph) -> bool:
    del graph.nodes[0]
    return True


def write_constant(graph: Graph) -> bool:
    next(iter(graph.constants.values()))[...] *= 2
    return True


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (other_operator, "round 1: the outputs changed"),
        (nearly_the_same, "round 1: the outputs changed"),
        (not_reported, "round 1: the pass reports no change, but changed the graph"),
        (lambda graph: True, "round 1: the pass reports a change, but the graph is as before"),
        (in_circles, "round 2: the pass goes in circles"),
        (insert_identity, "2 node(s) became 66"),
        (insert_one_identity, "with Lite's passes: after 8 rounds"),
        (rename_output, "changed the outputs of the graph from (relu"),
        (fix_batch, "changed the inputs of the graph from (input_0: float32[2, 3])"),
        (remove_node, "not valid"),
        (write_constant, "read-only"),
        (lambda graph: None, "NoneType, not a PassResult"),
        (lambda graph: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_mistake_of_a_pass_is_found(edit: Callable[[Graph], Any], reason: str) -> None:
    with pytest.raises(Failure) as found:
        check_pass(Rewrite(edit), CASE, seed=0)
    assert reason in found.value.reason


def test_a_pass_that_does_nothing_is_right_and_the_outcome_says_so() -> None:
    assert "changes nothing" in check_pass(Rewrite(lambda graph: False), CASE, seed=0).note


@pytest.mark.full("conformance")
@pytest.mark.parametrize("pass_", default_passes()[:-1], ids=lambda pass_: pass_.name)
def test_lites_own_passes_are_right(pass_: Any) -> None:
    for _, case in suite_graphs():
        check_pass(Rewrite(pass_), case, seed=0)


def test_dead_nodes_are_removed_without_an_alarm() -> None:
    dead = GraphTable()

    @dead.case("dead")
    def _(g: Draft) -> None:
        x = g.input("n", 3)
        g("Abs", x)
        g.output(g("Relu", x))

    (case,) = dead
    fixed = GraphCase(case.label, case.dtype, case.sketch, case.numerics, "", ({"n": 2}, {"n": 0}))
    assert check_pass(DeadNodeElimination(), fixed, seed=0).note == ""


# **** formats ****

CONTENT = json.dumps({"factors": [2.0, 0.5, -4.0], "comment": "a product"}).encode()
X = np.array([[1.0, -2.0, 3.0]], np.float32)
FILE = FileCase("three", CONTENT, (X,), lambda x: -4 * x)


class Factors:
    """A right reader: a chain of products with constants, as JSON."""

    name = "factors"
    suffixes = (".factors",)

    def sniff(self, path: Path) -> bool:
        return path.is_file() and b'{"factors": [' in path.read_bytes()[:100]

    def content(self, path: Path) -> bytes:
        return path.read_bytes()

    def factors(self, content: bytes) -> list[Any]:
        try:
            return list(json.loads(content)["factors"])
        except (ValueError, KeyError, TypeError) as error:
            raise ModelFormatError(f"the model is damaged: {error}") from error

    def read(self, path: Path, /, *args: Any, **options: Any) -> Graph:
        builder = GraphBuilder("factors")
        x = builder.input("x", "float32", ["n", 3])
        for factor in self.factors(self.content(path)):
            if not isinstance(factor, float):
                raise ModelFormatError(f"the factor {factor!r} is no number")
            x = builder.add("Mul", [x, builder.constant(np.float32(factor))])
        builder.output(builder.add("Identity", [x]), "y")
        return builder.build()

    def write(self, graph: Graph, path: Path, /, *args: Any, **options: Any) -> None:
        """Write the factors of any graph of products; it forgets what the other operators compute."""
        arrays = [a for a in graph.constants.values() if a.shape == ()]
        path.write_text(json.dumps({"factors": [float(a) for a in arrays]}))


class RaisesKeyError(Factors):
    def factors(self, content: bytes) -> list[Any]:
        return list(json.loads(content.decode("latin-1"))["factors"])


class KeepsItOpen(Factors):
    kept: list[Any]

    def content(self, path: Path) -> bytes:
        self.kept = [path.open("rb")]
        return bytes(self.kept[0].read())


class KeepsDamagedOpen(KeepsItOpen):
    def content(self, path: Path) -> bytes:
        content = super().content(path)
        if content == CONTENT:
            self.kept[0].close()
        return content


class TrustsASize(Factors):
    """A reader that allocates as many numbers as the last byte claims, times 4 MiB."""

    def content(self, path: Path) -> bytes:
        content = path.read_bytes()
        if content[-1:] != b"}":
            np.empty((content or b"\xff")[-1] << 22, np.float32)
        return content


class SniffsAnything(Factors):
    def sniff(self, path: Path) -> bool:
        return path.name.endswith(self.suffixes)


class SniffRaises(Factors):
    def sniff(self, path: Path) -> bool:
        return bool(json.loads(path.read_bytes())["factors"])


class WrongFactor(Factors):
    def factors(self, content: bytes) -> list[Any]:
        return [1.5 * factor for factor in super().factors(content)]


class ChangesItsFile(Factors):
    def content(self, path: Path) -> bytes:
        path.write_bytes(CONTENT + b"\n")
        return CONTENT


class AnotherGraphEachTime(Factors):
    turn = 1.0

    def factors(self, content: bytes) -> list[Any]:
        self.turn += 1
        return [*super().factors(content), *[1.0] * int(self.turn)]


class ForgetsAFactor(Factors):
    def write(self, graph: Graph, path: Path, /, *args: Any, **options: Any) -> None:
        super().write(graph, path)
        path.write_text(json.dumps({"factors": json.loads(path.read_text())["factors"][1:]}))


def truncated(format: Factors) -> None:
    with opened(format, FILE) as reader:
        check_truncated(reader, count=10)


def flipped(format: Factors) -> None:
    with opened(format, FILE) as reader:
        check_flipped(reader, count=60, seed=0)


def test_a_right_reader_passes() -> None:
    check_file(Factors(), FILE)
    check_written_again(Factors(), FILE)
    check_foreign_files(Factors())
    truncated(Factors())
    flipped(Factors())


@pytest.mark.parametrize(
    ("check", "format", "reason"),
    [
        (truncated, RaisesKeyError(), "read() raised JSONDecodeError"),
        (flipped, RaisesKeyError(), "ModelFormatError"),
        (truncated, KeepsDamagedOpen(), "is still open"),
        (truncated, TrustsASize(), "check sizes"),
        (lambda f: check_file(f, FILE), KeepsItOpen(), "'model.factors' is still open"),
        (lambda f: check_file(f, FILE), WrongFactor(), "wrong"),
        (lambda f: check_file(f, FILE), ChangesItsFile(), "changed, added or removed"),
        (lambda f: check_file(f, FILE), AnotherGraphEachTime(), "another graph"),
        (lambda f: check_file(f, FileCase("two", b"{}")), Factors(), "does not recognise"),
        (lambda f: check_written_again(f, FILE), ForgetsAFactor(), "wrong"),
        (check_foreign_files, SniffsAnything(), "claims an empty file"),
        (check_foreign_files, SniffRaises(), "sniff() raised JSONDecodeError"),
        (lambda f: check_round_trip(f, CASE, 0), Factors(), "the inputs"),
    ],
)
def test_mistake_of_a_reader_is_found(check: Callable[[Factors], None], format: Factors, reason: str) -> None:
    with pytest.raises(Failure) as found:
        check(format)
    assert reason in found.value.reason


def test_folder_of_a_model_is_copied_and_each_file_of_it_is_damaged(tmp_path: Path) -> None:
    source = tmp_path / "model"
    source.mkdir()
    (source / "main.factors").write_bytes(CONTENT)
    (source / "other.bin").write_bytes(b"1234")
    files = FileTable("factors")
    files("folder", source, inputs=[X], outputs=[-4 * X], file_name="main.factors")
    (case,) = files
    assert check_file(Factors(), case).measured is not None
    with opened(Factors(), case) as reader:
        # All lengths of the small file; of the other one 16 at each end, and at least one between.
        assert check_truncated(reader, count=10).examples > 4 + 2 * 16
    assert {path.name for path in source.iterdir()} == {"main.factors", "other.bin"}
