"""Lines wrapped at words, and tables that fit a width without losing a character."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from lite_tools.commands import printing
from lite_tools.commands.text_layout import table_lines, wrapped

HEADERS = ("operator", "nodes", "reason")
ROWS = [("Conv", 3, "no kernel"), ("NonMaxSuppression", 12, "")]
REASON = "the kernel computes windows over one or two dimensions, and this one has three"


def lines_of(headers: tuple[str, ...], rows: list[tuple[object, ...]], width: int | None) -> list[str]:
    return table_lines(headers, rows, width)[1]


def test_a_table_that_fits_is_aligned_without_spaces_at_the_ends() -> None:
    expected = ["operator           nodes  reason", "Conv               3      no kernel", "NonMaxSuppression  12"]
    assert lines_of(HEADERS, ROWS, 80) == expected
    assert lines_of(HEADERS, ROWS, None) == expected


def test_without_a_limit_each_row_is_one_line() -> None:
    found = lines_of(HEADERS, [("Conv", 3, REASON * 9), ("Relu", 1, "two\nlines")], None)
    assert [len(line) for line in found] == [len("operator  nodes  reason"), 17 + 9 * len(REASON), 17 + 9]
    assert found[2].endswith("two lines")


def test_cells_of_a_last_column_that_do_not_fit_are_below_their_rows() -> None:
    assert lines_of(HEADERS, [("Conv", 3, REASON), ("Relu", 1, "no kernel")], 60) == [
        "operator  nodes  reason",
        "Conv      3",
        "    the kernel computes windows over one or two dimensions,",
        "      and this one has three",
        "Relu      1      no kernel",
    ]


def test_a_single_column_that_does_not_fit_is_below_the_rows() -> None:
    assert table_lines(("operator", "reason", "nodes"), [("Conv", REASON, 3), ("Relu", "", 1)], 90) == (
        2,
        ["operator  nodes", "    reason", "Conv      3", f"    {REASON}", "Relu      1"],
    )


def test_several_columns_that_do_not_fit_are_named() -> None:
    assert table_lines(
        ("operator", "reason", "nodes", "of"), [("Conv", REASON, 3, REASON), ("Add", "", 1, "")], 90
    ) == (
        1,
        ["operator  nodes", "Conv      3", f"    reason: {REASON}", f"    of: {REASON}", "Add       1"],
    )


def test_a_first_column_that_does_not_fit_is_above_its_rows() -> None:
    rows = [("conv_" * 9, 1, "2 %"), ("gemm_" * 9, 12, "20 %")]
    assert table_lines(("kernel", "ms", "share"), rows, 50) == (
        2,
        ["kernel", "  ms  share", "conv_" * 9, "  1   2 %", "gemm_" * 9, "  12  20 %"],
    )


def test_a_first_column_is_narrowed_if_half_of_its_cells_fit() -> None:
    rows = [("conv", 1, "2 %"), ("gemm_" * 5, 12, "20 %"), ("add", 3, "5 %")]
    assert table_lines(("kernel", "ms", "share"), rows, 30) == (
        1,
        [
            "kernel               ms  share",
            "conv                 1   2 %",
            "gemm_gemm_gemm_gemm_gemm_",
            "                     12  20 %",
            "add                  3   5 %",
        ],
    )


def test_an_empty_table_has_its_headers() -> None:
    assert table_lines(HEADERS, [], 80) == (1, ["operator  nodes  reason"])


@given(
    rows=st.lists(st.tuples(*[st.text("ab 漢字-", max_size=60)] * 4), max_size=5),
    width=st.integers(30, 120),
)
def test_no_line_is_too_long_and_no_character_is_lost(rows: list[tuple[str, ...]], width: int) -> None:
    headers = ("name", "first figure", "second", "text")
    found = lines_of(headers, list(rows), width)
    assert all(cell_len(line) <= width and line == line.rstrip() for line in found)
    for character in "ab漢字-":
        expected = sum(cell.count(character) for row in rows for cell in row)
        names = sum(name.count(character) for name in headers)
        shown = "".join(found).count(character)
        assert shown >= expected + names  # more where a cell is below its row, after the name of its column


@given(st.text("ab 漢字", max_size=300), st.integers(10, 100))
def test_wrapping_keeps_words_and_fits(text: str, width: int) -> None:
    found = wrapped(text, width)
    assert all(cell_len(line) <= width for line in found)
    assert "".join("".join(found).split()) == "".join(text.split())
    if all(cell_len(word) <= width // 2 for word in text.split()):
        assert " ".join(found).split() == text.split()


def test_continued_lines_are_indented() -> None:
    assert wrapped("  origin: a name of two words", 20) == ["  origin: a name of", "    two words"]
    assert wrapped("/a/path/without/any/spaces", 12) == ["/a/path/with", "  out/any/sp", "  aces"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("is_terminal", [True, False])
def test_console_wraps_in_a_terminal_only(is_terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # many CI services set it, for output that is piped
    stream = Terminal() if is_terminal else io.StringIO()
    console = printing._Console(file=stream, width=40, soft_wrap=True, highlight=False)
    console.print(f"a [reason]: {REASON}", markup=False)
    console.print(f"next: lite run {'model' * 10} --backend host", markup=False)
    lines = stream.getvalue().splitlines()
    assert len(lines) == (4 if is_terminal else 2)
    assert lines[-1].endswith("--backend host"), "commands are copied in one piece"
    assert max(map(len, lines[:-1])) <= 40 or not is_terminal
