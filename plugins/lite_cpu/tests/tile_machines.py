"""Machines with matrix tiles: emulated ones that this processor runs, and one whose code is only compiled."""

from __future__ import annotations

from dataclasses import replace

import pytest
from levels import runnable_machines
from llvmlite import binding

from lite_cpu.machine import X86_64_V4, Machine

__all__ = ["AMX", "emulated", "emulated_machines", "without_tiles"]

#: A Sapphire Rapids; LLVM orders the instructions for it.
AMX = replace(
    X86_64_V4,
    name="x86-64-v4+vnni+bf16+amx",
    cpu="sapphirerapids",
    features=(*X86_64_V4.features, "+avx512vnni", "+avx512bf16", "+amx-tile", "+amx-bf16", "+amx-int8"),
    dot_product=True,
    bf16_dot=True,
    matrix_tiles=True,
)


def emulated_machines() -> list[Machine]:
    """Return a machine whose tiles are emulated, with the dot products of this processor; none without AVX-512."""
    if X86_64_V4 not in runnable_machines():
        return []
    host = binding.get_host_cpu_features()
    extensions = [feature for feature in ("avx512vnni", "avx512bf16") if host.get(feature)]
    emulated = replace(
        X86_64_V4,
        name="x86-64-v4 with emulated tiles",
        features=(*X86_64_V4.features, *(f"+{feature}" for feature in extensions)),
        dot_product="avx512vnni" in extensions,
        bf16_dot="avx512bf16" in extensions,
        matrix_tiles=True,
    )
    return [emulated]


def emulated() -> Machine:
    """Return the machine of :func:`emulated_machines`, or skip the test."""
    machines = emulated_machines()
    return machines[0] if machines else pytest.skip("emulated matrix tiles need AVX-512")


def without_tiles(machine: Machine) -> Machine:
    """Return the machine that multiplies in vector registers instead."""
    return replace(machine, name="x86-64-v4 without tiles", matrix_tiles=False)
