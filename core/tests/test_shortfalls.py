"""Notes of sessions about what their user may not expect: nodes on host, no backend at all, another precision."""

from __future__ import annotations

import numpy as np
import pytest

import lite_core as lite
from lite_core.backend import Device
from lite_core.plugins import PluginManager, plugins_with


def toy_plugins(*operators: str, details: dict[str, str] | None = None) -> PluginManager:
    """Return plugins with a backend that has kernels for some operators of one input."""
    toy = lite.KernelBackend("toy", device=Device("toy", details=details or {}))
    kernels = {"Neg": np.negative, "Relu": lambda x: np.maximum(x, 0), "Exp": np.exp}
    for operator in operators:
        toy.kernel(operator)(kernels[operator])
    return plugins_with(toy)


def three_nodes() -> lite.Graph:
    b = lite.GraphBuilder("three")
    x = b.input("x", "float32", [2])
    b.output(b.add("Neg", [b.add("Relu", [b.add("Exp", [x], name="first")])]), "y")
    return b.build()


@pytest.mark.parametrize("backend", ["auto", "toy", ["toy", "host"]])
def test_nodes_on_host(backend: str | list[str]) -> None:
    session = lite.load(three_nodes(), backend, plugins=toy_plugins("Neg", "Relu"))
    (note,) = session.notes  # known as soon as the model is loaded
    assert all(text in note for text in ("1 of 3 nodes", "host", "1 x Exp", "no kernel for Exp", "lite check"))
    session.run({"x": np.ones(2, np.float32)})
    session.prepare()
    assert session.notes == (note,)
    assert note in session.selection_log


def test_no_note_where_the_devices_take_everything() -> None:
    assert lite.load(three_nodes(), plugins=toy_plugins("Neg", "Relu", "Exp")).notes == ()
    assert lite.load(three_nodes(), "host", plugins=toy_plugins("Neg")).notes == ()
    pinned = lite.load(three_nodes(), plugins=toy_plugins("Neg", "Relu", "Exp"), placement={"first": "host"})
    assert pinned.notes == ()  # the user placed it there


def test_many_operators_are_counted() -> None:
    b = lite.GraphBuilder("many")
    x = b.input("x", "float32", [2])
    for op in ("Exp", "Exp", "Sqrt", "Floor", "Ceil", "Tanh", "Neg"):
        x = b.add(op, [x])
    b.output(x, "y")
    (note,) = lite.load(b.build(), "toy", plugins=toy_plugins("Neg")).notes
    assert "6 of 7 nodes" in note
    assert "2 x Exp" in note
    assert "1 more" in note  # the fifth operator
    assert len(note.splitlines()) == 1


def test_a_loop_on_host_is_none_of_the_slow_nodes() -> None:
    outer = lite.GraphBuilder("outer")
    x, condition = outer.input("x", "float32", [2]), outer.input("condition", "bool", [])
    body, other = lite.GraphBuilder("body", outer=outer), lite.GraphBuilder("other", outer=outer)
    body.output(body.add("Neg", [x]), "negated")
    other.output(other.add("Relu", [x]), "positive")
    outer.output(outer.add("If", [condition], {"then_branch": body.build(), "else_branch": other.build()}), "y")
    graph = outer.build()
    assert lite.load(graph, "toy", plugins=toy_plugins("Neg", "Relu")).notes == ()
    (note,) = lite.load(graph, "toy", plugins=toy_plugins("Neg")).notes
    assert "1 of 2 nodes" in note


def test_no_backend_but_host() -> None:
    (note,) = lite.load(three_nodes(), plugins=plugins_with()).notes
    assert "everything runs on host" in note
    assert "pip install" in note


def test_backends_that_are_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITE_BACKENDS", "nonsense")
    (note,) = lite.load(three_nodes(), plugins=toy_plugins("Neg", "Relu", "Exp")).notes
    assert "everything runs on host" in note
    assert "nonsense: LITE_BACKENDS names it, but it is not installed" in note
    assert "LITE_BACKENDS='nonsense' leaves out all others" in note
    monkeypatch.setenv("LITE_BACKENDS", "")
    (note,) = lite.load(three_nodes(), plugins=toy_plugins("Neg", "Relu", "Exp")).notes
    assert "LITE_BACKENDS='' leaves out all others" in note
    monkeypatch.setenv("LITE_BACKENDS", "toy,tpu")
    (note,) = lite.load(three_nodes(), plugins=toy_plugins("Neg", "Relu", "Exp")).notes
    assert note.startswith("tpu: ")
    monkeypatch.setenv("LITE_BACKENDS", "host")  # host was asked for
    assert lite.load(three_nodes(), plugins=toy_plugins("Neg", "Relu", "Exp")).notes == ()


def test_precision_that_a_backend_ignores() -> None:
    plugins = toy_plugins("Neg", "Relu", "Exp")
    (note,) = lite.load(three_nodes(), "toy", precision="float16", plugins=plugins).notes
    assert all(text in note for text in ("precision float16", "toy computes 3 of 3 nodes", "the model's types"))
    notes = lite.load(three_nodes(), "toy", precision="bfloat16", plugins=toy_plugins("Neg", "Relu")).notes
    assert "toy computes 2 of 3" in notes[-1]
    assert "host computes 1 of 3" in notes[-1]


def test_precision_that_a_backend_states() -> None:
    stated = {"float16": "float16 in memory", "bfloat16": "float32: it has no bfloat16"}
    plugins = toy_plugins("Neg", "Relu", "Exp", details=stated)
    assert lite.load(three_nodes(), "toy", precision="float16", plugins=plugins).notes == ()
    (note,) = lite.load(three_nodes(), "toy", precision="bfloat16", plugins=plugins).notes
    assert "float32: it has no bfloat16" in note


def test_precision_of_some_nodes() -> None:
    plugins = toy_plugins("Neg", "Relu", "Exp")
    (note,) = lite.load(three_nodes(), "toy", precision={"first": "float16"}, plugins=plugins).notes
    assert "toy computes 1 of 3 nodes" in note
