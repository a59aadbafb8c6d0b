"""Conversion of OpenCL errors to errors of Lite, with the name of the status, the failed action and a remedy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyopencl as cl

from lite_core.errors import ExecutionError
from lite_opencl.device.process import lost_drivers

__all__ = ["OpenClError", "buffer_too_large", "opencl_call", "require_drivers", "status_name"]

_REMEDIES = {
    "INVALID_BUFFER_SIZE": "run smaller inputs, or another backend",
    "MEM_OBJECT_ALLOCATION_FAILURE": "the device's memory is full: run smaller inputs, or another backend",
    "OUT_OF_RESOURCES": "the device ran out of memory, or was lost: run smaller inputs, or another backend",
    "OUT_OF_HOST_MEMORY": "main memory is full",
    "DEVICE_NOT_AVAILABLE": "the device was lost: start the process again, or use another backend",
    "INVALID_COMMAND_QUEUE": "the device was lost: start the process again, or use another backend",
    "BUILD_PROGRAM_FAILURE": "the driver's compiler refused a kernel: please report it with the log above",
}


class OpenClError(ExecutionError):
    """An OpenCL call failed. ``status`` is its name, for example ``OUT_OF_RESOURCES``."""

    def __init__(self, status: str, message: str) -> None:
        self.status = status
        super().__init__(message)


def status_name(error: cl.Error) -> str:
    """Return the name of an error's status code, without ``CL_``."""
    return str(cl.status_code.to_string(error.code, "status %d"))  # type: ignore[operator]  # pyopencl adds it late


@contextmanager
def opencl_call(device: str, doing: str) -> Iterator[None]:
    """Turn an error of OpenCL in the body into an :class:`OpenClError`.

    Args:
        device: the name of the device.
        doing: the action of the body, for the message: ``"building kernel 'gemm'"``.

    Raises:
        ExecutionError: this process has lost its drivers; the body is not run.
    """
    require_drivers(device, doing)
    try:
        yield
    except cl.Error as error:
        status = status_name(error)
        remedy = _REMEDIES.get(status, "`lite doctor` shows the device and its driver")
        raise OpenClError(
            status, f"{doing} on {device} failed: {error.routine} returned CL_{status}{_details(error)}\n{remedy}"
        ) from error


def require_drivers(device: str, doing: str) -> None:
    """Raise an ExecutionError if this process has lost its drivers; for the arguments see :func:`opencl_call`."""
    lost = lost_drivers()
    if lost is not None:
        raise ExecutionError(f"backend 'opencl', {doing} on {device}: {lost.reason}; {lost.remedy}")


def buffer_too_large(device: str, what: str, largest: int) -> OpenClError:
    """Return the error that OpenCL would report for a buffer above the device's limit, without trying to create it."""
    status = "INVALID_BUFFER_SIZE"
    message = f"{what}, the largest buffer of {device} has {largest} (CL_{status})\n{_REMEDIES[status]}"
    return OpenClError(status, message)


def _details(error: cl.Error) -> str:
    """Return the driver's own text, such as a build log, without the routine and the status that pyopencl adds."""
    details = str(error)
    for repeated in (f"{error.routine} failed: {status_name(error)}", " - "):
        details = details.replace(repeated, "")
    return f": {details.strip()}" if details.strip() else ""
