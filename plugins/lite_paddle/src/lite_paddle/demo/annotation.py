"""Drawing what was read: the boxes in the picture and, beside it, a list of the text."""

from __future__ import annotations

import colorsys
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from lite_paddle.demo.text_reader import Array, Line, is_vertical

__all__ = ["annotate"]

_GREY = "#8a8577"


def annotate(image: Array, lines: Sequence[Line], font: Path | None = None) -> Array:
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
    draw.text((left, 2.2 * unit), title, _GREY, sized(1.1 * unit), anchor="lm")
    draw.text((right, 2.2 * unit), "score", _GREY, sized(1.1 * unit), anchor="rm")
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
        draw.text((right, y), f"{line.score:.3f}", _GREY, sized(1.1 * unit), anchor="rm")
        draw.line((left, y + row / 2, right, y + row / 2), "#e6e2d8", 2)

    sheet = Image.new("RGBA", (sheet_width, sheet_height), "#fbfaf7")
    sheet.paste(picture, (0, 0))
    sheet.alpha_composite(drawing.resize(sheet.size, Image.Resampling.LANCZOS))
    return cv2.cvtColor(np.asarray(sheet), cv2.COLOR_RGBA2BGR)
