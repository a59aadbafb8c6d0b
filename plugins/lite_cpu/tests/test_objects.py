"""Compiling LLVM IR, linking and loading machine code."""

from __future__ import annotations

import ctypes
import dataclasses
import platform
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lite_cpu.machine import ARM_V8, X86_64_V2, X86_64_V3, X86_64_V4, Machine
from lite_cpu.machine_code import objects
from lite_cpu.machine_code.elf import flatten
from lite_cpu.machine_code.image import CodeImage, CodeImageError
from lite_cpu.machine_code.loading import CodeLoadError, LoadedCode, load
from lite_cpu.machine_code.objects import KernelCompileError, Optimize, compile_ir
from lite_cpu.machine_code.relocations import RELOCATIONS

MACHINES = [X86_64_V2, X86_64_V3, X86_64_V4, ARM_V8]
_HOSTS = {"x86_64": X86_64_V2, "amd64": X86_64_V2, "aarch64": ARM_V8, "arm64": ARM_V8}

SUM_OF_TABLE = """
@table = private constant [4 x i64] [i64 10, i64 20, i64 30, i64 40]

define internal i64 @lookup(i64 %index) noinline
{
  %address = getelementptr [4 x i64], ptr @table, i64 0, i64 %index
  %value = load i64, ptr %address
  ret i64 %value
}

define i64 @sum_two(i64 %first, i64 %second)
{
  %a = call i64 @lookup(i64 %first)
  %b = call i64 @lookup(i64 %second)
  %sum = add i64 %a, %b
  ret i64 %sum
}
"""

SCALE = """
define void @scale(ptr %data) {
  %old = load <4 x float>, ptr %data, align 4
  %new = fmul <4 x float> %old, <float 1.5, float 2.5, float 3.5, float 4.5>
  store <4 x float> %new, ptr %data, align 4
  ret void
}
"""

FILL_AND_COPY = """
define void @zero(ptr %to, i64 %count) {
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  %address = getelementptr float, ptr %to, i64 %i
  store float 0.0, ptr %address
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %loop, label %end
end:
  ret void
}

define void @copy(ptr noalias %to, ptr noalias %from, i64 %count)
{
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  %read = getelementptr float, ptr %from, i64 %i
  %write = getelementptr float, ptr %to, i64 %i
  %value = load float, ptr %read
  store float %value, ptr %write
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %loop, label %end
end:
  ret void
}
"""


def switch_ir(cases: int) -> str:
    """Return a function whose dense switch becomes a jump table: case ``i`` stores ``(100 + i) * (i % 3 + 1)``."""
    targets = " ".join(f"i64 {i}, label %case{i}" for i in range(cases))
    blocks = "\n".join(
        f"case{i}:\n  store volatile i64 {100 + i}, ptr %to\n  call void @step{i % 3}(ptr %to)\n  br label %end"
        for i in range(cases)
    )
    steps = "\n".join(
        f"define internal void @step{i}(ptr %to) noinline {{\n  %x = load volatile i64, ptr %to\n"
        f"  %y = mul i64 %x, {i + 1}\n  store volatile i64 %y, ptr %to\n  ret void\n}}"
        for i in range(3)
    )
    return f"""
{steps}
define void @choose(i64 %which, ptr %to) {{
entry:
  switch i64 %which, label %end [{targets}]
{blocks}
end:
  ret void
}}
"""


@pytest.fixture(scope="module")
def host() -> Machine:
    machine = _HOSTS.get(platform.machine().lower())
    if machine is None:
        pytest.skip(f"no machine description for {platform.machine()}")
    return machine


@pytest.fixture(scope="module")
def run_here(host: Machine):
    """Return a function that compiles IR for this machine, and returns the code and a getter of its functions."""

    def compile_and_load(ir: str, *, optimize: Optimize = "plain"):
        code = load([compile_ir(ir, host, optimize=optimize)])
        prototype = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
        return code, lambda name: prototype(code.address(0, name))

    return compile_and_load


# compiling and running


def test_constants_and_internal_calls_are_part_of_the_image(run_here):
    code, function = run_here(SUM_OF_TABLE)
    assert function("sum_two")(1, 3, None) == 60
    with pytest.raises(CodeLoadError, match=r"no function 'lookup'; it has \['sum_two'\]"):
        code.address(0, "lookup")


def test_vector_constants_are_aligned_and_found(run_here):
    _code, function = run_here(SCALE)
    data = (ctypes.c_float * 4)(1, 1, 1, 1)
    function("scale")(data, None, None)
    assert list(data) == [1.5, 2.5, 3.5, 4.5]


def test_a_switch_reaches_each_of_its_cases(run_here):
    _code, function = run_here(switch_ir(12))
    found = ctypes.c_int64()
    for which in range(13):
        found.value = -1
        function("choose")(which, ctypes.addressof(found), None)
        assert found.value == ((100 + which) * (which % 3 + 1) if which < 12 else -1)


def test_global_symbols_need_no_table_of_addresses(run_here):
    ir = SUM_OF_TABLE.replace("private constant", "constant").replace("define internal", "define")
    _code, function = run_here(ir)
    assert function("sum_two")(0, 2, None) == 40
    assert function("lookup")(2, None, None) == 30


@pytest.mark.parametrize("optimize", ["plain", "loops", "vectorize"])
def test_loops_that_clear_and_copy_memory_stay_loops(run_here, optimize):
    _code, function = run_here(FILL_AND_COPY, optimize=optimize)
    source, target = (ctypes.c_float * 100)(*range(100)), (ctypes.c_float * 100)()
    function("copy")(target, source, 99)
    assert list(target) == [*range(99), 0]
    function("zero")(target, 50, None)
    assert list(target) == [0] * 50 + [*range(50, 99), 0]


def test_without_no_builtins_llvm_calls_the_c_library(monkeypatch):
    monkeypatch.setattr(objects, "_FUNCTION_ATTRIBUTES", "nounwind")
    with pytest.raises(KernelCompileError, match="refers to 'memcpy', 'memset'"):
        compile_ir(FILL_AND_COPY, X86_64_V3, optimize="loops")


def test_only_vectorize_lets_llvm_vectorise_loops():
    written = compile_ir(FILL_AND_COPY, X86_64_V3)
    vectorised = compile_ir(FILL_AND_COPY, X86_64_V3, optimize="vectorize")
    assert len(vectorised.code) > 1.5 * len(written.code)


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_every_machine_compiles_everything(machine):
    for ir, entry in [(SUM_OF_TABLE, "sum_two"), (SCALE, "scale"), (switch_ir(40), "choose"), (FILL_AND_COPY, "copy")]:
        image = compile_ir(ir, machine)
        assert image.architecture == machine.triple.split("-")[0]
        assert 0 <= image.entries[entry] < len(image.code)
        assert image == compile_ir(ir, machine), "the same IR must give the same bytes"


def test_aarch64_constants_need_the_alignment_of_a_page():
    assert compile_ir(SUM_OF_TABLE, ARM_V8).alignment == 4096
    assert compile_ir(SUM_OF_TABLE, X86_64_V2).alignment == 64


def test_threads_compile_the_same_code_as_one_thread():
    kernels = [switch_ir(cases) for cases in range(4, 28)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda ir: compile_ir(ir, X86_64_V3), kernels))
    assert together == [compile_ir(ir, X86_64_V3) for ir in kernels]


# errors


@pytest.mark.parametrize(
    ("ir", "message"),
    [
        ("define void @broken() {\n  ret i64 0\n}", r"kernel broken for x86-64-v2: LLVM IR parsing error"),
        ("define void @odd( {\n}", r"kernel odd for x86-64-v2: "),
        (
            'define i64 @"loop.1"(i64 %a) {\n  %x = add i64 %y, 1\n  %y = add i64 %a, 1\n  ret i64 %x\n}',
            r"kernel loop\.1 ",
        ),
        ("declare void @puts(ptr)\ndefine void @say(ptr %t) {\n  call void @puts(ptr %t)\n  ret void\n}", "'puts'"),
        ("@n = global i64 1\ndefine i64 @f() {\n  %v = load volatile i64, ptr @n\n  ret i64 %v\n}", "writable data"),
        ("@n = external global i64\ndefine i64 @f() {\n  %v = load i64, ptr @n\n  ret i64 %v\n}", "refers to 'n'"),
        (
            "@t = constant [2 x ptr] [ptr @f, ptr @t]\ndefine ptr @f(i64 %i) {\n"
            "  %a = getelementptr ptr, ptr @t, i64 %i\n  %v = load ptr, ptr %a\n  ret ptr %v\n}",
            r"kernel f .*\.data\.rel\.ro",
        ),
        ("define internal void @f() {\n  ret void\n}", "no function that can be called"),
        ("", "kernel without a function"),
    ],
)
def test_ir_that_cannot_become_an_image_is_an_error_naming_the_kernel(ir, message):
    with pytest.raises(KernelCompileError, match=message):
        compile_ir(ir, X86_64_V2)


def test_ir_that_does_not_verify_is_an_error_naming_the_kernel():
    ir = "define i64 @early(i64 %a) {\n  %x = add i64 %y, 1\n  %y = add i64 %a, 1\n  ret i64 %x\n}"
    with pytest.raises(KernelCompileError, match=r"kernel early .*does not dominate all uses"):
        compile_ir(ir, X86_64_V2)


def test_an_unknown_target_is_refused():
    with pytest.raises(KernelCompileError, match="pdp11"):
        compile_ir(SCALE, dataclasses.replace(X86_64_V2, triple="pdp11-unknown-linux-gnu"))


@pytest.mark.parametrize("elf", [b"", b"MZ" + bytes(98), b"\x7fELF\x02\x01" + bytes(58)])
def test_other_files_are_not_flattened(elf):
    with pytest.raises(CodeImageError, match="expected a"):
        flatten(elf)


# relocations: the expected instructions are an assembler's

AARCH64_CASES = [
    (283, 0x94000000, 0x100, 0x108, 0x94000002),  # bl +8
    (282, 0x14000000, 0x100, 0x0FC, 0x17FFFFFF),  # b -4
    (280, 0x54000000, 0x100, 0x0FC, 0x54FFFFE0),  # b.eq -4
    (279, 0x36000000, 0x100, 0x108, 0x36000040),  # tbz w0, #0, +8
    (273, 0x1C000000, 0x100, 0x110, 0x1C000080),  # ldr s0, +16
    (274, 0x10000000, 0x100, 0x105, 0x30000020),  # adr x0, +5
    (275, 0x90000000, 0x1FF0, 0x3008, 0xD0000000),  # adrp x0, two pages on
    (275, 0x90000000, 0x3008, 0x1FF0, 0xD0FFFFE0),  # adrp x0, two pages back
    (277, 0x91000000, 0x100, 0x3008, 0x91002000),  # add x0, x0, #8
    (278, 0x39400000, 0x100, 0x3003, 0x39400C00),  # ldrb w0, [x0, #3]
    (284, 0x79400000, 0x100, 0x3006, 0x79400C00),  # ldrh w0, [x0, #6]
    (285, 0xB9400000, 0x100, 0x3008, 0xB9400800),  # ldr w0, [x0, #8]
    (286, 0xFD400000, 0x100, 0x3010, 0xFD400800),  # ldr d0, [x0, #16]
    (299, 0x3DC00000, 0x100, 0x3020, 0x3DC00800),  # ldr q0, [x0, #32]
    (261, 0x00000000, 0x100, 0x0F0, 0xFFFFFFF0),  # .word target - .
]


@pytest.mark.parametrize(("kind", "instruction", "offset", "target", "expected"), AARCH64_CASES)
def test_aarch64_references_are_encoded_as_an_assembler_does(kind, instruction, offset, target, expected):
    image = bytearray(0x4000)
    struct.pack_into("<I", image, offset, instruction)
    RELOCATIONS["aarch64"][kind].patch(image, offset, target)
    assert f"{struct.unpack_from('<I', image, offset)[0]:08x}" == f"{expected:08x}"


def test_references_that_do_not_fit_are_refused():
    with pytest.raises(CodeImageError, match="more than 14 bits"):
        RELOCATIONS["aarch64"][279].patch(bytearray(8), 0, 1 << 16)
    with pytest.raises(CodeImageError, match="not aligned"):
        RELOCATIONS["aarch64"][286].patch(bytearray(8), 0, 12)
    with pytest.raises(CodeImageError, match="not a multiple of 4"):
        RELOCATIONS["aarch64"][283].patch(bytearray(8), 0, 6)


# images as bytes

images = st.builds(
    CodeImage,
    code=st.binary(min_size=1, max_size=50),
    entries=st.dictionaries(st.text(max_size=8), st.just(0), max_size=3),
    architecture=st.sampled_from(["x86_64", "aarch64"]),
    alignment=st.sampled_from([64, 4096]),
)


@given(images)
def test_image_round_trips_through_bytes(image):
    assert CodeImage.from_bytes(image.to_bytes()) == image


@given(images, st.data())
def test_a_truncated_image_is_an_error(image, data):
    blob = image.to_bytes()
    with pytest.raises(CodeImageError):
        CodeImage.from_bytes(blob[: data.draw(st.integers(0, len(blob) - 1))])


@pytest.mark.parametrize(
    ("position", "replacement", "message"),
    [(0, b"ELF!", "not a code image"), (4, b"\xff\xff", "version 65535"), (8, b"\3\0\0\0", "alignment 3")],
)
def test_a_damaged_image_is_an_error(position, replacement, message):
    blob = bytearray(CodeImage(b"\xc3", {"f": 0}, "x86_64").to_bytes())
    blob[position : position + len(replacement)] = replacement
    with pytest.raises(CodeImageError, match=message):
        CodeImage.from_bytes(bytes(blob))


def test_an_entry_outside_the_code_is_an_error():
    with pytest.raises(CodeImageError, match="'f' at byte 7 of 1"):
        CodeImage.from_bytes(CodeImage(b"\xc3", {"f": 7}, "x86_64").to_bytes())


# loading


def test_images_share_a_mapping_with_their_alignments(host):
    small = compile_ir(SUM_OF_TABLE, host)
    image_of_page = small._replace(alignment=4096)
    code = load([small, image_of_page, small])
    function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
    entry = small.entries["sum_two"]
    for index, alignment in enumerate([small.alignment, 4096, small.alignment]):
        assert (code.address(index, "sum_two") - entry) % alignment == 0
        assert function(code.address(index, "sum_two"))(0, 1) == 30


def test_loading_nothing_is_no_error():
    assert isinstance(load([]), LoadedCode)


def test_code_for_another_processor_is_refused(host):
    other = X86_64_V2 if host is ARM_V8 else ARM_V8
    with pytest.raises(CodeLoadError, match=f"code image 1 is for {other.triple.split('-')[0]}, this processor is"):
        load([compile_ir(SCALE, host), compile_ir(SCALE, other)])


def test_code_with_an_alignment_beyond_a_page_is_refused(host):
    with pytest.raises(CodeLoadError, match="alignment of 1048576 bytes"):
        load([compile_ir(SCALE, host)._replace(alignment=1 << 20)])


def _protection(address: int) -> str | None:
    """Return the permissions of the page at an address, for example ``r-xp``; None if nothing is mapped there."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        limits, permissions = line.split()[:2]
        start, end = (int(limit, 16) for limit in limits.split("-"))
        if start <= address < end:
            return permissions
    return None


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/maps")
def test_loaded_code_is_executable_not_writable_and_unmapped_with_its_object(host):
    code = load([compile_ir(SCALE, host)])
    address = code.address(0, "scale")
    assert _protection(address) == "r-xp"
    del code
    assert _protection(address) != "r-xp"


HARDENED = """
import ctypes
if ctypes.CDLL(None).prctl(65, 1, 0, 0, 0):  # PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN: Linux 6.3
    print("unsupported")
else:
    import platform
    from lite_cpu.machine_code.loading import CodeImage, CodeLoadError, load
    try:
        load([CodeImage(b"nothing", {}, platform.machine())])
    except CodeLoadError as error:
        print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux' memory-deny-write-execute")
def test_a_system_that_refuses_executable_memory_is_reported():
    said = subprocess.run([sys.executable, "-c", HARDENED], capture_output=True, text=True, check=True).stdout
    if said.startswith("unsupported"):
        pytest.skip("this kernel cannot refuse executable memory")
    assert "refused executable memory (mprotect to read and execute: Permission denied)" in said
