"""Excerpts of ``/proc/cpuinfo`` for processors of several generations."""

from __future__ import annotations

_COMMON = """fpu vme de pse tsc msr pae mce cx8 apic sep mtrr pge mca cmov pat pse36 clflush mmx fxsr sse sse2 ht
syscall nx rdtscp lm constant_tsc rep_good nopl cpuid pni ssse3 cx16 sse4_1 sse4_2 popcnt lahf_lm"""
_AVX2 = "pclmulqdq fma movbe aes xsave avx f16c rdrand abm fsgsbase bmi1 avx2 smep bmi2 erms rdseed adx smap sha_ni"
_AVX512 = "avx512f avx512dq avx512ifma avx512cd avx512bw avx512vl avx512vbmi avx512_vbmi2 avx512_bitalg"


def cpuinfo(model: str, *flags: str) -> str:
    """Return the text for two equal processors in Linux's format."""
    line = " ".join(" ".join(flags).split())
    entry = "processor\t: {}\nmodel\t\t: 1\nmodel name\t: {}\nflags\t\t: {}\nbugs\t\t: spectre_v2\n"
    return "\n".join(entry.format(number, model, line) for number in range(2)) + "\n"


NEHALEM = cpuinfo("Intel(R) Xeon(R) CPU           X5570  @ 2.93GHz", _COMMON)
SANDY_BRIDGE = cpuinfo("Intel(R) Core(TM) i7-2600 CPU @ 3.40GHz", _COMMON, "pclmulqdq aes xsave avx")
ZEN_3 = cpuinfo("AMD EPYC 7763 64-Core Processor", _COMMON, _AVX2, "sse4a clzero vaes vpclmulqdq")
ZEN_4 = cpuinfo("AMD EPYC 9654 96-Core Processor", _COMMON, _AVX2, _AVX512, "sse4a avx512_vnni avx512_bf16 gfni")
SKYLAKE_X = cpuinfo("Intel(R) Xeon(R) Platinum 8180 CPU @ 2.50GHz", _COMMON, _AVX2, _AVX512)
ALDER_LAKE = cpuinfo("12th Gen Intel(R) Core(TM) i7-12700", _COMMON, _AVX2, "avx_vnni gfni vaes")
CORE_2 = cpuinfo("Intel(R) Core(TM)2 Duo CPU     E6600  @ 2.40GHz", _COMMON.replace("sse4_1 sse4_2 popcnt", ""))
CORTEX_A72 = "processor\t: 0\nBogoMIPS\t: 108.00\nFeatures\t: fp asimd evtstrm crc32 cpuid\nCPU implementer\t: 0x41\n"
