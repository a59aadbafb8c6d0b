"""Tests of the registry of lowering functions and of the import of their modules on demand."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lite_compiler.fusion import Group
from lite_compiler.registry import Registry
from lite_core.builder import GraphBuilder
from lite_core.ir import Node

#: The first line of every module of the package below.
_IMPORTS = "from lowered_apart import REGISTRY\n"

_MODULES = {
    "__init__": """
from lite_compiler.registry import Registry
FAMILIES = {"products": "MatMul Gemm", "made": "Range lite.YoloBox"}
REGISTRY = Registry(__name__, FAMILIES, default_family="simple", kernel_name="kernel")
""",
    "products": f"""{_IMPORTS}
@REGISTRY.lowers("MatMul", "Gemm", epilogue=True, refuse=lambda node: "it has a name" if node.name else None)
def product(lowering, group): lowering.append(group.head.op)
""",
    "made": f"""{_IMPORTS}
@REGISTRY.lowers("Range", known_inputs=(0, 2, 5))
def range_(lowering, group): pass
REGISTRY.register_rewritten(__name__, "lite.YoloBox", refuse=lambda node: "it is named" if node.name else None)
""",
    "simple": f"""{_IMPORTS}
@REGISTRY.lowers("Relu", "Neg")
def simple(lowering, group): lowering.append(group.head.op)
""",
}


def package(folder: Path, monkeypatch: pytest.MonkeyPatch, **changed: str) -> Registry[list[str]]:
    """Write a package with these modules, some of them replaced, and return its registry."""
    (folder / "lowered_apart").mkdir()
    for name, text in {**_MODULES, **changed}.items():
        (folder / "lowered_apart" / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(folder)
    for name in [name for name in sys.modules if name.startswith("lowered_apart")]:
        monkeypatch.delitem(sys.modules, name)
    import lowered_apart  # type: ignore[import-not-found]

    registry: Registry[list[str]] = lowered_apart.REGISTRY
    return registry


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry[list[str]]:
    return package(tmp_path, monkeypatch)


def imported() -> set[str]:
    """Return the names of the package's modules that have been imported."""
    return {name.partition(".")[2] for name in sys.modules if name.startswith("lowered_apart.")}


def node(op: str, name: str = "") -> Node:
    domain, _, op = op.rpartition(".")
    return Node(op, [], [], domain=domain, name=name)


def test_lookup_imports_only_the_module_of_the_operator(registry: Registry[list[str]]) -> None:
    assert imported() == set()
    function, reason = registry.find_lowering(node("Gemm"))
    assert function is not None
    assert reason == ""
    lowering: list[str] = []
    function(lowering, Group(node("Gemm"), 0))
    assert lowering == ["Gemm"]
    assert imported() == {"products"}


def test_refused_node_has_the_reason_given_at_registration(registry: Registry[list[str]]) -> None:
    assert registry.find_lowering(node("MatMul", "m")) == (None, "it has a name")
    assert registry.refusal(node("MatMul", "m")) == "it has a name"
    assert registry.refusal(node("MatMul")) is None


def test_unregistered_operator_has_no_kernel(registry: Registry[list[str]]) -> None:
    for op in ("Conv", "lite.Probe"):
        assert registry.find_lowering(node(op)) == (None, f"there is no kernel for {op}")
        assert registry.refusal(node(op)) == f"there is no kernel for {op}"
        assert not registry.takes_epilogue(node(op))
    assert imported() == {"simple"}  # the default family, which might have registered it


def test_same_name_in_another_domain_is_another_operator(registry: Registry[list[str]]) -> None:
    assert registry.refusal(node("Relu")) is None
    assert registry.refusal(node("other.Relu")) == "there is no kernel for other.Relu"


def test_rewritten_operator_is_accepted_but_has_no_lowering(registry: Registry[list[str]]) -> None:
    assert registry.is_rewritten(node("lite.YoloBox"))
    assert registry.refusal(node("lite.YoloBox")) is None
    assert registry.refusal(node("lite.YoloBox", "y")) == "it is named"
    assert registry.find_lowering(node("lite.YoloBox")) == (None, "there is no kernel for lite.YoloBox")
    assert not registry.is_rewritten(node("Range"))


def test_takes_epilogue(registry: Registry[list[str]]) -> None:
    assert registry.takes_epilogue(node("MatMul"))
    assert not registry.takes_epilogue(node("Relu"))


def test_listing_operators_imports_only_the_default_family(registry: Registry[list[str]]) -> None:
    assert registry.registered_operators() == {"MatMul", "Gemm", "Range", "lite.YoloBox", "Relu", "Neg"}
    assert imported() == {"simple"}


def test_data_dependent_nodes_have_unknown_required_inputs(registry: Registry[list[str]]) -> None:
    b = GraphBuilder("ranges")
    x, one = b.input("x", "int64", []), b.add("Squeeze", [b.ints(1)])
    last = b.add("Add", [one, one])  # known before the run
    known = b.add("Range", [one, x, last])  # only the second input depends on data, which is allowed
    unknown = b.add("Range", [x, one, one])
    b.output(known, "known")
    b.output(b.add("Neg", [unknown]), "unknown")
    graph = b.build()
    assert [n.outputs[0] for n in registry.data_dependent_nodes(graph)] == [unknown]


def test_registering_an_operator_twice_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    twice = _MODULES["simple"] + "REGISTRY.lowers('Relu')(simple)\n"
    registry = package(tmp_path, monkeypatch, simple=twice)
    with pytest.raises(ValueError, match="Relu is registered twice"):
        registry.refusal(node("Relu"))


def test_module_without_a_listed_operator_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = package(tmp_path, monkeypatch, products=_MODULES["products"].replace('"MatMul", ', ""))
    with pytest.raises(ValueError, match="products does not register MatMul, which the table of families lists"):
        registry.refusal(node("Gemm"))


def test_module_with_an_unlisted_operator_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = package(tmp_path, monkeypatch, products=_MODULES["products"].replace('"Gemm"', '"Gemm", "Conv"'))
    with pytest.raises(ValueError, match=r"products registers Conv, but .* assigns Conv to lowered_apart\.simple"):
        registry.import_family("products")
