"""Display in notebooks and prompts: objects as HTML, which lite-tools makes, and inputs and outputs in a line."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["Shown", "signature_text"]

_MOST_SHOWN = 4


class Shown:
    """An object that a notebook shows as HTML if lite-tools is installed, and otherwise as its ``repr``."""

    __slots__ = ()

    def _repr_html_(self) -> str | None:
        from importlib.metadata import entry_points  # not at the top: only notebooks need it

        found = entry_points(group="lite.tools", name="html")
        return next((entry.load()(self) for entry in found), None)


def signature_text(inputs: Mapping[str, object], outputs: Mapping[str, object]) -> str:
    """Return names and types in a line: ``x float32[1, 3] -> y float32[1, 2]``; of many, the first four."""
    sides = [[f"{name} {type}" for name, type in side.items()] for side in (inputs, outputs)]
    for side in (side for side in sides if len(side) > _MOST_SHOWN + 1):
        side[_MOST_SHOWN:] = [f"{len(side) - _MOST_SHOWN} more"]
    return " -> ".join(", ".join(side) or "nothing" for side in sides)
