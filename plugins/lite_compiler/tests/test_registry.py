"""Lowerings by operator: registered by modules that are imported when they are needed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lite_compiler.fusion import Group
from lite_compiler.registry import Registry
from lite_core.builder import GraphBuilder
from lite_core.ir import Node

#: What every module of the package below begins with.
_IMPORTS = "from lowered_apart import REGISTRY\n"

_MODULES = {
    "__init__": """
from lite_compiler.registry import Registry
FAMILIES = {"products": "MatMul Gemm", "made": "Range lite.YoloBox"}
REGISTRY = Registry(__name__, FAMILIES, rest="simple", kernels="kernel")
""",
    "products": f"""{_IMPORTS}
@REGISTRY.lowers("MatMul", "Gemm", epilogue=True, refuse=lambda node: "it has a name" if node.name else None)
def product(lowering, group): lowering.append(group.head.op)
""",
    "made": f"""{_IMPORTS}
@REGISTRY.lowers("Range", known=(0, 2, 5))
def range_(lowering, group): pass
REGISTRY.rewritten(__name__, "lite.YoloBox", refuse=lambda node: "it is named" if node.name else None)
""",
    "simple": f"""{_IMPORTS}
@REGISTRY.lowers("Relu", "Neg")
def simple(lowering, group): lowering.append(group.head.op)
""",
}


def package(folder: Path, monkeypatch: pytest.MonkeyPatch, **changed: str) -> Registry[list[str]]:
    """The registry of a package with modules like these, some of them changed."""
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
    """The modules of the package that have been imported."""
    return {name.partition(".")[2] for name in sys.modules if name.startswith("lowered_apart.")}


def node(op: str, name: str = "") -> Node:
    domain, _, op = op.rpartition(".")
    return Node(op, [], [], domain=domain, name=name)


def test_a_function_is_found_and_only_its_module_imported(registry: Registry[list[str]]) -> None:
    assert imported() == set()
    function, reason = registry.find_lowering(node("Gemm"))
    assert function is not None
    assert reason == ""
    lowering: list[str] = []
    function(lowering, Group(node("Gemm"), 0))
    assert lowering == ["Gemm"]
    assert imported() == {"products"}


def test_a_node_is_refused_with_the_reason_of_its_operator(registry: Registry[list[str]]) -> None:
    assert registry.find_lowering(node("MatMul", "m")) == (None, "it has a name")
    assert registry.refusal(node("MatMul", "m")) == "it has a name"
    assert registry.refusal(node("MatMul")) is None


def test_an_operator_that_nobody_registers_has_no_kernel(registry: Registry[list[str]]) -> None:
    for op in ("Conv", "lite.Probe"):
        assert registry.find_lowering(node(op)) == (None, f"there is no kernel for {op}")
        assert registry.refusal(node(op)) == f"there is no kernel for {op}"
        assert not registry.takes_epilogue(node(op))
    assert imported() == {"simple"}  # where it would be


def test_a_domain_makes_another_operator(registry: Registry[list[str]]) -> None:
    assert registry.refusal(node("Relu")) is None
    assert registry.refusal(node("other.Relu")) == "there is no kernel for other.Relu"


def test_what_is_rewritten_is_run_but_not_lowered(registry: Registry[list[str]]) -> None:
    assert registry.is_rewritten(node("lite.YoloBox"))
    assert registry.refusal(node("lite.YoloBox")) is None
    assert registry.refusal(node("lite.YoloBox", "y")) == "it is named"
    assert registry.find_lowering(node("lite.YoloBox")) == (None, "there is no kernel for lite.YoloBox")
    assert not registry.is_rewritten(node("Range"))


def test_epilogues(registry: Registry[list[str]]) -> None:
    assert registry.takes_epilogue(node("MatMul"))
    assert not registry.takes_epilogue(node("Relu"))


def test_all_operators_are_listed_without_importing_their_modules(registry: Registry[list[str]]) -> None:
    assert registry.registered_operators() == {"MatMul", "Gemm", "Range", "lite.YoloBox", "Relu", "Neg"}
    assert imported() == {"simple"}


def test_nodes_are_undecided_where_what_must_be_known_depends_on_data(registry: Registry[list[str]]) -> None:
    b = GraphBuilder("ranges")
    x, one = b.input("x", "int64", []), b.add("Squeeze", [b.ints(1)])
    last = b.add("Add", [one, one])  # computed before the run
    known = b.add("Range", [one, x, last])  # its second input may depend on data
    unknown = b.add("Range", [x, one, one])
    b.output(known, "known")
    b.output(b.add("Neg", [unknown]), "unknown")
    graph = b.build()
    assert [n.outputs[0] for n in registry.undecided(graph)] == [unknown]


def test_two_ways_to_lower_an_operator_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    twice = _MODULES["simple"] + "REGISTRY.lowers('Relu')(simple)\n"
    registry = package(tmp_path, monkeypatch, simple=twice)
    with pytest.raises(ValueError, match="two ways to lower Relu"):
        registry.refusal(node("Relu"))


def test_a_module_must_register_what_is_listed_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = package(tmp_path, monkeypatch, products=_MODULES["products"].replace('"MatMul", ', ""))
    with pytest.raises(ValueError, match="products is listed with MatMul, and does not register them"):
        registry.refusal(node("Gemm"))


def test_a_module_must_not_register_what_is_not_listed_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = package(tmp_path, monkeypatch, products=_MODULES["products"].replace('"Gemm"', '"Gemm", "Conv"'))
    with pytest.raises(ValueError, match=r"products registers Conv, which .* says is of lowered_apart\.simple"):
        registry.import_family("products")
