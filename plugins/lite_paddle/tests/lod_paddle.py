"""Paddle's side of the comparisons of programs with LoD: builds, saves and runs them, in a process of its own.

Usage: ``python lod_paddle.py CASES.pkl FOLDER``, with a list of plain dictionaries (see ``test_lod_programs.py``).
"""

from __future__ import annotations

import pickle
import sys
import traceback
from pathlib import Path
from typing import Any

import numpy as np


def export(case: dict[str, Any], folder: Path) -> None:
    """Save the program of a case, run Paddle's predictor on it, and store its outputs with their offsets."""
    import paddle

    paddle.enable_static()
    program = paddle.static.Program()
    block = program.global_block()
    scope = paddle.static.Scope()
    executor = paddle.static.Executor(paddle.CPUPlace())
    with paddle.static.scope_guard(scope), paddle.static.program_guard(program, paddle.static.Program()):
        for name, (array, offsets) in case["feeds"].items():
            shape = [-1, *array.shape[1:]] if offsets or case["open"] else list(array.shape)
            block.create_var(
                name=name,
                shape=shape,
                dtype=str(array.dtype),
                lod_level=len(offsets),
                is_data=True,
                need_check_feed=True,
            )
        for name, array in case["parameters"].items():
            block.create_parameter(name=name, shape=list(array.shape), dtype=str(array.dtype))
            scope.var(name).get_tensor().set(array, paddle.CPUPlace())
        for array in case["arrays"]:
            kind = paddle.base.core.VarDesc.VarType.DENSE_TENSOR_ARRAY
            block.create_var(name=array, dtype=case["types"].get(array, "float32"), type=kind)
        _append(program, case["ops"], case["types"])
        prefix = str(folder / case["name"])
        feeds = [block.var(n) for n in case["feeds"]]
        fetches = [block.var(n) for n in case["fetches"]]
        paddle.static.save_inference_model(prefix, feeds, fetches, executor, program=program, clip_extra=False)
        if not case["parameters"]:
            results = _execute(paddle, executor, program, case)
    if case["parameters"]:
        results = _predict(paddle, prefix, case)
    (folder / f"{case['name']}.results").write_bytes(pickle.dumps(results))


def _create(block: Any, slot: str, name: str, types: dict[str, str]) -> None:
    import paddle

    kinds = paddle.base.core.VarDesc.VarType
    if slot == "StepScopes":
        block.create_var(name=name, type=kinds.STEP_SCOPES)
    else:
        block.create_var(name=name, dtype=types.get(name, "float32"))


def _append(program: Any, ops: list[Any], types: dict[str, str]) -> None:
    """Append operators to the current block of a program; ``while`` has those of its body in the attribute ``body``."""
    block = program.current_block()
    for type_, inputs, outputs, attrs in ops:
        attrs = dict(attrs)
        if "body" in attrs:
            attrs["sub_block"] = program._create_block()
            _append(program, attrs.pop("body"), types)
            program._rollback()
        for slot, names in outputs.items():
            for name in names:
                if block._find_var_recursive(name) is None:
                    _create(block, slot, name, types)
        block.append_op(
            type=type_,
            inputs={slot: [block._var_recursive(n) for n in names] for slot, names in inputs.items()},
            outputs={slot: [block._var_recursive(n) for n in names] for slot, names in outputs.items()},
            attrs=attrs,
        )


def _execute(paddle: Any, executor: Any, program: Any, case: dict[str, Any]) -> list[tuple[Any, Any]]:
    """Run a program without parameters, which Paddle's predictor cannot load."""
    feeds = {}
    for name, (array, offsets) in case["feeds"].items():
        feeds[name] = paddle.base.core.DenseTensor()
        feeds[name].set(array, paddle.CPUPlace())
        if offsets:
            feeds[name].set_lod([list(level) for level in offsets])
    tensors = executor.run(program, feeds, case["fetches"], return_numpy=False)
    return [(np.array(tensor), tensor.lod()) for tensor in tensors]


def _predict(paddle: Any, prefix: str, case: dict[str, Any]) -> list[tuple[Any, Any]]:
    config = paddle.inference.Config(f"{prefix}.pdmodel", f"{prefix}.pdiparams")
    config.disable_gpu()
    config.switch_ir_optim(False)
    predictor = paddle.inference.create_predictor(config)
    for name, (array, offsets) in case["feeds"].items():
        handle = predictor.get_input_handle(name)
        handle.copy_from_cpu(array)
        if offsets:
            handle.set_lod([list(level) for level in offsets])
    predictor.run()
    handles = [predictor.get_output_handle(name) for name in predictor.get_output_names()]
    return [(handle.copy_to_cpu(), handle.lod()) for handle in handles]


def main(cases: str, folder: str) -> None:
    for case in pickle.loads(Path(cases).read_bytes()):
        try:
            export(case, Path(folder))
        except Exception:
            (Path(folder) / f"{case['name']}.error").write_text(traceback.format_exc()[-3000:])


if __name__ == "__main__":
    main(*sys.argv[1:])
