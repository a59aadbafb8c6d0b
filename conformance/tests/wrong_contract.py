"""Backends with wrong answers, names of members, options and devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wrong_executables import OPERATORS, Array, WrongBackend, WrongExecutable, right

from lite_core.backend import Buffer, Device, Executable, KernelTime, Memory, No, Options, Partition, Stale, Yes
from lite_core.errors import InputError
from lite_core.ir import Node
from lite_core.memory import HostMemory

__all__ = ["BACKENDS"]


class NoWithoutAReason(WrongBackend):
    """Refuses nodes without a reason."""

    def supports(self, node: Node, device: Device) -> Yes | No:
        return Yes() if node.op in OPERATORS else No("")


class RaisesInSupports(WrongBackend):
    """Uses the rank of an operand, which may be unknown."""

    def supports(self, node: Node, device: Device) -> Yes | No:
        if node.op in OPERATORS and len(node.inputs[0].type.shape) > 4:  # type: ignore[union-attr, arg-type]
            return No("more than four dimensions")
        return super().supports(node, device)


class MisspeltRestore(WrongBackend):
    """Misspells ``restore``, which is therefore never called."""

    def restor(
        self, pieces: Sequence[memoryview], part: Partition, device: Device, options: Options
    ) -> Executable | Stale:
        return Stale("nothing was saved")


class _BritishMemory(HostMemory):
    """Main memory with a misspelt optional member: ``synchronise`` for ``synchronize``."""

    wrap_alignment = 64

    def wrap(self, array: Array) -> Array:
        return array

    def synchronise(self, data: Array) -> None:
        pass


class MisspeltMemory(WrongBackend):
    """A backend with a memory with a misspelt member, so that arrays on the host are always copied."""

    def memory(self, device: Device) -> Memory:
        return _BritishMemory()


class MisspeltExecutable(WrongBackend):
    """A backend with executables with a misspelt ``run_profiled``, which is therefore never called."""

    class Executable(WrongExecutable):
        def run_profile(
            self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], scratch: Buffer | None
        ) -> list[KernelTime]:
            self.run(inputs, outputs, scratch)
            return []

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        return self.Executable(part, right)


class TakesAnyOption(WrongBackend):
    """Accepts unknown options."""

    def check_options(self, options: Mapping[str, Any]) -> None:
        pass


class StumblesOverOptions(WrongBackend):
    """Raises KeyError for unknown options."""

    def check_options(self, options: Mapping[str, Any]) -> None:
        for name in options:
            {"level": int}[name]


class NeedsAnOption(WrongBackend):
    """Rejects the absence of options."""

    def check_options(self, options: Mapping[str, Any]) -> None:
        if set(options) != {"level"}:
            raise InputError("the only option is level, and it must be given")


class TwoDevicesOneNumber(WrongBackend):
    """A backend with two devices with the same number."""

    def probe(self) -> list[Device]:
        return [Device(self.name, name="one"), Device(self.name, name="other")]


#: The backends by name.
BACKENDS: dict[str, WrongBackend] = {
    name: kind(name, right)
    for name, kind in {
        "no_without_a_reason": NoWithoutAReason,
        "raises_in_supports": RaisesInSupports,
        "misspelt_restore": MisspeltRestore,
        "misspelt_memory": MisspeltMemory,
        "misspelt_executable": MisspeltExecutable,
        "takes_any_option": TakesAnyOption,
        "stumbles_over_options": StumblesOverOptions,
        "needs_an_option": NeedsAnOption,
        "two_devices_one_number": TwoDevicesOneNumber,
    }.items()
}
