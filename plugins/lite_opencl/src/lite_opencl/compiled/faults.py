"""What only the data of a run can show to be wrong, such as an index out of range.

Kernels cannot raise. The arena of a program that may meet such data holds a record of four 32-bit words: which fault,
an unused one, and the number that was found, in 64 bits. They are zero when a run begins; the first fault stays.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lite_core.errors import ExecutionError
from lite_core.ir import DType, TensorType

__all__ = ["RECORD", "RECORD_WORDS", "Faults"]

#: The record in the arena.
RECORD_WORDS = 4
RECORD = TensorType(DType.INT32, (RECORD_WORDS,))


class Faults(NamedTuple):
    """The faults of a program.

    Attributes:
        offset: of the record, bytes from the beginning of the arena.
        messages: by the number that kernels record, from 1 on; ``{}`` takes what was found.
    """

    offset: int
    messages: tuple[str, ...]

    def check(self, record: np.ndarray[Any, Any]) -> None:
        """Raise for what a run has recorded.

        Raises:
            ExecutionError: data was not what its operator allows.
        """
        number, found = int(record[0]), int(record[2:].view(np.int64)[0])
        if number:
            # NOTE: not format(): the name of a node may hold braces, too.
            raise ExecutionError(self.messages[number - 1].replace("{}", str(found)))
