"""Draw the shop window that ``lite demo`` reads, and write its text to a file beside the picture.

    python scripts/draw_demo_picture.py

Needs numpy, opencv-python-headless and pillow. Every board is drawn flat and then pasted into the
scene with a perspective transform, so that the lines slant, taper, run vertically or are upside down as in
photographs.
"""

from __future__ import annotations

import cv2
import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from lite_paddle.demo import LINES, PICTURE

WIDTH, HEIGHT = 640, 480
SCALE = 3  # drawn this much larger, then scaled down, for smooth edges
WORD_GAP = 0.30  # share of the font size

Board = Image.Image
Corners = list[tuple[float, float]]


def write(
    board: Board,
    at: tuple[float, float],
    text: str,
    size: float,
    colour: str,
    bold: float = 0.0,
    centred: bool = True,
) -> None:
    """Write one line of text.

    ``at`` (the middle, or the left end, of the line) and ``size`` are in pixels of the finished picture.
    """
    font = ImageFont.load_default(size * SCALE)
    draw = ImageDraw.Draw(board)
    gap = WORD_GAP * size * SCALE
    words = text.split()
    x, y = at[0] * SCALE, at[1] * SCALE
    if centred:
        x -= (sum(draw.textlength(word, font) for word in words) + gap * (len(words) - 1)) / 2
    for word in words:
        draw.text((x, y), word, colour, font, "lm", stroke_width=bold * SCALE, stroke_fill=colour)
        x += draw.textlength(word, font) + gap


def new_board(width: int, height: int, colour: str, frame: str, frame_width: float, radius: float) -> Board:
    """Return an empty board with a frame, RGBA, ``SCALE`` times as large as asked."""
    board = Image.new("RGBA", (width * SCALE, height * SCALE), (0, 0, 0, 0))
    box = (0, 0, width * SCALE - 1, height * SCALE - 1)
    ImageDraw.Draw(board).rounded_rectangle(box, radius * SCALE, colour, frame, int(frame_width * SCALE))
    return board


def paste_board(scene: Image.Image, board: Board, corners: Corners) -> None:
    """Paste ``board`` into ``scene`` so that its corners, from the top left clockwise, come to ``corners``."""
    width, height = board.size
    source = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float32)
    target = np.array(corners, np.float32) * SCALE
    transform = cv2.getPerspectiveTransform(source, target)
    size = (scene.width, scene.height)
    warped = Image.fromarray(cv2.warpPerspective(np.asarray(board), transform, size, flags=cv2.INTER_AREA))
    shadow = Image.new("RGBA", size, (0, 0, 0, 0))
    shadow.paste((30, 20, 12, 120), (3 * SCALE, 4 * SCALE), warped.getchannel("A"))
    scene.alpha_composite(shadow.filter(ImageFilter.GaussianBlur(3 * SCALE)))
    scene.alpha_composite(warped)


def wall() -> Image.Image:
    """Return a brick wall, lit from the upper left."""
    rng = np.random.default_rng(7)
    scene = Image.new("RGBA", (WIDTH * SCALE, HEIGHT * SCALE), "#c3b5a3")
    draw = ImageDraw.Draw(scene)
    for row, y in enumerate(range(0, HEIGHT, 20)):
        for x in range(-20 if row % 2 else 0, WIDTH, 40):
            tone = rng.integers(-9, 10)
            colour = (203 + tone, 179 + tone, 156 + tone)
            draw.rectangle(tuple(SCALE * value for value in (x + 1, y + 1, x + 38.4, y + 18.4)), fill=colour)
    rows, columns = np.mgrid[0 : scene.height, 0 : scene.width].astype(np.float32)
    light = 1.06 - 0.34 * np.hypot(rows / scene.height, columns / scene.width)
    pixels = np.asarray(scene).astype(np.float32)
    pixels[..., :3] = np.clip(pixels[..., :3] * light[..., None], 0, 255)
    return Image.fromarray(pixels.astype(np.uint8))


def shop_sign() -> Board:
    """Return the sign over the window."""
    board = new_board(560, 104, "#1f4a3d", "#d9b45b", 3, 12)
    write(board, (280, 42), "HARBOUR BAKERY", 50, "#f6ead0", bold=0.9)
    write(board, (280, 84), "Fresh bread every morning since 1987", 20, "#d9b45b", bold=0.2)
    return board


def chalkboard() -> Board:
    """Return the menu."""
    board = new_board(330, 236, "#2b2f33", "#8a5a33", 9, 4)
    write(board, (165, 38), "Today's menu", 32, "#f4d35e", bold=0.4)
    for row, (text, colour) in enumerate(MENU):
        write(board, (28, 84 + 38 * row), text, 25, colour, centred=False, bold=0.2)
    return board


def opening_hours() -> Board:
    """Return the banner with vertical text."""
    board = new_board(250, 46, "#b5382f", "#f6ead0", 2, 5)
    write(board, (125, 23), "OPEN DAILY 7 - 18", 24, "#fff6e3", bold=0.4)
    return board


def receipt() -> Board:
    """Return the receipt pinned to the wall."""
    board = new_board(186, 122, "#fbf9f2", "#e4dfd0", 1, 1)
    write(board, (93, 26), "Order number 486", 18, "#2a2723", bold=0.2)
    write(board, (93, 60), "Table 12, 3 guests", 18, "#2a2723", bold=0.1)
    write(board, (93, 96), "Total 17.30 EUR", 21, "#1d3f8a", bold=0.5)
    return board


def parcel_label() -> Board:
    """Return the label of a parcel that lies upside down."""
    board = new_board(196, 52, "#f2c14e", "#2a2723", 2, 6)
    write(board, (98, 26), "THIS SIDE UP", 26, "#2a2723", bold=0.6)
    return board


MENU = (
    ("Sourdough loaf 4.50", "#f5f1e6"),
    ("Cinnamon roll 2.80", "#f7b7a3"),
    ("Oat milk latte 3.60", "#b9e3c6"),
    ("Lemon tart 3.25", "#f5f1e6"),
)
TEXT = (
    "HARBOUR BAKERY",
    "Fresh bread every morning since 1987",
    "Order number 486",
    "Table 12, 3 guests",
    "Today's menu",
    "Total 17.30 EUR",
    "Sourdough loaf 4.50",
    "OPEN DAILY 7 - 18",
    "Cinnamon roll 2.80",
    "Oat milk latte 3.60",
    "Lemon tart 3.25",
    "THIS SIDE UP",
)


def rotated_corners(center: tuple[float, float], width: float, height: float, degrees: float) -> Corners:
    """Return the corners of a rectangle rotated clockwise about its centre."""
    angle = np.deg2rad(degrees)
    across, down = np.array([np.cos(angle), np.sin(angle)]), np.array([-np.sin(angle), np.cos(angle)])
    steps = ((-1, -1), (1, -1), (1, 1), (-1, 1))
    corners = (np.array(center) + across * width / 2 * a + down * height / 2 * b for a, b in steps)
    return [(float(x), float(y)) for x, y in corners]


def main() -> None:
    """Draw the scene, scale it down and write it into the sources of lite-paddle."""
    scene = wall()
    paste_board(scene, shop_sign(), [(36, 22), (606, 34), (604, 136), (38, 128)])
    paste_board(scene, chalkboard(), rotated_corners((206, 306), 330, 236, -4))
    paste_board(scene, opening_hours(), rotated_corners((424, 294), 250, 46, 90))
    paste_board(scene, receipt(), rotated_corners((544, 210), 180, 118, 4))
    paste_board(scene, parcel_label(), rotated_corners((546, 424), 176, 48, 176))
    picture = scene.convert("RGB").resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS)
    picture.save(PICTURE, optimize=True)
    LINES.write_text("\n".join(TEXT) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
