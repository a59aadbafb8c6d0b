"""The files of ``--input``: names in archives, misspelt names, and the shapes of inputs that have no file."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np
import pytest

from lite_core.ir import DType, SymbolicDim, TensorType
from lite_tools.commands.example_shapes import example_shapes, shape_words
from lite_tools.commands.input_files import InputFile, input_files
from lite_tools.commands.inputs import ImageOptions, collect_inputs, parse_shapes
from lite_tools.commands.open_batch import bound_shapes, notes_on_batches

N, M, T, H, W = map(SymbolicDim.named, "NMTHW")


def float32(*dims: int | SymbolicDim) -> TensorType:
    return TensorType(DType.FLOAT32, dims)


ONE = {"x": float32(N, 4)}
TWO = {"a": float32(N, 4), "b": float32(N, 4)}
ZEROS = np.zeros((3, 4), np.float32)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    np.savez("x.npz", x=ZEROS)
    np.savez("image.npz", image=ZEROS)
    np.savez("several.npz", image=ZEROS, X=ZEROS)
    np.savez("labelled.npz", x=ZEROS, label=np.arange(3))
    np.savez("empty.npz")
    np.save("x.npy", ZEROS)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x.npz", InputFile("x.npz", "x")),
        ("x=x.npz", InputFile("x.npz", "x")),
        ("x=image.npz", InputFile("image.npz", "image")),
        ("image.npz:image", InputFile("image.npz", "image")),
        ("x=several.npz:X", InputFile("several.npz", "X")),
        ("x.npy", InputFile("x.npy")),
    ],
)
def test_array_of_a_file(folder: Path, text: str, expected: InputFile) -> None:
    assert input_files(ONE, [text]) == {"x": expected}
    arrays, sources = collect_inputs(ONE, [text], {}, ImageOptions(), 0)
    np.testing.assert_array_equal(arrays["x"], ZEROS)
    assert sources["x"].startswith(expected.file)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            "image.npz",
            ("image.npz holds image float32[3, 4]", "the input x float32[N, 4]", "--input x=image.npz:image?"),
        ),
        ("several.npz", ("image float32[3, 4], X float32[3, 4]", "did you mean --input x=several.npz:X?")),
        ("labelled.npz", ("x float32[3, 4], label int64[3]", "write --input x=labelled.npz:x")),
        ("x=several.npz", ("and no 'x'", "did you mean x=several.npz:X?")),
        ("x=several.npz:imgae", ("and no 'imgae'", "did you mean x=several.npz:image?")),
        ("empty.npz", ("empty.npz holds no arrays",)),
        ("y=x.npy", ("there is no input 'y'", "the inputs are x")),
        ("X=x.npy", ("did you mean x?",)),
        ("x.npx", ("there is no file 'x.npx'",)),
        ("imgae.npz", ("did you mean image.npz?",)),
    ],
)
def test_refusals_say_what_there_is(folder: Path, text: str, parts: tuple[str, ...]) -> None:
    with pytest.raises(click.BadParameter) as refused:
        input_files(ONE, [text])
    assert all(part in refused.value.message for part in parts), refused.value.message


def test_damaged_archives_are_named(folder: Path) -> None:
    (folder / "damaged.npz").write_bytes((folder / "x.npz").read_bytes()[:50])
    with pytest.raises(click.BadParameter, match="damaged.npz cannot be read as"):
        input_files(ONE, ["damaged.npz"])


def test_missing_arrays_are_said_beside_the_files(folder: Path) -> None:
    types = {"x": float32(N, 4), "mask": float32(N, T)}
    with pytest.raises(click.UsageError) as refused:
        collect_inputs(types, ["x.npz"], {}, ImageOptions(), 0)
    assert "input mask is float32[N, T]; x.npz has no array for it" in refused.value.message
    assert "--shape mask=3x16" in refused.value.message


def test_inputs_with_the_same_symbol_have_the_same_size(folder: Path) -> None:
    arrays, _ = collect_inputs(TWO, ["a=x.npy"], {}, ImageOptions(), 0)
    assert arrays["b"].shape == (3, 4)
    arrays, _ = collect_inputs(TWO, [], {"b": (5, 4)}, ImageOptions(), 0, default_shapes={"a": (1, 4)})
    assert arrays["a"].shape == (5, 4)
    arrays, _ = collect_inputs(TWO, [], {}, ImageOptions(), 0)
    assert arrays["a"].shape == arrays["b"].shape == (1, 4)
    assert bound_shapes({"a": float32(N, 4), "b": float32(M, 4)}, {"a": (3, 4)}) == {}
    assert bound_shapes({"a": float32(N, 4), "b": float32(N * 2, 4)}, {"a": (3, 4)}) == {"b": (6, 4)}


def test_notes_are_about_batches_that_nothing_decides() -> None:
    assert len(notes_on_batches(TWO, {}, {})) == 2
    assert notes_on_batches(TWO, {"a": (3, 4)}, {}) == []
    assert notes_on_batches(TWO, {}, {"a": (1, 4), "b": (1, 4)}) == []
    assert notes_on_batches(ONE, {}, {}, "--input-shape")[0].endswith("for a batch of 8, --input-shape x=8x4")


def test_examples_of_shapes() -> None:
    types = {"image": float32(N, 3, H, W), "last": float32(N, H, W, 3), "text": float32(N, T), "fixed": float32(2, 3)}
    found = example_shapes(types, {})
    assert found == {"image": (1, 3, 224, 224), "last": (1, 224, 224, 3), "text": (1, 16), "fixed": (2, 3)}
    assert example_shapes({"a": float32(N, T), "b": float32(N, T)}, {"a": (2, 7)}) == {"b": (2, 7)}
    assert shape_words({"x": (1, 2)}, "-s") == ["-s", "x=1x2"]


@pytest.mark.parametrize("text", ["x=3x4", "3x4", "x=3,4"])
def test_shapes(text: str) -> None:
    assert parse_shapes(ONE, [text]) == {"x": (3, 4)}
