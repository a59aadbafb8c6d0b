"""Functions that a model defines: nested, with attributes and defaults, of other opsets, overriding operators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import AttributeProto, FunctionProto, TensorProto, helper
from small_models import OWN, X, call, function, graph, load, make, node, run, value

from lite_core.errors import UnsupportedOperatorError


def _scaled(**fields: Any) -> FunctionProto:
    """Build ``y = LeakyRelu(x)``, with the slope from the attribute ``slope``."""
    leaky = node("LeakyRelu", ["x"], ["y"])
    leaky.attribute.add(name="alpha", ref_attr_name="slope", type=AttributeProto.FLOAT)
    return function("Scaled", [leaky], **fields)


def test_nested_functions(tmp_path: Path) -> None:
    inner = function("Inner", [node("Relu", ["x"], ["t"]), node("Neg", ["t"], ["y"])])
    outer = function("Outer", [call("Inner", "x", "t"), node("Add", ["t", "t"], ["y"])])
    model = make([call("Outer", "x", "a"), call("Inner", "a")], functions=[inner, outer])
    assert run(model, tmp_path)["y"].tolist() == [0, 0]
    assert run(make([call("Outer")], functions=[inner, outer]), tmp_path)["y"].tolist() == [-2, 0]


def test_attributes_of_a_call_and_default_attributes(tmp_path: Path) -> None:
    with_default = _scaled(attribute_protos=[helper.make_attribute("slope", 0.25)])
    assert run(make([call("Scaled", slope=0.5)], functions=[with_default]), tmp_path)["y"].tolist() == [1, -1]
    assert run(make([call("Scaled")], functions=[with_default]), tmp_path)["y"].tolist() == [1, -0.5]
    # Without both, the operator's own default applies.
    result = run(make([call("Scaled")], functions=[_scaled(attributes=["slope"])]), tmp_path)["y"]
    np.testing.assert_allclose(result, [1, -0.02], rtol=1e-6)


def test_attributes_are_passed_to_inner_functions_and_branches(tmp_path: Path) -> None:
    forwarding = call("Scaled", y="z")
    forwarding.attribute.add(name="slope", ref_attr_name="s", type=AttributeProto.FLOAT)
    branch = node("If", ["c"], ["y"], then_branch=graph([forwarding], ["z"]), else_branch=graph([forwarding], ["z"]))
    outer = helper.make_function(
        OWN, "Outer", ["x", "c"], ["y"], [branch], [helper.make_opsetid("", 21), helper.make_opsetid(OWN, 1)], ["s"]
    )
    calls = node("Outer", ["x", "c"], ["y"], domain=OWN, s=0.5)
    model = make([calls], ["x", value("c", (), TensorProto.BOOL)], functions=[_scaled(attributes=["slope"]), outer])
    assert run(model, tmp_path, c=np.array(True))["y"].tolist() == [1, -1]


def test_function_with_its_own_opset(tmp_path: Path) -> None:
    old = function("Old", [node("Clip", ["x"], ["y"], min=0.5)], opset=6)
    assert run(make([call("Old")], functions=[old]), tmp_path)["y"].tolist() == [1, 0.5]


@pytest.mark.parametrize("domain", ["", "ai.onnx"])
def test_function_overrides_operator_of_the_same_name(domain: str, tmp_path: Path) -> None:
    own = function("Relu", [node("Neg", ["x"], ["y"])], domain=domain)
    assert run(make([node("Relu", ["x"], ["y"])], functions=[own]), tmp_path)["y"].tolist() == [-1, 2]


def test_overloads(tmp_path: Path) -> None:
    functions = [
        function("F", [node(op, ["x"], ["y"])], overload=name)
        for op, name in (("Neg", "negative"), ("Abs", "absolute"))
    ]
    nodes = [
        call("F", y="a", overload="negative"),
        call("F", y="b", overload="absolute"),
        node("Sub", ["a", "b"], ["y"]),
    ]
    assert run(make(nodes, functions=functions), tmp_path)["y"].tolist() == [-2, 0]


def test_omitted_inputs_and_outputs(tmp_path: Path) -> None:
    body = [node("Clip", ["x", "low", "high"], ["clipped"]), node("Unknown", ["x"], ["other"])]
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(OWN, 1)]
    limits = helper.make_function(OWN, "Limits", ["x", "low", "high"], ["other", "clipped"], body, opsets)
    limit = {"half": np.array(0.5, np.float32)}
    for inputs, expected in ((["x", "", "half"], [0.5, -2]), (["x", "half"], [1, 0.5]), (["x"], [1, -2])):
        model = make([node("Limits", inputs, ["", "y"], domain=OWN)], constants=limit, functions=[limits])
        assert run(model, tmp_path)["y"].tolist() == expected


@pytest.mark.parametrize(
    ("nodes", "body", "reason"),
    [
        ([node("F", ["x", "x"], ["y"], domain=OWN)], [node("Relu", ["x"], ["y"])], "takes 1 inputs, has 2"),
        ([node("F", ["x"], ["y", "z"], domain=OWN)], [node("Relu", ["x"], ["y"])], "has 1 outputs, the node 2"),
        ([call("F")], [node("Relu", ["x"], ["z"])], "output 'y'"),
    ],
)
def test_mismatched_calls_are_errors(nodes: Any, body: Any, reason: str, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedOperatorError, match=reason):
        load(make(nodes, functions=[function("F", body)]), tmp_path)


def test_problems_in_functions_are_reported_with_the_path_of_the_node(tmp_path: Path) -> None:
    inner = function("Inner", [node("Unknown", ["x"], ["y"], name="first")])
    outer = function("Outer", [call("Inner", name="call")])
    nodes = [call("Outer", name="layer.0", y="a"), node("Strange", ["a"], ["b"]), node("Odd", ["x"], ["c"], name="odd")]
    model = make([*nodes, node("Add", ["b", "c"], ["y"])], functions=[inner, outer])
    with pytest.raises(UnsupportedOperatorError) as caught:
        load(model, tmp_path)
    found = {problem.op: problem.nodes for problem in caught.value.problems}
    assert found == {"Unknown": ("layer.0/call/first",), "Strange": ("b",), "Odd": ("odd",)}


def test_origins_contain_the_calling_node(tmp_path: Path) -> None:
    session = load(make([call("F", name="layer")], functions=[function("F", [node("Selu", ["x"], ["y"])])]), tmp_path)
    origins = {n.origin.name for n in session.graph.nodes if n.origin is not None}
    assert origins == {"layer/y"}
    assert session.run(x=X)["y"].shape == (2,)
