"""Pictures of graphs: nodes in layers, with their devices, kernels, times and errors, as SVG and for pages.

A :class:`Picture` is plain data. :func:`lay_out` gives its boxes places by Graphviz, and :func:`svg_of` draws it.
"""

from __future__ import annotations

from lite_tools.pictures.annotations import (
    Annotations,
    KernelUse,
    NodeError,
    error_size,
    errors_of_comparison,
    kernels_of_profile,
    observed_kernels,
    severity,
)
from lite_tools.pictures.from_graph import picture_of_graph
from lite_tools.pictures.layout import Layout, LayoutError, has_layout, lay_out
from lite_tools.pictures.picture import Edge, Group, Picture, PictureNode
from lite_tools.pictures.svg import legend_of, picture_style, svg_file, svg_of

__all__ = [
    "Annotations",
    "Edge",
    "Group",
    "KernelUse",
    "Layout",
    "LayoutError",
    "NodeError",
    "Picture",
    "PictureNode",
    "error_size",
    "errors_of_comparison",
    "has_layout",
    "kernels_of_profile",
    "lay_out",
    "legend_of",
    "observed_kernels",
    "picture_of_graph",
    "picture_style",
    "severity",
    "svg_file",
    "svg_of",
]
