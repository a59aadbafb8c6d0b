"""The operators that the scan leaves to other tests: ``elsewhere.txt`` beside this module.

A group in the file is a line ``== REASON``, a line with the test, and the operators.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["elsewhere"]


def elsewhere() -> dict[str, str]:
    """Return the test, as FILE::FUNCTION, of every operator that is not scanned."""
    text = Path(__file__).with_name("elsewhere.txt").read_text(encoding="utf-8")
    found: dict[str, str] = {}
    for group in text.split("== ")[1:]:
        _, test, operators = group.split("\n", 2)
        found |= dict.fromkeys(operators.split(), test)
    return found
