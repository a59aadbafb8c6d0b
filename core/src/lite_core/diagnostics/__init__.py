"""Finding out what is wrong with a model, a backend or a machine."""

from lite_core.diagnostics.consistency import ConsistencyReport, Difference, check_consistency
from lite_core.diagnostics.finiteness import FinitenessReport, NotFinite, ValueRange, check_finite

__all__ = [
    "ConsistencyReport",
    "Difference",
    "FinitenessReport",
    "NotFinite",
    "ValueRange",
    "check_consistency",
    "check_finite",
]
