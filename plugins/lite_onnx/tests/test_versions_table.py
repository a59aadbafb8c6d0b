"""No version of no operator is forgotten: it means what the next one means, or there is an adapter.

What changed between two versions is computed from ONNX's schemas. Where nothing did but element types that were added
and words, the meaning is the same. Any other change needs an adapter, or a line in ``SAME_MEANING`` with the reason.
The words were read, too: those that could be taken for a change are in ``CLARIFIED``.
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

_NEW_DEFAULT = "new attributes whose defaults are what was done before"
_NEW_INPUT = "a new input that can be left out, which leaves what was done before"
_WINDOW = "new attributes whose defaults are what was done before; ceil_mode starts no window in the padding, as ever"
_TRAINING = "a loss, for training"

#: The changes of signatures that change nothing for the models that there were: operator and new version to the reason.
SAME_MEANING = {
    ("ArgMax", 12): _NEW_DEFAULT,
    ("ArgMin", 12): _NEW_DEFAULT,
    ("AveragePool", 7): _WINDOW,
    ("AveragePool", 10): _WINDOW,
    ("AveragePool", 19): _WINDOW,
    ("Cast", 19): "a new attribute for element types that there were not",
    ("CastLike", 19): "a new attribute for element types that there were not",
    ("Constant", 11): "new attributes for what could not be written before",
    ("Constant", 12): "new attributes for what could not be written before",
    ("DepthToSpace", 11): _NEW_DEFAULT,
    ("DequantizeLinear", 13): "a new attribute for scales of an axis; they were scalars",
    ("DequantizeLinear", 21): _NEW_DEFAULT,
    ("GRU", 14): _NEW_DEFAULT,
    ("GatherND", 12): _NEW_DEFAULT,
    ("Gemm", 11): _NEW_INPUT,
    ("GlobalLpPool", 22): "an element type fewer, which Lite still takes",
    ("LSTM", 14): _NEW_DEFAULT,
    ("Loop", 11): "fewer inputs than before are allowed",
    ("LpPool", 18): _WINDOW,
    ("MaxPool", 8): "a new output and an attribute for it",
    ("MaxPool", 10): _WINDOW,
    ("OptionalHasElement", 18): _NEW_INPUT,
    ("Pad", 18): _NEW_INPUT,
    ("QuantizeLinear", 13): "a new attribute for scales of an axis; they were scalars",
    ("QuantizeLinear", 19): "a new attribute for element types that there were not",
    ("QuantizeLinear", 21): _NEW_DEFAULT,
    ("RNN", 14): _NEW_DEFAULT,
    ("Reshape", 14): _NEW_DEFAULT,
    ("Resize", 18): _NEW_DEFAULT,
    ("ScatterElements", 16): _NEW_DEFAULT,
    ("ScatterND", 16): _NEW_DEFAULT,
    ("Shape", 15): _NEW_DEFAULT,
    ("Split", 18): "sizes or num_outputs became required; Lite's Split without both makes equal parts, as before",
    ("TopK", 11): _NEW_DEFAULT,
}

#: Where the signature is the same and the text says something else, and why an adapter is not needed all the same.
CLARIFIED = {
    ("AveragePool", 22): "no window starts in the padding at the end; before, the mean of no elements was asked for",
    ("ConvTranspose", 11): "uneven pads were swapped in the text; ONNX Runtime has always done what it says now",
    ("MaxPool", 22): "no window starts in the padding at the end; before, the largest of no elements was asked for",
    ("OneHot", 11): "negative indices count from the end; before, there must be none",
    ("GatherND", 13): "indices may be negative; before, there must be none",
    ("Gather", 11): "indices may be negative; before, there must be none",
    ("Max", 8): "operands are broadcast; before, they had one shape",
    ("Mean", 8): "operands are broadcast; before, they had one shape",
    ("Min", 8): "operands are broadcast; before, they had one shape",
    ("Sum", 8): "operands are broadcast; before, they had one shape",
    ("NonMaxSuppression", 11): "the same in other words",
    ("Resize", 19): "more modes, and those that there were in other words",
    ("Softmax", 11): "an axis may be negative; before, there must be none",
}


def _history() -> dict[str, list[Any]]:
    """The versions of every operator of ONNX's own domain up to the newest that Lite speaks, oldest first."""
    history: dict[str, list[Any]] = defaultdict(list)
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "" and schema.since_version <= NEWEST:
            history[schema.name].append(schema)
    return {name: sorted(versions, key=lambda s: s.since_version) for name, versions in sorted(history.items())}


def _signature(schema: Any) -> dict[str, Any]:
    """All of a schema but names of inputs, texts and element types."""
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
    """Whether a node of the old version is one of the new, by what the schemas say."""
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


def test_the_history_is_there() -> None:
    assert len(CHANGES) > 250


@pytest.mark.parametrize(("op", "version"), CHANGES, ids=lambda value: str(value))
def test_every_change_is_decided(op: str, version: int) -> None:
    decisions = [
        _is_same(*CHANGES[op, version]),
        (op, version) in SAME_MEANING,
        (op, version - 1) in ADAPTERS,
    ]
    assert any(decisions), f"{op}: what version {version} changed needs an adapter (until={version - 1}) or a reason"


@pytest.mark.parametrize("change", SAME_MEANING)
def test_reasons_are_needed(change: tuple[str, int]) -> None:
    op, version = change
    assert change in CHANGES
    assert not _is_same(*CHANGES[change])
    assert (op, version - 1) not in ADAPTERS


@pytest.mark.parametrize("adapter", ADAPTERS.values(), ids=lambda a: f"{a.op}-{a.until}")
def test_adapters_end_where_a_version_does(adapter: Any) -> None:
    starts = [schema.since_version for schema in HISTORY[adapter.op]]
    # An operator that began as an experiment without a schema changed when it became a part of ONNX.
    assert adapter.until + 1 in starts


@pytest.mark.parametrize("op", HISTORY)
def test_new_attributes_and_inputs_can_be_left_out(op: str) -> None:
    """What ``SAME_MEANING`` relies on: nothing that is new is required."""
    for old, new in pairwise(HISTORY[op]):
        if (op, new.since_version) not in SAME_MEANING:
            continue
        added = set(new.attributes) - set(old.attributes)
        assert not [name for name in added if new.attributes[name].required]
        assert new.min_input <= old.min_input
        assert set(old.attributes) <= set(new.attributes)


@pytest.mark.parametrize("op", [name for name in HISTORY if ops.find(name) is not None])
def test_lite_has_what_the_newest_version_has(op: str) -> None:
    """Attributes by name, so that a node of the newest version is taken as it is."""
    newest, definition = HISTORY[op][-1], ops.find(op)
    assert definition is not None
    assert set(newest.attributes) == set(definition.attributes)
    for name, attribute in newest.attributes.items():
        default = definition.attributes[name].default
        if attribute.default_value.name and default is not None:
            given = onnx.helper.get_attribute_value(attribute.default_value)
            given = given.decode() if isinstance(given, bytes) else given
            expected = pytest.approx(given) if isinstance(given, float) else given
            found = onnx.helper.np_dtype_to_tensor_dtype(default.numpy) if hasattr(default, "numpy") else default
            assert (list(found) if isinstance(found, tuple) else found) == expected, name


@pytest.mark.parametrize("change", CLARIFIED)
def test_clarifications_are_of_versions_with_one_signature(change: tuple[str, int]) -> None:
    assert _is_same(*CHANGES[change])
    assert (change[0], change[1] - 1) not in ADAPTERS
