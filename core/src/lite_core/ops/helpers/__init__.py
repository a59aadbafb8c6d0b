"""Helpers for authors of backends: what every backend would otherwise write again. See docs/author-helpers.md.

=====================  ===============================================================================================
windows                :func:`windows_of`, :func:`elements_in_windows`: pads, ``auto_pad`` and ``ceil_mode`` resolved
numbers                :func:`number_inputs`, :func:`unknown_numbers`, :func:`data_dependent_nodes`
known values           :func:`find_known_values`, :func:`fold_constants`
attributes             :func:`attributes_of`: defaults filled in
strides                :func:`dense_strides`, :func:`broadcast_strides`, :func:`merge_loops`
references             :func:`reference`: an operator as a function of arrays
digests                :func:`graph_digest`: the partition that a saved program belongs to
=====================  ===============================================================================================
"""

from __future__ import annotations

from lite_core.ops import attributes_of
from lite_core.ops.helpers.digests import graph_digest
from lite_core.ops.helpers.known_values import find_known_values, fold_constants
from lite_core.ops.helpers.numbers import data_dependent_nodes, number_inputs, unknown_numbers
from lite_core.ops.helpers.references import reference
from lite_core.ops.helpers.strides import broadcast_strides, dense_strides, merge_loops
from lite_core.ops.helpers.windows import WindowAxis, elements_in_windows, windows_of

__all__ = [
    "WindowAxis",
    "attributes_of",
    "broadcast_strides",
    "data_dependent_nodes",
    "dense_strides",
    "elements_in_windows",
    "find_known_values",
    "fold_constants",
    "graph_digest",
    "merge_loops",
    "number_inputs",
    "reference",
    "unknown_numbers",
    "windows_of",
]
