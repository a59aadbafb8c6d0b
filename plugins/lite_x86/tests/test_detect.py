"""Tests of the detection of processors and machines from Linux's files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import cpuinfo
import pytest

from lite_core.errors import InputError
from lite_cpu.machine import X86_64_V2, X86_64_V3, X86_64_V4
from lite_x86 import detect
from lite_x86.detect import (
    Processor,
    cache_bytes,
    clock_hertz,
    features_of,
    machine_for,
    machine_of_level,
    missing_features,
    parse_cpuinfo,
    permitted_features,
)


def processor(text: str, cache_bytes: dict[int, int] | None = None) -> Processor:
    return Processor(*parse_cpuinfo(text), cache_bytes or {})


@pytest.mark.parametrize(
    ("text", "name", "vector_bytes", "dot_product"),
    [
        (cpuinfo.NEHALEM, "x86-64-v2", 16, False),
        (cpuinfo.SANDY_BRIDGE, "x86-64-v2", 16, False),
        (cpuinfo.ZEN_3, "x86-64-v3", 32, False),
        (cpuinfo.ALDER_LAKE, "x86-64-v3+vnni", 32, True),
        (cpuinfo.SKYLAKE_X, "x86-64-v4", 64, False),
        (cpuinfo.ZEN_4, "x86-64-v4+vnni+bf16", 64, True),
        (cpuinfo.GRANITE_RAPIDS, "x86-64-v4+vnni+bf16+amx", 64, True),
        (cpuinfo.SAPPHIRE_RAPIDS, "x86-64-v4+vnni+bf16+fp16+amx", 64, True),
    ],
)
def test_machine(text: str, name: str, vector_bytes: int, dot_product: bool) -> None:
    machine = machine_for(processor(text))
    assert (machine.name, machine.vector_bytes, machine.dot_product) == (name, vector_bytes, dot_product)


def test_extensions_are_passed_to_llvm_as_features() -> None:
    assert machine_for(processor(cpuinfo.ALDER_LAKE)).features == ("+avxvnni",)
    assert machine_for(processor(cpuinfo.ZEN_4)).features == (*X86_64_V4.features, "+avx512vnni", "+avx512bf16")
    assert machine_for(processor(cpuinfo.ZEN_3)) == X86_64_V3


def test_matrix_tiles_are_used_with_all_their_features_or_not_at_all() -> None:
    machine = machine_for(processor(cpuinfo.GRANITE_RAPIDS))
    assert machine.matrix_tiles
    assert machine.features[-3:] == ("+amx-tile", "+amx-bf16", "+amx-int8")
    without = processor(cpuinfo.GRANITE_RAPIDS.replace("amx_int8", ""))
    assert machine_for(without).name == "x86-64-v4+vnni+bf16"
    assert not machine_for(without).matrix_tiles


def test_matrix_tiles_need_the_permission_of_the_system(caplog: pytest.LogCaptureFixture) -> None:
    """This processor either has them, then every process may use them, or the system refuses them."""
    features = processor(cpuinfo.GRANITE_RAPIDS).features
    has_tiles = bool(detect.TILE_FEATURES & detect.this_processor().features)
    permitted = permitted_features(features)
    assert permitted == (features if has_tiles else features - detect.TILE_FEATURES)
    assert len(caplog.messages) == (0 if has_tiles else 1)
    assert all("matrix tiles (AMX)" in line for line in caplog.messages)


def test_permission_is_not_asked_for_without_need(caplog: pytest.LogCaptureFixture) -> None:
    features = processor(cpuinfo.ZEN_4).features
    assert permitted_features(features) == features
    assert not caplog.messages


LEVELS = (
    "x86-64-v2",
    "x86-64-v3",
    "x86-64-v3+vnni",
    "x86-64-v4",
    "x86-64-v4+vnni",
    "x86-64-v4+vnni+bf16",
    "x86-64-v4+vnni+bf16+amx",
    "x86-64-v4+vnni+bf16+fp16+amx",
)


@pytest.mark.parametrize("name", LEVELS)
def test_level_is_found_by_the_name_of_its_machine(name: str) -> None:
    machine = machine_of_level(name)
    assert machine.name == name
    assert machine.dot_product == ("vnni" in name)
    assert machine.half_products == ("fp16" in name)
    # A processor with exactly these features has this machine.
    assert machine_for(Processor("any", features_of(machine), {})).name == name


def test_features_of_a_level_are_those_that_its_code_may_use() -> None:
    found = [features_of(machine_of_level(name)) for name in LEVELS]
    for lower, higher in ((0, 1), (1, 2), (1, 3), (3, 4), (4, 5)):
        assert found[lower] < found[higher]
    assert "avx2" in found[1] - found[0]
    assert found[2] - found[1] == {"avxvnni"}
    assert found[5] - found[4] == {"avx512bf16"}
    assert found[6] - found[5] == detect.TILE_FEATURES
    assert found[7] - found[6] == {"avx512fp16"}
    texts = (
        cpuinfo.NEHALEM,
        cpuinfo.ZEN_3,
        cpuinfo.ALDER_LAKE,
        cpuinfo.SKYLAKE_X,
        cpuinfo.ZEN_4,
        cpuinfo.GRANITE_RAPIDS,
    )
    for text in texts:
        here = processor(text)
        assert features_of(machine_for(here)) <= here.features


def test_unknown_level_of_code_is_an_error() -> None:
    with pytest.raises(InputError, match=r"'v3'; .*x86-64-v3, .*x86-64-v4\+vnni\+bf16"):
        machine_of_level("v3")


def test_model() -> None:
    assert processor(cpuinfo.ZEN_3).model == "AMD EPYC 7763 64-Core Processor"


@pytest.mark.parametrize("text", ["", cpuinfo.CORTEX_A72])
def test_other_architectures_have_no_features(text: str) -> None:
    assert parse_cpuinfo(text) == ("unknown", frozenset())


def test_processor_below_v2_is_an_error() -> None:
    old = processor(cpuinfo.CORE_2)
    assert missing_features("v2", old.features) == ["popcnt", "sse4.1", "sse4.2"]
    with pytest.raises(ValueError, match=r"E6600 .* lacks popcnt, sse4.1, sse4.2 of x86-64-v2"):
        machine_for(old)


@pytest.mark.parametrize(
    ("forced", "name"),
    [("v2", "x86-64-v2"), ("v3", "x86-64-v3"), ("v4", "x86-64-v4+vnni+bf16"), ("", "x86-64-v4+vnni+bf16")],
)
def test_lower_level_can_be_forced(forced: str, name: str, caplog: pytest.LogCaptureFixture) -> None:
    assert machine_for(processor(cpuinfo.ZEN_4), forced).name == name
    assert not caplog.records


@pytest.mark.parametrize("forced", ["v3+vnni", "v4+vnni", "v4+vnni+bf16"])
def test_extensions_can_be_left_out(forced: str, caplog: pytest.LogCaptureFixture) -> None:
    here = processor(cpuinfo.GRANITE_RAPIDS)
    expected = forced if forced.startswith("v4") else "v3"  # AVX-VNNI is another extension, which it lacks
    assert machine_for(here, forced).name == f"x86-64-{expected}"
    assert not caplog.records


def test_unsupported_level_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    assert machine_for(processor(cpuinfo.ZEN_3), "v4") == X86_64_V3
    (line,) = caplog.messages
    assert line.startswith("LITE_X86_LEVEL=v4 is refused, AMD EPYC 7763 64-Core Processor lacks avx512bw, avx512cd, ")
    assert line.endswith("; v3 is used")


def test_unknown_level_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    assert machine_for(processor(cpuinfo.NEHALEM), "avx9") == X86_64_V2
    assert caplog.messages == ["LITE_X86_LEVEL=avx9 is none of v2, v3, v4; v2 is used"]


def test_machine_has_the_cache_sizes_of_the_processor() -> None:
    machine = machine_for(processor(cpuinfo.ZEN_3, {1: 48 << 10, 2: 2 << 20, 3: 32 << 20}))
    assert (machine.l1_bytes, machine.l2_bytes) == (48 << 10, 2 << 20)


def test_cache_sizes_of_linux(tmp_path: Path) -> None:
    listed = [("Data", "1", "48K"), ("Instruction", "1", "32K"), ("Unified", "2", "2M"), ("Unified", "3", "32768K")]
    for number, properties in enumerate(listed):
        folder = tmp_path / f"index{number}"
        folder.mkdir()
        for name, value in zip(("type", "level", "size"), properties):
            (folder / name).write_text(f"{value}\n")
    (tmp_path / "index9").mkdir()  # containers may hide the files of a cache
    sizes = cache_bytes(tmp_path)
    assert sizes == {1: 48 << 10, 2: 2 << 20, 3: 32 << 20}
    assert Processor("", frozenset(), sizes).caches == "L1 48 KiB, L2 2048 KiB, L3 32768 KiB"


def test_unknown_cache_sizes(tmp_path: Path) -> None:
    assert cache_bytes(tmp_path / "nowhere") == {}
    assert Processor("", frozenset(), {}).caches == "unknown"


def test_clock_is_the_highest_that_linux_reports(tmp_path: Path) -> None:
    highest = tmp_path / "cpuinfo_max_freq"
    current = cpuinfo.SKYLAKE_X.replace("flags\t", "cpu MHz\t\t: 3100.5\nflags\t")
    assert clock_hertz(current, highest) == 3100.5e6
    assert clock_hertz(current.replace("3100.5", "1200.0"), highest) == 2.5e9  # idle: the nominal clock in the name
    assert clock_hertz(cpuinfo.SKYLAKE_X, highest) == 2.5e9
    assert clock_hertz(cpuinfo.ZEN_3, highest) == 0
    highest.write_text("3800000\n")
    assert clock_hertz(current, highest) == 3.8e9


def test_usable_cores() -> None:
    assert 1 <= detect.usable_cores() <= (os.cpu_count() or 1)


@pytest.mark.skipif(not detect.is_x86_64(), reason="not an x86-64 processor")
def test_linux_and_llvm_report_the_same_features() -> None:
    _, features = detect._ask_llvm()
    known = detect.KNOWN_FEATURES - detect.TILE_FEATURES  # which the system may refuse
    assert features & known == detect.this_processor().features & known


@pytest.mark.skipif(not Path("/proc/cpuinfo").exists() or not detect.is_x86_64(), reason="not Linux on x86-64")
def test_detection_on_linux_does_not_import_the_compiler() -> None:
    code = "import sys; from lite_x86 import detect; print(detect.this_machine().name, 'llvmlite' in sys.modules)"
    environment = {**os.environ, "LITE_X86_LEVEL": "v2"}
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert shown.stdout.split() == ["x86-64-v2", "False"]
