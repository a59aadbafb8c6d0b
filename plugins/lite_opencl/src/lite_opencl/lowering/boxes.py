"""Rewriting of operators on boxes to others, before a graph is lowered."""

from __future__ import annotations

from lite_compiler.boxes import EXPANDED_BOXES, without_box_operators
from lite_opencl.lowering.registry import register_rewritten

__all__ = ["without_box_operators"]

register_rewritten(__name__, *EXPANDED_BOXES)
