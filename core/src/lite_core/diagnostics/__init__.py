"""Finding out what is wrong with a model, a backend or a machine."""

from lite_core.diagnostics.consistency import ConsistencyReport, Difference, check_consistency

__all__ = ["ConsistencyReport", "Difference", "check_consistency"]
