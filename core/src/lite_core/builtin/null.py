"""The ``null`` backend: compiles every partition and computes nothing."""

from __future__ import annotations

from collections.abc import Sequence

from lite_core.backend import Buffer, Device, Executable, No, Options, Partition, Unavailable, Yes
from lite_core.ir import Node

__all__ = ["NullBackend"]


class NullBackend:
    """Backend that accepts every node and computes none: outputs are zeros, and sizes that depend on data are 0.

    For inspecting plans and for measuring the overhead of Lite itself. Used only if it is requested by name.
    """

    name = "null"

    def probe(self) -> Sequence[Device] | Unavailable:
        return [Device("null", name="a dry run: plans and compiles, outputs are zeros", score=-1.0)]

    def supports(self, node: Node, device: Device) -> Yes | No:
        return Yes()

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        return _NullExecutable()


class _NullExecutable:
    scratch_bytes = 0

    def run(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None) -> None:
        for buffer in outputs:
            if buffer.data is None:
                buffer.allocate([d if isinstance(d, int) else 0 for d in buffer.type.shape or ()])
            buffer.data.fill(0)
