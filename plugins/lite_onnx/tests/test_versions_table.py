"""Every version of every operator has the same meaning as the next one, or an adapter.

The changes between two versions are computed from ONNX's schemas. If only element types and documentation were added,
the meaning is the same. Any other change needs an adapter, or a line in ``SAME_MEANING`` with the reason. The
documentation was reviewed, too: texts that could be mistaken for a change of meaning are listed in ``CLARIFIED``.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import Any

import onnx.defs
import pytest

from lite_core import ops
from lite_onnx.lowering.operators import every_adapter

NEWEST = ops.OPSET_VERSION

_NEW_DEFAULT = "new attributes whose defaults keep the old behavior"
_NEW_INPUT = "a new optional input; the behavior without it is the old one"
_WINDOW = (
    "new attributes whose defaults keep the old behavior; with ceil_mode no window starts in the padding, as before"
)
_TRAINING = "a loss, for training"

#: Changes of signatures that do not affect existing models: the reason, by operator and new version.
SAME_MEANING = {
    ("ArgMax", 12): _NEW_DEFAULT,
    ("ArgMin", 12): _NEW_DEFAULT,
    ("AveragePool", 7): _WINDOW,
    ("AveragePool", 10): _WINDOW,
    ("AveragePool", 19): _WINDOW,
    ("Cast", 19): "a new attribute for new element types",
    ("CastLike", 19): "a new attribute for new element types",
    ("Constant", 11): "new attributes for constants of other kinds",
    ("Constant", 12): "new attributes for constants of other kinds",
    ("DepthToSpace", 11): _NEW_DEFAULT,
    ("DequantizeLinear", 13): "a new attribute for scales along an axis; before, scales were scalars",
    ("DequantizeLinear", 21): _NEW_DEFAULT,
    ("GRU", 14): _NEW_DEFAULT,
    ("GatherND", 12): _NEW_DEFAULT,
    ("Gemm", 11): _NEW_INPUT,
    ("GlobalLpPool", 22): "one element type fewer, which Lite still supports",
    ("LSTM", 14): _NEW_DEFAULT,
    ("Loop", 11): "fewer inputs are required",
    ("LpPool", 18): _WINDOW,
    ("MaxPool", 8): "a new output and an attribute for it",
    ("MaxPool", 10): _WINDOW,
    ("OptionalHasElement", 18): _NEW_INPUT,
    ("Pad", 18): _NEW_INPUT,
    ("QuantizeLinear", 13): "a new attribute for scales along an axis; before, scales were scalars",
    ("QuantizeLinear", 19): "a new attribute for new element types",
    ("QuantizeLinear", 21): _NEW_DEFAULT,
    ("RNN", 14): _NEW_DEFAULT,
    ("Reshape", 14): _NEW_DEFAULT,
    ("Resize", 18): _NEW_DEFAULT,
    ("ScatterElements", 16): _NEW_DEFAULT,
    ("ScatterND", 16): _NEW_DEFAULT,
    ("Shape", 15): _NEW_DEFAULT,
    ("Split", 18): "sizes or num_outputs became required; Lite's Split without both returns equal parts, as before",
    ("TopK", 11): _NEW_DEFAULT,
}

#: Versions with the same signature and a changed text, and the reason why they need no adapter.
CLARIFIED = {
    ("AveragePool", 22): "no window starts in the padding at the end; before, the mean of no elements was undefined",
    ("ConvTranspose", 11): "uneven pads were swapped in the text; ONNX Runtime always did what it says now",
    ("MaxPool", 22): "no window starts in the padding at the end; before, the maximum of no elements was undefined",
    ("OneHot", 11): "negative indices count from the end; before, they were not allowed",
    ("GatherND", 13): "indices may be negative; before, this was not allowed",
    ("Gather", 11): "indices may be negative; before, this was not allowed",
    ("Max", 8): "operands are broadcast; before, they had one shape",
    ("Mean", 8): "operands are broadcast; before, they had one shape",
    ("Min", 8): "operands are broadcast; before, they had one shape",
    ("Sum", 8): "operands are broadcast; before, they had one shape",
    ("NonMaxSuppression", 11): "rephrased",
    ("Resize", 19): "more modes, and rephrased old ones",
    ("Softmax", 11): "the axis may be negative; before, this was not allowed",
}


def _history() -> dict[str, list[Any]]:
    """Return the versions of every operator of ONNX's own domain up to Lite's opset, oldest first."""
    history: dict[str, list[Any]] = defaultdict(list)
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "" and schema.since_version <= NEWEST:
            history[schema.name].append(schema)
    return {name: sorted(versions, key=lambda s: s.since_version) for name, versions in sorted(history.items())}


def _signature(schema: Any) -> dict[str, Any]:
    """Return everything in a schema except names of inputs, documentation and element types."""
    return {
        "attributes": {
            name: (a.type.name, a.required, a.default_value.SerializeToString())
            for name, a in schema.attributes.items()
        },
        "inputs": [(i.option.name, i.is_homogeneous, i.min_arity) for i in schema.inputs],
        "outputs": [(o.option.name, o.is_homogeneous, o.min_arity) for o in schema.outputs],
        "deprecated": schema.deprecated,
    }


def _types(schema: Any) -> list[set[str]]:
    return [set(parameter.types) for parameter in (*schema.inputs, *schema.outputs)]


def _is_same(old: Any, new: Any) -> bool:
    """Return True if the schemas say that a node of the old version is a valid node of the new one."""
    if _signature(old) != _signature(new):
        return False
    return all(before <= after for before, after in zip(_types(old), _types(new)))


HISTORY = _history()
CHANGES = {
    (name, new.since_version): (old, new) for name, versions in HISTORY.items() for old, new in pairwise(versions)
}
ADAPTERS = {
    (adapter.op, adapter.until): adapter
    for adapter in every_adapter()
    if adapter.domain == "" and adapter.adapt.__module__.startswith("lite_onnx.lowering.operators.ai_onnx.versions")
}


@pytest.mark.parametrize(("op", "version"), CHANGES, ids=lambda value: str(value))
def test_every_change_has_a_decision(op: str, version: int) -> None:
    decisions = [
        _is_same(*CHANGES[op, version]),
        (op, version) in SAME_MEANING,
        (op, version - 1) in ADAPTERS,
    ]
    assert any(decisions), f"{op}: the change of version {version} needs an adapter (until={version - 1}) or a reason"


@pytest.mark.parametrize("change", SAME_MEANING)
def test_reasons_are_needed(change: tuple[str, int]) -> None:
    op, version = change
    assert change in CHANGES
    assert not _is_same(*CHANGES[change])
    assert (op, version - 1) not in ADAPTERS


@pytest.mark.parametrize("adapter", ADAPTERS.values(), ids=lambda a: f"{a.op}-{a.until}")
def test_adapters_end_with_a_version(adapter: Any) -> None:
    starts = [schema.since_version for schema in HISTORY[adapter.op]]
    # Experimental operators had no schema; their change is when they became a part of ONNX.
    assert adapter.until + 1 in starts


@pytest.mark.parametrize("op", HISTORY)
def test_new_attributes_and_inputs_are_optional(op: str) -> None:
    """``SAME_MEANING`` relies on this."""
    for old, new in pairwise(HISTORY[op]):
        if (op, new.since_version) not in SAME_MEANING:
            continue
        added = set(new.attributes) - set(old.attributes)
        assert not [name for name in added if new.attributes[name].required]
        assert new.min_input <= old.min_input
        assert set(old.attributes) <= set(new.attributes)


@pytest.mark.parametrize("op", [name for name in HISTORY if ops.find(name) is not None])
def test_lite_has_the_attributes_of_the_newest_version(op: str) -> None:
    """A node of the newest version is used without an adapter."""
    newest, definition = HISTORY[op][-1], ops.find(op)
    assert definition is not None
    assert set(newest.attributes) == set(definition.attributes)
    for name, attribute in newest.attributes.items():
        default = definition.attributes[name].default
        if attribute.default_value.name and default is not None:
            schema_default = onnx.helper.get_attribute_value(attribute.default_value)
            schema_default = schema_default.decode() if isinstance(schema_default, bytes) else schema_default
            expected = pytest.approx(schema_default) if isinstance(schema_default, float) else schema_default
            found = onnx.helper.np_dtype_to_tensor_dtype(default.numpy) if hasattr(default, "numpy") else default
            assert (list(found) if isinstance(found, tuple) else found) == expected, name


@pytest.mark.parametrize("change", CLARIFIED)
def test_clarified_versions_have_the_same_signature(change: tuple[str, int]) -> None:
    assert _is_same(*CHANGES[change])
    assert (change[0], change[1] - 1) not in ADAPTERS
