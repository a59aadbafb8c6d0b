"""Writer of hand-made ProgramDesc messages: for files that no installed Paddle can export."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lite_paddle.reader import read, sniff
from lite_paddle.reader.program_proto import message_class
from lite_paddle.source import SourceProgram

DENSE, FEED, FETCH, ARRAY, STEP_SCOPES = 7, 9, 10, 13, 11
FLOAT32, BOOL, INT64 = 5, 0, 3


class Writer:
    """A small writer of ProgramDesc: variables and operators by name."""

    def __init__(self, version: int = 2_003_002, feed_fetch: bool = True) -> None:
        """Start with block 0 and the variables feed and fetch."""
        self.program: Any = message_class("ProgramDesc")()
        self.program.version.version = version
        self.block(parent=-1)
        if feed_fetch:
            self.variable("feed", kind=FEED, persistable=True)
            self.variable("fetch", kind=FETCH, persistable=True)

    def block(self, parent: int = 0) -> int:
        block = self.program.blocks.add(parent_idx=parent)
        block.idx = len(self.program.blocks) - 1
        return int(block.idx)

    def variable(
        self, name: str, dims: tuple[int, ...] = (2,), kind: int = DENSE, block: int = 0, **flags: bool
    ) -> None:
        variable = self.program.blocks[block].vars.add(name=name, **flags)
        variable.type.type = kind
        if kind in (DENSE, ARRAY):
            tensor = variable.type.dense_tensor.tensor if kind == DENSE else variable.type.tensor_array.tensor
            tensor.data_type = FLOAT32
            tensor.dims.extend(dims)

    def op(
        self,
        op_type: str,
        inputs: dict[str, list[str]] | None = None,
        outputs: dict[str, list[str]] | None = None,
        attrs: dict[str, Any] | None = None,
        block: int = 0,
    ) -> None:
        op = self.program.blocks[block].ops.add(type=op_type)
        for slots, target in ((inputs, op.inputs), (outputs, op.outputs)):
            for slot, names in (slots or {}).items():
                target.add(parameter=slot, arguments=names)
        for name, value in (attrs or {}).items():
            attribute = op.attrs.add(name=name)
            if name == "sub_block":
                attribute.type, attribute.block_idx = 8, value
            elif isinstance(value, bool):
                attribute.type, attribute.b = 6, value
            elif isinstance(value, int):
                attribute.type, attribute.i = 0, value
            elif isinstance(value, float):
                attribute.type, attribute.f = 1, value
            elif isinstance(value, str) and value.startswith("$"):
                attribute.type, attribute.var_name = 13, value[1:]
            elif isinstance(value, list) and value and str(value[0]).startswith("$"):
                attribute.type = 14
                attribute.vars_name.extend(name[1:] for name in value)
            elif isinstance(value, str):
                attribute.type, attribute.s = 2, value.encode()
            elif isinstance(value, list) and all(isinstance(item, int) for item in value):
                attribute.type = 3
                attribute.ints.extend(value)
            else:
                attribute.type = 4
                attribute.floats.extend(value)

    def feed(self, name: str, column: int, **more: Any) -> None:
        self.variable(name, **more)
        self.op("feed", {"X": ["feed"]}, {"Out": [name]}, {"col": column})

    def fetch(self, name: str, column: int) -> None:
        self.op("fetch", {"X": [name]}, {"Out": ["fetch"]}, {"col": column})

    def read(self, path: Path) -> SourceProgram:
        file = path / "model.pdmodel"
        file.write_bytes(self.program.SerializeToString())
        assert sniff(file) == "legacy"
        return read(file)
