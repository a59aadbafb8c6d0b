"""Excerpts of ``/proc/cpuinfo`` for processors of several generations."""

from __future__ import annotations

_COMMON = """fpu vme de pse tsc msr pae mce cx8 apic sep mtrr pge mca cmov pat pse36 clflush mmx fxsr sse sse2 ht
syscall nx rdtscp lm constant_tsc rep_good nopl cpuid pni ssse3 cx16 sse4_1 sse4_2 popcnt lahf_lm"""
_AVX2 = "pclmulqdq fma movbe aes xsave avx f16c rdrand abm fsgsbase bmi1 avx2 smep bmi2 erms rdseed adx smap sha_ni"
_AMX = "amx_bf16 amx_tile amx_int8"
INTEL, AMD = "GenuineIntel", "AuthenticAMD"
_AVX512 = "avx512f avx512dq avx512ifma avx512cd avx512bw avx512vl avx512vbmi avx512_vbmi2 avx512_bitalg"


def cpuinfo(model: str, *flags: str, identity: tuple[str, int, int] | None = None) -> str:
    """Return the text for two equal processors in Linux's format; ``identity``: vendor, family and model."""
    line = " ".join(" ".join(flags).split())
    vendor = "vendor_id\t: {}\ncpu family\t: {}\nmodel\t\t: {}\n".format(*identity or ("unknown", 1, 1))
    entry = "processor\t: {}\n{}model name\t: {}\nstepping\t: 2\nflags\t\t: {}\nbugs\t\t: spectre_v2\n"
    return "\n".join(entry.format(number, vendor, model, line) for number in range(2)) + "\n"


NEHALEM = cpuinfo("Intel(R) Xeon(R) CPU           X5570  @ 2.93GHz", _COMMON, identity=(INTEL, 6, 26))
SANDY_BRIDGE = cpuinfo(
    "Intel(R) Core(TM) i7-2600 CPU @ 3.40GHz", _COMMON, "pclmulqdq aes xsave avx", identity=(INTEL, 6, 42)
)
ZEN_3 = cpuinfo(
    "AMD EPYC 7763 64-Core Processor", _COMMON, _AVX2, "sse4a clzero vaes vpclmulqdq", identity=(AMD, 25, 1)
)
ZEN_4 = cpuinfo(
    "AMD EPYC 9654 96-Core Processor",
    _COMMON,
    _AVX2,
    _AVX512,
    "sse4a avx512_vnni avx512_bf16 gfni",
    identity=(AMD, 25, 17),
)
SKYLAKE_X = cpuinfo("Intel(R) Xeon(R) Platinum 8180 CPU @ 2.50GHz", _COMMON, _AVX2, _AVX512, identity=(INTEL, 6, 85))
ALDER_LAKE = cpuinfo(
    "12th Gen Intel(R) Core(TM) i7-12700", _COMMON, _AVX2, "avx_vnni gfni vaes", identity=(INTEL, 6, 151)
)
ZEN_2 = cpuinfo("AMD EPYC 7742 64-Core Processor", _COMMON, _AVX2, identity=(AMD, 23, 49))
ZEN_5 = cpuinfo("AMD EPYC 9965 192-Core Processor", _COMMON, _AVX2, _AVX512, identity=(AMD, 26, 17))
TIGER_LAKE = cpuinfo(
    "11th Gen Intel(R) Core(TM) i7-1165G7 @ 2.80GHz", _COMMON, _AVX2, _AVX512, identity=(INTEL, 6, 140)
)
GRANITE_RAPIDS = cpuinfo(
    "Intel(R) Xeon(R) Processor", _COMMON, _AVX2, _AVX512, "avx512_vnni avx512_bf16", _AMX, identity=(INTEL, 6, 173)
)
SAPPHIRE_RAPIDS = cpuinfo(
    "Intel(R) Xeon(R) Platinum 8480+", _COMMON, _AVX2, _AVX512, "avx512_vnni avx512_bf16 avx512_fp16", _AMX,
    identity=(INTEL, 6, 143),
)  # fmt: skip
FUTURE_XEON = cpuinfo("Intel(R) Xeon(R) 9", _COMMON, _AVX2, _AVX512, _AMX, identity=(INTEL, 19, 1))
FUTURE_EPYC = cpuinfo("AMD EPYC 9", _COMMON, _AVX2, _AVX512, identity=(AMD, 27, 1))
CORE_2 = cpuinfo("Intel(R) Core(TM)2 Duo CPU     E6600  @ 2.40GHz", _COMMON.replace("sse4_1 sse4_2 popcnt", ""))
CORTEX_A72 = "processor\t: 0\nBogoMIPS\t: 108.00\nFeatures\t: fp asimd evtstrm crc32 cpuid\nCPU implementer\t: 0x41\n"
