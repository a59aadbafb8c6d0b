"""The table of the fastest candidates measured on a device."""

from __future__ import annotations

import logging
from pathlib import Path

from lite_compiler.tournaments.table import ChoiceTable
from lite_opencl.device.devices import FoundDevice
from lite_opencl.programs.sources import sources_version

__all__ = ["TuningTable"]

logger = logging.getLogger("lite.opencl.tuning")


class TuningTable(ChoiceTable):
    """Choices of kernels and tiles for one kind of device by problem.

    Args:
        found: the device; devices of the same kind share a file.
        folder: the folder of the file, created when the first choice is written; None keeps choices in memory only.
    """

    def __init__(self, found: FoundDevice, folder: Path | None) -> None:
        device = f"{found.identity} | {found.compute_units} compute units"
        super().__init__(device, sources_version, folder, logger)
