"""The installed llvmlite: its private functions that are in use, and versions that are not supported.

The part `versions` of the full tier runs this file, and kernels, with every minor version that is supported.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import pytest
from backend_script import ASK_AND_COMPILE
from packaging.requirements import Requirement

from lite_cpu.machine import X86_64_V2
from lite_cpu.machine_code import llvm
from lite_cpu.machine_code.objects import compile_ir
from workspace import distributions

# The functions that optimize_and_emit calls without llvmlite's lock: their results and arguments.
SIGNATURES = {
    "LLVMPY_RunNewModulePassManager": ("c_int", "LP_LLVMModulePassManager", "LP_LLVMModule", "LP_LLVMPassBuilder"),
    "LLVMPY_TargetMachineEmitToMemory": (
        "LP_LLVMMemoryBuffer", "LP_LLVMTargetMachine", "LP_LLVMModule", "c_int", "LP_c_char_p",
    ),
    "LLVMPY_GetBufferStart": ("c_void_p", "LP_LLVMMemoryBuffer"),
    "LLVMPY_GetBufferSize": (ctypes.c_size_t.__name__, "LP_LLVMMemoryBuffer"),
    "LLVMPY_DisposeMemoryBuffer": ("c_int", "LP_LLVMMemoryBuffer"),
}  # fmt: skip

# A loop whose addresses LLVM's loop strength reduction changes.
STRIDED = """
define void @strided(ptr %from, ptr %to, i64 %stride, i64 %count) {
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  %row = mul i64 %i, %stride
  %source = getelementptr float, ptr %from, i64 %row
  %value = load float, ptr %source
  %target = getelementptr float, ptr %to, i64 %row
  store float %value, ptr %target
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""

NOTHING = "define void @nothing() {\n  ret void\n}\n"

# A kernel that parses, but is not valid: how near data will be used must be a constant.
WRONG = """
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
define void @wrong(ptr %data, i32 %near) {
  call void @llvm.prefetch.p0(ptr %data, i32 0, i32 %near, i32 1)
  ret void
}
"""

# The errors are kept in cycles, which only the garbage collector frees.
FAILING = """
import gc, sys
from lite_cpu.machine import X86_64_V2
from lite_cpu.machine_code.objects import KernelCompileError, compile_ir
gc.disable()
for _ in range(20):
    try:
        compile_ir(sys.argv[1], X86_64_V2)
    except KernelCompileError as error:
        cycle = [error]
        cycle.append(cycle)
message = str(cycle[0])
del cycle
gc.collect()
print(message)
"""


@pytest.mark.parametrize("name", SIGNATURES)
def test_private_functions_have_the_signatures_in_use(name: str) -> None:
    function = getattr(llvm.binding().ffi.lib, name)
    assert (function.restype.__name__, *(type_.__name__ for type_ in function.argtypes)) == SIGNATURES[name]
    assert hasattr(function, "_cfn"), "the function without the lock has another name: kernels compile one at a time"


def test_a_function_that_is_missing_is_named_with_the_remedy() -> None:
    with pytest.raises(RuntimeError, match=r"has no function LLVMPY_Missing: pip install 'llvmlite>=.*,<.*'"):
        llvm._unlocked("LLVMPY_Missing")


def test_the_installed_version_is_supported() -> None:
    assert llvm.installed_version()
    assert not llvm.missing_compiler()


@pytest.mark.parametrize("version", ["0.44.0", "0.51.0rc1", "1.0"])
def test_a_version_that_is_not_supported_is_refused_with_the_remedy(version: str, tmp_path: Path) -> None:
    """The installed llvmlite, under the metadata of another version."""
    found = find_spec("llvmlite")
    assert found is not None
    assert found.origin is not None
    (tmp_path / "llvmlite").symlink_to(Path(found.origin).parent)
    (tmp_path / f"llvmlite-{version}.dist-info").mkdir()
    done = run(ASK_AND_COMPILE, PYTHONPATH=os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    refusal = f"llvmlite {version} is not supported: pip install 'llvmlite>=0.45,<0.51'"
    assert done.stdout.splitlines() == [refusal, f"KernelCompileError {refusal}"], done.stderr


def test_packages_require_the_supported_versions() -> None:
    required = [Requirement(text) for one in distributions() for text in one.all_requirements]
    oldest, too_new = (".".join(map(str, version)) for version in llvm.SUPPORTED)
    specifiers = {str(one.specifier) for one in required if one.name == "llvmlite"}
    assert specifiers == {f"<{too_new},>={oldest}"}


def test_other_users_of_llvmlite_get_the_same_code_as_before() -> None:
    def emitted() -> str:
        found = llvm.binding()
        with found.parse_assembly(STRIDED, found.create_context()) as module:
            target = found.Target.from_triple(X86_64_V2.triple).create_target_machine(cpu=X86_64_V2.cpu, opt=3)
            return str(target.emit_assembly(module))

    before = emitted()
    with ThreadPoolExecutor(2) as pool:
        images = list(pool.map(lambda _: compile_ir(STRIDED, X86_64_V2), range(8)))
    assert emitted() == before
    assert all(image == images[0] for image in images)


def test_errors_of_the_compiler_may_end_as_garbage() -> None:
    done = run(FAILING, WRONG)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("kernel wrong for x86-64-v2: ")


def run(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **environment}
    return subprocess.run([sys.executable, "-c", code, *arguments], env=environment, capture_output=True, text=True)
