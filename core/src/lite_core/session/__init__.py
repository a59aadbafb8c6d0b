"""Loading a model and running it."""

from lite_core.session.session import Binding, PlanStatistics, RunProfile, Session, load

__all__ = ["Binding", "PlanStatistics", "RunProfile", "Session", "load"]
