"""Lowering of Paddle programs to Lite's opset, one module for each operator family."""

from __future__ import annotations

from lite_paddle.lowering.operators import supported_ops
from lite_paddle.lowering.program import lower

__all__ = ["lower", "supported_ops"]
