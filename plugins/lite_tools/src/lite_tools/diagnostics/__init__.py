"""Diagnostics of models, backends and machines."""

from lite_tools.diagnostics.consistency import ConsistencyReport, Difference, check_consistency
from lite_tools.diagnostics.finiteness import FinitenessReport, NotFinite, ValueRange, check_finite
from lite_tools.diagnostics.latency import Latency, measure_latency

__all__ = [
    "ConsistencyReport",
    "Difference",
    "FinitenessReport",
    "Latency",
    "NotFinite",
    "ValueRange",
    "check_consistency",
    "check_finite",
    "measure_latency",
]
