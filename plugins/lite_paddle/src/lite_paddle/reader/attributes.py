"""Processing of attributes that both file kinds share: drop bookkeeping, normalize, supply defaults."""

from __future__ import annotations

import copy
import json
import pkgutil
from functools import cache
from typing import Any

from lite_core.errors import ModelFormatError

# Attributes that control a device or the exporter and do not affect results.
_BOOKKEEPING_TEXT = """
op_role op_role_var op_namescope op_callstack op_device op_device_type with_quant_attr op_dist_attr
dist_attr struct_name use_cudnn use_mkldnn use_onednn mkldnn_data_type onednn_data_type use_quantizer
workspace_size_MB exhaustive_search Scale_in Scale_out Scale_x Scale_y Scale_weights Scale_in_eltwise
force_fp32_output is_test use_addto x_data_format y_data_format name inference_force_prepare_data skip_quant
force_cpu place place_type sparse in_dtype sync_stats stop_gradient persistable is_sparse is_distributed
fix_seed remote_prefetch trainer_id slice_start dst_device_type execution_stream
"""
BOOKKEEPING = frozenset(_BOOKKEEPING_TEXT.split())

# Reduction -> (attribute with the axes, attribute that keeps reduced axes).
REDUCTIONS = {
    **{f"reduce_{name}": ("dim", "keep_dim") for name in ("sum", "mean", "max", "min", "prod", "all", "any")},
    "frobenius_norm": ("dim", "keep_dim"),
    "logsumexp": ("axis", "keepdim"),
}

# Attributes in which operators of different versions keep their constant elements.
_VALUE_ATTRIBUTES = (
    "values",
    "bool_values",
    "int32_values",
    "int64_values",
    "fp64_values",
    "fp32_values",
    "fp16_values",
)


@cache
def _defaults() -> dict[str, dict[str, Any]]:
    text = pkgutil.get_data(__package__, "attribute_defaults.json")
    assert text is not None, "the package was installed without its attribute_defaults.json"
    table: dict[str, dict[str, Any]] = json.loads(text)
    return table


def complete_attributes(op_type: str, attrs: dict[str, Any]) -> dict[str, Any]:
    """Normalize the attributes of an operator in legacy vocabulary.

    Args:
        op_type: Legacy operator type.
        attrs: Attributes of the file, with element types as strings already.

    Returns:
        A new dictionary without bookkeeping, with defaults for missing attributes.

    Raises:
        ModelFormatError: A value has a type that the attribute cannot have.
    """
    result = {name: value for name, value in attrs.items() if name not in BOOKKEEPING}
    if op_type in REDUCTIONS:
        _complete_reduction(result, REDUCTIONS[op_type][0])
    if op_type in ("assign_value", "set_value"):
        _merge_values(result)
    if op_type.startswith("fill_constant"):
        _merge_string_value(result)
    if op_type in ("arg_max", "arg_min") and result.get("dtype", "") is None:
        result["dtype"] = "int64"  # Paddle 1.x wrote -1 for it
    if "_interp" in op_type:
        # NOTE: the registry's default and many files say "bilinear" even for nearest_interp.
        result["interp_method"] = op_type.split("_interp")[0]
    for name, value in _defaults().get(op_type, {}).items():
        if name not in result:
            result[name] = copy.copy(value)
        elif not _fits(result[name], value):
            raise ModelFormatError(
                f"{op_type} has {name} {repr(result[name])[:80]}, expected the kind of {value!r}; the file is damaged"
            )
    return result


def _fits(value: Any, default: Any) -> bool:
    """Return True if a value has the kind of the default: number, string or numbers (also a single number)."""
    if isinstance(default, str):
        return value is None or isinstance(value, str)
    if isinstance(default, list) and isinstance(value, list | tuple):
        return all(isinstance(item, bool | int | float | complex) for item in value)
    return default is None or isinstance(value, bool | int | float | complex)


def _complete_reduction(attrs: dict[str, Any], axes_name: str) -> None:
    """Make the axes a list that is empty exactly when reduce_all is true.

    NOTE: the default axes [0] count only when neither the axes nor reduce_all=true is in the file.
    """
    axes = attrs.get(axes_name, [0])
    axes = list(axes) if isinstance(axes, list | tuple) else [axes]
    everything = bool(attrs.get("reduce_all", False)) or not axes
    attrs[axes_name] = [] if everything else axes
    attrs["reduce_all"] = everything


def _merge_values(attrs: dict[str, Any]) -> None:
    """Move the only non-empty list of elements to ``values``; its name differs between versions."""
    lists = [attrs.pop(name, None) for name in _VALUE_ATTRIBUTES]
    attrs["values"] = next((values for values in lists if values), [])


def _merge_string_value(attrs: dict[str, Any]) -> None:
    """Replace ``value`` by ``str_value`` unless that is empty: it has the digits that a float32 cannot hold."""
    text = attrs.pop("str_value", "")
    if not text:
        return
    try:
        attrs["value"] = int(text)
    except ValueError:
        try:
            attrs["value"] = float(text)
        except ValueError as error:
            raise ModelFormatError(f"fill_constant has str_value {text[:40]!r}, which is not a number") from error
