"""Facts about families of processors, by recorded excerpts of ``/proc/cpuinfo``."""

from __future__ import annotations

import cpuinfo
import pytest

from lite_cpu.kernels.tiles import gemm_tile
from lite_cpu.machine import X86_64_V3, Machine
from lite_cpu.tuning import Tuning
from lite_x86.detect import Identity, Processor, machine_for, parse_cpuinfo, parse_identity
from lite_x86.families import family_tuning


def tuned(text: str, level: str = "") -> Machine:
    """Return the machine of a processor with what is known of its family."""
    processor = Processor(*parse_cpuinfo(text), {}, identity=parse_identity(text))
    machine = machine_for(processor, level)
    return machine.with_tuning(family_tuning(processor.identity, processor.features, machine))


def test_identity() -> None:
    assert parse_identity(cpuinfo.ZEN_4) == Identity("AuthenticAMD", 25, 17, 2)
    assert parse_identity(cpuinfo.GRANITE_RAPIDS) == Identity("GenuineIntel", 6, 173, 2)


@pytest.mark.parametrize("text", ["", cpuinfo.CORTEX_A72, "vendor_id\t: X\ncpu family\t: many\n"])
def test_unknown_identity(text: str) -> None:
    assert parse_identity(text)[1:] == (-1, -1, -1)
    assert family_tuning(parse_identity(text), frozenset(), X86_64_V3) == Tuning()


@pytest.mark.parametrize(
    ("text", "name", "tile"),
    [
        (cpuinfo.ZEN_2, "AMD Zen 2", (6, 2)),
        (cpuinfo.ZEN_3, "AMD Zen 3", (6, 2)),
        (cpuinfo.ZEN_4, "AMD Zen 4", (7, 2)),
        (cpuinfo.ZEN_5, "AMD Zen 5", (14, 2)),
        (cpuinfo.SKYLAKE_X, "Intel Xeon with two 512-bit multiply-add units", (14, 2)),
        (cpuinfo.GRANITE_RAPIDS, "Intel Xeon with two 512-bit multiply-add units", (14, 2)),
        (cpuinfo.FUTURE_XEON, "Intel processors with AMX", (14, 2)),
        (cpuinfo.TIGER_LAKE, "Intel Core with one 512-bit multiply-add unit", (7, 2)),
        (cpuinfo.ALDER_LAKE, "Intel Core with performance and efficient cores", (6, 2)),
    ],
)
def test_families(text: str, name: str, tile: tuple[int, int]) -> None:
    machine = tuned(text)
    assert machine.tuning.source == f"defaults for {name}"
    assert gemm_tile(machine) == tile


@pytest.mark.parametrize("text", [cpuinfo.FUTURE_EPYC, cpuinfo.NEHALEM])
def test_unknown_families_have_general_defaults(text: str) -> None:
    assert tuned(text).tuning == Tuning()


def test_lower_level_of_a_processor_has_a_tile_for_its_registers() -> None:
    assert gemm_tile(tuned(cpuinfo.GRANITE_RAPIDS, "v3")) == (6, 2)


def test_weights_cost_more_where_memory_is_slow_beside_the_multiply_adds() -> None:
    xeon, lower, epyc = tuned(cpuinfo.GRANITE_RAPIDS), tuned(cpuinfo.GRANITE_RAPIDS, "v3"), tuned(cpuinfo.ZEN_4)
    prices = [machine.tuning.winograd_weight for machine in (xeon, lower, epyc)]
    assert prices == sorted(prices, reverse=True)
    assert len({*prices}) == 3
