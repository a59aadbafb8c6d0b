"""Box arithmetic shared by the detection operators: areas, overlaps, greedy suppression."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["box_areas", "overlaps", "suppress"]

Array = np.ndarray[Any, Any]


def box_areas(boxes: Array, offset: float = 0.0) -> Array:
    """Areas of boxes [..., 4] given as (x1, y1, x2, y2); 0 where x2 < x1 or y2 < y1.

    ``offset`` is 1 if coordinates are whole pixels and a box includes its last pixel.
    """
    width, height = boxes[..., 2] - boxes[..., 0], boxes[..., 3] - boxes[..., 1]
    return np.where((width < 0) | (height < 0), 0, (width + offset) * (height + offset))


def overlaps(a: Array, b: Array, offset: float = 0.0) -> Array:
    """Intersection over union of boxes that broadcast against each other; NaN for two boxes without area.

    Args:
        a: [..., 4].
        b: [..., 4].
        offset: see :func:`box_areas`.
    """
    low, high = np.maximum(a[..., :2], b[..., :2]), np.minimum(a[..., 2:], b[..., 2:])
    extent = high - low
    apart = (extent < 0).any(axis=-1)
    common = np.where(apart, 0, (extent[..., 0] + offset) * (extent[..., 1] + offset))
    union = box_areas(a, offset) + box_areas(b, offset) - common
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(apart, 0, common / union)


def suppress(
    boxes: Array,
    candidates: Array,
    threshold: float,
    *,
    limit: int | None = None,
    eta: float = 1.0,
    offset: float = 0.0,
    keep_degenerate: bool = True,
) -> Array:
    """Greedy non-maximum suppression.

    Args:
        boxes: [M, 4].
        candidates: indices of boxes, best first.
        threshold: a candidate is dropped if its overlap with a kept box is above this.
        limit: maximum number of kept boxes.
        eta: if below 1, the threshold is multiplied by it after each kept box, as long as it is above 0.5.
        offset: see :func:`box_areas`.
        keep_degenerate: if True, a box without area does not suppress other boxes without area.

    Returns:
        The kept indices, in the order of ``candidates``.
    """
    ordered = boxes[candidates]
    worst = np.full(len(candidates), -np.inf, ordered.dtype)
    kept: list[int] = []
    start = 0
    while limit is None or len(kept) < limit:
        free = worst[start:] <= threshold  # False for NaN
        if not free.any():
            break
        best = start + int(np.argmax(free))
        kept.append(best)
        start = best + 1
        found = overlaps(ordered[best], ordered[start:], offset)
        worst[start:] = np.maximum(worst[start:], np.nan_to_num(found) if keep_degenerate else found)
        if eta < 1 and threshold > 0.5:
            threshold *= eta
    return candidates[np.array(kept, dtype=np.int64)]
