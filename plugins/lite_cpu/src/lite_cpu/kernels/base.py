"""Base class of kernels: static choices that determine the code, and an entry point that runs work items."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

from lite_cpu.emitter import Emitter
from lite_cpu.machine import Machine
from lite_cpu.machine_code.objects import Optimize

__all__ = ["Kernel", "Products"]


class Products(NamedTuple):
    """The products that a kernel computes, for descriptions of programs.

    Attributes:
        factors: the type that is multiplied, by its name.
        stored: what the weights are stored in, if they are widened before they are multiplied; otherwise empty.
    """

    factors: str
    stored: str = ""


class Kernel(ABC):
    """A kernel specialized on static choices; subclasses are frozen dataclasses of those choices.

    Its representation is part of the key of the compiled code, so its fields must contain everything that the code
    depends on besides the machine.
    """

    #: Level of LLVM's optimizations, see :func:`lite_cpu.machine_code.objects.compile_ir`.
    optimize: ClassVar[Optimize] = "plain"

    @abstractmethod
    def emit(self, k: Emitter) -> None:
        """Define the kernel's entry point, named :attr:`symbol`, in the module of ``k``."""

    @property
    def computes(self) -> Products | None:
        """Its products; None if it computes none."""
        return None

    @property
    def symbol(self) -> str:
        """Name of the entry point, also shown in profiles: ``gemm``."""
        return type(self).__name__.lower()

    def key(self, machine: Machine) -> str:
        """Return the key of the code compiled for a machine."""
        return f"{self!r} for {machine!r}{machine.tuning.code_key}"
