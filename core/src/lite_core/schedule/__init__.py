"""Scheduling: selecting devices, placing nodes, partitioning, and the plans that run."""

from lite_core.schedule import compile, devices, partition, placement, plan, plan_cache, profile, reporting
from lite_core.schedule.compile import *
from lite_core.schedule.devices import *
from lite_core.schedule.partition import *
from lite_core.schedule.placement import *
from lite_core.schedule.plan import *
from lite_core.schedule.plan_cache import *
from lite_core.schedule.profile import *
from lite_core.schedule.reporting import *

__all__ = [
    name
    for module in (compile, devices, partition, placement, plan, plan_cache, profile, reporting)
    for name in module.__all__
]
