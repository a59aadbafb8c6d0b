"""Layout of text: lines wrapped at words, and tables that fit a width without wrapping or cutting a cell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.cells import cell_len, get_character_cell_size

__all__ = ["table_lines", "wrapped"]

_GAP = 2  # columns between two cells
_INDENT = 4  # columns by which lines below a row are indented
_FURTHER = 2  # columns by which the continuation of a line is indented more than its beginning
_LEAST_ROOM = 20  # columns that a last column needs, or its cells are printed below their rows

Cells = Sequence[str]


def wrapped(line: str, width: int) -> list[str]:
    """Wrap a line at its spaces; continued lines are indented by two columns more than the first.

    Args:
        line: the line. A word of more than a line is broken.
        width: number of columns; characters such as Chinese ones take two.
    """
    line = line.rstrip(" ")
    if cell_len(line) <= width:
        return [line]
    text = line.lstrip(" ")
    start = " " * min(len(line) - len(text), width // 2)
    further = start + " " * min(_FURTHER, width // 4)
    lines, current = [], start
    for word in text.split(" "):
        extended = f"{current} {word}" if current.strip() else current + word
        if cell_len(extended) <= width:
            current = extended
            continue
        if current.strip():
            lines.append(current.rstrip())
            current = further
        *full, last = _broken(word, width - cell_len(current), width - cell_len(further))
        lines += [current + full[0], *(further + piece for piece in full[1:])] if full else []
        current = (further if full else current) + last
    return [*lines, current.rstrip()] if current.strip() else lines


def table_lines(headers: Cells, rows: Iterable[Sequence[object]], width: int | None = None) -> tuple[int, list[str]]:
    """Return the lines of a table: its columns aligned, two spaces between them, and none at the ends of lines.

    If the table is wider than ``width``, its widest columns are taken out until the rest fits. Their cells are lines
    below their rows, wrapped at words: ``header: cell``, or the cell alone if it is a single column. A first column is
    narrowed instead if half of its cells fit; others are lines above their rows. Of a last column that is too wide, the
    cells that fit stay where they are. Nothing is cut.

    Args:
        headers: the names of the columns.
        rows: the cells, of any type that ``str`` shows.
        width: number of columns that the lines may have; None: no limit.

    Returns:
        The number of lines that are headers, and all lines.
    """
    cells = [[" ".join(str(cell).split("\n")).rstrip() for cell in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(headers, *cells)]
    kept = [*range(len(headers))] if width is None else _kept_columns([headers, *cells], widths, width)
    below = [column for column in range(1, len(headers)) if column not in kept]
    if width is None or not (below or 0 not in kept or widths[0] < max(cell_len(row[0]) for row in [headers, *cells])):
        return 1, [_aligned(row, kept, widths) for row in (headers, *cells)]
    if below == [len(headers) - 1] and 0 in kept and width - _total(widths, kept) - _GAP >= _LEAST_ROOM:
        lines = [line for row in (headers, *cells) for line in _with_last_cell(row, widths, width)]
        return len(_with_last_cell(headers, widths, width)), lines
    heads = _lines_of(headers, kept, widths, width)
    labels = [f"{headers[column]}: " if headers[column] else "" for column in below]
    if len(below) == 1:
        labels, name = [""], headers[below[0]]
        heads += [" " * _INDENT + name] if name else []
    lines = []
    for row in cells:
        lines += _lines_of(row, kept, widths, width)
        for label, column in zip(labels, below):
            lines += wrapped(f"{' ' * _INDENT}{label}{row[column]}", width) if row[column] else []
    return len(heads), heads + lines


def _kept_columns(rows: Sequence[Cells], widths: list[int], width: int) -> list[int]:
    """Return the columns that fit beside each other, without the widest; ``widths[0]`` may be made smaller."""
    kept = [*range(len(widths))]
    while kept and _total(widths, kept) + (0 if 0 in kept else _GAP) > width:
        widest = max(kept, key=lambda column: (widths[column], column))
        if widest == 0 and len(kept) > 1:
            room = width - _total(widths, kept[1:]) - _GAP
            narrow = sorted(cell_len(row[0]) for row in rows)[len(rows) // 2]
            if max(narrow, cell_len(rows[0][0])) <= room:
                widths[0] = room
                break
        kept.remove(widest)
    return kept


def _lines_of(row: Cells, kept: Sequence[int], widths: Sequence[int], width: int) -> list[str]:
    """Return the line of a row, after one for a first cell that is wider than its column, or has none."""
    if 0 in kept and cell_len(row[0]) <= widths[0]:
        return [_aligned(row, kept, widths)]
    grid = _aligned(["", *row[1:]], kept, widths) if 0 in kept else " " * _GAP + _aligned(row, kept, widths)
    return [*wrapped(row[0], width), *([grid] if grid.strip() else [])]


def _with_last_cell(row: Cells, widths: Sequence[int], width: int) -> list[str]:
    """Return the line of a row; if its last cell does not fit, that is below."""
    last = len(widths) - 1
    whole = _aligned(row, range(last + 1), widths)
    if cell_len(whole) <= width:
        return [whole]
    return [_aligned(row, range(last), widths), *wrapped(" " * _INDENT + row[last], width)]


def _aligned(row: Cells, columns: Iterable[int], widths: Sequence[int]) -> str:
    padded = (row[column] + " " * (widths[column] - cell_len(row[column])) for column in columns)
    return (" " * _GAP).join(padded).rstrip()


def _total(widths: Sequence[int], columns: Sequence[int]) -> int:
    return sum(widths[column] for column in columns) + _GAP * (len(columns) - 1)


def _broken(word: str, first: int, further: int) -> list[str]:
    """Break a word into pieces of at most ``first`` columns for the first, and ``further`` for the others."""
    pieces, room = [""], first
    for character in word:
        size = get_character_cell_size(character)
        if size > room and pieces[-1]:
            pieces.append("")
            room = further
        pieces[-1] += character
        room -= size
    return pieces
