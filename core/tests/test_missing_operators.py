"""Operators that the opset lacks: messages name the package, the domain or a similar name; kernels registered early."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from installed_plugins import install, plugins_of
from test_container_damage import assembled, parts_of
from test_plugin_isolation import plugin, raises
from test_plugin_isolation import plugins_of as plugins_loaded_by

from lite_core import ops
from lite_core.builder import GraphBuilder
from lite_core.container import ModelFile
from lite_core.errors import GraphError, ModelFormatError, UnsupportedOperatorError
from lite_core.ir import Array, DType, Graph
from lite_core.kernel_backend import KernelBackend
from lite_core.ops import missing
from lite_core.ops.inference import same_as_first
from lite_core.ops.registry import REGISTRY, providers
from lite_core.plugins import PluginManager, plugins_with
from lite_core.session import load
from lite_tools.cli.new_plugin_names import check_name
from lite_tools.writing import write_model

SQUISH = """
from lite_core import ops
from lite_core.ir import DType
from lite_core.ops.inference import same_as_first
from lite_core.plugins import hookimpl

LITE_API_VERSION = 1

@hookimpl
def lite_ops():
    return [ops.define(lambda x, *, slope: x * slope, "Squish", "X: T -> Y: T", types={"T": [DType.FLOAT32]},
                       attributes={"slope": 2.0}, infer=same_as_first, domain="missing.test")]
"""
DOMAIN = "missing.test"


def forget() -> None:
    """Remove the operator, as in a process without its package."""
    REGISTRY.pop((DOMAIN, "Squish"), None)
    providers.pop(DOMAIN, None)


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget the operator and its package after the test."""
    monkeypatch.setattr(missing, "_noted", {})
    monkeypatch.setattr(missing, "suspects", suspects := [])
    monkeypatch.setattr(ops, "suspects", suspects)
    yield
    forget()


def squished() -> Graph:
    b = GraphBuilder("squished")
    b.output(b.add("Squish", [b.input("x", "float32", [2])], domain=DOMAIN), "y")
    return b.build()


@pytest.fixture
def written(site: Path) -> Path:
    """A .lite file with an operator of the installed package lite-squisher 1.5, which then is no longer there."""
    install(site, "squisher", SQUISH, version="1.5")
    plugins_of(site).records()
    path = site / "model.lite"
    write_model(path, squished())
    forget()
    return path


def test_file_names_the_package_of_an_operator_that_is_missing(written: Path) -> None:
    for info in written.parent.glob("*.dist-info"):
        info.rename(info.with_suffix(".removed"))
    with pytest.raises(UnsupportedOperatorError) as caught:
        load(written, plugins=PluginManager(list))
    (problem,) = caught.value.problems
    assert "lite-squisher 1.5" in problem.reason
    assert "not installed" in problem.reason
    assert problem.remedy == "pip install lite-squisher"
    with pytest.raises(GraphError, match=r"lite-squisher 1\.5.*pip install lite-squisher"):
        ops.verify(ModelFile.open(written).graph())


def test_package_that_is_installed_without_the_operator_is_examined(written: Path) -> None:
    ModelFile.open(written).graph()
    assert ops.why_missing("Squish", DOMAIN).remedy == "lite plugins lite-squisher"
    providers[DOMAIN] = ("lite-squisher", "2.0")
    found = ops.why_missing("Squish", DOMAIN)
    assert "2.0, which lacks it" in found.reason
    assert found.remedy == "pip install lite-squisher==1.5"


def test_file_written_again_without_the_package_keeps_its_name(written: Path) -> None:
    write_model(written, ModelFile.open(written).graph())
    _, sections = parts_of(written.read_bytes())
    assert json.loads(sections["graph"])["packages"] == {DOMAIN: ["lite-squisher", "1.5"]}


def changed(path: Path, **changes: Any) -> Path:
    """Write a copy of a file with other items in its graph."""
    _, sections = parts_of(path.read_bytes())
    document = {**json.loads(sections["graph"]), **changes}
    kept = {key: item for key, item in document.items() if item is not None}
    copy = path.with_name("changed.lite")
    copy.write_bytes(assembled({**sections, "graph": json.dumps(kept).encode()}))
    return copy


def test_file_without_names_of_packages_is_read(written: Path) -> None:
    with pytest.raises(UnsupportedOperatorError) as caught:
        load(changed(written, packages=None), plugins=PluginManager(list))
    assert "no installed package" in caught.value.problems[0].reason


@pytest.mark.parametrize(
    "packages", [{DOMAIN: ["x; rm -rf /", "1"]}, {DOMAIN: ["lite-x", "1 --index-url=evil"]}, {DOMAIN: [1, 2]}, [7]]
)
def test_name_of_a_package_that_is_no_name_is_refused(written: Path, packages: Any) -> None:
    """Users copy the name into a command."""
    with pytest.raises(ModelFormatError):
        ModelFile.open(changed(written, packages=packages)).graph()


@pytest.mark.parametrize(
    ("name", "domain", "said"),
    [
        ("Swish", "", 'it has Swish in the domain lite (domain="lite")'),
        ("Swish", "ai.onnx", 'it has Swish in the domain lite (domain="lite")'),
        ("Relu", "lite", 'it has Relu in the domain of ONNX (domain="")'),
        ("Cnv", "", "did you mean Conv?"),
        ("Zyxxy", "", "`lite ops` lists"),
        ("Relu", "nobody", "no installed package has operators of the domain nobody"),
    ],
)
def test_operator_in_another_domain_or_misspelt_is_found(name: str, domain: str, said: str) -> None:
    assert said in str(ops.why_missing(name, domain))


# **** kernels of operators that are registered later ****


def definition() -> ops.OpDef:
    details: dict[str, Any] = {"types": {"T": [DType.FLOAT32]}, "attributes": {"slope": 2.0}}
    return ops.define(
        lambda x, *, slope: x * slope, "Squish", "X: T -> Y: T", infer=same_as_first, domain=DOMAIN, **details
    )


def squish(x: Array, *, slope: float, out: Array) -> None:
    np.multiply(x, slope + 1, out=out)  # other than the reference, to see that it ran


def ran_by_the_kernel(backend: KernelBackend) -> bool:
    session = load(squished(), backend="early", plugins=plugins_with(backend))
    return bool(session.run(x=[1, -1])["y"].tolist() == [3, -3])


def test_kernel_of_ones_own_operator_is_registered_by_its_definition() -> None:
    backend, own = KernelBackend("early"), definition()
    backend.kernel(own, dtypes=["float32"])(squish)
    ops.add(own)
    assert ran_by_the_kernel(backend)


def test_kernel_may_be_registered_before_its_operator_by_name() -> None:
    backend = KernelBackend("early")
    backend.kernel("Squish", domain=DOMAIN)(squish)
    ops.add(definition())
    assert ran_by_the_kernel(backend)


def test_kernel_of_an_operator_that_never_appears_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    backend = KernelBackend("early")
    backend.kernel("Squeesh", domain=DOMAIN)(squish)
    assert not caplog.text
    backend.probe()
    backend.probe()
    (message,) = caplog.messages
    assert f"{DOMAIN}.Squeesh" in message
    assert "squish" in message


def test_kernel_that_lacks_an_attribute_is_refused_when_the_operator_is_known() -> None:
    def lacking(x: Array, *, out: Array) -> None: ...

    with pytest.raises(ValueError, match=r"lacking of missing\.test\.Squish .*slope"):
        KernelBackend("early").kernel(definition())(lacking)
    backend = KernelBackend("early")
    backend.kernel("Squish", domain=DOMAIN)(lacking)
    ops.add(definition())
    for _ in range(2):
        with pytest.raises(ValueError, match=r"lacking of missing\.test\.Squish .*slope"):
            backend.probe()


def test_kernel_of_an_unknown_operator_of_lite_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match=r'Swish.*domain="lite"'):
        KernelBackend("early").kernel("Swish")


@pytest.mark.parametrize(
    ("broken", "fault"),
    [
        (raises(ImportError("no licence")), "ImportError: no licence"),
        (lambda: plugin(lite_ops=raises(ValueError("boom"))), "ValueError: boom"),
        (lambda: SimpleNamespace(LITE_API_VERSION=99), "is written for API 99"),
    ],
)
def test_operator_of_a_plugin_that_failed_leads_to_the_plugin(broken: Any, fault: str) -> None:
    plugins_loaded_by(a=broken).records()
    reason, remedy = ops.why_missing("Squish", "zenith")
    assert f"plugin 'a' (lite-a 1.0) may have it, but failed: {fault}" in reason
    assert remedy == "lite plugins lite-a"
    assert "may have it" not in str(ops.why_missing("Squish", "lite"))


@pytest.mark.parametrize(
    ("op", "name"),
    [
        ("HardSquash", "hard_squash"),
        ("Lite_3", "my_lite_3"),
        ("3D", "my_3_d"),
        ("Auto", "my_auto"),
        ("+", "my_operator"),
    ],
)
def test_remedy_names_a_new_plugin_as_it_can_be_called(op: str, name: str) -> None:
    assert str(ops.why_missing(op, "zenith")).endswith(f"`lite new-plugin operator {name}`")
    check_name(name, ["operator"])
