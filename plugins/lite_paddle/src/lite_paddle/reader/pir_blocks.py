"""Translation of the blocks of a PIR program into blocks in legacy vocabulary."""

from __future__ import annotations

from collections import ChainMap
from typing import Any

from lite_core.errors import ModelFormatError

from ..source import SourceBlock, SourceOp, SourceValue
from .attributes import complete_attributes
from .pir_json import Json, PirType, member, members, qualified_name, read_attributes, read_type, value_id
from .pir_names import PirName, find_name
from .pir_operands import PirConstants, Value, as_list, legacy_inputs

_Scope = ChainMap[int, Value]

# In-place by name only: they change running statistics, which inference leaves unchanged.
_NOT_IN_PLACE = frozenset({"batch_norm_", "sync_batch_norm_"})
_IN_PLACE_OPERAND = {"assign_out_": 1}


class PirBlocks:
    """Translator of one program's blocks.

    Args:
        parameters: Name -> value of each parameter.
    """

    def __init__(self, parameters: dict[str, SourceValue]) -> None:
        """Start with the parameters as the only values."""
        self._parameters = parameters
        self._constants = PirConstants()
        self._storage: dict[int, int] = {}
        self.feeds: list[tuple[int, str, SourceValue]] = []
        self.fetches: list[tuple[int, str, SourceValue]] = []

    def build(self, block: Json) -> SourceBlock:
        """Translate the main block and every block inside it."""
        built, _ = self._block(block, ChainMap())
        return built

    def _block(self, data: Json, scope: _Scope) -> tuple[SourceBlock, list[SourceValue]]:
        """Return the block and the operands of its final yield."""
        block = SourceBlock()
        yielded: list[SourceValue] = []
        for position, op in enumerate(members(data, "ops", "a block")):
            name = qualified_name(member(op, "#", str, f"operator {position}"))
            where = f"operator {position} ({name})"
            dialect, _, short = name.rpartition(".")
            if name == "builtin.parameter":
                self._bind_parameter(op, scope, where)
            elif dialect == "builtin":
                self._builtin(short, op, scope, where)
            elif name == "cf.yield":
                yielded = [self._tensor(reference, scope, where) for reference in members(op, "I", where)]
            elif name == "pd_op.if":
                block.ops.append(self._conditional(op, position, scope, where))
            elif name == "pd_op.while":
                block.ops.append(self._loop(op, position, scope, where))
            elif name in ("pd_op.data", "pd_op.feed"):
                self._feed(op, scope, where)
            elif name == "pd_op.fetch":
                self._fetch(op, scope, where)
            else:
                block.ops.append(self._plain_operator(op, name, position, scope, where))
        return block, yielded

    def _plain_operator(self, op: Json, name: str, position: int, scope: _Scope, where: str) -> SourceOp:
        short = name.rpartition(".")[2]
        entry = find_name(short)
        raw = read_attributes(members(op, "A", where), where)
        references = [value_id(reference, where) for reference in members(op, "I", where)]
        operands = [self._value(number, scope, where) for number in references]
        if entry is None:
            inputs = {str(i): as_list(value) for i, value in enumerate(operands) if value is not None}
            op_type, attrs = short.removesuffix("_"), raw
            attrs = complete_attributes("", attrs)
        else:
            inputs, attrs = legacy_inputs(entry, operands, raw, self._constants, where)
            op_type = "deformable_conv_v1" if _lacks_mask(entry.legacy, inputs) else entry.legacy
            if short == "full_int_array":
                attrs["values"] = attrs.pop("value", [])
                attrs["shape"] = [len(attrs["values"])]
            try:
                attrs = complete_attributes(op_type, attrs)
            except ModelFormatError as error:
                raise ModelFormatError(f"{where}: {error}") from error
        outputs = self._results(op, short, entry, references, operands, scope, where)
        result = SourceOp(op_type, inputs, outputs, attrs, [], position, name, str(raw.get("struct_name", "")))
        self._constants.remember(short, result)
        return result

    def _results(
        self,
        op: Json,
        short: str,
        entry: PirName | None,
        references: list[int],
        operands: list[Value | None],
        scope: _Scope,
        where: str,
    ) -> dict[str, list[SourceValue]]:
        outputs: dict[str, list[SourceValue]] = {}
        slots = entry.results if entry is not None else None
        for index, result in enumerate(members(op, "O", where)):
            number = value_id(result, where)
            if number == 0:
                continue
            slot = str(index) if slots is None else slots[index] if index < len(slots) else None
            if slot is None:
                # Results 1 and 2 of a batch norm are its operands mean and variance.
                unchanged = operands[index] if "batch_norm" in short and index in (1, 2) else None
                if unchanged is not None:
                    scope[number] = unchanged
                continue
            value = _make_value(f"{short.removesuffix('_')}.{number}", read_type(result.get("TT"), where))
            if as_list(value):
                outputs[slot] = as_list(value)
            changed = _in_place_operand(short)
            if index == 0 and changed is not None and changed < len(references) and references[changed] != 0:
                self._storage[number] = self._cell(references[changed])
            scope[self._cell(number)] = value
        return outputs

    def _conditional(self, op: Json, position: int, scope: _Scope, where: str) -> SourceOp:
        regions = members(op, "regions", where)
        bodies = [_single_block(region, where) for region in regions]
        if len(bodies) != 2:
            raise ModelFormatError(f"{where}: {len(bodies)} regions, expected 2")
        condition = [self._tensor(reference, scope, where) for reference in members(op, "I", where)]
        changed = self._changed_outside(bodies, scope)
        blocks = []
        for body in bodies:
            inner = scope.new_child()
            block, yielded = self._block(body, inner)
            block.results = [*yielded, *(_single(inner[cell], where) for cell in changed)]
            blocks.append(block)
        out = self._region_results(op, scope, changed, where)
        if len(condition) != 1 or any(len(block.results) != len(out) for block in blocks):
            counts = [len(block.results) for block in blocks]
            raise ModelFormatError(f"{where}: {len(condition)} conditions, {counts} yielded values, {len(out)} results")
        return SourceOp(
            "if",
            {"Cond": condition},
            {"Out": out} if out else {},
            {},
            blocks,
            position,
            original_type="pd_op.if",
        )

    def _loop(self, op: Json, position: int, scope: _Scope, where: str) -> SourceOp:
        regions = members(op, "regions", where)
        if len(regions) != 1:
            raise ModelFormatError(f"{where}: {len(regions)} regions, expected 1")
        body_data = _single_block(regions[0], where)
        operands = [self._tensor(reference, scope, where) for reference in members(op, "I", where)]
        argument_ids = [value_id(argument, where) for argument in members(body_data, "args", where)]
        changed = self._changed_outside([body_data], scope)
        initial = [*operands[1:], *(_single(scope[cell], where) for cell in changed)]
        arguments = [SourceValue(f"{value.name}@loop", value.type) for value in initial]
        inner = scope.new_child(dict(zip([*argument_ids, *changed], arguments)))
        body, yielded = self._block(body_data, inner)
        body.arguments = arguments
        body.results = [*yielded, *(_single(inner[cell], where) for cell in changed)]
        out = self._region_results(op, scope, changed, where)
        sizes = [len(argument_ids) + len(changed), len(initial), len(body.results) - 1, len(out)]
        if not operands or len(set(sizes)) != 1:
            raise ModelFormatError(
                f"{where}: {sizes[0]} arguments, {sizes[1]} initial values, {sizes[2]} yielded values, "
                f"{sizes[3]} results; expected as many of each"
            )
        inputs = {"Condition": operands[:1]}
        outputs = {}
        if initial:
            inputs["X"] = initial
            outputs["Out"] = out
        return SourceOp("while", inputs, outputs, {}, [body], position, original_type="pd_op.while")

    def _region_results(self, op: Json, scope: _Scope, changed: list[int], where: str) -> list[SourceValue]:
        """Return the results that the operator declares, then one for each outer value that its regions change."""
        out = []
        short = qualified_name(op["#"]).rpartition(".")[2]
        for result in members(op, "O", where):
            number = value_id(result, where)
            value = _single(_make_value(f"{short}.{number}", read_type(result.get("TT"), where)), where)
            scope[number] = value
            out.append(value)
        for cell in changed:
            before = _single(scope[cell], where)
            scope[cell] = SourceValue(f"{before.name}@{short}", before.type)
            out.append(_single(scope[cell], where))
        return out

    def _changed_outside(self, bodies: list[Json], scope: _Scope) -> list[int]:
        """Return the cells of outer values that in-place operators inside the bodies write, in order."""
        cells: dict[int, None] = {}
        for body in bodies:
            for op in members(body, "ops", "a block"):
                short = qualified_name(member(op, "#", str, "an operator")).rpartition(".")[2]
                operands = members(op, "I", short)
                index = _in_place_operand(short)
                if index is not None and index < len(operands):
                    cells[self._cell(value_id(operands[index], short))] = None
                inner = [_single_block(region, short) for region in members(op, "regions", short)]
                cells.update(dict.fromkeys(self._changed_outside(inner, scope)))
        return [cell for cell in cells if cell in scope and isinstance(scope[cell], SourceValue)]

    def _bind_parameter(self, op: Json, scope: _Scope, where: str) -> None:
        name = parameter_name(op, where)
        scope[value_id(member(op, "O", dict, where), where)] = self._parameter(name, where)

    def _parameter(self, name: str, where: str) -> SourceValue:
        value = self._parameters.get(name)
        if value is None:
            raise ModelFormatError(f"{where}: the parameter {name!r} is not in the parameter file")
        return value

    def _builtin(self, short: str, op: Json, scope: _Scope, where: str) -> None:
        references = members(op, "I", where)
        results = [value_id(result, where) for result in members(op, "O", where)]
        attrs = read_attributes(members(op, "A", where), where)
        if short == "combine":
            vector = [self._tensor(reference, scope, where) for reference in references]
            scope.update(dict.fromkeys(results, vector))
        elif short in ("split", "slice") and len(references) == 1:
            value = self._value(value_id(references[0], where), scope, where)
            elements = as_list(value) if value is not None else []
            first = attrs.get("index", 0) if short == "slice" else 0
            if not isinstance(first, int) or not 0 <= first <= len(elements) - len(results):
                raise ModelFormatError(f"{where}: takes {len(results)} of {len(elements)} tensors, from {first}")
            scope.update(zip(results, elements[first:]))
        elif short == "constant":
            parameter = self._parameter(str(attrs.get("value")), where)
            scope.update(dict.fromkeys(results, parameter))
        else:
            raise ModelFormatError(f"{where}: not an operator of an inference program")

    def _feed(self, op: Json, scope: _Scope, where: str) -> None:
        attrs = read_attributes(members(op, "A", where), where)
        results = members(op, "O", where)
        if len(results) != 1 or not isinstance(attrs.get("name"), str):
            raise ModelFormatError(f"{where}: expected a name and one result")
        value = _single(_make_value(attrs["name"], read_type(results[0].get("TT"), where)), where)
        scope[value_id(results[0], where)] = value
        self.feeds.append((_column(attrs, len(self.feeds), where), attrs["name"], value))

    def _fetch(self, op: Json, scope: _Scope, where: str) -> None:
        attrs = read_attributes(members(op, "A", where), where)
        operands = members(op, "I", where)
        if len(operands) != 1 or not isinstance(attrs.get("name"), str):
            raise ModelFormatError(f"{where}: expected a name and one operand")
        column = _column(attrs, len(self.fetches), where)
        self.fetches.append((column, attrs["name"], self._tensor(operands[0], scope, where)))

    def _cell(self, number: int) -> int:
        """Return the id under which the current value is stored: in-place operators write their operand's cell."""
        return self._storage.get(number, number)

    def _value(self, number: int, scope: _Scope, where: str) -> Value | None:
        if number == 0:
            return None
        value = scope.get(self._cell(number))
        if value is None:
            raise ModelFormatError(f"{where}: reads the value {number}, which no earlier operator produces")
        return value

    def _tensor(self, reference: Any, scope: _Scope, where: str) -> SourceValue:
        number = value_id(reference, where)
        value = self._value(number, scope, where)
        if not isinstance(value, SourceValue):
            raise ModelFormatError(f"{where}: operand {number} is {'absent' if value is None else 'a vector'}")
        return value


def parameter_name(op: Json, where: str) -> str:
    """Return the name of a parameter operator, ``A[3]``.

    Raises:
        ModelFormatError: It has no name.
    """
    entries = member(op, "A", list, where)
    if len(entries) != 4 or not isinstance(entries[3], str):
        raise ModelFormatError(f"{where}: a parameter with the attributes {str(entries)[:80]}")
    return entries[3]


def _make_value(name: str, found: PirType) -> Value:
    if isinstance(found, list):
        return [_single(_make_value(f"{name}[{i}]", item), name) for i, item in enumerate(found)]
    return SourceValue(name, found)


def _single(value: Value, where: str) -> SourceValue:
    if isinstance(value, list):
        raise ModelFormatError(f"{where}: a vector of tensors where one tensor was expected")
    return value


def _single_block(region: Any, where: str) -> Json:
    blocks = members(region, "blocks", where)
    if len(blocks) != 1 or not isinstance(blocks[0], dict):
        raise ModelFormatError(f"{where}: a region with {len(blocks)} blocks, expected 1")
    block: Json = blocks[0]
    return block


def _in_place_operand(short: str) -> int | None:
    """Return the position of the operand that an operator changes in place, by the operator's name."""
    if not short.endswith("_") or short in _NOT_IN_PLACE:
        return None
    return _IN_PLACE_OPERAND.get(short, 0)


def _column(attrs: dict[str, Any], otherwise: int, where: str) -> int:
    column = attrs.get("col", otherwise)
    if not isinstance(column, int):
        raise ModelFormatError(f"{where}: the column is {column!r}")
    return column


def _lacks_mask(legacy: str, inputs: dict[str, list[SourceValue]]) -> bool:
    return legacy == "deformable_conv" and "Mask" not in inputs
