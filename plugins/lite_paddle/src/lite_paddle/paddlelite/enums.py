"""The enumerations of Paddle-Lite, with its names and numbers, and the place that an operator runs at."""

from __future__ import annotations

from enum import Enum

from lite_core.checks import require

__all__ = [
    "CLPrecisionType",
    "CLTuneMode",
    "DataLayoutType",
    "Place",
    "PowerMode",
    "PrecisionType",
    "TargetType",
]


class _Numbered(Enum):
    """An enumeration that ``int`` converts to its number. A member equals only itself, not its number."""

    def __int__(self) -> int:
        return int(self.value)

    __index__ = __int__


class TargetType(_Numbered):
    """The kind of device that a kernel is made for."""

    Unk = 0
    Host = 1
    X86 = 2
    ARM = 4
    OpenCL = 5
    Any = 6
    FPGA = 7
    XPU = 9
    BM = 10
    MLU = 11
    RKNPU = 12
    APU = 13
    HUAWEI_ASCEND_NPU = 14
    IMAGINATION_NNA = 15
    INTEL_FPGA = 16
    Metal = 17
    NNAdapter = 18


class PrecisionType(_Numbered):
    """The element type of a tensor, or of a kernel's arithmetic."""

    Unk = 0
    FP32 = 1
    INT8 = 2
    INT32 = 3
    Any = 4
    FP16 = 5
    BOOL = 6
    INT64 = 7
    INT16 = 8
    UINT8 = 9
    FP64 = 10


class DataLayoutType(_Numbered):
    """The memory layout of a tensor."""

    Unk = 0
    NCHW = 1
    Any = 2
    NHWC = 3
    ImageDefault = 4
    ImageFolder = 5
    ImageNW = 6
    MetalTexture2DArray = 7
    MetalTexture2D = 8


class PowerMode(_Numbered):
    """The cores that a predictor asks for. Lite leaves the choice of cores to the operating system."""

    LITE_POWER_HIGH = 0
    LITE_POWER_LOW = 1
    LITE_POWER_FULL = 2
    LITE_POWER_NO_BIND = 3
    LITE_POWER_RAND_HIGH = 4
    LITE_POWER_RAND_LOW = 5


class CLTuneMode(_Numbered):
    """The effort of measuring OpenCL kernels; every mode but NONE is ``tune=True`` of :func:`lite_core.load`."""

    CL_TUNE_NONE = 0
    CL_TUNE_RAPID = 1
    CL_TUNE_NORMAL = 2
    CL_TUNE_EXHAUSTIVE = 3


class CLPrecisionType(_Numbered):
    """The arithmetic of OpenCL kernels; AUTO is the precision that Lite chooses, float32."""

    CL_PRECISION_AUTO = 0
    CL_PRECISION_FP32 = 1
    CL_PRECISION_FP16 = 2


class Place:
    """A device, an element type and a memory layout that kernels may be chosen for.

    Args:
        target: the kind of device.
        percision: the element type. The name is misspelt in Paddle-Lite, whose scripts use it as a keyword.
        layout: the memory layout.
        device: the number of the device.
    """

    def __init__(
        self,
        target: TargetType = TargetType.Unk,
        percision: PrecisionType = PrecisionType.FP32,
        layout: DataLayoutType = DataLayoutType.NCHW,
        device: int = 0,
    ) -> None:
        require(isinstance(target, TargetType), "target", "a TargetType", target)
        require(isinstance(percision, PrecisionType), "percision", "a PrecisionType", percision)
        require(isinstance(layout, DataLayoutType), "layout", "a DataLayoutType", layout)
        require(isinstance(device, int), "device", "a number", device)
        self._target, self._precision, self._layout, self._device = target, percision, layout, device

    def is_valid(self) -> bool:
        """Return True if target, element type and layout are all known."""
        unknown = (TargetType.Unk, PrecisionType.Unk, DataLayoutType.Unk)
        return all(part not in unknown for part in (self._target, self._precision, self._layout))

    @property
    def target(self) -> TargetType:
        """The kind of device."""
        return self._target

    @property
    def precision(self) -> PrecisionType:
        """The element type."""
        return self._precision

    def __repr__(self) -> str:
        return f"Place({self._target.name}, {self._precision.name}, {self._layout.name}, {self._device})"
