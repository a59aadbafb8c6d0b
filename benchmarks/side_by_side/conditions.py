"""The conditions under which the engines are compared: numbers of threads, turns, and processor levels."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LEVELS", "Condition"]

#: Levels that engines can be held to, with their titles and LLVM's names of processors.
LEVELS = {"avx2": ("AVX2 only", "x86-64-v3")}


@dataclass(frozen=True, order=True)
class Condition:
    """The circumstances of a comparison.

    Attributes:
        level: a key of ``LEVELS`` if the engines may not use newer instructions; empty for all instructions.
        threads: number of threads that each engine may compute with.
        alone: each engine has the machine for itself during its turn, at its own defaults: the processes of the others
            are stopped, so that their threads may spin. Otherwise threads must not spin after a run.
    """

    level: str = ""
    threads: int = 1
    alone: bool = False

    @property
    def title(self) -> str:
        """The condition in words, for tables and charts."""
        parts = [f"{self.threads} thread{'' if self.threads == 1 else 's'}"]
        if self.threads > 1 or self.alone:
            parts.append("each engine alone" if self.alone else "interleaved")
        if self.level:
            parts.append(LEVELS[self.level][0])
        return ", ".join(parts)

    @property
    def processor(self) -> str:
        """LLVM's name of the processor that models are compiled for in advance."""
        return LEVELS[self.level][1] if self.level else "host"
