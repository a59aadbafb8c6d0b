"""What a kernel is: static choices that make its code, and an entry point that runs work items."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from lite_cpu.emitter import Emitter
from lite_cpu.machine import Machine
from lite_cpu.machine_code.objects import Optimize

__all__ = ["Kernel"]


class Kernel(ABC):
    """A kernel specialised on static choices: subclasses are frozen dataclasses of those choices.

    Its text form is the key under which compiled code is kept, so fields must say everything that the
    code depends on beside the machine.
    """

    #: What LLVM may do to the code, see :func:`lite_cpu.machine_code.objects.compile_ir`.
    optimize: ClassVar[Optimize] = "plain"

    @abstractmethod
    def emit(self, k: Emitter) -> None:
        """Define the kernel's entry point, named :attr:`symbol`, in the module of ``k``."""

    @property
    def symbol(self) -> str:
        """Name of the entry point, also shown in profiles: ``gemm``."""
        return type(self).__name__.lower()

    def key(self, machine: Machine) -> str:
        return f"{self!r} for {machine!r}"
