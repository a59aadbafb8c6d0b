"""Export image classifiers of ``paddle.vision.models`` as test models, legacy and PIR, with the same weights.

    python tests/models/export_vision.py --out DIR [--only NAME ...]

writes ``DIR/NAME/legacy/inference.pdmodel`` and ``DIR/NAME/pir/inference.json``, each with its
``inference.pdiparams``; existing files are kept. Needs paddlepaddle (made with 3.3.1).

The weights are random, from a fixed seed, and then calibrated: the running statistics of every batch
normalization become those of a batch of picture-like inputs, and layers without normalization are scaled so
that activations neither vanish nor explode. With uncalibrated weights the outputs shrink to 1e-16, and
every comparison of two implementations passes.

Paddle reads ``FLAGS_enable_pir_api`` only when it is imported, so each flavour is written by a separate
process.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

NAMES = (
    "mobilenet_v1",
    "mobilenet_v2",
    "mobilenet_v3_small",
    "mobilenet_v3_large",
    "resnet18",
    "resnet50",
    "squeezenet1_1",
    "shufflenet_v2_x1_0",
)
FLAVOURS = {"legacy": "inference.pdmodel", "pir": "inference.json"}
SEED = 20240
CALIBRATION_BATCH = 8
WEIGHTS_FILE = "calibrated.npz"


def picture_like(count: int, size: int, seed: int) -> np.ndarray:
    """Return ``count`` random pictures, float32 [count, 3, size, size], about zero mean and unit deviation.

    Smooth colour fields with a few flat discs on top: strong low frequencies and some hard edges, like
    photographs and unlike white noise, which deep networks average to one constant output.
    """
    rng = np.random.default_rng(seed)
    rows, columns = np.meshgrid(*[np.linspace(0.0, 1.0, size)] * 2, indexing="ij")
    pictures = np.zeros((count, 3, size, size))
    for picture in pictures:
        for frequency in (1, 2, 4, 8, 16):
            for channel in picture:
                angle, phase = rng.uniform(0.0, 2.0 * np.pi, 2)
                wave = rows * np.sin(angle) + columns * np.cos(angle)
                channel += rng.normal() / frequency * np.sin(2.0 * np.pi * frequency * wave + phase)
        for _ in range(6):
            row, column = rng.uniform(0.0, 1.0, 2)
            disc = (rows - row) ** 2 + (columns - column) ** 2 < rng.uniform(0.05, 0.25) ** 2
            picture[:, disc] = rng.normal(0.0, 1.2, (3, 1))
    return pictures.astype(np.float32)


def scatter_batch_norm(model: Any, seed: int) -> None:
    """Give every batch normalization a different scale and shift: swapping 1 and 0 could go unnoticed."""
    import paddle

    rng = np.random.default_rng(seed)
    for layer in model.sublayers():
        if isinstance(layer, paddle.nn.BatchNorm2D):
            shape = layer.weight.shape
            layer.weight.set_value(rng.uniform(0.6, 1.4, shape).astype(np.float32))
            layer.bias.set_value(rng.normal(0.0, 0.3, shape).astype(np.float32))


def calibrate(model: Any, pictures: np.ndarray) -> None:
    """Set the statistics of ``model`` to those of ``pictures``, by one forward pass in training mode.

    Args:
        model: a ``paddle.nn.Layer``; modified and left in evaluation mode.
        pictures: float32 [N, 3, H, W].
    """
    import paddle

    normalized = False
    for layer in model.sublayers():
        if isinstance(layer, paddle.nn.BatchNorm2D):
            layer._momentum = 0.0  # running = momentum * running + (1 - momentum) * batch
            normalized = True

    def unit_deviation(layer: Any, inputs: Any, output: Any) -> Any:
        deviation = float(output.std())
        layer.weight.set_value(layer.weight / deviation)
        if layer.bias is not None:
            layer.bias.set_value(layer.bias / deviation)
        return output / deviation

    hooks = []
    if not normalized:  # SqueezeNet: scale each layer to unit deviation, like batch normalization
        for layer in model.sublayers():
            if isinstance(layer, (paddle.nn.Conv2D, paddle.nn.Linear)):
                hooks.append(layer.register_forward_post_hook(unit_deviation))
    model.train()
    with paddle.no_grad():
        model(paddle.to_tensor(pictures))
    for hook in hooks:
        hook.remove()
    model.eval()


def require_meaningful_outputs(name: str, outputs: np.ndarray) -> str:
    """Raise unless the outputs [N, classes] have a sensible size and differ between inputs; describe them."""
    deviation = float(outputs.std())
    between_inputs = float(outputs.std(axis=0).mean())
    if not (0.01 < deviation < 100.0 and between_inputs > 0.05 * deviation):
        raise SystemExit(
            f"{name}: the outputs are useless for comparisons: deviation {deviation:.3g} (expected 0.01 to 100), "
            f"between inputs {between_inputs:.3g} (expected over 5 % of it). Check the calibration."
        )
    return f"deviation {deviation:.3f}, between inputs {between_inputs:.3f}"


def build(name: str) -> Any:
    """Return the uncalibrated network ``name`` of ``paddle.vision.models``."""
    import paddle

    paddle.seed(SEED)
    return getattr(paddle.vision.models, name)(pretrained=False)


def export_one(name: str, flavour: str, folder: Path) -> str:
    """Write one model in one flavour below ``folder``; return a line that describes its outputs."""
    import paddle

    model = build(name)
    weights_file = folder / WEIGHTS_FILE
    if weights_file.exists():
        with np.load(weights_file) as saved:
            # NOTE: keys are indices because Paddle's names of parameters depend on the layers built before.
            model.set_state_dict({key: saved[str(i)] for i, key in enumerate(model.state_dict())})
        model.eval()
    else:
        scatter_batch_norm(model, SEED)
        calibrate(model, picture_like(CALIBRATION_BATCH, 224, SEED))
        state = model.state_dict().values()
        np.savez(weights_file, **{str(i): value.numpy() for i, value in enumerate(state)})
    with paddle.no_grad():
        outputs = model(paddle.to_tensor(picture_like(4, 224, SEED + 1))).numpy()
    description = require_meaningful_outputs(name, outputs)
    # NOTE: exported beside its final path and renamed: an interrupted export is not mistaken for a model.
    unfinished = folder / f"{flavour}.unfinished"
    paddle.jit.save(
        model,
        str(unfinished / "inference"),
        input_spec=[paddle.static.InputSpec([None, 3, 224, 224], "float32", "image")],
    )
    unfinished.rename(folder / flavour)
    return description


def export_flavour(flavour: str, names: list[str], out: Path) -> None:
    """Export every name in one flavour, in this process."""
    for name in names:
        if (out / name / flavour / FLAVOURS[flavour]).exists():
            continue
        start = time.perf_counter()
        (out / name).mkdir(parents=True, exist_ok=True)
        description = export_one(name, flavour, out / name)
        print(f"{name} {flavour}: {description}, {time.perf_counter() - start:.1f} s", flush=True)


def export(names: list[str], out: Path) -> None:
    """Export ``names`` in both flavours below ``out``, skipping existing files; raise if a process fails."""
    for flavour, file_name in FLAVOURS.items():
        missing = [name for name in names if not (out / name / flavour / file_name).exists()]
        if not missing:
            continue
        flags = {"FLAGS_enable_pir_api": "1" if flavour == "pir" else "0"}
        command = [sys.executable, str(Path(__file__).resolve()), "--out", str(out), "--flavour", flavour]
        subprocess.run([*command, "--only", *missing], env={**os.environ, **flags}, check=True)
    for name in names:
        (out / name / WEIGHTS_FILE).unlink(missing_ok=True)


def main() -> None:
    """Read the command line and export."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=layout)
    parser.add_argument("--out", type=Path, required=True, help="folder that receives one folder for each model")
    parser.add_argument("--only", nargs="+", choices=NAMES, default=list(NAMES), metavar="NAME")
    parser.add_argument("--flavour", choices=FLAVOURS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.flavour:
        export_flavour(arguments.flavour, arguments.only, arguments.out)
    else:
        export(arguments.only, arguments.out)


if __name__ == "__main__":
    main()
