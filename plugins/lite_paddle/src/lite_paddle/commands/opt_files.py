"""The files of Paddle-Lite that ``lite opt`` writes: ``.nb``, a Paddle program, and lists for tailored builds."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lite_core.errors import InputError, ModelFormatError
from lite_tools.commands import console, table

from ..paddle_lite.kernels import Layout, Precision, Target
from ..paddle_lite.placing import Targets
from ..paddle_lite.program import KERNEL_ATTRIBUTE, Program
from ..paddle_lite.writing import paddle_lite_program, write_naive_buffer, write_protobuf
from ..reader import read, sniff

__all__ = ["FileReport", "print_file", "write_file"]

# Paddle-Lite's spelling in its lists of kernels.
_TARGETS = {Target.HOST: "kHost", Target.X86: "kX86", Target.ARM: "kARM", Target.OPENCL: "kOpenCL"}
_PRECISIONS = {
    Precision.FLOAT: "kFloat",
    Precision.INT8: "kInt8",
    Precision.INT32: "kInt32",
    Precision.ANY: "kAny",
    Precision.FP16: "kFP16",
    Precision.BOOL: "kBool",
    Precision.INT64: "kInt64",
}
_LAYOUTS = {
    Layout.NCHW: "kNCHW",
    Layout.ANY: "kAny",
    Layout.NHWC: "kNHWC",
    Layout.IMAGE_DEFAULT: "kImageDefault",
    Layout.IMAGE_FOLDER: "kImageFolder",
}


@dataclass(frozen=True, slots=True)
class FileReport:
    """Report on what was written.

    Attributes:
        model: the model that was read.
        output: the file or folder.
        size: in bytes.
        before: operators of the model.
        after: operators of the file: type -> number.
        kernels: target -> number of operators.
    """

    model: str
    output: str
    size: int
    before: int
    after: dict[str, int]
    kernels: dict[str, int]

    def as_dict(self) -> dict[str, Any]:
        """Return the report for JSON."""
        return {name: getattr(self, name) for name in self.__slots__}


def write_file(
    model: str, params: str | None, output: Path, targets: Targets, *, weight_bits: int, protobuf: bool, tailoring: bool
) -> FileReport:
    """Convert a Paddle model into Paddle-Lite's files.

    Args:
        model: path of the model.
        params: path of its parameters, if they are not beside it.
        output: the ``.nb`` file, or the folder for a Paddle program.
        targets: the processors.
        weight_bits: 8, 16 or 32.
        protobuf: write a Paddle program.
        tailoring: write lists of operators and kernels, too, into a folder named like the file without its ending.

    Raises:
        InputError: there is no model.
        ModelFormatError: the model is damaged, or no Paddle model.
        UnsupportedOperatorError: operators have no kernel; all are listed.
    """
    if not Path(model).exists() and sniff(model) is None:
        raise InputError(f"there is nothing at {model!r}: name the folder of a Paddle model, or its program")
    source = read(model, params)
    program = paddle_lite_program(source, targets, weight_bits=weight_bits)
    size = write_protobuf(program, output) if protobuf else write_naive_buffer(program, output)
    if tailoring and not protobuf:
        _write_lists(program, output.with_suffix(""))
    operators = [operator for block in program.blocks for operator in block.operators]
    processors = Counter(_TARGETS[Target(int(_kernel(name)[2]))].removeprefix("k") for name in map(_text, operators))
    return FileReport(
        model,
        str(output),
        size,
        sum(1 for _ in source.block.walk()),
        dict(Counter(operator.type for operator in operators).most_common()),
        dict(processors.most_common()),
    )


def print_file(report: FileReport) -> None:
    """Print a report as a table."""
    console.print(f"{report.model}\n", markup=False)
    table(("operator", "number"), list(report.after.items()))
    where = ", ".join(f"{count} on {name}" for name, count in report.kernels.items())
    console.print(f"\n{report.before} operators became {sum(report.after.values())}: {where}", markup=False)
    console.print(f"written: {report.output} ({report.size} bytes)", markup=False)


def _write_lists(program: Program, folder: Path) -> None:
    """Write the operators and kernels of a program, one in each line, for a tailored build of Paddle-Lite."""
    operators = [operator for block in program.blocks for operator in block.operators]
    kernels = set()
    for type_, alias, target, precision, layout in map(_kernel, map(_text, operators)):
        place = _TARGETS[Target(int(target))]
        kind = f"{_PRECISIONS[Precision(int(precision))]},{_LAYOUTS[Layout(int(layout))]}"
        kernels.add(f"{type_},{place},{kind},{alias}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write_lines(folder / ".tailored_ops_list", {operator.type for operator in operators})
        _write_lines(folder / ".tailored_kernels_list", kernels)
    except OSError as error:
        raise ModelFormatError(f"the lists of operators and kernels cannot be written: {error}") from error


def _write_lines(path: Path, lines: set[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in sorted(lines)))


def _text(operator: Any) -> str:
    return str(operator.get(KERNEL_ATTRIBUTE))


def _kernel(text: str) -> list[str]:
    return text.split("/")
