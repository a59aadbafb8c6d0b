"""Results that depend on decisions: comparisons of floating numbers, and their conversion to integers.

A small error may turn a decision. Then an index, a boolean or the size of a result is another one, however small the
error was. The simulations of a precision level (:mod:`lite_conformance.judge.rounding_noise`) show which decisions
rounding may turn:

- An element that is not the same in every simulation is *unsettled*, and not compared. Floating numbers count as the
  same here while they are finite.
- Of the other elements, a few may differ from the truth: the simulations do not meet every decision that is close.
- The size of a result must be one between the smallest and the largest of the simulations, or near them. The elements
  of a result of another size than expected are not compared.

What was not compared is in the record's reason.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lite_conformance.judge.compare import Array, Expected
from lite_conformance.judge.rounding_noise import Noise
from lite_core.ir import DType, Graph, Node

__all__ = ["has_decisions", "of_another_size", "without_close_calls", "without_unsettled"]

#: One of so many elements may be any value because a decision was close, or so many for each unsettled element.
_CLOSE_CALLS, _CLOSE_CALLS_EACH = 16, 4
#: A size may be beyond those of the simulations by 1, or by such a share.
_CLOSE_SIZES = 8
#: Operators that decide although all of their outputs may be floating numbers.
_DECIDING = frozenset(
    (
        *("Ceil", "Floor", "Mod", "Round", "Sign"),
        *("GridSample", "Hardmax", "OneHot", "Range", "RoiAlign", "Shrink", "ThresholdedRelu", "Unique"),
        *("CollectFpnProposals", "GenerateProposals", "MatrixNms", "PsRoiPool", "RoiPool", "YoloBox"),
    )
)


def has_decisions(graph: Graph) -> bool:
    """Return True if a graph compares float32 numbers or makes them integers, so that errors may grow without limit."""
    return any(_decides(node) or any(has_decisions(body) for body in node.subgraphs) for node in graph.nodes)


def _decides(node: Node) -> bool:
    reads = any(v is not None and v.dtype is DType.FLOAT32 for v in node.inputs)
    writes = any(v is not None and not v.dtype.is_floating for v in node.outputs)
    return reads and (writes or node.op in _DECIDING) and node.op not in ("Shape", "Size")


def of_another_size(found: Array, want: Expected, noise: Noise) -> tuple[Expected, str] | None:
    """Return what is expected of a result with another shape than the truth, and a note.

    Args:
        found: the result.
        want: the expected output.
        noise: the simulated noise of the output.

    Returns:
        The found elements, none of them compared; None if rounding does not cause this shape.
    """
    shapes = [shape for shape in noise.shapes if len(shape) == found.ndim]
    if len(shapes) < len(noise.shapes):
        return None
    bounds = [(min(sizes), max(sizes)) for sizes in zip(*shapes)]
    if not all(low - _slack(low) <= size <= high + _slack(high) for size, (low, high) in zip(found.shape, bounds)):
        return None
    array = found.astype(want.array.dtype)
    anything = np.ones(found.shape, bool)
    expected = replace(want, array=array, magnitude=0.0, every_bit=False, or_zero=False, unspecified=anything)
    sizes = f"shape {list(found.shape)}, in float32 {list(want.array.shape)}"
    return expected, f"the size of {want.name} depends on rounding ({sizes}), and it was not compared"


def _slack(size: int) -> int:
    return max(1, size // _CLOSE_SIZES)


def without_unsettled(want: Expected, noise: Noise) -> tuple[Expected, str]:
    """Return the expected output with its unsettled elements unspecified, and a note if there are any."""
    count = int(noise.unsettled.sum())
    if not count:
        return want, ""
    unspecified = noise.unsettled if want.unspecified is None else noise.unsettled | want.unspecified
    what = f"{want.name} depends" if count == want.array.size else f"{count} element(s) of {want.name} depend"
    return replace(want, unspecified=unspecified), f"{what} on rounding, not compared"


def without_close_calls(found: Array, want: Expected, noise: Noise) -> tuple[Expected, str]:
    """Return the expected output with its wrong elements unspecified if they are few, and a note if there are any.

    Args:
        found: the result, with the expected shape.
        want: the expected output; its magnitudes are the largest errors allowed.
        noise: the simulated noise of the output.
    """
    if want.dtype.is_floating:
        with np.errstate(invalid="ignore"):
            wrong = np.abs(found.astype(np.float64) - want.array) > want.magnitude
    else:
        wrong = found != want.array
    if want.unspecified is not None:
        wrong &= ~want.unspecified
    count = int(wrong.sum())
    most = max(wrong.size // _CLOSE_CALLS, _CLOSE_CALLS_EACH * int(noise.unsettled.sum()))
    if not 0 < count <= most:
        return want, ""
    unspecified = wrong if want.unspecified is None else wrong | want.unspecified
    return replace(want, unspecified=unspecified), f"{count} element(s) of {want.name} excused as close decisions"
