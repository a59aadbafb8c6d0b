"""Discovery and selection of devices, and the answer if there is none."""

from __future__ import annotations

import pytest
from opencl_device import first_device

from lite_core.backend import Unavailable
from lite_opencl.backend import OpenClBackend
from lite_opencl.device import devices

cl = pytest.importorskip("pyopencl")


def test_device_describes_its_features() -> None:
    _, device = first_device()
    assert {"platform", "version", "driver", "memory", "fp16", "images", "sub-groups"} <= device.details.keys()
    assert device.flops > 0
    assert device.bandwidth > 0
    assert device.launch_seconds > 0


def test_missing_platform_is_unavailable_with_searched_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_platforms() -> list[object]:
        raise cl.LogicError("clGetPlatformIDs", -1001, "no platform")

    monkeypatch.setattr(cl, "get_platforms", no_platforms)
    monkeypatch.delenv("OCL_ICD_VENDORS", raising=False)
    answer = OpenClBackend().probe()
    assert isinstance(answer, Unavailable)
    assert "/etc/OpenCL/vendors" in answer.reason
    assert "lite-opencl[pocl]" in answer.remedy
    monkeypatch.setenv("OCL_ICD_VENDORS", "/nowhere/vendors")
    answer = OpenClBackend().probe()
    assert isinstance(answer, Unavailable)
    assert "/nowhere/vendors" in answer.reason
    assert "OCL_ICD_VENDORS" in answer.reason
    assert "/etc" not in answer.reason  # the loader does not search the usual folders then


def test_device_is_selected_by_number_or_name(monkeypatch: pytest.MonkeyPatch) -> None:
    _, device = first_device()
    for wanted in ("0", device.name[:6].upper()):
        monkeypatch.setenv("LITE_OPENCL_DEVICE", wanted)
        assert device in OpenClBackend().probe()


def test_unknown_device_is_unavailable_with_list_of_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    _, device = first_device()
    monkeypatch.setenv("LITE_OPENCL_DEVICE", "no such device")
    answer = devices.find_devices()
    assert isinstance(answer, Unavailable)
    assert device.name in answer.reason


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("OpenCL 3.0 PoCL HSTR: pthread-x86_64-unknown-linux-gnu-generic", True),
        ("OpenCL 3.0 PoCL HSTR: pthread-x86_64-unknown-linux-gnu-znver3", False),
        ("OpenCL 3.0 PoCL HSTR: cpu-aarch64-unknown-linux-gnu-generic", False),
        ("OpenCL 3.0 (Build 0)", False),
    ],
)
def test_pocl_for_unknown_processor_compiles_nothing(version: str, expected: bool) -> None:
    assert devices.compiles_nothing(version) is expected
