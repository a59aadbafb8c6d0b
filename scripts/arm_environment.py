"""Make an environment in which this machine runs 64-bit ARM Linux programs: Python with Lite, emulated by qemu.

    python scripts/arm_environment.py [FOLDER] [--with llvm onnxruntime mca]
    QEMU_CPU=cortex-a53 .venv-arm/bin/python -m lite_core backends

FOLDER (default: .venv-arm) is a virtual environment whose ``bin/python`` starts the ARM Python of the system's
distribution under qemu. ``QEMU_CPU`` chooses the processor, one of ``scripts/arm_processors.py``, by default a
Cortex-A76. The packages of this workspace are used where they are. Parts are made once, and again when what they are
made from has changed; after an interruption the next call continues.

Parts on request:

- ``llvm``: llvmlite, in the folder ``llvm``. It is visible with ``PYTHONPATH=FOLDER/llvm`` only, so that a process
  can be one with a compiler, or one without.
- ``onnxruntime``: ONNX Runtime, in a folder of that name, visible in the same way.
- ``mca``: LLVM's disassembler and analyser of machine code, as ``bin/llvm-mc`` and ``bin/llvm-mca``.
- ``opencl``: PoCL for ARM, in the folder ``opencl``, and a linker for it; ``bin/python-opencl`` is ``bin/python`` with
  it.

A Debian or Ubuntu for x86-64 is needed, with package sources that have arm64, and pip. No root is needed, nothing is
installed in the system.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

import pythons
from arm_processors import PROCESSORS, write_system_files
from debian_packages import DebianPackages, PackageError
from workspace import ROOT, Distribution, distributions

__all__ = ["DEFAULT", "PARTS", "ArmEnvironment", "main"]

DEFAULT = ROOT / ".venv-arm"
#: Distributions of the workspace that an ARM device has no use for, and those that bring llvmlite: it is the part
#: ``llvm``, so that a process without a compiler is one. lite-serve has no code of its own for
#: a processor, and large requirements.
_LEFT_OUT = {"lite-x86", "lite-onnxruntime", "lite-numba", "lite-serve"}
_DEBIAN_PYTHON = ("python3", "libgomp1", "libstdc++6")
#: qemu's package has an emulator for each architecture: those whose names begin otherwise are left out.
_OTHER_EMULATORS = ("./usr/bin/qemu-[!a]*", "./usr/bin/qemu-alpha", "./usr/bin/qemu-arm*", "./usr/bin/qemu-aarch64_be")
_MCA = "llvm-22"
_POCL, _LINKER = ("ocl-icd-libopencl1", "pocl-opencl-icd"), "binutils-aarch64-linux-gnu"
_PROGRAM = 0o755

_LAUNCHER = """\
#!/bin/sh
# An ARM Python on this machine. Python takes this file for its interpreter (-0), so that processes which it starts are
# emulated, too, and finds the environment beside it. QEMU_CPU chooses the processor.
here={folder}
cpu=${{QEMU_CPU:-cortex-a76}}
test -d "$here/processors/$cpu" || {{ echo "QEMU_CPU=$cpu: choose one of" $(ls "$here/processors") >&2; exit 2; }}
exec {qemu} -cpu "$cpu" -0 "$here/bin/python" -L "$here/processors/$cpu" "$here/sysroot/usr/bin/{python}" "$@"
"""

# PoCL runs a linker for each kernel: its own is an ARM program, which this machine cannot start, and this machine's
# knows no ARM. Kernels need none of the libraries that PoCL names.
_LINKER_PROGRAM = """\
#!/bin/sh
unset LD_LIBRARY_PATH
for word; do
    shift
    case "$word" in -l* | *crt*.o) ;; *) set -- "$@" "$word" ;; esac
done
exec {command} "$@"
"""
_OPENCL_LAUNCHER = """\
#!/bin/sh
here={folder}
libraries={libraries}
export PATH="$here/opencl/bin:$PATH" COMPILER_PATH="$here/opencl/bin"
export QEMU_SET_ENV="LD_LIBRARY_PATH=$libraries,OCL_ICD_VENDORS=$here/opencl/vendors"
exec "$here/bin/python" "$@"
"""

_CHECK = "import platform, lite_core, numpy; print(platform.machine(), platform.python_version(), numpy.__version__)"


class ArmEnvironment:
    """The environment in a folder.

    Args:
        folder: the folder, which need not exist.
        sources: a file with package sources for arm64, by default the system's.
    """

    def __init__(self, folder: Path = DEFAULT, sources: Path | None = None) -> None:
        self.folder = folder.resolve()
        self.sysroot = self.folder / "sysroot"
        self.python = self.folder / "bin/python"
        self._native = DebianPackages(self.folder / "apt/amd64", "amd64")
        self._arm = DebianPackages(self.folder / "apt/arm64", "arm64", sources)

    def make(self, parts: Sequence[str] = ()) -> None:
        """Make what is missing or out of date: the environment itself, and parts on request.

        Raises:
            PackageError: the machine is no x86-64 Linux, or a package cannot be had.
        """
        if (sys.platform, platform.machine()) != ("linux", "x86_64"):
            raise PackageError(f"the environment is for x86-64 Linux; this is {sys.platform} on {platform.machine()}")
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._one_process_at_a_time():
            made = self._part("qemu", ["qemu-user", *_OTHER_EMULATORS], self._make_qemu)
            made |= self._part("sysroot", list(_DEBIAN_PYTHON), self._make_sysroot)
            made |= self._part("packages", [self._version, *self._requirements()], self._make_packages)
            self._add_workspace()
            self._write_launcher()
            for name, processor in PROCESSORS.items():
                self._make_processor(name)
                write_system_files(self.folder / "processors" / name, processor, os.cpu_count() or 1)
            for part in parts:
                PARTS[part](self)
            if made:
                done = subprocess.run([self.python, "-c", _CHECK], capture_output=True, text=True)
                if done.returncode:
                    raise PackageError(f"{self.python} does not work:\n{done.stderr.strip()[-1500:]}")
                print(f"{self.python}: {done.stdout.strip()}")

    @property
    def qemu(self) -> list[str]:
        """The command of the emulator, which takes its options, the emulated program and its arguments."""
        return _native_command(self.folder / "qemu", "usr/bin/qemu-aarch64")

    def command(self, processor: str, options: Sequence[str] = ()) -> list[str]:
        """Return the command of the ARM Python on a processor, with more options for the emulator."""
        root, program = self.folder / "processors" / processor, self.sysroot / f"usr/bin/python{self._version}"
        return [*self.qemu, *options, "-cpu", processor, "-0", str(self.python), "-L", str(root), str(program)]

    def add_llvm(self) -> None:
        """Install llvmlite into the folder ``llvm``."""
        (compiler,) = (d.extras["compile"] for d in distributions() if d.name == "lite-cpu")
        self._part("llvm", [self._version, *compiler], lambda: self._install(compiler, self.folder / "llvm"))

    def add_onnxruntime(self) -> None:
        """Install the version of ONNX Runtime that the benchmarks use into the folder ``onnxruntime``."""
        lines = (ROOT / "requirements-bench.txt").read_text().splitlines()
        wanted = [line for line in lines if line.startswith("onnxruntime==")]
        target = self.folder / "onnxruntime"
        self._part("onnxruntime", [self._version, *wanted], lambda: self._install(wanted, target, "--no-deps"))

    def add_mca(self) -> None:
        """Unpack LLVM's tools, and write ``bin/llvm-mc``, which disassembles, and ``bin/llvm-mca``, which analyses."""
        target = self.folder / "mca"
        self._part("mca", [_MCA], lambda: self._native.unpack([_MCA], target))
        for tool in ("llvm-mc", "llvm-mca"):
            command = shlex.join(_native_command(target, f"usr/lib/{_MCA}/bin/{tool}"))
            _write(self.folder / "bin" / tool, f'#!/bin/sh\nexec {command} "$@"\n', _PROGRAM)

    def add_opencl(self) -> None:
        """Unpack PoCL for ARM, and write ``bin/python-opencl``, whose OpenCL has one device: the processor."""
        root, linker = self.folder / "opencl/root", self.folder / "opencl/linker"
        self._part("pocl", _POCL, lambda: self._arm.unpack(_POCL, root))
        self._part("linker", [_LINKER], lambda: self._native.unpack([_LINKER], linker))
        libraries = root / "usr/lib/aarch64-linux-gnu"
        driver = (root / "etc/OpenCL/vendors/pocl.icd").read_text().strip()
        _write(self.folder / "opencl/vendors/pocl.icd", f"{libraries / driver}\n")
        command = shlex.join(_native_command(linker, "usr/bin/aarch64-linux-gnu-ld"))
        _write(self.folder / "opencl/bin/ld", _LINKER_PROGRAM.format(command=command), _PROGRAM)
        searched = ":".join(str(folder) for folder in (libraries, *sorted((root / "usr/lib").glob("llvm-*/lib"))))
        text = _OPENCL_LAUNCHER.format(folder=shlex.quote(str(self.folder)), libraries=shlex.quote(searched))
        _write(self.folder / "bin/python-opencl", text, _PROGRAM)

    def _make_qemu(self) -> None:
        self._native.unpack(["qemu-user"], self.folder / "qemu", _OTHER_EMULATORS)

    def _make_sysroot(self) -> None:
        self._arm.unpack(_DEBIAN_PYTHON, self.sysroot)
        self._compile_bytecode(self.sysroot / "usr/lib")
        if not (self.sysroot / "lib").exists():
            # Newer packages have all libraries in /usr/lib; /lib, where programs look for the loader, is a link.
            (self.sysroot / "lib").symlink_to("usr/lib")

    @property
    def _version(self) -> str:
        """The version of the ARM Python, such as ``3.11``."""
        found = os.readlink(self.sysroot / "usr/bin/python3")
        return found.removeprefix("python")

    @property
    def _site(self) -> Path:
        return self.folder / f"lib/python{self._version}/site-packages"

    def _requirements(self) -> list[str]:
        """Return what the workspace's distributions need on the device, with the element types that NumPy lacks."""
        environment = {
            "platform_machine": "aarch64",
            "python_version": self._version,
            "python_full_version": f"{self._version}.0",
            "extra": "",
        }
        own = {distribution.name for distribution in distributions()}
        found = set()
        for distribution in _workspace():
            listed = [
                *distribution.pyproject["project"].get("dependencies", ()),
                *distribution.extras.get("narrow", ()),
            ]
            for requirement in map(Requirement, listed):
                if requirement.name not in own and (not requirement.marker or requirement.marker.evaluate(environment)):
                    found.add(f"{requirement.name}{requirement.specifier}")
        return sorted(found)

    def _make_packages(self) -> None:
        shutil.rmtree(self.folder / "lib", ignore_errors=True)
        self._install(self._requirements(), self._site)

    def _install(self, requirements: Sequence[str], target: Path, *options: str) -> None:
        """Install wheels for the ARM Python with this Python's pip, without running any of them."""
        shutil.rmtree(target, ignore_errors=True)
        platforms = [f"--platform=manylinux_2_{minor}_aarch64" for minor in range(34, 16, -1)]
        version = ["--implementation=cp", f"--python-version={self._version}"]
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-compile"]
        command += ["--only-binary=:all:", *platforms, "--platform=manylinux2014_aarch64", *version, *options]
        done = subprocess.run([*command, f"--target={target}", *requirements], stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise PackageError(f"pip cannot install {', '.join(requirements)}:\n{done.stderr.strip()[-1500:]}")
        self._compile_bytecode(target)

    def _compile_bytecode(self, folder: Path) -> None:
        """Write the bytecode files of all modules, if this machine has a Python of the same version.

        Otherwise the ARM Python writes those that it imports, which takes it a minute.
        """
        python = pythons.find(self._version)
        if python is not None:
            # Some packages contain files for other versions, which do not compile.
            subprocess.run(
                [python, "-m", "compileall", "-q", "-j", "0", folder], stdout=subprocess.DEVNULL, check=False
            )

    def _add_workspace(self) -> None:
        """Make the distributions of the workspace importable from their sources, with their entry points."""
        _write(self._site / "lite.pth", "".join(f"{d.sources.parent}\n" for d in _workspace()))
        wanted = {f"{d.package}-{d.pyproject['project']['version']}.dist-info": d for d in _workspace()}
        for old in self._site.glob("lite_*.dist-info"):
            if old.name not in wanted:
                shutil.rmtree(old)
        for name, distribution in wanted.items():
            for file, text in _metadata(distribution).items():
                _write(self._site / name / file, text)

    def _write_launcher(self) -> None:
        qemu = shlex.join(self.qemu)
        text = _LAUNCHER.format(folder=shlex.quote(str(self.folder)), qemu=qemu, python=f"python{self._version}")
        _write(self.python, text, _PROGRAM)
        # Makes the folder a virtual environment of the ARM Python.
        home = self.sysroot / "usr/bin"
        _write(self.folder / "pyvenv.cfg", f"home = {home}\ninclude-system-site-packages = false\n")

    def _make_processor(self, name: str) -> None:
        """Make the folder that takes the place of ``/``: links into the sysroot, beside the files of one processor."""
        root = self.folder / "processors" / name
        root.mkdir(parents=True, exist_ok=True)
        for entry in self.sysroot.iterdir():
            link = root / entry.name
            if entry.name not in ("proc", "sys") and not link.is_symlink():
                link.symlink_to(Path("../../sysroot") / entry.name)

    def _part(self, name: str, made_from: Sequence[str], make: Callable[[], None]) -> bool:
        """Make a part unless it is there; return True if it was made."""
        stamp = self.folder / "parts" / name
        state = hashlib.sha256(json.dumps(made_from).encode()).hexdigest()
        if stamp.exists() and stamp.read_text() == state:
            return False
        print(f"making {self.folder.name}: {name}", flush=True)
        stamp.unlink(missing_ok=True)
        make()
        _write(stamp, state)
        return True

    @contextmanager
    def _one_process_at_a_time(self) -> Iterator[None]:
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


#: The parts on request.
PARTS: dict[str, Callable[[ArmEnvironment], None]] = {
    "llvm": ArmEnvironment.add_llvm,
    "onnxruntime": ArmEnvironment.add_onnxruntime,
    "mca": ArmEnvironment.add_mca,
    "opencl": ArmEnvironment.add_opencl,
}


def _workspace() -> list[Distribution]:
    return [distribution for distribution in distributions() if distribution.name not in _LEFT_OUT]


def _metadata(distribution: Distribution) -> dict[str, str]:
    """Return the files that describe an installed distribution to importlib.metadata."""
    project: dict[str, Any] = distribution.pyproject["project"]
    lines = ["Metadata-Version: 2.1", f"Name: {distribution.name}", f"Version: {project['version']}"]
    lines += [f"Requires-Dist: {requirement}" for requirement in project.get("dependencies", ())]
    groups = {"console_scripts": project.get("scripts", {}), **project.get("entry-points", {})}
    entries = [
        "\n".join([f"[{group}]", *(f"{name} = {target}" for name, target in named.items()), ""])
        for group, named in groups.items()
    ]
    return {"METADATA": "\n".join([*lines, ""]), "entry_points.txt": "\n".join(entries)}


def _native_command(folder: Path, program: str) -> list[str]:
    """Return the command for an unpacked program of this machine, which takes all libraries from its folder."""
    name = "ld-linux-x86-64.so.2"
    loaders = [file for file in folder.rglob(name) if file.is_file() and not file.is_symlink()]
    libraries = [folder / place for place in ("lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu")]
    path = ":".join(str(library) for library in libraries if library.exists())
    return [str(loaders[0]), "--library-path", path, str(folder / program)]


def _write(file: Path, text: str, mode: int = 0o644) -> None:
    """Write a file if its text changes; another process may be using the old one."""
    if not file.exists() or file.read_text() != text:
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_name(f"{file.name}.unfinished")
        unfinished.write_text(text)
        unfinished.chmod(mode)
        unfinished.rename(file)


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the environment that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=DEFAULT, help="default: .venv-arm")
    parser.add_argument("--with", dest="parts", nargs="+", choices=PARTS, default=[], metavar="PART",
        help=f"parts on request: {', '.join(PARTS)}")  # fmt: skip
    parser.add_argument("--sources", type=Path, metavar="FILE",
        help="a sources.list or .sources file with arm64 packages, if the system's sources have none")  # fmt: skip
    options = parser.parse_args(arguments)
    try:
        ArmEnvironment(options.folder, options.sources).make(options.parts)
    except PackageError as error:
        sys.exit(f"arm_environment.py: {error}")


if __name__ == "__main__":
    main()
