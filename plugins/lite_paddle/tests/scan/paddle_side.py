"""Paddle's side of the scan: runs single operators, in a process of its own, with Paddle 2.6 or 3.

Usage: ``python paddle_side.py CASES.pkl RESULTS.pkl``. The cases are a list of plain dictionaries; every result is a
list of (array, LoD) for each output, or a text that says why there is none. Results are appended to the file one by
one, so that the caller can go on behind a case in which Paddle crashes.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np

#: Outputs that must be the same variable as an input.
_IN_PLACE = {"batch_norm": {"MeanOut": "Mean", "VarianceOut": "Variance"}}
#: Attributes that are element types.
_TYPES = ("dtype", "in_dtype", "out_dtype")

NO_OPERATOR = "there is no operator"


class Runner:
    """Builds a program of one operator from its description, and executes it."""

    def __init__(self) -> None:
        import paddle

        paddle.enable_static()
        self.paddle = paddle
        self.core = paddle.base.core
        self.tensor_type = getattr(self.core, "DenseTensor", None) or self.core.LoDTensor
        self.protos = paddle.base.framework.OpProtoHolder.instance().op_proto_map
        self.executor = paddle.static.Executor(paddle.CPUPlace())

    def run(self, case: dict[str, Any]) -> list[tuple[Any, Any]] | str:
        """Return the outputs of a case, or why Paddle has none."""
        renamed = {case["paddle_slots"].get(slot, slot): arrays for slot, arrays in case["inputs"].items()}
        case = {**case, "op": case["paddle_op"] or case["op"], "inputs": renamed}
        if case["op"] not in self.protos:
            return f"{NO_OPERATOR} {case['op']} in Paddle {self.paddle.__version__}"
        try:
            return self._execute(case)
        except Exception as error:
            told = [line.strip() for line in str(error).splitlines() if "Error" in line or "Hint" in line]
            return f"{type(error).__name__}: {' '.join(told)[:400] or str(error)[-400:]}"

    def _execute(self, case: dict[str, Any]) -> list[tuple[Any, Any]]:
        paddle = self.paddle
        program = paddle.static.Program()
        scope = paddle.static.Scope()
        with paddle.static.scope_guard(scope), paddle.static.program_guard(program, paddle.static.Program()):
            paddle.seed(1)
            feeds, fetches = self._build(program.global_block(), case, scope)
            tensors = self.executor.run(program, feeds, fetches, return_numpy=False)
        return [(np.array(tensor), tensor.lod() if hasattr(tensor, "lod") else []) for tensor in tensors]

    def _build(self, block: Any, case: dict[str, Any], scope: Any) -> tuple[dict[str, Any], list[str]]:
        feeds: dict[str, Any] = {}
        inputs: dict[str, list[Any]] = {}
        for slot, arrays in case["inputs"].items():
            inputs[slot] = []
            levels = case["lod"].get(slot, ())
            for number, array in enumerate(arrays):
                name = f"{slot}_{number}"
                shape = [-1, *array.shape[1:]] if levels else list(array.shape)
                inputs[slot].append(
                    block.create_var(
                        name=name, shape=shape, dtype=str(array.dtype), lod_level=len(levels), is_data=True
                    )
                )
                feeds[name] = self.tensor_type()
                feeds[name].set(array, self.paddle.CPUPlace())
                if levels:
                    feeds[name].set_lod([list(level) for level in levels])
        counts = dict(case["outputs"])
        for output in self.protos[case["op"]].outputs:
            if not output.dispensable:
                counts.setdefault(output.name, 1)
        outputs = {
            slot: [block.create_var(name=f"{slot}_{i}.out", dtype="float32") for i in range(count)]
            for slot, count in counts.items()
        }
        for slot, source in _IN_PLACE.get(case["op"], {}).items():
            outputs[slot] = inputs[source]
        known = {attr.name: attr.type for attr in self.protos[case["op"]].attrs}
        attrs = {name: self._attribute(name, value, known) for name, value in case["attrs"].items() if name in known}
        if "is_test" in known:
            attrs.setdefault("is_test", True)
        block.append_op(type=case["op"], inputs=inputs, outputs=outputs, attrs=attrs)
        return feeds, [var.name for slot in case["outputs"] for var in outputs[slot]]

    def _attribute(self, name: str, value: Any, known: dict[str, Any]) -> Any:
        if name in _TYPES:
            return -1 if value is None else int(self.paddle.base.framework.convert_np_dtype_to_dtype_(value))
        # An attribute that became a real number between two versions.
        return int(value) if known[name] == self.core.AttrType.INT and isinstance(value, float) else value


def main(cases: str, target: str) -> None:
    runner = Runner()
    with Path(target).open("wb") as results:
        for case in pickle.loads(Path(cases).read_bytes()):
            pickle.dump(runner.run(case), results, protocol=4)
            results.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
