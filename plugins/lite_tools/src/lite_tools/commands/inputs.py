"""Inputs of commands that run a model: array files, images, random numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from lite_core.ir import Graph, TensorType
from lite_tools.commands.array_files import read_array_file, read_arrays
from lite_tools.commands.example_shapes import example_shapes, shape_text, shape_words
from lite_tools.commands.input_files import InputFile, input_files, reading, split_name
from lite_tools.commands.next_commands import typed_command, with_next_command
from lite_tools.commands.notes import print_notes
from lite_tools.commands.open_batch import bound_shapes, notes_on_batches, open_batch_shapes
from lite_tools.commands.picture_files import is_picture

__all__ = ["ImageOptions", "collect_inputs", "parse_shapes"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class ImageOptions:
    """Preprocessing of images: ``(pixel / 255 - mean) / std`` for each channel."""

    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    bgr: bool = False

    @staticmethod
    def parse(mean: str, std: str, bgr: bool) -> ImageOptions:
        """Parse options of the command line: one number, or one for each channel, separated by commas."""

        def numbers(text: str, option: str) -> tuple[float, ...]:
            try:
                found = tuple(float(part) for part in text.split(","))
            except ValueError:
                found = ()
            if len(found) not in (1, 3) or not all(math.isfinite(number) for number in found):
                raise click.BadParameter(f"one number or three separated by commas, not {text!r}", param_hint=option)
            return found

        deviations = numbers(std, "--std")
        if 0 in deviations:
            raise click.BadParameter(f"a standard deviation cannot be 0: {std!r}", param_hint="--std")
        return ImageOptions(numbers(mean, "--mean"), deviations, bgr)


def parse_shapes(
    types: Mapping[str, TensorType], texts: Sequence[str], option: str = "--shape"
) -> dict[str, tuple[int, ...]]:
    """Parse texts such as ``NAME=1x3x224x224`` and check them against the model's inputs.

    Args:
        types: the model's inputs.
        texts: the texts; ``NAME=`` is optional for a model with one input.
        option: the option that they come from, for messages.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    for text in texts:
        name, value = split_name(types, text, option)
        problem = ""
        try:
            shape = tuple(int(part) for part in value.replace(",", "x").split("x"))
        except ValueError:
            shape, problem = (), f"write a shape like 1x3x224x224, not {value!r}"
        if not problem and min(shape) < 0:
            problem = f"a dimension cannot be negative, as in {value!r}"
        if not problem and not types[name].accepts(shape):
            problem = f"input {name} is {types[name]}, {value} does not fit"
        if problem:
            fitting = shape_text(example_shapes({name: types[name]}, {})[name])
            error = click.BadParameter(problem, param_hint=option)
            raise with_next_command(error, typed_command(replaced={text: f"{name}={fitting}"}))
        shapes[name] = shape
    return shapes


def collect_inputs(
    types: Mapping[str, TensorType],
    files: Sequence[str],
    shapes: Mapping[str, tuple[int, ...]],
    image: ImageOptions,
    seed: int,
    default_shapes: Mapping[str, tuple[int, ...]] | None = None,
    *,
    graph: Graph | None = None,
    option: str = "--shape",
    takes_files: bool = True,
) -> tuple[dict[str, Array], dict[str, str]]:
    """Return an array for every input, and the source of each in words.

    Inputs without a file are random numbers. Their shapes are the given ones, else those that other inputs determine by
    equal symbols, else the defaults, else one item if the model leaves only the batch open; a note says so.

    Args:
        types: the model's inputs.
        files: ``[NAME=]FILE``, see :func:`~lite_tools.commands.input_files.input_files`.
        shapes: the result of :func:`parse_shapes`.
        image: the preprocessing of images.
        seed: the seed of random inputs.
        default_shapes: shapes of random inputs that are not in ``shapes``.
        graph: the model's graph, for an example of shapes that it accepts in the error for shapes that are not known.
        option: the option for shapes, for this error.
        takes_files: the command has the option ``--input``, which this error names then.

    Raises:
        click.UsageError: a file does not fit, or a shape is not known.
    """
    found: dict[str, tuple[Array, str]] = {}
    for name, file in input_files(types, files).items():
        source = file.file if file.array == name else str(file)
        found[name] = (_load(file, name, types[name], shapes.get(name), image), source)
    known = {**{name: array.shape for name, (array, _) in found.items()}, **shapes}
    chosen = {
        **open_batch_shapes(types)[0],
        **{name: type_.shape for name, type_ in types.items() if type_.is_static},
        **(default_shapes or {}),
        **bound_shapes(types, known),
        **known,
    }
    if unknown := [name for name in types if name not in chosen]:
        raise _unknown_shapes(types, known, unknown, [str(text) for text in files], graph, option, takes_files)
    print_notes(notes_on_batches(types, known, default_shapes or {}, option))
    rng = np.random.default_rng(seed)
    for name, type_ in types.items():
        if name not in found:
            found[name] = (_random(rng, name, type_, chosen[name]), f"random, seed {seed}")
    ordered = {n: found[n] for n in types}
    return {n: a for n, (a, _) in ordered.items()}, {n: s for n, (_, s) in ordered.items()}


def _unknown_shapes(
    types: Mapping[str, TensorType],
    known: Mapping[str, tuple[int, ...]],
    unknown: Sequence[str],
    files: Sequence[str],
    graph: Graph | None,
    option: str,
    takes_files: bool,
) -> click.UsageError:
    """Return the error for inputs whose shapes are not known; the next command gives a shape for each of them."""
    examples = {name: shape for name, shape in example_shapes(types, known, graph).items() if name in unknown}
    listed = " and ".join(f"{name} is {types[name]}" for name in unknown)
    given = f"; {', '.join(files)} has no array for {'it' if len(unknown) == 1 else 'them'}" if files else ""
    words = shape_words(examples, option)
    pronoun, shapes = ("it", "its shape") if len(unknown) == 1 else ("them", "their shapes")
    from_file = f"give {pronoun} with --input {unknown[0]}=FILE, or give a shape for random numbers"
    error = click.UsageError(
        f"input{'s' * (len(unknown) != 1)} {listed}{given}: {from_file if takes_files else f'give {shapes}'}, "
        f"for example {' '.join(words)}"
    )
    return with_next_command(error, typed_command(*words))


def _load(file: InputFile, name: str, type_: TensorType, shape: tuple[int, ...] | None, image: ImageOptions) -> Array:
    if is_picture(file.file):
        return _load_image(file.file, name, type_, shape, image)
    with reading(file.file, f"a NumPy array file (.npy or .npz) for the input {name!r}"):
        if file.array:
            return read_arrays(Path(file.file), {file.array: type_})[file.array]
        return read_array_file(Path(file.file), name, type_)


def _load_image(file: str, name: str, type_: TensorType, shape: tuple[int, ...] | None, image: ImageOptions) -> Array:
    from PIL import Image  # an extra; the options have asked for it

    dims = shape or type_.shape
    if dims is None or len(dims) != 4:
        raise click.BadParameter(f"input {name} is {type_}, not a batch of images", param_hint="--input")
    channels_last = dims[3] in (1, 3) and dims[1] not in (1, 3)
    channels, height, width = (dims[3], dims[1], dims[2]) if channels_last else dims[1:]
    with reading(file, "an image"), Image.open(file) as opened:
        picture = opened.convert("L" if channels == 1 else "RGB")
    size = (
        width if isinstance(width, int) else picture.width,
        height if isinstance(height, int) else picture.height,
    )
    if min(size) < 1:
        raise click.BadParameter(f"an image cannot be {size[1]} pixels high and {size[0]} wide", param_hint="--shape")
    if size != picture.size:
        picture = picture.resize(size, Image.Resampling.BILINEAR)
    pixels = np.asarray(picture)
    pixels = pixels[..., None] if pixels.ndim == 2 else pixels
    if image.bgr:
        pixels = pixels[..., ::-1]
    if type_.dtype.is_floating:
        pixels = (pixels.astype(np.float32) / 255 - np.array(image.mean, np.float32)) / np.array(image.std, np.float32)
    pixels = pixels if channels_last else pixels.transpose(2, 0, 1)
    return np.ascontiguousarray(pixels[None], dtype=type_.dtype.numpy)


def _random(rng: np.random.Generator, name: str, type_: TensorType, shape: tuple[int, ...]) -> Array:
    dtype = type_.dtype
    try:
        if dtype.is_floating:
            return rng.standard_normal(shape).astype(dtype.numpy)
        if dtype == "string":
            return np.asarray(rng.integers(0, 10, shape)).astype(str).astype(object)
        return rng.integers(0, 2 if dtype == "bool" else 10, shape).astype(dtype.numpy)
    except (MemoryError, ValueError):  # ValueError: the size exceeds the address space
        size = math.prod(shape) * dtype.numpy.itemsize
        raise click.ClickException(
            f"input {name}: {shape_text(shape)} {dtype} numbers ({size / 2**30:,.1f} GiB) "
            "do not fit into memory; give a smaller --shape"
        ) from None
