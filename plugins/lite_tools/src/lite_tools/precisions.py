"""Precision by node on the command line: one ``--precision`` for all nodes, others with a pattern of node names."""

from __future__ import annotations

from collections.abc import Sequence

from lite_core.backend import Device
from lite_core.errors import InputError
from lite_core.schedule.precision import PRECISIONS, Precision
from lite_tools.commands.next_commands import with_correction
from lite_tools.commands.suggestions import did_you_mean, similar_names

__all__ = ["parse_precisions", "precision_words", "precisions_in", "uses_precision"]


def parse_precisions(texts: Sequence[str]) -> str | dict[str, str] | None:
    """Return the argument ``precision=`` of :func:`lite_core.load` for texts ``PRECISION`` and ``PATTERN=PRECISION``.

    Args:
        texts: for example ``["float16", "softmax_*=float32"]``; None is returned if there are none.

    Raises:
        InputError: a text names no precision, or a pattern is given twice.
    """
    found: dict[str, str] = {}
    for text in texts:
        pattern, _, precision = text.rpartition("=")
        pattern = pattern or "*"
        if precision not in PRECISIONS:
            meant = did_you_mean(precision, PRECISIONS)
            error = InputError(
                f"write one of {', '.join(PRECISIONS)}, or for some nodes NAME=PRECISION, such as softmax_*=float32, "
                f"not {text!r}{f'; {meant}' if meant else ''}"
            )
            near = [text.removesuffix(precision) + each for each in similar_names(precision, PRECISIONS)]
            raise with_correction(error, text, near)
        if pattern in found:
            raise InputError(f"{pattern!r} has two precisions: {found[pattern]} and {precision}; give one of them")
        found[pattern] = precision
    return found["*"] if [*found] == ["*"] else found or None


def precisions_in(precision: Precision) -> set[str]:
    """Return the precisions that some nodes have."""
    return {precision.default, *(found for _, found in precision.patterns)}


def uses_precision(device: Device, precision: str) -> bool:
    """Return True if a device uses a precision in any way; before a colon, its details name the types that it uses."""
    return precision in device.details.get(precision, "").partition(":")[0]


def precision_words(precision: Precision) -> list[str]:
    """Return the words of the command line for a precision; none for float32."""
    default = [precision.default] if precision.default != "float32" else []
    texts = [*default, *(f"{pattern}={found}" for pattern, found in precision.patterns)]
    return [word for text in texts for word in ("--precision", text)]
