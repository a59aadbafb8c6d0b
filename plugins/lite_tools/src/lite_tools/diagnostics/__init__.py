"""Diagnostics of models, backends and machines."""

from lite_tools.diagnostics.consistency import ConsistencyReport, Difference, check_consistency
from lite_tools.diagnostics.finiteness import FinitenessReport, NotFinite, ValueRange, check_finite

__all__ = [
    "ConsistencyReport",
    "Difference",
    "FinitenessReport",
    "NotFinite",
    "ValueRange",
    "check_consistency",
    "check_finite",
]
