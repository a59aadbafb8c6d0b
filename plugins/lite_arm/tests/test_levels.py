"""Names of levels and of processors, and the machines that they stand for."""

from __future__ import annotations

import pytest

from lite_arm.levels import EXTENSIONS, PROCESSORS, features_of, machine_of_level, machine_with
from lite_core.errors import InputError
from lite_cpu.machine import ARM_V8


def test_the_lowest_level_is_plain_neon() -> None:
    assert machine_of_level("arm-v8") == ARM_V8
    assert features_of(ARM_V8) == {"neon"}
    assert not ARM_V8.dot_product


@pytest.mark.parametrize(
    ("name", "level"),
    [
        ("cortex-a53", "arm-v8"),
        ("cortex-a76", "arm-v8+dotprod+fp16"),
        ("neoverse-v1", "arm-v8+dotprod+fp16+i8mm+bf16"),
        ("carmel", "arm-v8+fp16"),
    ],
)
def test_a_processor_stands_for_its_level(name: str, level: str) -> None:
    machine = machine_of_level(name)
    assert machine.name == level
    assert machine == machine_of_level(level)
    assert features_of(machine) == PROCESSORS[name] | {"neon"}
    assert machine.dot_product == ("dotprod" in PROCESSORS[name])
    assert machine.bf16_dot == machine.bf16_matrix == ("bf16" in PROCESSORS[name])
    assert machine.half_products == ("fullfp16" in PROCESSORS[name])


@pytest.mark.parametrize("name", [*PROCESSORS, "arm-v8+i8mm"])
def test_every_level_keeps_x18_free(name: str) -> None:
    assert "+reserve-x18" in machine_of_level(name).features


@pytest.mark.parametrize("name", ["cortex-a99", "arm-v8+sve", "arm-v8+fp16+dotprod", "arm-v9", "", "arm-v8+"])
def test_an_unknown_level_is_an_error_that_lists_all(name: str) -> None:
    with pytest.raises(InputError) as caught:
        machine_of_level(name)
    for expected in (repr(name), "arm-v8", "+dotprod", "cortex-a76"):
        assert expected in str(caught.value)


def test_features_that_no_kernel_uses_change_nothing() -> None:
    assert machine_with(frozenset({"neon", "crc", "lse", "sve"})) == ARM_V8
    assert machine_with(frozenset(EXTENSIONS)).name == "arm-v8+dotprod+fp16+i8mm+bf16"
