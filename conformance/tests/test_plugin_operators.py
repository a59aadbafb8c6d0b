"""The checks of references and inference, and the cases that are generated for operators of plugins."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from lite_conformance.cases.op_cases import OpTable
from lite_conformance.cases.plugins.generated import generated_table
from lite_conformance.cases.plugins.references import check_reference
from lite_conformance.cases.tensors import t
from lite_conformance.judge.outcome import Failure
from lite_core import ops
from lite_core.ir import DType
from lite_core.ops import define, registry, required
from lite_core.ops.dtypes import FLOATS
from lite_core.ops.inference import same_as_first

# **** references ****


@pytest.fixture
def add() -> Iterator[Callable[..., OpTable]]:
    """A function that adds an operator ``test.Op`` and returns a table with one case of it, removed afterwards."""

    def add(reference: Callable[..., Any], signature: str = "X: T -> Y: T", **details: Any) -> OpTable:
        given = {"types": {"T": FLOATS}, "infer": same_as_first, **details}
        ops.add(define(reference, "Op", signature, domain="test", **given))
        return OpTable("Op", domain="test")

    yield add
    registry.REGISTRY.pop(("test", "Op"), None)


calls = iter(range(1000))


def list_of_sizes(inference: Any) -> list[Any]:
    """Infer by a loop over a size, which may be a symbol."""
    rows, columns = inference.shape(0)
    return [(rows, len(range(columns)))]


@pytest.mark.parametrize(
    ("reference", "details", "reason"),
    [
        (lambda x: x[:1], {}, "returned float32[1, 3], but its inference promises float32[2, 3]"),
        (lambda x: x + next(calls), {}, "another output 0 again"),
        (lambda x: x * 1.5, {"signature": "X: T -> Y: int32"}, "returned float32 for an output of int32"),
        (lambda x: x.astype(np.int64), {}, "the reference returned int64 for an output of float32"),
        (
            lambda x: (x,),
            {"signature": "X: T -> Y: T, Z: T", "infer": lambda i: [i.shape(0)] * 2},
            "returned 1 results, expected 2",
        ),
        (lambda x: x / None, {}, "the reference failed with TypeError"),
        (lambda x: np.negative(x, out=x), {}, "read-only"),
        (lambda x: x, {"infer": list_of_sizes}, "fails for inputs with symbols"),
        (
            lambda x: x,
            {"infer": lambda i: [(2, 3) if i.type(0).is_static else (3, 3)]},
            "wrong for inputs with symbols",
        ),
        (lambda x: x, {"infer": lambda i: [tuple(i.shape(0))]}, "fails for inputs with an unknown rank"),
    ],
)
def test_mistake_of_a_reference_is_found(
    add: Callable[..., OpTable], reference: Callable[..., Any], details: dict[str, Any], reason: str
) -> None:
    table = add(reference, **details)
    case = table.case(t(2, 3), outputs=len(table.definition.outputs))
    with pytest.raises(Failure) as found:
        check_reference(case, DType.FLOAT32, seed=0)
    assert reason in found.value.reason


# **** generated cases ****


@pytest.mark.parametrize(
    ("signature", "details", "labels"),
    [
        ("X: T -> Y: T", {}, ["2x3", "7", "3x4x5", "2x3x4x5", "3x257", "0x3", "scalar"]),
        ("X: T, Z: T* -> Y: T", {}, ["2x3"]),
        ("X: T, M: bool, B: T? -> Y: T", {}, ["every-input"]),
        ("X: T -> Y: T", {"types": {"T": ("float32",)}}, ["2x3"]),
    ],
)
def test_generated_cases_are_right(
    add: Callable[..., OpTable], signature: str, details: dict[str, Any], labels: list[str]
) -> None:
    add(lambda x, *others: x * 2, signature, **details)
    definition = ops.find("Op", "test")
    assert definition is not None
    found = generated_table(definition)
    assert isinstance(found, OpTable)
    names = {name for name, _, _ in found.cases()}
    assert {f"test.Op[f32,generated-{label}]" for label in labels} <= names
    for _, dtype, case in found.cases():
        check_reference(case, dtype, seed=0)


@pytest.mark.parametrize(
    ("signature", "details", "reason"),
    [
        ("X: T -> Y: T", {"attributes": {"axis": required("int")}}, "'axis' is required"),
        ("X: T, I: int64 -> Y: T", {}, "'I' is of type int64"),
        ("X: T -> Y: T*", {}, "number of outputs"),
        ("X: T -> Y: T", {"infer": lambda i: [i.shape(7)]}, "refuses operands of one shape"),
    ],
)
def test_operators_without_generated_cases_say_why(
    add: Callable[..., OpTable], signature: str, details: dict[str, Any], reason: str
) -> None:
    add(lambda x, *others, axis=0: x, signature, **details)
    definition = ops.find("Op", "test")
    assert definition is not None
    found = generated_table(definition)
    assert isinstance(found, str)
    assert reason in found
