"""Every element-wise operator of the opset, on scalars and vectors in registers.

:data:`OPERATORS` is the table; the modules beside it hold what takes more than a line. 16-bit floats are
computed as float32: arguments of those types arrive converted, and results leave as float32.
"""

from lite_cpu.scalar_ops.table import OPERATORS, cost, emit_operator, supports

__all__ = ["OPERATORS", "cost", "emit_operator", "supports"]
