"""Compiler from LLVM IR in text form to flat images of machine code.

Importing this module does not import llvmlite; the first call of :func:`compile_ir` does.
"""

from __future__ import annotations

import re
import sys
from typing import Any, Literal

from lite_core.errors import LiteError
from lite_cpu.machine import Machine
from lite_cpu.machine_code.image import CodeImage, CodeImageError
from lite_cpu.machine_code.llvm import binding, missing_compiler, optimize_and_emit
from lite_cpu.machine_code.loading import CodeLoadError, LoadedCode, load
from lite_cpu.machine_code.memory_limits import memory_left

__all__ = [
    "CodeImage",
    "CodeImageError",
    "CodeLoadError",
    "KernelCompileError",
    "LoadedCode",
    "Optimize",
    "assembly_of",
    "compile_ir",
    "load",
    "missing_compiler",
    "require_memory",
]

# The header of a definition ends with the brace that opens its body, on the same line or, as llvmlite prints it, the
# next.
_DEFINITION = re.compile(r"^(define\b[^\n]*?)\s*\{[ \t]*$", re.MULTILINE)
_DEFINED_NAME = re.compile(r'^define\b[^\n@]*@"?([^"(]+)', re.MULTILINE)

# NOTE: without "no-builtins" LLVM replaces loops that clear or copy memory by calls of memset or memcpy, which are not
# part of the image. "nounwind" avoids the tables for exceptions.
_FUNCTION_ATTRIBUTES = '"no-builtins" nounwind'

#: Memory that compilations must find, and what loading LLVM takes before. A kernel needs a few MiB.
_MEMORY_BYTES = 64 << 20
_LLVM_BYTES = 192 << 20

#: Level of LLVM's optimizations; see :func:`compile_ir`.
Optimize = Literal["plain", "loops", "vectorize"]


class KernelCompileError(LiteError):
    """LLVM rejected the IR of a kernel or has too little memory, or the code cannot be a self-contained image."""


def require_memory() -> None:
    """Raise KernelCompileError if the limits of the system leave too little memory to compile kernels.

    Where LLVM gets no memory, or Python gets none in a new thread, the process ends.
    """
    left = memory_left()
    needed = _MEMORY_BYTES if "llvmlite.binding" in sys.modules else _MEMORY_BYTES + _LLVM_BYTES
    if left is not None and left < needed:
        raise KernelCompileError(
            f"compiling kernels needs {needed >> 20} MiB, and the system's limits leave {max(left, 0) >> 20} MiB to "
            "this process (ulimit -v, ulimit -d)"
        )


def compile_ir(ir_text: str, machine: Machine, *, optimize: Optimize = "plain") -> CodeImage:
    """Compile the functions of an LLVM module for ``machine``, which may differ from the processor at hand.

    Functions with external linkage become the entries of the image; all others, and constants, are private to it.
    Thread-safe: each call uses a separate LLVM context.

    Args:
        ir_text: the module as LLVM assembly with opaque pointers. It must be self-contained: LLVM intrinsics that are
            instructions of ``machine`` are allowed, calls of a library are not.
        machine: the processor to compile for.
        optimize: the optimizations of LLVM. ``"plain"``: few and fast ones, which keep code written with vectors as it
            is. ``"loops"``: all except vectorization and unrolling, for example moving invariants out of short loops.
            ``"vectorize"``: all, for loops written with scalars.

    Raises:
        KernelCompileError: the IR does not parse or verify, LLVM does not know ``machine``, the code is not
            self-contained, or the limits of the system leave too little memory. The message names the kernel.
    """
    from lite_cpu.machine_code.elf import flatten

    require_memory()
    try:
        return flatten(_emit(_with_attributes(ir_text, machine), machine, optimize))
    except (RuntimeError, CodeImageError) as error:
        kernels = ", ".join(_DEFINED_NAME.findall(ir_text)) or "without a function"
        raise KernelCompileError(f"kernel {kernels} for {machine.name}: {error}") from error


def assembly_of(ir_text: str, machine: Machine, *, optimize: Optimize = "plain") -> str:
    """Return the instructions that :func:`compile_ir` makes, as text.

    Raises:
        RuntimeError: LLVM rejects the module or does not know the machine.
    """
    return _emit(_with_attributes(ir_text, machine), machine, optimize, as_text=True).decode()


def _with_attributes(ir_text: str, machine: Machine) -> str:
    """Return a module whose functions have the attributes that all kernels for a machine need."""
    order = f'"tune-cpu"="{machine.order_for}" ' if machine.order_for else ""
    return _DEFINITION.sub(rf"\1 {order}{_FUNCTION_ATTRIBUTES} {{", ir_text)


def _emit(module_ir: str, machine: Machine, optimize: Optimize, *, as_text: bool = False) -> bytes:
    """Parse, verify and optimize a module, and compile it to an ELF object, or to assembly."""
    llvm = binding()
    # NOTE: the module is closed here also after an error. Otherwise the garbage collector may close its context first,
    # and closing the module then ends the process.
    with llvm.parse_assembly(module_ir, llvm.create_context()) as module:
        target_machine = llvm.Target.from_triple(machine.triple).create_target_machine(
            cpu=machine.cpu, features=",".join(machine.features), opt=3, reloc="pic", codemodel="small"
        )
        module.triple = machine.triple
        module.data_layout = str(target_machine.target_data)
        module.verify()
        for value in (*module.functions, *module.global_variables):
            if value.linkage == llvm.Linkage.external and not value.is_declaration:
                # NOTE: references to symbols that another library could replace go through a table of absolute
                # addresses; references to hidden symbols are direct.
                value.visibility = llvm.Visibility.hidden
        options = llvm.create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization = options.slp_vectorization = optimize == "vectorize"
        options.loop_interleaving = options.loop_unrolling = optimize == "vectorize"
        passes = llvm.create_pass_builder(target_machine, options)
        pipeline = _plain_pipeline(llvm) if optimize == "plain" else passes.getModulePassManager()
        return optimize_and_emit(pipeline, module, passes, target_machine, as_text=as_text)


def _plain_pipeline(llvm: Any) -> Any:
    """Return the passes for kernels written with vectors: variables in registers, common subexpressions eliminated.

    They take a sixth of the time of LLVM's default pipeline. Measured, the code of long-running tiles is no slower.
    """
    pipeline = llvm.create_new_module_pass_manager()
    pipeline.add_sroa_pass()
    pipeline.add_instruction_combine_pass()
    pipeline.add_simplify_cfg_pass()
    pipeline.add_loop_simplify_pass()
    pipeline.add_loop_rotate_pass()
    pipeline.add_new_gvn_pass()
    pipeline.add_simplify_cfg_pass()
    return pipeline
