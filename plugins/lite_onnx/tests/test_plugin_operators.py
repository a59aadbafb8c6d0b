"""Nodes of a plugin's operator: they are read as they are, in the plugin's domain."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from small_models import OWN, X, call, load, make, node, run

from lite_core import ops
from lite_core.errors import UnsupportedOperatorError
from lite_core.ops import missing
from lite_core.ops.inference import same_as_first


def _scaled(x: np.ndarray, *, factor: float) -> np.ndarray:
    """``y = factor * x``."""
    return factor * x


DEFINITION = ops.define(
    _scaled, "PluginScaled", "X: float32 -> Y: float32", domain=OWN, attributes={"factor": 2.0}, infer=same_as_first
)
# NOTE: other tests of this process see it, too; no model of theirs has this name.
ops.add(DEFINITION)


@pytest.mark.parametrize(("attributes", "factor"), [({}, 2), ({"factor": -3.0}, -3)])
def test_node_keeps_its_domain_and_attributes(tmp_path: Path, attributes: dict[str, float], factor: float) -> None:
    model = make([call("PluginScaled", **attributes)])
    assert [n.qualified_op for n in load(model, tmp_path).graph.nodes] == ["own.PluginScaled"]
    np.testing.assert_array_equal(run(model, tmp_path)["y"], factor * X)


def test_operator_of_a_domain_that_no_package_has_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missing, "suspects", [])
    far = node("Squish", ["x"], ["y"], domain="acme.far")
    with pytest.raises(UnsupportedOperatorError) as caught:
        load(make([far]), tmp_path)
    (problem,) = caught.value.problems
    assert problem.op == "acme.far.Squish"
    assert "no installed package has operators of the domain acme.far (domains of plugins: " in problem.reason
    assert problem.remedy == "install the package that has them, or write one: `lite new-plugin operator squish`"


def test_operator_that_a_known_domain_lacks_asks_for_no_package(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedOperatorError, match="lite-onnx has no lowering for it"):
        load(make([node("Squish", ["x"], ["y"], domain="com.microsoft")]), tmp_path)


def test_attribute_that_the_operator_lacks_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedOperatorError, match="own.PluginScaled has no attribute 'slope'"):
        load(make([call("PluginScaled", slope=1.0)]), tmp_path)
