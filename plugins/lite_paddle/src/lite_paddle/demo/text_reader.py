"""The pipeline of PP-OCRv4, run by Lite: it detects lines of text in a picture, turns them upright and reads them.

Made to be copied: it needs numpy, opencv-python-headless and three loaded models. Pictures are uint8 arrays [height,
width, 3] in the order blue, green, red, as OpenCV reads them and as PP-OCR was trained with.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import cv2
import numpy as np

__all__ = ["Line", "TextReader", "is_vertical"]

Array = np.ndarray[Any, Any]


class Session(Protocol):
    """The interface of a loaded model that this file uses; ``lite_core.load`` returns one."""

    @property
    def inputs(self) -> Mapping[str, object]:
        """Return the model's inputs, name to type."""

    def run(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """Run the model on one array for each input; return its outputs by name, in the model's order."""


@dataclass(frozen=True)
class Line:
    """One line of text, the mean probability of its characters, and its position.

    ``box`` is float32 [4, 2]: x and y, in pixels, of the top left, top right, bottom right and bottom left
    corner.
    """

    text: str
    score: float
    box: Array


def run_single(session: Session, array: Array) -> Array:
    """Run a model that has one input, and return its first output."""
    (name,) = session.inputs
    return next(iter(session.run({name: array}).values()))


def sort_reading_order(boxes: Sequence[Array]) -> list[Array]:
    """Sort boxes into rows from top to bottom, and within a row from left to right.

    A box belongs to the row before it if its middle is less than half a text height below that of the row's
    first box.
    """

    def middle(box: Array) -> float:
        return float(box[:, 1].mean())

    rows: list[list[Array]] = []
    for box in sorted(boxes, key=middle):
        text_height = min(np.linalg.norm(box[3] - box[0]), np.linalg.norm(box[1] - box[0]))
        if rows and middle(box) - middle(rows[-1][0]) < text_height / 2:
            rows[-1].append(box)
        else:
            rows.append([box])
    return [box for row in rows for box in sorted(row, key=lambda box: float(box[:, 0].min()))]


def is_vertical(box: Array) -> bool:
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

    def read(self, image: Array) -> list[Line]:
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

    def detect(self, image: Array) -> list[Array]:
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

    def crop(self, image: Array, box: Array) -> Array:
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

    def preprocess_line(self, crop: Array, width: int) -> Array:
        """Scale a line to the networks' height and pad it to ``width``: float32 [3, 48, width] in -1 to 1."""
        scaled_width = min(width, math.ceil(self.line_height * crop.shape[1] / crop.shape[0]))
        scaled = cv2.resize(np.ascontiguousarray(crop), (scaled_width, self.line_height))
        line = np.zeros((3, self.line_height, width), np.float32)
        line[:, :, :scaled_width] = scaled.transpose(2, 0, 1).astype(np.float32) / 127.5 - 1
        return line

    def turn_upright(self, crops: list[Array]) -> list[Array]:
        """Turn the lines that the classifier finds upside down with enough confidence."""
        if not crops:
            return []
        preprocessed = np.stack([self.preprocess_line(crop, 192) for crop in crops])
        upside_down = run_single(self.classifier, preprocessed)[:, 1]
        return [
            np.rot90(crop, 2) if probability > self.turn_threshold else crop
            for crop, probability in zip(crops, upside_down)
        ]

    def recognize(self, crop: Array) -> tuple[str, float]:
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
