"""Precision by node: which nodes are compiled with which precision, and the arguments that are refused."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

import lite_core as lite
from lite_core.backend import Device, Executable, Options, Partition
from lite_core.builder import GraphBuilder
from lite_core.errors import InputError
from lite_core.ir import Graph
from lite_core.kernel_backend import KernelBackend
from lite_core.plugins import plugins_with
from lite_core.schedule.precision import Precision

X = np.array([-1, 2], np.float32)


class Recorder(KernelBackend):
    """A backend that remembers the precision that each node was compiled with."""

    def __init__(self) -> None:
        super().__init__("recorder")
        self.kernel("Relu")(lambda x: np.maximum(x, 0))
        self.kernel("Neg")(np.negative)
        self.found: dict[str, str] = {}
        self.partitions: list[str] = []

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        self.partitions.append(part.name)
        self.found.update((node.name, options.precision) for node in part.graph.nodes)
        return super().compile(part, device, options)


def four_nodes() -> Graph:
    b = GraphBuilder("four")
    x = b.input("x", "float32", [2])
    for name in ("neg_a", "relu_a", "neg_b", "relu_b"):
        x = b.add(name.split("_")[0].capitalize(), [x], name=name)
    b.output(x, "y")
    return b.build()


def compiled(precision: str | Mapping[str, str], graph: Graph | None = None) -> Recorder:
    """Run a graph, and return the backend that compiled it."""
    backend = Recorder()
    session = lite.load(graph or four_nodes(), "recorder", precision=precision, plugins=plugins_with(backend))
    session.run({"x": X})
    return backend


@pytest.mark.parametrize(
    ("precision", "found"),
    [
        ("float16", ["float16", "float16", "float16", "float16"]),
        ({"relu_*": "float32", "*": "float16"}, ["float16", "float32", "float16", "float32"]),
        ({"*": "float16", "relu_*": "float32"}, ["float16", "float32", "float16", "float32"]),
        ({"neg_a": "bfloat16", "neg_*": "float16"}, ["bfloat16", "float32", "float16", "float32"]),
        ({"neg_*": "float16", "neg_a": "bfloat16"}, ["float16", "float32", "float16", "float32"]),
    ],
)
def test_first_matching_pattern_decides_and_the_star_is_last(
    precision: str | Mapping[str, str], found: list[str]
) -> None:
    assert list(compiled(precision).found.values()) == found


def test_nodes_of_one_precision_stay_together_and_the_plan_tells_it() -> None:
    backend = compiled({"neg_b": "float16", "relu_b": "float16"})
    assert backend.partitions == ["recorder/0", "recorder/1 precision=float16"]


def test_nodes_in_bodies_have_their_own_precision() -> None:
    body = GraphBuilder("body")
    go = body.input("i", "int64", ()), body.input("go", "bool", ())
    value = body.add("Relu", [body.add("Neg", [body.input("v", "float32", [2])], name="inner_neg")], name="inner_relu")
    body.output(go[1], "go_on")
    body.output(value, "w")
    b = GraphBuilder("loop")
    count, start = b.constant(np.array(2, np.int64)), b.constant(np.array(True))
    x = b.add("Neg", [b.input("x", "float32", [2])], name="outer")
    b.output(b.add("Loop", [count, start, x], {"body": body.build()}, name="loop"), "y")
    assert compiled({"inner_n*": "float16"}, b.build()).found == {
        "outer": "float32",
        "inner_neg": "float16",
        "inner_relu": "float32",
    }


def test_pattern_without_a_node_is_refused() -> None:
    with pytest.raises(InputError, match=r"precision.*'relu_c'.*near: relu_"):
        compiled({"relu_a": "float16", "relu_c": "float16"})


@pytest.mark.parametrize(
    "precision",
    ["half", 16, ["float16"], {"neg_a": "half"}, {"neg_a": 16}, {1: "float16"}, '{"neg_a": ', '{"neg_a": [1]}'],
)
def test_other_arguments_are_refused(precision: object) -> None:
    with pytest.raises(InputError, match=r"precision must be one of float32, float16, bfloat16, or a mapping"):
        Precision.of(precision)


@pytest.mark.parametrize(
    "precision", ["float32", "bfloat16", {"a=b": "float16"}, {'"[x]"': "float32", "ä*": "bfloat16", "*": "float16"}]
)
def test_text_of_a_precision_restores_it(precision: str | Mapping[str, str]) -> None:
    found = Precision.of(precision)
    assert Precision.of(found.text) == found


def test_text_of_a_plain_precision_is_its_name() -> None:
    assert Precision.of("float16").text == Precision.of({"*": "float16"}).text == "float16"
