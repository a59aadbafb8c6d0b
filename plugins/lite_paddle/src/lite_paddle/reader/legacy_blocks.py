"""Translation of the blocks of a ProgramDesc into SSA blocks with structured control flow."""

from __future__ import annotations

from collections import ChainMap, Counter
from typing import Any

from lite_core.errors import ModelFormatError

from ..source import SourceBlock, SourceOp, SourceType, SourceValue
from .attributes import complete_attributes
from .conditionals import structure_conditionals
from .legacy_messages import attributes, slots, sub_block_index, variable_type
from .run_time_attributes import run_time_slots

# Outputs that inference leaves unchanged, with the input slot of the same value. Paddle writes them in place.
_BATCH_NORM = {"MeanOut": "Mean", "VarianceOut": "Variance"}
_OBSERVED = {"OutScale": "InScale", "OutState": "InState", "OutAccum": "InAccum"}
_QUANTIZED = {**_OBSERVED, "OutScale": "Scale"}
_UNCHANGED_OUTPUTS = {
    **dict.fromkeys(("batch_norm", "sync_batch_norm", "fused_batch_norm_act"), _BATCH_NORM),
    **dict.fromkeys(("quantize_linear", "dequantize_linear"), _QUANTIZED),
    **dict.fromkeys(
        (
            "fake_quantize_dequantize_moving_average_abs_max",
            "fake_quantize_moving_average_abs_max",
            "fake_quantize_range_abs_max",
            "moving_average_abs_max_scale",
        ),
        _OBSERVED,
    ),
}
_LOOPS = frozenset({"while"})
_CONDITIONALS = frozenset({"conditional_block", "conditional_block_infer"})
# These slots list every variable that a sub-block reads, in no meaningful order.
_CAPTURE_SLOTS = {"while": "X", "conditional_block": "Input", "conditional_block_infer": "Input"}

_Scope = ChainMap[str, SourceValue]


class LegacyBlocks:
    """Translator of one program's blocks.

    Args:
        program: ProgramDesc message.
        parameters: Name -> value of each parameter.
    """

    def __init__(self, program: Any, parameters: dict[str, SourceValue]) -> None:
        """Index the variables of every block."""
        self._blocks = list(program.blocks)
        self._variables = [{variable.name: variable for variable in block.vars} for block in self._blocks]
        self._has_feed = any(op.type == "feed" for op in self._blocks[0].ops)
        self._root: _Scope = ChainMap(dict(parameters))
        self._writes: Counter[str] = Counter(parameters.keys())
        self._reads = self._count_reads()
        self._started: set[int] = set()
        self._outer_writes: dict[int, list[str]] = {}
        self.undefined: set[SourceValue] = set()
        self.feeds: list[tuple[int, str, SourceValue]] = []
        self.fetches: list[tuple[int, str, SourceValue]] = []

    def build(self) -> SourceBlock:
        """Translate block 0 and every block that it runs."""
        return self._block(0, self._root)

    def _block(self, index: int, scope: _Scope) -> SourceBlock:
        if not 0 <= index < len(self._blocks):
            raise ModelFormatError(f"an operator runs block {index}, but there are {len(self._blocks)} blocks")
        if index in self._started:
            raise ModelFormatError(f"block {index} is run by more than one operator, or by itself")
        self._started.add(index)
        block = SourceBlock()
        for position, op in enumerate(self._blocks[index].ops):
            try:
                self._operator(op, position, index, scope, block)
            except ModelFormatError as error:
                if str(error).startswith("block "):
                    raise
                raise ModelFormatError(f"block {index}, operator {position} ({op.type}): {error}") from error
        structure_conditionals(block)
        return block

    def _operator(self, op: Any, position: int, index: int, scope: _Scope, block: SourceBlock) -> None:
        if op.type == "feed":
            self._feed(op)
        elif op.type == "fetch":
            column = attributes(op)[0].get("col", 0)
            name = self._single_name(slots(op.inputs), "X")
            self.fetches.append((column, name, self._read(name, index, scope, block)))
        elif op.type in _LOOPS:
            self._loop(op, position, index, scope, block)
        elif op.type in _CONDITIONALS:
            self._conditional(op, position, index, scope, block)
        else:
            self._plain_operator(op, position, index, scope, block)

    def _plain_operator(self, op: Any, position: int, index: int, scope: _Scope, block: SourceBlock) -> None:
        attrs, run_time_attrs = attributes(op)
        input_names = {**slots(op.inputs), **run_time_slots(op.type, run_time_attrs)}
        output_names = slots(op.outputs)
        inputs = {
            slot: [self._read(name, index, scope, block) for name in names] for slot, names in input_names.items()
        }
        if op.type == "write_to_array":
            inputs["Array"] = [self._read(self._single_name(output_names, "Out"), index, scope, block)]
        outputs: dict[str, list[SourceValue]] = {}
        for slot, names in output_names.items():
            source = _unchanged_input(op.type, slot, names, input_names)
            if source is not None:
                scope.update(zip(names, inputs[source]))
            else:
                outputs[slot] = [self._write(name, index, scope) for name in names]
        result = SourceOp(
            op.type,
            inputs,
            outputs,
            complete_attributes(op.type, attrs),
            index=position,
            original_type=op.type,
            scope=str(attrs.get("op_namescope", "")),
        )
        block.ops.append(result)

    def _feed(self, op: Any) -> None:
        name = self._single_name(slots(op.outputs), "Out")
        value = self._write(name, 0, self._root)
        self.feeds.append((attributes(op)[0].get("col", 0), name, value))

    def _loop(self, op: Any, position: int, index: int, scope: _Scope, block: SourceBlock) -> None:
        body_index = self._sub_block(op)
        condition = self._single_name(slots(op.inputs), "Condition")
        first_condition = self._read(condition, index, scope, block)
        carried = []
        for name in self._written_outside(body_index):
            if name == condition and not self._reads[name]:
                continue  # read only by the loop itself
            if self._is_array(name, index) or name in scope:
                carried.append(name)
        initial = [self._read(name, index, scope, block) for name in carried]
        arguments = [SourceValue(f"{value.name}@loop", value.type) for value in initial]
        body_scope = scope.new_child(dict(zip(carried, arguments)))
        body = self._block(body_index, body_scope)
        body.arguments = arguments
        body.results = [body_scope[condition], *(body_scope[name] for name in carried)]
        inputs = {"Condition": [first_condition]}
        outputs = {}
        if carried:
            inputs["X"] = initial
            outputs["Out"] = [self._write(name, index, scope) for name in carried]
        block.ops.append(SourceOp("while", inputs, outputs, {}, [body], position, op.type))

    def _conditional(self, op: Any, position: int, index: int, scope: _Scope, block: SourceBlock) -> None:
        body_index = self._sub_block(op)
        names = self._written_outside(body_index)
        condition = self._read(self._single_name(slots(op.inputs), "Cond"), index, scope, block)
        before = []
        for name in names:
            if name in scope or self._is_array(name, index):
                before.append(self._read(name, index, scope, block))
            else:
                before.append(SourceValue(f"{name}@undefined"))
                self.undefined.add(before[-1])
        body_scope = scope.new_child()
        body = self._block(body_index, body_scope)
        body.results = [body_scope[name] for name in names]
        attrs = {} if attributes(op)[0].get("is_scalar_condition", False) else {"is_scalar_condition": False}
        outputs = {"Out": [self._write(name, index, scope) for name in names]} if names else {}
        otherwise = SourceBlock(results=before)
        block.ops.append(SourceOp("if", {"Cond": [condition]}, outputs, attrs, [body, otherwise], position, op.type))

    def _read(self, name: str, index: int, scope: _Scope, block: SourceBlock) -> SourceValue:
        value = scope.get(name)
        if value is not None:
            return value
        if self._is_array(name, index):
            # Paddle has no operator that makes an empty array: the first write creates it.
            scope[name] = SourceValue(f"{name}@empty", self._type(name, index))
            block.ops.append(SourceOp("create_array", {}, {"Out": [scope[name]]}, {}, original_type="create_array"))
            return scope[name]
        if not self._has_feed:
            value = self._write(name, index, self._root)
            self.feeds.append((len(self.feeds), name, value))
            return value
        raise ModelFormatError(
            f"reads the variable {name!r}, which no earlier operator writes and which is neither an "
            "input nor a parameter; the program was cut badly, or is damaged"
        )

    def _write(self, name: str, index: int, scope: _Scope) -> SourceValue:
        count = self._writes[name]
        self._writes[name] += 1
        value = SourceValue(f"{name}@{count}" if count else name, self._type(name, index))
        # NOTE: assigning to a ChainMap changes the innermost scope, the scope of this block: _loop and _conditional
        # take the outer names from there.
        scope[name] = value
        return value

    def _type(self, name: str, index: int) -> SourceType | None:
        seen = set()
        while 0 <= index < len(self._blocks) and index not in seen:
            if name in self._variables[index]:
                return variable_type(self._variables[index][name])
            seen.add(index)
            index = self._blocks[index].parent_idx
        return None

    def _is_array(self, name: str, index: int) -> bool:
        found = self._type(name, index)
        return found is not None and found.is_array

    def _sub_block(self, op: Any) -> int:
        index = sub_block_index(op)
        if index is None:
            raise ModelFormatError("has no attribute sub_block")
        return index

    def _written_outside(self, index: int) -> list[str]:
        """Return the variables that a block and its inner blocks write but do not declare, in order of writing."""
        if not 0 < index < len(self._blocks):
            raise ModelFormatError(f"runs block {index}, but the sub-blocks are 1 to {len(self._blocks) - 1}")
        if index in self._outer_writes:
            return self._outer_writes[index]
        self._outer_writes[index] = []  # ends a cycle of blocks, which is reported when they are translated
        names: dict[str, None] = {}
        for op in self._blocks[index].ops:
            if sub_block_index(op) is not None:
                names.update(dict.fromkeys(self._written_outside(self._sub_block(op))))
                continue
            input_names = slots(op.inputs)
            for slot, written in slots(op.outputs).items():
                if _unchanged_input(op.type, slot, written, input_names) is None:
                    names.update(dict.fromkeys(written))
        self._outer_writes[index] = [name for name in names if name not in self._variables[index]]
        return self._outer_writes[index]

    def _count_reads(self) -> Counter[str]:
        """Count the reads of each variable, except by loops' conditions and lists of captured variables."""
        reads: Counter[str] = Counter()
        for block in self._blocks:
            for op in block.ops:
                for slot, names in slots(op.inputs).items():
                    if slot != _CAPTURE_SLOTS.get(op.type) and not (op.type in _LOOPS and slot == "Condition"):
                        reads.update(names)
        return reads

    @staticmethod
    def _single_name(names: dict[str, list[str]], slot: str) -> str:
        if len(names.get(slot, [])) != 1:
            raise ModelFormatError(f"expected one variable in the slot {slot}, found {names.get(slot, [])[:4]}")
        return names[slot][0]


def _unchanged_input(op_type: str, slot: str, names: list[str], input_names: dict[str, list[str]]) -> str | None:
    """Return the input slot whose values an output slot repeats, or None if the output is new."""
    source = _UNCHANGED_OUTPUTS.get(op_type, {}).get(slot)
    if source is None or len(input_names.get(source, [])) != len(names):
        return None
    if op_type in ("quantize_linear", "dequantize_linear") or "abs_max" in op_type:
        return source if input_names[source] == names else None
    return source
