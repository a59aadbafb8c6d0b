"""``lite.backends()``: what is there, what is not and why."""

from __future__ import annotations

import pytest

from lite_core.backend import Device, Unavailable
from lite_core.kernel_backend import KernelBackend
from lite_core.plugins import plugins_with
from lite_core.schedule import backends


def test_backends_with_devices_and_without() -> None:
    ready = KernelBackend("ready", Device("ready", name="a chip"))
    absent = KernelBackend("absent", lambda: Unavailable("no driver was found", "Install one"))
    found = {one.name: one for one in backends(plugins_with(ready, absent))}
    assert [*found] == ["host", "null", "ready", "absent"]
    assert (found["ready"].available, found["ready"].reason) == (True, "")
    assert [device.label for device in found["ready"].devices] == ["ready"]
    assert (found["absent"].available, found["absent"].reason) == (False, "no driver was found. Install one")
    assert found["host"].package == "lite-core"
    assert repr(found["ready"]).endswith(": a chip>")
    assert repr(found["absent"]).endswith(": no driver was found. Install one>")


def test_backends_that_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITE_BACKENDS", "host")
    found = {one.name: one for one in backends(plugins_with(KernelBackend("toy")))}
    assert found["host"].available
    assert not found["toy"].available
    assert "LITE_BACKENDS=host leaves it out" in found["toy"].reason
