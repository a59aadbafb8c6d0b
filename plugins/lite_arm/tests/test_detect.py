"""Detection from what Linux reports: auxiliary values, ``/proc/cpuinfo``, ``/sys``."""

from __future__ import annotations

from pathlib import Path

import pytest

from lite_arm import detect
from lite_arm.detect import Processor, Words, features_of_words, machine_for, model_name

_CORE = "processor\t: {}\nFeatures\t: fp asimd crc32\nCPU implementer\t: {}\nCPU variant\t: 0x0\nCPU part\t: {}\n\n"

#: Words as these processors have them (Linux: Documentation/arch/arm64/elf_hwcaps.rst names the bits).
CORTEX_A72 = Words(0x8FF, 0)
CORTEX_A76 = Words(0x119FFF, 0)
NEOVERSE_V1 = Words(0xEFFFFFFF, 1 << 13 | 1 << 14)


def cpuinfo(*cores: tuple[str, str]) -> str:
    """Return ``/proc/cpuinfo`` of cores, each an implementer and a part."""
    return "".join(_CORE.format(number, *core) for number, core in enumerate(cores))


@pytest.mark.parametrize(
    ("words", "level"),
    [
        (CORTEX_A72, "arm-v8"),
        (CORTEX_A76, "arm-v8+dotprod+fp16"),
        (NEOVERSE_V1, "arm-v8+dotprod+fp16+i8mm+bf16"),
        (Words(1 << 1 | 1 << 9, 0), "arm-v8"),  # scalars in float16, but no vectors
    ],
)
def test_the_level_follows_from_the_words(words: Words, level: str) -> None:
    assert machine_for(Processor("", features_of_words(words), {})).name == level


def test_without_neon_there_is_no_neon() -> None:
    assert "neon" not in features_of_words(Words(0, 0))


def test_model_names() -> None:
    assert model_name("") == ""
    assert model_name("processor\t: 0\nmodel name\t: something else\n") == ""
    assert model_name(cpuinfo(*[("0x41", "0xd0b")] * 4)) == "Cortex-A76"
    assert model_name(cpuinfo(*[("0x41", "0xd05")] * 4, *[("0x41", "0xd0b")] * 4)) == "4 x Cortex-A76, 4 x Cortex-A55"
    assert model_name(cpuinfo(("0x61", "0x022"))) == "ARM processor 0x61-0x022"


def test_caches_and_clock_are_those_of_the_fastest_core(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, (capacity, clock, l2) in enumerate([("381", "1800000", "128K"), ("1024", "2400000", "512K")]):
        core = tmp_path / f"sys/devices/system/cpu/cpu{number}"
        for name, text in {
            "cpu_capacity": capacity,
            "cpufreq/cpuinfo_max_freq": clock,
            "cache/index2/type": "Unified",
            "cache/index2/level": "2",
            "cache/index2/size": l2,
        }.items():
            (core / name).parent.mkdir(parents=True, exist_ok=True)
            (core / name).write_text(f"{text}\n")
    monkeypatch.setattr(detect, "_SYSTEM", tmp_path)
    monkeypatch.setattr(detect, "_features", lambda: features_of_words(CORTEX_A76))
    detect.this_processor.cache_clear()
    try:
        processor = detect.this_processor()
    finally:
        detect.this_processor.cache_clear()
    assert (processor.cache_bytes, processor.clock_hertz) == ({2: 512 << 10}, 2.4e9)
    assert processor.caches == "L2 512 KiB"
    machine = machine_for(processor)
    assert (machine.l1_bytes, machine.l2_bytes) == (32 << 10, 512 << 10)
