"""Loading and running models."""

from lite_core.schedule import PlanStatistics, RunProfile
from lite_core.session import binding, loading, opening, ready, session
from lite_core.session.binding import *
from lite_core.session.loading import *
from lite_core.session.opening import *
from lite_core.session.ready import *
from lite_core.session.session import *

__all__ = [
    "PlanStatistics",
    "RunProfile",
    *(name for module in (binding, loading, opening, ready, session) for name in module.__all__),
]
