"""Layers that stay in float32 because the outputs lose too much with them: a search by damage.

The damage of a layer is the noise in the outputs if it alone is quantized. The layers with most damage that together
bring the outputs back to the limit are found by bisection of the layers in the order of their damage; then each that is
not needed is quantized after all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from lite_tools.bisecting.search import shortest_prefix
from lite_tools.quantization.switching import SwitchedModel

__all__ = ["Kept", "find_kept"]


#: The most samples on which each layer is quantized alone: these runs are most of the search.
_MOST_ALONE = 3


class Kept(NamedTuple):
    """The result of a search.

    Attributes:
        alone_db: for each layer, the signal-to-noise ratio of the noisiest output if it alone is quantized.
        without_db: for each layer that is kept, that ratio if it were quantized like the others; those with most damage
            are first.
    """

    alone_db: Mapping[str, float]
    without_db: Mapping[str, float]


def find_kept(model: SwitchedModel, names: Sequence[str], least_db: float, progress: Callable[[str], None]) -> Kept:
    """Find few layers with which in float32 the outputs have at least a signal-to-noise ratio.

    Args:
        model: the model.
        names: the layers that may be quantized.
        least_db: the ratio, in decibels.
        progress: called with a line before each run.
    """
    everything = frozenset(names)
    progress("measuring the outputs with all layers quantized")
    whole = model.snr_db(everything)
    if whole >= least_db:
        return Kept({}, {})
    alone = {}
    for number, name in enumerate(names):
        progress(f"layer {number + 1} of {len(names)} quantized alone")
        alone[name] = model.snr_db({name}, _MOST_ALONE)
    order = sorted(names, key=alone.__getitem__)

    def ask(length: int) -> bool:
        return model.snr_db(everything - {*order[:length]}) >= least_db

    def left(questions: int) -> None:
        progress(f"searching layers to keep in float32; {questions} runs left")

    _, count = shortest_prefix(0, len(order), ask, left)
    kept = order[:count]
    without = {}
    for number, name in enumerate(reversed(order[:count])):
        progress(f"kept layer {number + 1} of {count} quantized after all")
        others = [other for other in kept if other != name]
        found = model.snr_db(everything - {*others})
        if found >= least_db:
            kept = others
        else:
            without[name] = found
    return Kept(alone, {name: without[name] for name in kept})
