"""Every element-wise operator of the opset as an expression of OpenCL C: :data:`OPERATORS` is the table."""

from lite_opencl.scalar_ops.emission import cost, emit_operator, helper_functions, supports
from lite_opencl.scalar_ops.table import OPERATORS

__all__ = ["OPERATORS", "cost", "emit_operator", "helper_functions", "supports"]
