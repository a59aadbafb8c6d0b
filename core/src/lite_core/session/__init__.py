"""Loading and running models."""

from lite_core.schedule import PlanStatistics, RunProfile
from lite_core.session.binding import Binding
from lite_core.session.loading import load
from lite_core.session.opening import OpenedModel, open_model
from lite_core.session.ready import ReadyGraph, make_ready
from lite_core.session.session import Session

__all__ = [
    "Binding",
    "OpenedModel",
    "PlanStatistics",
    "ReadyGraph",
    "RunProfile",
    "Session",
    "load",
    "make_ready",
    "open_model",
]
