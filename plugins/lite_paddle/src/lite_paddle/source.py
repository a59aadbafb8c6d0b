"""The neutral form of a Paddle program: produced by the reader and consumed by the lowering.

Legacy files (``.pdmodel``, ``__model__``) and PIR files (``.json``) have the same form here:

* **SSA.** A :class:`SourceValue` is written once and compared by identity. In-place operators and
  variables that are written several times have been renamed away.
* **One vocabulary.** :attr:`SourceOp.type`, the slots and the attributes are those of the legacy
  operators (``matmul_v2`` with ``trans_x``, ``reshape2`` with ``Shape``), regardless of the kind of file.
  A PIR operator without a legacy name keeps its own, without dialect and trailing underscore, and
  its operands and results are in the slots ``"0"``, ``"1"``, ...
* **Slots hold lists.** A slot that the operator does not use is absent, so ``op.inputs.get("Bias")``
  is None or a non-empty list. Vector values do not exist; ``concat`` has several values in ``X``.
* **Attributes are complete** for the operators in ``reader/attribute_defaults.json``: attributes missing in a
  file have their defaults. Bookkeeping (``op_role``, ``use_cudnn``, ``is_test`` ...) is removed.
  An attribute whose value is computed at run time is an input slot, never an attribute placeholder:
  a slot such as ``Shape``, ``ShapeTensor`` (a list), ``AxisTensor``, ``K`` takes precedence if it is present.
* **Slots that legacy operators do not have**, for operands that only PIR can compute at run time:
  ``AxesTensor`` (squeeze2), ``AxisTensor`` (reductions, arg_max, arg_min, cumsum), ``SectionsTensor``
  (split), ``StartsTensor``/``EndsTensor``/``StepsTensor`` (set_value), ``ValueTensor`` (fill_any_like),
  ``OutputSizeTensor`` (conv2d_transpose), ``KernelSizeTensor`` (pool2d), ``PadValueTensor`` (pad),
  ``DropoutProbTensor`` (dropout), ``NumRowsTensor``/``NumColumnsTensor`` (eye); each is one 1-D or
  one-element tensor. Slots for several numbers have a twin ``...TensorList``, a list of one-element tensors.
  A legacy attribute whose value is a variable is in the same slots; an attribute that no lowering reads as a
  tensor is in the slot ``@name``, and the operator is refused.
* **Element types that the two kinds choose differently** are attributes: ``shape.dtype`` is ``"int32"`` in
  legacy files and ``"int64"`` in PIR; ``range.dtype`` is None in legacy files (the type of the inputs).
* **Attributes are normalized**: element types are strings (``"int64"``) or None for "same as the input";
  ``fill_constant.value`` is a number (``str_value`` is merged into it), ``assign_value`` and ``set_value``
  carry their numbers in ``values``; reductions always have ``reduce_all``, which is true when every
  axis is reduced (then the list of axes is empty).
* **Control flow is structured**, with the operators ``if`` and ``while`` (see :class:`SourceOp`).
* **Tensor arrays are values.** ``create_array`` makes an empty one, ``write_to_array`` takes the array in
  the slot ``Array`` and returns the changed array in ``Out``.
* **Running statistics do not change** in inference: ``batch_norm`` has no ``MeanOut``/``VarianceOut``
  outputs; readers of those outputs read ``Mean``/``Variance`` instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["SourceBlock", "SourceOp", "SourceProgram", "SourceType", "SourceValue", "describe_version"]


@dataclass(frozen=True, slots=True)
class SourceType:
    """The type of a value according to the file.

    For parameters this is exact. For other values of legacy files the shape is a hint that may be stale.

    Attributes:
        dtype: Element type, such as ``"float32"``, ``"bfloat16"``, ``"bool"``; ``"undefined"`` if the file has none.
        shape: Dimensions, -1 for unknown ones, ``()`` for a 0-D tensor; None when the rank is unknown.
        is_array: True for a tensor array, a list of tensors made by ``write_to_array``.
        lod_level: Levels of sequence offsets that Paddle 1.x stores beside the tensor; 0 for a plain tensor.
    """

    dtype: str
    shape: tuple[int, ...] | None
    is_array: bool = False
    lod_level: int = 0


@dataclass(eq=False, slots=True)
class SourceValue:
    """One value, written once: by an operator, as block argument, program input or parameter.

    In a legacy file the name is the variable's (``name@1`` for its second value and so on); in a PIR file it is
    the parameter's or input's own, or made from operator and number. Names are for messages; use identity.
    """

    name: str
    type: SourceType | None = None

    def __repr__(self) -> str:
        return f"SourceValue({self.name})"


@dataclass(eq=False, slots=True)
class SourceOp:
    """One operator in legacy vocabulary.

    Two operators are structured; their blocks use values of the enclosing blocks directly:

    * ``if``: ``inputs["Cond"]`` is one boolean; ``blocks`` is [then, else], without arguments; the results of
      each are aligned with ``outputs["Out"]`` (which is absent when there are none). The attribute
      ``is_scalar_condition`` is False when the condition means "this tensor is not empty" (Paddle 1.x).
    * ``while``: ``inputs["Condition"]`` is the first condition, ``inputs["X"]`` the initial carried values,
      ``outputs["Out"]`` the final ones; ``blocks`` is [body] whose arguments are the carried
      values and whose results are [new condition, *new carried values].

    Attributes:
        type: Legacy operator type.
        inputs: Slot -> values.
        outputs: Slot -> values.
        attrs: Attribute -> bool, int, float, str, None, or a list of them.
        blocks: Sub-blocks of ``if`` and ``while``.
        index: Position in the file's block, for messages.
        original_type: The type as the file writes it, such as ``pd_op.conv2d``.
        scope: Layer of the network that created it, such as ``/Conv2D/``; empty if the file has none.
    """

    type: str
    inputs: dict[str, list[SourceValue]]
    outputs: dict[str, list[SourceValue]]
    attrs: dict[str, Any]
    blocks: list[SourceBlock] = field(default_factory=list)
    index: int = -1
    original_type: str = ""
    scope: str = ""


@dataclass(eq=False, slots=True)
class SourceBlock:
    """Operators in execution order; arguments and results belong to the operator that owns the block."""

    arguments: list[SourceValue] = field(default_factory=list)
    ops: list[SourceOp] = field(default_factory=list)
    results: list[SourceValue] = field(default_factory=list)

    def walk(self) -> Iterator[SourceOp]:
        """Iterate over every operator of this block and of the blocks inside it."""
        for op in self.ops:
            yield op
            for block in op.blocks:
                yield from block.walk()


@dataclass(eq=False, slots=True)
class SourceProgram:
    """A whole model.

    Attributes:
        kind: ``"legacy"``, ``"pir"``, or ``"paddle_lite"`` for a legacy program from a Paddle-Lite model.
        version: Paddle version of the writer, major * 1000000 + minor * 1000 + patch; 0 for a legacy file of
            a development build. For PIR it is derived from the file version (1 -> 3000000, 4 -> 3003000).
        file_version: ``base_code.version`` of a PIR file, else None.
        inputs: (name, value) in feeding order.
        outputs: (name, value) in fetching order; names as ``paddle.inference`` shows them. One value may be
            fetched under several names, and may be an input or a parameter.
        parameters: Name -> read-only array, memory-mapped and therefore possibly not aligned to
            its item size. bfloat16 and float8 arrays have the dtypes of ml_dtypes.
        parameter_values: Name -> the value that stands for the parameter in ``block``; the same keys.
        block: The main block; it has neither arguments nor results.
        path: The program file.
        facts: More about the file, for the metadata of the graph.
    """

    kind: str
    version: int
    inputs: list[tuple[str, SourceValue]]
    outputs: list[tuple[str, SourceValue]]
    parameters: dict[str, np.ndarray[Any, Any]]
    parameter_values: dict[str, SourceValue]
    block: SourceBlock
    path: Path
    file_version: int | None = None
    facts: dict[str, str] = field(default_factory=dict)


def describe_version(version: int) -> str:
    """Return a version of Paddle as text, such as ``2.6.2``."""
    return f"{version // 1_000_000}.{version // 1000 % 1000}.{version % 1000}" if version else "development build"
