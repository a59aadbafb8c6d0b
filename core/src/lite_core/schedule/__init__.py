"""From a graph and the devices at hand to a plan that runs: placement, partitions, execution."""

from lite_core.schedule.devices import Candidate, Selection, select_devices
from lite_core.schedule.partition import PlacedPartition, split
from lite_core.schedule.placement import NodeAssignment, Placement, place
from lite_core.schedule.plan import Plan
from lite_core.schedule.profile import KernelRecord, PartitionTime, RunProfile

__all__ = [
    "Candidate",
    "KernelRecord",
    "NodeAssignment",
    "PartitionTime",
    "PlacedPartition",
    "Placement",
    "Plan",
    "RunProfile",
    "Selection",
    "place",
    "select_devices",
    "split",
]
