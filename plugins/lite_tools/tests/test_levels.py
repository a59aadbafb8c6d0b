"""Levels of processors in a conversion: each target takes those that it has, the most demanding one first."""

from __future__ import annotations

import pytest

from lite_core.errors import InputError
from lite_core.plugins import default_plugins
from lite_tools.conversion.targets import at_levels, find_targets


def levels_of(targets: str, *levels: str) -> list[tuple[str, str]]:
    """Return name and level of each of the targets after the levels are applied."""
    found, problems = find_targets(targets, default_plugins())
    assert problems == []
    return [(target.name, target.level) for target in at_levels(found, levels)]


def test_each_target_takes_its_own_levels() -> None:
    assert levels_of("arm,x86,host", "x86-64-v3", "cortex-a53", "cortex-a76") == [
        ("arm", "arm-v8+dotprod+fp16"),
        ("arm", "arm-v8"),
        ("x86", "x86-64-v3"),
        ("host", ""),
    ]


def test_processors_of_one_level_are_one_level() -> None:
    assert levels_of("arm", "cortex-a53", "cortex-a72", "arm-v8") == [("arm", "arm-v8")]


def test_a_target_without_a_given_level_stays() -> None:
    assert levels_of("arm,x86", "cortex-a76") == [("arm", "arm-v8+dotprod+fp16"), ("x86", "")]


def test_a_level_that_no_target_has_is_an_error_of_each() -> None:
    with pytest.raises(InputError, match=r"arm has no level 'cortex-a99'.*x86 has no level 'cortex-a99'"):
        levels_of("arm,x86", "cortex-a53", "cortex-a99")


def test_targets_without_levels_are_an_error() -> None:
    with pytest.raises(InputError, match="none of the targets has levels"):
        levels_of("host", "cortex-a53")
