"""Scheduling: selecting devices, placing nodes, partitioning, and the plans that run."""

from lite_core.schedule.compile import CompileError, compatibility_of, restore_partition
from lite_core.schedule.devices import Candidate, Selection, select_devices
from lite_core.schedule.partition import PlacedPartition, cut, split
from lite_core.schedule.placement import NodeAssignment, Placement, place
from lite_core.schedule.plan import Plan, make_plan
from lite_core.schedule.plan_cache import PlanStatistics
from lite_core.schedule.profile import CopyTime, KernelRecord, PartitionTime, RunProfile

__all__ = [
    "Candidate",
    "CompileError",
    "CopyTime",
    "KernelRecord",
    "NodeAssignment",
    "PartitionTime",
    "PlacedPartition",
    "Placement",
    "Plan",
    "PlanStatistics",
    "RunProfile",
    "Selection",
    "compatibility_of",
    "cut",
    "make_plan",
    "place",
    "restore_partition",
    "select_devices",
    "split",
]
