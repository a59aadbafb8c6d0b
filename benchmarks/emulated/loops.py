"""The inner loops of machine code for 64-bit ARM, and their speed by LLVM's analyser of machine code, llvm-mca.

llvm-mca computes how long a processor takes for a loop whose data is in the first-level cache. It knows instructions
and their units, and nothing of caches, of branches, or of how far a processor looks ahead beyond its model.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["Analyser", "Loop"]

#: Instructions with vectors that multiply and add.
_MULTIPLY_ADD = r"(fmla|fmls|mla|mls|sdot|udot|usdot|smmla|ummla|usmmla|smlal2?|umlal2?|bfmmla|bfdot)$"
#: Those, and other arithmetic with vectors of floating-point numbers.
_ARITHMETIC = rf"{_MULTIPLY_ADD}|(fmul|fadd|fsub)$"
_BRANCH = re.compile(r"(?:b(?:\.\w+)?|cbn?z|tbn?z)\s.*?#?(-?\d+|-?0x[0-9a-f]+)$")
_FEATURES = "+neon,+dotprod,+fullfp16,+i8mm,+bf16"
_ITERATIONS = 200
_INVALID = "udf #0"


@dataclass(frozen=True)
class Loop:
    """An innermost loop.

    Attributes:
        instructions: its instructions in the order of the code, as assembly. If there are branches inside, those of
            both ways are among them.
    """

    instructions: tuple[str, ...]

    def arithmetic(self, every: bool) -> list[str]:
        """Return its multiply-adds or, with ``every``, all arithmetic with vectors."""
        pattern = re.compile(_ARITHMETIC if every else _MULTIPLY_ADD)
        return [line for line in self.instructions if pattern.match(line.split()[0]) and "v" in line.split()[1]]

    @property
    def stack_accesses(self) -> int:
        """The number of its loads from the stack and stores to it."""
        return sum("[sp" in line for line in self.instructions)


class Analyser:
    """LLVM's tools for ARM machine code, from the part ``mca`` of the ARM environment.

    Args:
        tools: the folder with llvm-mc and llvm-mca, ``bin`` of the ARM environment.
    """

    def __init__(self, tools: Path) -> None:
        self._tools = tools
        self._least_cycles = cache(self._cycles_of_independent)

    def loops(self, code: bytes) -> list[Loop]:
        """Return the innermost loops of machine code that contain arithmetic."""
        lines = self._disassembled(code)
        jumps = [(number + target, number) for number, line in enumerate(lines) if (target := _target(line)) < 0]
        inner = [
            (start, end)
            for start, end in jumps
            if start >= 0 and not any(start <= s and e <= end and (s, e) != (start, end) for s, e in jumps)
        ]
        found = [Loop(tuple(lines[start : end + 1])) for start, end in inner]
        return [loop for loop in found if loop.arithmetic(every=True)]

    def share(self, loops: Iterable[Loop], processor: str, every: bool = False) -> float:
        """Return the share of a processor's peak that some loops reach, each of them executed equally often.

        The peak is the time of their multiply-adds, or with ``every`` of all their arithmetic with vectors, if nothing
        else had to be executed or waited for.
        """
        needed = taken = 0.0
        for loop in loops:
            needed += sum(
                self._least_cycles(re.sub(r"\bv\d+", "v", line), processor) for line in loop.arithmetic(every)
            )
            taken += self._cycles(loop.instructions, processor)
        return needed / taken

    def _disassembled(self, code: bytes) -> list[str]:
        """Return the instructions; constants, which are behind them, are shown as what their bits happen to mean."""
        words = [code[at : at + 4] for at in range(0, len(code) - 3, 4)]
        text = "\n".join(" ".join(f"0x{byte:02x}" for byte in word) for word in words)
        command = [self._tools / "llvm-mc", "--disassemble", "-triple=aarch64", f"-mattr={_FEATURES}"]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
        # A line of input without an instruction has no line of output, but a warning with its number.
        invalid = {int(number) - 1 for number in re.findall(r"^<stdin>:(\d+):\d+: warning", done.stderr, re.MULTILINE)}
        valid = iter([line.strip() for line in done.stdout.splitlines() if line.startswith("\t") and "\t." not in line])
        return [_INVALID if number in invalid else next(valid) for number in range(len(words))]

    def _cycles(self, lines: Sequence[str], processor: str) -> float:
        """Return the cycles of one iteration of a loop."""
        command = [self._tools / "llvm-mca", "-mtriple=aarch64", f"-mcpu={processor}", f"-mattr={_FEATURES}"]
        options = [f"-iterations={_ITERATIONS}", "-instruction-info=0", "-resource-pressure=0"]
        done = subprocess.run([*command, *options], input="\n".join(lines), capture_output=True, text=True, check=True)
        found = re.search(r"Total Cycles:\s+(\d+)", done.stdout)
        assert found is not None
        return int(found[1]) / _ITERATIONS

    def _cycles_of_independent(self, form: str, processor: str) -> float:
        """Return the cycles of an instruction among many of its kind that need not wait for each other.

        Args:
            form: the instruction, with ``v`` for each register.
            processor: LLVM's name of the processor.
        """
        # Elements of 16 bits can be taken from the first 16 registers only.
        lines = [re.sub(r"\bv\b", "v15", re.sub(r"\bv\b", f"v{16 + number}", form, count=1)) for number in range(16)]
        return self._cycles(lines, processor) / len(lines)


def _target(line: str) -> int:
    """Return how many instructions a branch goes on or, below zero, back; 0 for other instructions."""
    found = _BRANCH.match(line)
    return int(found[1], 0) // 4 if found else 0
