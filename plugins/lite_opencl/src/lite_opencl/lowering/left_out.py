"""Operators that are left to another backend, and why. With those that are run, this is all of the opset."""

from __future__ import annotations

__all__ = ["LEFT_OUT"]

_CONTROL_FLOW = "it runs graphs of its own, which ones and how often depends on data"
_SIZE_FROM_DATA = "how large its result is depends on data"
_BOXES = "a few boxes at the end of a detector, beside operators whose results' sizes depend on data"
_REGIONS = "regions of interest are read at scattered places, by two-stage detectors only"
_DEFORMED = "every tap of its filter is read between pixels at a place of its own, by a few detectors only"
_WINDOW = "a few elements that follow from a constant: nearly always computed when the model is loaded"

#: By qualified name.
LEFT_OUT: dict[str, str] = {
    **dict.fromkeys(("If", "Loop", "Scan"), _CONTROL_FLOW),
    **dict.fromkeys(("Compress", "NonMaxSuppression", "NonZero", "Unique"), _SIZE_FROM_DATA),
    **dict.fromkeys(("lite.GenerateProposals", "lite.MatrixNms", "lite.MulticlassNms"), _SIZE_FROM_DATA),
    **dict.fromkeys(("lite.CollectFpnProposals", "lite.DistributeFpnProposals"), _SIZE_FROM_DATA),
    **dict.fromkeys(("lite.AnchorGenerator", "lite.DensityPriorBox", "lite.PriorBox"), _BOXES),
    **dict.fromkeys(("lite.BipartiteMatch", "lite.BoxClip", "lite.BoxCoder", "lite.IouSimilarity"), _BOXES),
    **dict.fromkeys(("RoiAlign", "lite.PsRoiPool", "lite.RoiPool"), _REGIONS),
    "DeformConv": _DEFORMED,
    "Det": "a few small matrices, eliminated row by row: there is nothing to do side by side",
    **dict.fromkeys(("BlackmanWindow", "HammingWindow", "HannWindow"), _WINDOW),
}
