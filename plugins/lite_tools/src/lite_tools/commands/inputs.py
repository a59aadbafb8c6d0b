"""Inputs of commands that run a model: array files, images, random numbers."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from lite_core.checks import is_there
from lite_core.errors import ModelFormatError
from lite_core.ir import TensorType
from lite_tools.commands.array_files import read_array_file, read_arrays
from lite_tools.commands.errors import UnavailableError

__all__ = ["ImageOptions", "collect_inputs", "parse_shapes"]

Array = np.ndarray[Any, Any]
_IMAGES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff"}


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
        name, value = _split_name(types, text, option)
        try:
            shape = tuple(int(part) for part in value.replace(",", "x").split("x"))
        except ValueError:
            raise click.BadParameter(f"write a shape like 1x3x224x224, not {value!r}", param_hint=option) from None
        if min(shape) < 0:
            raise click.BadParameter(f"a dimension cannot be negative, as in {value!r}", param_hint=option)
        if not types[name].accepts(shape):
            raise click.BadParameter(f"input {name} is {types[name]}, {value} does not fit", param_hint=option)
        shapes[name] = shape
    return shapes


def collect_inputs(
    types: Mapping[str, TensorType],
    files: Sequence[str],
    shapes: Mapping[str, tuple[int, ...]],
    image: ImageOptions,
    seed: int,
    default_shapes: Mapping[str, tuple[int, ...]] | None = None,
) -> tuple[dict[str, Array], dict[str, str]]:
    """Return an array for every input, and the source of each in words.

    Args:
        types: the model's inputs.
        files: ``[NAME=]FILE``; an .npz file without a name may contain several inputs. A text that is the name of an
            existing file is read as a file, even if it contains an equals sign.
        shapes: the result of :func:`parse_shapes`.
        image: the preprocessing of images.
        seed: the seed of random inputs.
        default_shapes: shapes of random inputs that are not in ``shapes``.
    """
    found: dict[str, tuple[Array, str]] = {}
    for text in files:
        is_file = os.path.isfile(text)
        if Path(text).suffix.lower() == ".npz" and (is_file or "=" not in text):
            with _reading(_existing(text), "a NumPy archive (.npz) of inputs"):
                found.update({n: (array, text) for n, array in read_arrays(Path(text), types, every=True).items()})
        else:
            name, file = _split_name(types, text, "--input", has_no_name=is_file)
            found[name] = (_load(file, name, types[name], shapes.get(name), image), file)
    rng = np.random.default_rng(seed)
    for name, type_ in types.items():
        if name not in found:
            shape = shapes.get(name) or (default_shapes or {}).get(name)
            found[name] = (_random(rng, name, type_, shape), f"random, seed {seed}")
    ordered = {n: found[n] for n in [*types, *(n for n in found if n not in types)]}
    return {n: a for n, (a, _) in ordered.items()}, {n: s for n, (_, s) in ordered.items()}


def _split_name(types: Mapping[str, TensorType], text: str, option: str, has_no_name: bool = False) -> tuple[str, str]:
    """Split ``NAME=VALUE``; without a name, or if ``has_no_name``, the text is the value of the only input."""
    name, separator, value = text.partition("=")
    if has_no_name or not separator:
        if len(types) != 1:
            raise click.BadParameter(
                f"the model has the inputs {', '.join(types)}; write NAME={text}", param_hint=option
            )
        return next(iter(types)), text
    if name not in types:
        raise click.BadParameter(f"there is no input {name!r}; the inputs are {', '.join(types)}", param_hint=option)
    return name, value


def _existing(file: str) -> str:
    try:
        exists = is_there(Path(file)) and not os.path.isdir(file)
    except ModelFormatError as error:  # a pipe or a device
        raise click.BadParameter(str(error), param_hint="--input") from None
    if not exists:
        raise click.BadParameter(f"there is no file {file!r}", param_hint="--input")
    return file


def _load(file: str, name: str, type_: TensorType, shape: tuple[int, ...] | None, image: ImageOptions) -> Array:
    suffix = Path(_existing(file)).suffix.lower()
    if suffix in _IMAGES:
        return _load_image(file, name, type_, shape, image)
    with _reading(file, f"a NumPy array file (.npy or .npz) for the input {name!r}"):
        return read_array_file(Path(file), name, type_)


@contextmanager
def _reading(file: str, kind: str) -> Iterator[None]:
    """Turn exceptions for foreign, damaged or truncated files into an error that names the file."""
    try:
        yield
    # NumPy, zipfile and Pillow raise many kinds for damaged files: TokenError, struct.error, zlib.error, SyntaxError,
    # and MemoryError for a size that no file has.
    except Exception as error:
        reason = str(error) or type(error).__name__
        raise click.BadParameter(f"{file} cannot be read as {kind}: {reason}", param_hint="--input") from None


def _load_image(file: str, name: str, type_: TensorType, shape: tuple[int, ...] | None, image: ImageOptions) -> Array:
    try:
        from PIL import Image
    except ImportError:
        raise UnavailableError("reading images needs Pillow: pip install pillow") from None
    dims = shape or type_.shape
    if dims is None or len(dims) != 4:
        raise click.BadParameter(f"input {name} is {type_}, not a batch of images", param_hint="--input")
    channels_last = dims[3] in (1, 3) and dims[1] not in (1, 3)
    channels, height, width = (dims[3], dims[1], dims[2]) if channels_last else dims[1:]
    with _reading(file, "an image"), Image.open(file) as opened:
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


def _random(rng: np.random.Generator, name: str, type_: TensorType, shape: tuple[int, ...] | None) -> Array:
    if shape is None:
        if not type_.is_static:
            raise click.UsageError(
                f"input {name} is {type_}: give it with --input {name}=FILE, "
                f"or give a shape for random numbers, for example --shape {name}={_example(type_)}"
            )
        shape = type_.shape  # type: ignore[assignment]
    dtype = type_.dtype
    try:
        if dtype.is_floating:
            return rng.standard_normal(shape).astype(dtype.numpy)
        if dtype == "string":
            return np.asarray(rng.integers(0, 10, shape)).astype(str).astype(object)
        return rng.integers(0, 2 if dtype == "bool" else 10, shape).astype(dtype.numpy)
    except (MemoryError, ValueError):  # ValueError: the size exceeds the address space
        size = math.prod(shape or ()) * dtype.numpy.itemsize
        raise click.ClickException(
            f"input {name}: {'x'.join(map(str, shape or ()))} {dtype} numbers ({size / 2**30:,.1f} GiB) "
            "do not fit into memory; give a smaller --shape"
        ) from None


def _example(type_: TensorType) -> str:
    dims = type_.shape if type_.shape is not None else (1,)
    sizes = {0: 1, 2: 224, 3: 224} if len(dims) == 4 else {0: 1}
    return "x".join(str(d if isinstance(d, int) else sizes.get(i, 16)) for i, d in enumerate(dims))
