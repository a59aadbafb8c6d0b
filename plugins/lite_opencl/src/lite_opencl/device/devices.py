"""Discovery of OpenCL devices, their features and estimates of their speed."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lite_core.backend import Device, Unavailable
from lite_opencl.device.process import about_to_use_drivers

__all__ = ["FoundDevice", "compiles_nothing", "describe", "find_devices"]

logger = logging.getLogger("lite.opencl.devices")

_DRIVERS = (
    "install the GPU's driver with its OpenCL part (Debian: intel-opencl-icd, mesa-opencl-icd, nvidia-opencl-icd), "
    "or PoCL, which runs on the processor: `pip install 'lite-opencl[pocl]'` or `apt install pocl-opencl-icd`"
)
_NEWER_RUNTIME = (
    "install the GPU's driver with its OpenCL part, a newer PoCL (Debian 13 has 6.0: `apt install pocl-opencl-icd`), "
    "or Intel's runtime for processors: `pip install 'lite-opencl[intel]'`"
)
_BINDING = "`pip install lite-opencl` brings pyopencl with the loader library"

#: Scores: x86 has 10, so ``backend="auto"`` takes a GPU before the processor, and the processor before PoCL.
_GPU_SCORE, _ACCELERATOR_SCORE, _OTHER_SCORE, _CPU_SCORE = 50.0, 30.0, 12.0, 5.0

#: Multiply-adds that one compute unit starts in a cycle, by the kind of device: low values, for careful estimates.
_GPU_LANES, _CPU_LANES = 32, 8
_GPU_BANDWIDTH, _UNIFIED_BANDWIDTH = 100e9, 10e9
_GPU_LAUNCH_SECONDS, _CPU_LAUNCH_SECONDS = 8e-6, 20e-6

#: Used for devices that report 0, such as Intel's runtime on processors of other makers.
_UNKNOWN_CLOCK_HERTZ = 1e9


@dataclass(frozen=True, slots=True, eq=False)
class FoundDevice:
    """A device of a platform, as pyopencl describes it.

    Attributes:
        device: the ``pyopencl.Device``.
        platform: name and version of the platform.
        name, version, driver: name and versions that the device reports.
        kind: ``GPU``, ``CPU``, ``accelerator`` or ``other``.
        extensions: the names of its OpenCL extensions.
        unified_memory: True if it works in main memory.
        memory_bytes, largest_buffer_bytes: sizes of its global memory and of the largest buffer in it.
        compute_units: the number that it reports.
        clock_hertz: the clock that it reports, or an assumption if it reports 0.
        images, sub_groups: True if it supports them.
        image_texels: size of the largest image over a buffer; 0 if it has no such images.
        largest_group: the largest number of work items in a work group.
        local_memory_bytes: size of the memory that a work group shares.
    """

    device: Any
    platform: str
    name: str
    version: str
    driver: str
    kind: str
    extensions: frozenset[str]
    unified_memory: bool
    memory_bytes: int
    largest_buffer_bytes: int
    compute_units: int
    clock_hertz: float
    images: bool
    image_texels: int
    sub_groups: bool
    largest_group: int
    local_memory_bytes: int

    @property
    def half(self) -> bool:
        """True if the device computes in float16."""
        return "cl_khr_fp16" in self.extensions

    @property
    def double(self) -> bool:
        """True if the device computes in float64."""
        return "cl_khr_fp64" in self.extensions

    @property
    def is_gpu(self) -> bool:
        return self.kind == "GPU"

    @property
    def identity(self) -> str:
        """The platform, device and driver that compiled kernels depend on."""
        return f"{self.platform} | {self.name} | {self.version} | driver {self.driver}"

    @property
    def score(self) -> float:
        scores = {"GPU": _GPU_SCORE, "accelerator": _ACCELERATOR_SCORE, "CPU": _CPU_SCORE}
        return scores.get(self.kind, _OTHER_SCORE)


def find_devices() -> list[FoundDevice] | Unavailable:
    """Return every device of every platform, the best first; only those that ``LITE_OPENCL_DEVICE`` names if set."""
    try:
        with _without_own_cache():
            import pyopencl as cl
    except Exception as error:
        return Unavailable(f"pyopencl cannot be imported: {type(error).__name__}: {error}", _BINDING)
    try:
        platforms = cl.get_platforms()
    except cl.Error as error:
        return Unavailable(f"the loader finds no platform: {error}; {_searched_folders(cl)}", _DRIVERS)
    about_to_use_drivers()
    found: list[FoundDevice] = []
    faults: list[str] = []
    remedy = _DRIVERS
    for platform in platforms:
        try:
            examined = [_examine(cl, platform, device) for device in platform.get_devices()]
        except cl.Error as error:
            faults.append(f"platform {platform.name!r}: {error}")
            logger.warning("platform %r cannot be used: %s", platform.name, error)
            continue
        for device in examined:
            if compiles_nothing(device.version):
                faults.append(f"PoCL {device.driver} does not know the processor and cannot compile for it")
                logger.info("%s, %s: %s", device.platform, device.version, faults[-1])
                remedy = _NEWER_RUNTIME
            else:
                found.append(device)
    if not found:
        problem = "; ".join(faults) or "the platforms have no device"
        return Unavailable(f"{problem}; {_searched_folders(cl)}", remedy)
    found.sort(key=lambda f: -f.score)
    return _chosen(found, os.environ.get("LITE_OPENCL_DEVICE", ""))


@contextmanager
def _without_own_cache() -> Iterator[None]:
    """Import pyopencl without its cache: pickled code, in a folder that it does not check, for functions never called.

    Making the functions anew takes no longer than reading them. A setting of the user is left as it is.
    """
    if "PYOPENCL_NO_CACHE" in os.environ:
        yield
        return
    os.environ["PYOPENCL_NO_CACHE"] = "true"
    try:
        yield
    finally:
        os.environ.pop("PYOPENCL_NO_CACHE", None)


def compiles_nothing(version: str) -> bool:
    """Return True if a device is PoCL's and its LLVM does not know the processor.

    PoCL's version ends with the machine that it compiles for: ``PoCL HSTR: pthread-x86_64-pc-linux-gnu-znver3``. LLVM
    calls a processor that it does not know ``generic``. It can compile for that on AArch64, but not on x86.
    """
    machine = version.partition("PoCL HSTR:")[2].strip()
    return "x86_64" in machine and machine.endswith("-generic")


def describe(found: FoundDevice, backend: str, index: int) -> Device:
    """Return Lite's description of a device. Its speed is a low estimate."""
    lanes = _GPU_LANES if found.is_gpu else _CPU_LANES
    yes_no = {True: "yes", False: "no"}
    details = {
        "platform": found.platform,
        "version": found.version,
        "driver": found.driver,
        "kind": found.kind,
        "compute units": f"{found.compute_units} at {found.clock_hertz / 1e6:.0f} MHz",
        "memory": f"{found.memory_bytes >> 20} MiB, shared with the processor"
        if found.unified_memory
        else f"{found.memory_bytes >> 20} MiB",
        "largest buffer": f"{found.largest_buffer_bytes >> 20} MiB",
        "fp16": yes_no[found.half],
        "fp64": yes_no[found.double],
        "images": yes_no[found.images],
        "sub-groups": yes_no[found.sub_groups],
        "float16": "float16 between kernels, and float32 inside" if found.half else "float32: it has no cl_khr_fp16",
        "bfloat16": "float32: OpenCL has no bfloat16",
    }
    return Device(
        backend,
        index,
        found.name,
        found.score,
        details,
        flops=2.0 * lanes * found.compute_units * found.clock_hertz,
        bandwidth=_UNIFIED_BANDWIDTH if found.unified_memory else _GPU_BANDWIDTH,
        launch_seconds=_GPU_LAUNCH_SECONDS if found.is_gpu else _CPU_LAUNCH_SECONDS,
    )


def _examine(cl: Any, platform: Any, device: Any) -> FoundDevice:
    kinds = {
        cl.device_type.GPU: "GPU",
        cl.device_type.CPU: "CPU",
        cl.device_type.ACCELERATOR: "accelerator",
    }
    extensions = frozenset(device.extensions.split())
    return FoundDevice(
        device=device,
        platform=f"{platform.name} {platform.version}".strip(),
        name=device.name.strip(),
        version=device.version.strip(),
        driver=device.driver_version.strip(),
        kind=next((name for bit, name in kinds.items() if device.type & bit), "other"),
        extensions=extensions,
        unified_memory=bool(device.host_unified_memory),
        memory_bytes=int(device.global_mem_size),
        largest_buffer_bytes=int(device.max_mem_alloc_size),
        compute_units=int(device.max_compute_units),
        clock_hertz=1e6 * float(device.max_clock_frequency) or _UNKNOWN_CLOCK_HERTZ,
        images=bool(device.image_support),
        image_texels=_image_texels(cl, device),
        largest_group=int(device.max_work_group_size),
        local_memory_bytes=int(device.local_mem_size),
        sub_groups=bool(extensions & {"cl_khr_subgroups", "cl_intel_subgroups"}),
    )


def _image_texels(cl: Any, device: Any) -> int:
    """Return the size limit of images over buffers; 0 before OpenCL 1.2, where the query is an error."""
    try:
        return int(device.image_max_buffer_size) if device.image_support else 0
    except cl.Error:
        return 0


def _chosen(found: list[FoundDevice], wanted: str) -> list[FoundDevice] | Unavailable:
    """Return all devices, the one with the given number, or those whose name contains the given text."""
    if not wanted:
        return found
    if wanted.isdigit() and int(wanted) < len(found):
        return [found[int(wanted)]]
    named = [f for f in found if wanted.lower() in f"{f.platform} {f.name}".lower()]
    if named and not wanted.isdigit():
        return named
    listed = ", ".join(f"{i}: {f.name}" for i, f in enumerate(found))
    return Unavailable(
        f"LITE_OPENCL_DEVICE={wanted} is neither the number of a device nor part of a device's name; found: {listed}",
        "set LITE_OPENCL_DEVICE to one of these, or unset it",
    )


def _searched_folders(cl: Any) -> str:
    """Describe the folders that the loader searches for drivers, and the driver files in them."""
    chosen = os.environ.get("OCL_ICD_VENDORS", "")
    usual: Sequence[Path] = [Path("/etc/OpenCL/vendors"), Path(cl.__file__).parent / ".libs"]
    paths = [Path(chosen)] if chosen else usual
    listed = []
    for path in paths:
        files = sorted(f.name for f in path.glob("*.icd")) if path.is_dir() else [path.name] if path.exists() else []
        listed.append(f"{path} ({', '.join(files) or 'nothing'})")
    why = " only, since OCL_ICD_VENDORS is set" if chosen else ""
    return f"the loader searched for drivers in {', '.join(listed)}{why}"
