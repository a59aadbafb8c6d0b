"""Faults: errors that depend on the data of a run, such as an index out of range.

Kernels cannot raise errors. The arena of a program that may meet such data holds a record of four 32-bit integers: the
number of the fault, an unused one, and the offending value in 64 bits. They are zero when a run begins; the first fault
is kept.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lite_core.errors import ExecutionError
from lite_core.ir import DType, TensorType

__all__ = ["RECORD", "RECORD_LENGTH", "Faults"]

#: The number of 32-bit integers in a record, and its type in the arena.
RECORD_LENGTH = 4
RECORD = TensorType(DType.INT32, (RECORD_LENGTH,))


class Faults(NamedTuple):
    """The faults that a program may record.

    Attributes:
        offset: the record's offset in the arena, in bytes.
        messages: the message of each fault, in the order of their numbers, which begin at 1; ``{}`` stands for the
            offending value.
    """

    offset: int
    messages: tuple[str, ...]

    def check(self, record: np.ndarray[Any, Any]) -> None:
        """Raise an error if a run has recorded a fault.

        Raises:
            ExecutionError: an operator does not allow its data.
        """
        number, found = int(record[0]), int(record[2:].view(np.int64)[0])
        if number:
            # NOTE: not format(), since the name of a node in the message may contain braces.
            raise ExecutionError(self.messages[number - 1].replace("{}", str(found)))
