"""The table of the candidates that won tournaments on this processor."""

from __future__ import annotations

import logging

from lite_compiler.tournaments.table import ChoiceTable
from lite_core.storage import cache_folder
from lite_cpu.machine import Machine
from lite_cpu.sources import sources_version

__all__ = ["choice_table"]

logger = logging.getLogger("lite.cpu.tuning")


def choice_table(processor: str, machine: Machine) -> ChoiceTable:
    """Return the table for a processor and the machine that its kernels are compiled for.

    Its file is beside the compiled kernels. Of the numbers in :attr:`~lite_cpu.machine.Machine.tuning`, only those that
    change the code of kernels distinguish tables: the others decide only where no tournament was held.
    """
    return ChoiceTable(
        f"{processor} | {machine!r}{machine.tuning.code_key}", sources_version, cache_folder("kernels"), logger
    )
