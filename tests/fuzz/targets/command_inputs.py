"""Targets: the files that ``lite run --input`` reads, and the texts of the command line."""

from __future__ import annotations

import contextlib
import io
import json
import random
from collections.abc import Iterable
from pathlib import Path

import click
import numpy as np

from fuzz.bundles import pack, unpack, write_files
from fuzz.mutation import mutated_bytes, mutated_text
from fuzz.targets import FuzzTarget
from lite_core.errors import LiteError
from lite_core.ir import DType, SymbolicDim, TensorType
from lite_tools.cli.group import lite
from lite_tools.commands.inputs import ImageOptions, collect_inputs, parse_shapes
from lite_tools.commands.options import backends_of
from lite_tools.commands.targets import split_targets

__all__ = ["Arguments", "InputFile"]

_IMAGES = ("png", "jpg", "bmp", "gif", "webp", "tif")


class InputFile(FuzzTarget):
    """An array file, an archive of arrays, or an image."""

    # Pillow decodes pictures of up to 179 million pixels, of 4 bytes each, and makes one copy in another mode.
    most_bytes = 1440 << 20
    allowed = (LiteError, click.ClickException)

    def __init__(self) -> None:
        self._types = {"x": TensorType(DType.FLOAT32, (1, 3, 4, 4))}

    def seeds(self) -> Iterable[bytes]:
        """Return files as NumPy and Pillow write them."""
        for array in (np.zeros((1, 3, 4, 4), np.float32), np.array(["a"]), np.array([(1, 2.0)], "i4,f8"), np.eye(2).T):
            file = io.BytesIO()
            np.save(file, array)
            yield pack({"x.npy": file.getvalue()})
        for save in (np.savez, np.savez_compressed):
            file = io.BytesIO()
            save(file, x=np.ones((1, 3, 4, 4), np.float32), other=np.arange(3))
            yield pack({"x.npz": file.getvalue()})
        with contextlib.suppress(ImportError):
            from PIL import Image

            for suffix in _IMAGES:
                for mode in ("RGB", "L", "P", "RGBA"):
                    file = io.BytesIO()
                    picture = Image.new("RGB", (4, 4), (200, 10, 30)).convert("RGB" if suffix == "jpg" else mode)
                    picture.save(file, {"jpg": "JPEG", "tif": "TIFF"}.get(suffix, suffix.upper()))
                    yield pack({f"x.{suffix}": file.getvalue()})

    def run(self, data: bytes, folder: Path) -> None:
        """Collect the inputs of a model from the files."""
        try:
            files = unpack(data)
        except ValueError:
            return
        write_files(files, folder)
        for name in files:
            collect_inputs(self._types, [str(folder / name)], {}, ImageOptions(), 0)
            collect_inputs(self._types, [f"x={folder / name}"], {}, ImageOptions(bgr=True), 0)

    def mutate(self, data: bytes, chance: random.Random) -> bytes:
        """Change the bytes of a file, the text in the head of an array, or the file's suffix."""
        try:
            files = unpack(data)
        except ValueError:
            return data
        if not files:
            return data
        name = chance.choice(list(files))
        content = files.pop(name)
        kind = chance.random()
        if kind < 0.05:
            name = f"x.{chance.choice([*_IMAGES, 'npy', 'npz', 'txt'])}"
        elif kind < 0.5 and content.startswith(b"\x93NUMPY") and len(content) >= 128:
            head = mutated_text(content[10:128].decode("latin-1"), chance, ("'descr'", "'<f4'", "(1,)", "True", "|O"))
            encoded = head.encode("latin-1", "replace")
            content = content[:8] + len(encoded).to_bytes(2, "little", signed=False) + encoded + content[128:]
        else:
            content = mutated_bytes(content, chance)
        return pack({**files, name: content})


class Arguments(FuzzTarget):
    """Texts of the command line: a JSON list of arguments, which are parsed and not carried out."""

    allowed = (LiteError, click.ClickException, click.exceptions.Exit, click.Abort)

    def __init__(self) -> None:
        self._types = {"x": TensorType(DType.FLOAT32, (SymbolicDim.named("n"), 3)), "y": TensorType(DType.INT64, (2,))}
        self._context = click.Context(lite)
        names = lite.list_commands(self._context)
        self._commands = {name: lite.get_command(self._context, name) for name in names}
        found = {option for c in self._commands.values() if c for p in c.params for option in p.opts}
        self._words = [*sorted(found), *names, "x=2x3", "x86.mkl=never", "0.5,0.5,0.5", 'lengths={"x":3}', "x86,host"]

    def seeds(self) -> Iterable[bytes]:
        """Return command lines as in the manual."""
        lines = ["run m.onnx --shape x=2x3 --mean 0.5 --std 0.1,0.2,0.3 -b x86,host -O x86.mkl=never"]
        lines += ["convert m.onnx -o m.lite --targets x86,opencl --shape 1x3", 'inspect m -R lengths={"x":3} --json']
        lines += ["bench m.lite -t 4 --seed 3", "check m --targets x86", "ops Conv", "opt --model_dir=m", "backends"]
        for line in lines:
            yield json.dumps(line.split(" ")).encode()

    def run(self, data: bytes, folder: Path) -> None:
        """Parse the arguments as a command, and each of them as every kind of text."""
        try:
            texts = [_as_passed(text) for text in json.loads(data) if isinstance(text, str)]
        except (ValueError, RecursionError, TypeError):
            return
        command = self._commands.get(texts[0]) if texts else None
        for parse in (
            lambda text: parse_shapes(self._types, [text]),
            lambda text: ImageOptions.parse(text, text, False),
            backends_of,
            split_targets,
        ):
            for text in texts[:20]:
                with contextlib.suppress(*self.allowed):
                    parse(text)
        if command is not None:
            with contextlib.redirect_stdout(io.StringIO()):
                command.make_context(texts[0], texts[1:], parent=self._context)

    def mutate(self, data: bytes, chance: random.Random) -> bytes:
        """Change, add, remove or exchange an argument."""
        try:
            texts = [str(text) for text in json.loads(data)]
        except (ValueError, RecursionError, TypeError):
            return mutated_bytes(data, chance)
        where = chance.randrange(len(texts) + 1)
        kind = chance.random()
        if kind < 0.15 and texts:
            texts.pop(where % len(texts))
        elif kind < 0.35:
            texts.insert(where, chance.choice(self._words))
        elif texts:
            texts[where % len(texts)] = mutated_text(texts[where % len(texts)], chance, self._words)
        return json.dumps(texts[:40]).encode()


def _as_passed(text: str) -> str:
    """Return a text as a system passes it in an argument: without NUL; bytes that are not UTF-8 are surrogates."""
    return text.replace("\0", "").encode("utf-8", "surrogatepass").decode("utf-8", "surrogateescape")
