"""The element-wise operators of the opset, on scalars and vectors in registers.

:data:`OPERATORS` is the table; the other modules define the operators that take more than a line. 16-bit floats are
computed in float32: arguments of those types are passed as float32, and results are returned as float32.
"""

from lite_cpu.scalar_ops.table import OPERATORS, cost, emit_operator, emit_quantized_and_dequantized, supports

__all__ = ["OPERATORS", "cost", "emit_operator", "emit_quantized_and_dequantized", "supports"]
