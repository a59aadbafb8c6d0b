"""The source of a kernel: a file of kernels, macros that specialize it, and an epilogue."""

from __future__ import annotations

from typing import NamedTuple

from lite_core.ir import DType
from lite_opencl.chains import Chain
from lite_opencl.programs.element_types import c_type
from lite_opencl.programs.sources import kernel_text

__all__ = ["KernelSource"]


class KernelSource(NamedTuple):
    """A specialized kernel.

    Attributes:
        file: the name in ``kernels/<file>.cl``.
        name: the kernel function.
        local: size of a work group, three numbers: part of the code, so that compilers can optimize for it.
        defines: macros that the file reads, name and value.
        types: element types by the names that the file uses for them: ``("X", float32)`` defines ``X_TYPE`` (in
            memory), ``X_COMPUTE`` (in registers), ``LOAD_X(pointer, index)`` and ``STORE_X(pointer, index, x)``.
        chain: the epilogue, applied to each result before it is stored; None for a kernel without one.
    """

    file: str
    name: str
    local: tuple[int, int, int]
    defines: tuple[tuple[str, int | str], ...] = ()
    types: tuple[tuple[str, DType], ...] = ()
    chain: Chain | None = None

    def text(self) -> str:
        """Return the complete source in OpenCL C."""
        lines = []
        dtypes = {dtype for _, dtype in self.types} | (self.chain.dtypes if self.chain else set())
        if DType.FLOAT64 in dtypes:
            lines.append("#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n")
        lines.append(kernel_text("common"))
        lines += [f"#define LOCAL_{axis} {size}\n" for axis, size in enumerate(self.local)]
        lines += [f"#define {name} {value}\n" for name, value in self.defines]
        for name, dtype in self.types:
            kind = c_type(dtype)
            lines.append(f"#define {name}_TYPE {kind.storage}\n#define {name}_COMPUTE {kind.compute}\n")
            lines.append(f"#define LOAD_{name}(pointer, index) LOAD_{kind.suffix}(pointer, index)\n")
            lines.append(f"#define STORE_{name}(pointer, index, x) STORE_{kind.suffix}(pointer, index, x)\n")
        if self.chain is not None:
            lines.append(self.chain.text())
        lines.append(kernel_text(self.file))
        return "".join(lines)
