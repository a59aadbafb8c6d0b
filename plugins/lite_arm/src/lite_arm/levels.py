"""Levels of 64-bit ARM processors: ARMv8.0 with NEON, and the instructions that later processors add to it.

A level's name lists what it adds: ``arm-v8``, ``arm-v8+dotprod+fp16``. Names of processors, such as ``cortex-a76``,
stand for their level. Features have LLVM's names. What a processor has is in its technical reference manual
(https://developer.arm.com/documentation), and in LLVM's ``AArch64Processors.td``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lite_core.errors import InputError
from lite_cpu.machine import ARM_V8, Machine

__all__ = ["EXTENSIONS", "PROCESSORS", "features_of", "machine_of_level", "machine_with"]

#: The features that kernels use if the processor has them, with their suffixes of the level's name, in their order.
EXTENSIONS: Mapping[str, str] = {"dotprod": "dotprod", "fullfp16": "fp16", "i8mm": "i8mm", "bf16": "bf16"}

_V8_0: frozenset[str] = frozenset()
_V8_2 = frozenset({"dotprod", "fullfp16"})
_V8_6 = _V8_2 | {"i8mm", "bf16"}

#: The features of :data:`EXTENSIONS` that processors have, by LLVM's names of the processors.
PROCESSORS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("cortex-a34", "cortex-a35", "cortex-a53", "cortex-a57", "cortex-a72", "cortex-a73"), _V8_0),
    **dict.fromkeys(("cortex-a55", "cortex-a65", "cortex-a75", "cortex-a76", "cortex-a77", "cortex-a78"), _V8_2),
    **dict.fromkeys(("cortex-a78ae", "cortex-a78c", "cortex-x1", "cortex-x1c", "neoverse-e1", "neoverse-n1"), _V8_2),
    **dict.fromkeys(("cortex-a510", "cortex-a520", "cortex-a710", "cortex-a715", "cortex-a720", "cortex-a725"), _V8_6),
    **dict.fromkeys(("cortex-x2", "cortex-x3", "cortex-x4", "cortex-x925"), _V8_6),
    **dict.fromkeys(("neoverse-v1", "neoverse-n2", "neoverse-v2", "neoverse-n3", "neoverse-v3"), _V8_6),
    "carmel": frozenset({"fullfp16"}),  # Jetson Xavier
    "apple-m1": _V8_2,
    **dict.fromkeys(("apple-m2", "apple-m3", "apple-m4"), _V8_6),
}


def machine_with(features: frozenset[str]) -> Machine:
    """Return the machine of the level with those of :data:`EXTENSIONS` that are among ``features``."""
    present = {feature: label for feature, label in EXTENSIONS.items() if feature in features}
    return replace(
        ARM_V8,
        name="+".join([ARM_V8.name, *present.values()]),
        features=(*ARM_V8.features, *(f"+{feature}" for feature in present)),
        dot_product="dotprod" in present,
        matrix_product="i8mm" in present,
        half_products="fullfp16" in present,
        bf16_dot="bf16" in present,
        bf16_matrix="bf16" in present,
    )


def machine_of_level(name: str) -> Machine:
    """Return the machine of a level, such as ``arm-v8+dotprod``, or of a processor, such as ``cortex-a76``.

    Raises:
        InputError: there is no such level; the message lists all.
    """
    if name in PROCESSORS:
        return machine_with(PROCESSORS[name])
    base, *labels = name.split("+")
    machine = machine_with(frozenset(feature for feature, label in EXTENSIONS.items() if label in labels))
    if base != ARM_V8.name or machine.name != name:
        raise InputError(
            f"arm has no level {name!r}; the levels are {ARM_V8.name} and, in this order, any of "
            f"{', '.join(f'+{label}' for label in EXTENSIONS.values())}, or the name of a processor: "
            f"{', '.join(PROCESSORS)}"
        )
    return machine


def features_of(machine: Machine) -> frozenset[str]:
    """Return the features that code for a machine may use, by LLVM's names."""
    return frozenset({"neon", *(feature for feature in EXTENSIONS if f"+{feature}" in machine.features)})
