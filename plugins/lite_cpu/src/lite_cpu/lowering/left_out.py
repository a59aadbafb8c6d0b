"""Operators that CPU backends leave to another backend, and why. With the lowerings, this is all of the opset."""

from __future__ import annotations

__all__ = ["LEFT_OUT"]

_CONTROL_FLOW = "it runs graphs of its own, which ones and how often depends on data"
_SIZE_FROM_DATA = "how large its result is depends on data"
_BOXES = "a few boxes at the end of a detector, beside operators whose results' sizes depend on data"
_REGIONS = "regions of interest are read at scattered places, by two-stage detectors only"
_SAMPLING = "pixels are read at places that depend on data; no vector load does that"
_WINDOW = "a few elements that follow from a constant: nearly always computed when the model is loaded"
_RARE = "rare, and none of the measured networks has it"

#: By qualified name.
LEFT_OUT: dict[str, str] = {
    **dict.fromkeys(("If", "Loop", "Scan"), _CONTROL_FLOW),
    **dict.fromkeys(("Compress", "NonMaxSuppression", "NonZero", "Unique"), _SIZE_FROM_DATA),
    **dict.fromkeys(("lite.GenerateProposals", "lite.MatrixNms", "lite.MulticlassNms"), _SIZE_FROM_DATA),
    **dict.fromkeys(("lite.CollectFpnProposals", "lite.DistributeFpnProposals"), _SIZE_FROM_DATA),
    **dict.fromkeys(("lite.AnchorGenerator", "lite.DensityPriorBox", "lite.PriorBox"), _BOXES),
    **dict.fromkeys(("lite.BipartiteMatch", "lite.BoxClip", "lite.BoxCoder", "lite.IouSimilarity"), _BOXES),
    "lite.YoloBox": _BOXES,
    **dict.fromkeys(("RoiAlign", "lite.PsRoiPool", "lite.RoiPool"), _REGIONS),
    **dict.fromkeys(("DeformConv", "GridSample", "MaxUnpool"), _SAMPLING),
    **dict.fromkeys(("BlackmanWindow", "HammingWindow", "HannWindow"), _WINDOW),
    **dict.fromkeys(("AffineGrid", "Col2Im", "Det", "LRN", "ReverseSequence"), _RARE),
}
