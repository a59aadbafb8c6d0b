"""The HTML report, opened from a file in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browsers import flawless_pages
from report_samples import (
    DTYPES,
    HOSTILE,
    OPERATORS,
    big_report,
    clean_report,
    hostile_report,
    later_report,
    one_of_each,
    small_report,
)

from lite_conformance.reports.html import write_html
from lite_conformance.reports.record import Report, Status
from lite_conformance.reports.summary import bad_records, by_reason, percent, printable

pytestmark = pytest.mark.full("browser")

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

    Open = Callable[..., Page]

EVERY_STATUS = ("crashed", "hung", "error", "failed", "xpass", "xfail", "unsupported", "skipped", "passed")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reports")
    report = small_report()
    write_html([report], folder / "one.html")
    write_html([report, later_report(report)], folder / "two.html")
    write_html([clean_report()], folder / "clean.html")
    write_html([hostile_report()], folder / "hostile.html")
    write_html([one_of_each("toy"), one_of_each("x86"), one_of_each("arm")], folder / "three.html")
    both = one_of_each("toy")
    write_html([Report(both.header, both.records + one_of_each("x86").records)], folder / "both.html")
    write_html([Report()], folder / "empty.html")
    write_html([big_report()], folder / "big.html")
    return folder


@pytest.fixture
def open_page(browser: Browser, files: Path) -> Iterator[Open]:
    """Opens reports by the names of their files."""
    with flawless_pages(browser) as open_file:
        yield lambda name, fragment="": open_file(files / name, fragment)


def fragment(page: Page) -> str:
    text = page.evaluate("decodeURIComponent(location.hash)")
    assert isinstance(text, str)
    return text


def cases_shown(page: Page) -> int:
    found = re.search(r"[\d,]+", page.locator("#cases h2").inner_text())
    assert found
    return int(found[0].replace(",", ""))


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def focused(page: Page) -> str | None:
    text = page.evaluate("document.activeElement.dataset.cell ?? document.activeElement.id")
    return None if text is None else str(text)


# Contents


def test_header_shows_the_verdict(open_page: Open) -> None:
    page = open_page("one.html")
    assert page.title() == "toy · conformance"
    header = page.locator("header").inner_text()
    report = small_report()
    counts = report.counts()
    for part in (
        f"{len(bad_records(report))} cases need attention",
        *(f"{counts[status]} {status}" for status in ("passed", "failed", "unsupported")),
        f"{counts['executed']}",
        percent(report.weighted_pass_rate()),
        "95 s",
        "toy-backend 0.3.1",
        "cpu:0 Toy accelerator",
    ):
        assert part in header


def test_header_of_a_clean_run(open_page: Open) -> None:
    page = open_page("clean.html")
    counts = clean_report().counts()
    header = page.locator("header").inner_text()
    assert f"{counts['executed']} executed" in header
    assert f"{counts['xfail']} expected failures" in header
    assert page.locator("#attention .case").count() == 0


def test_empty_report(open_page: Open) -> None:
    page = open_page("empty.html")
    assert "Nothing was executed" in page.locator("header").inner_text()
    assert page.locator("#matrix").is_hidden()


def test_matrix_has_the_operators_by_weight_and_a_column_for_each_type(open_page: Open) -> None:
    page = open_page("one.html")
    heads = page.locator("table.matrix thead th").all_inner_texts()
    assert heads == ["operator", "weight", "f32", "f16", "bf16", "i8", "i32", "i64"]
    assert len(heads) == 2 + len(DTYPES)
    page.get_by_role("button", name=re.compile("more operators")).click()
    rows = page.locator("table.matrix tbody th.op").all_inner_texts()
    assert rows == sorted(OPERATORS, key=lambda op: (-OPERATORS[op], op))


@pytest.mark.parametrize(
    ("cell", "status", "text"),
    [("Relu|float32", "passed", "✓4/4"), ("Conv|float32", "failed", "✗4/5"), ("MaxPool|int8", "crashed", "†0/1"),
     ("Resize|float16", "xfail", "~4/5"), ("Conv|bfloat16", "unsupported", "–0/4"), ("Pad|float32", "xpass", "!4/5")],
)  # fmt: skip
def test_matrix_cell_has_sign_counts_and_worst_status(open_page: Open, cell: str, status: str, text: str) -> None:
    button = open_page("one.html").locator(f'button.cell[data-cell="{cell}"]')
    assert button.get_attribute("data-status") == status
    assert re.sub(r"\s", "", button.inner_text()) == text


def test_matrix_has_no_cell_where_there_is_no_case(open_page: Open) -> None:
    page = open_page("one.html")
    assert page.locator('button.cell[data-cell="Relu|int8"]').count() == 0


def test_cell_shows_its_cases(open_page: Open) -> None:
    page = open_page("one.html")
    page.locator('button.cell[data-cell="Conv|float32"]').click()
    names = page.locator(".panel .case .name").all_inner_texts()
    assert names[0] == "Conv[f32,n1c3h8w8,o4,k3s2p1]"
    assert len(names) == 5
    assert fragment(page) == "#cell=Conv|float32"
    page.locator('button.cell[data-cell="Conv|float32"]').click()
    assert page.locator(".panel").count() == 0
    assert fragment(page) == ""


def unfold(details: Locator) -> None:
    """Open a `details` element by its summary, and wait until it has been filled."""
    details.locator("> summary").click()
    details.locator("> :nth-child(2) *").first.wait_for()


def test_opened_failure_shows_its_numbers(open_page: Open) -> None:
    page = open_page("one.html")
    row = page.locator("#attention .case", has_text="Conv[f32,n1c3h8w8,o4,k3s2p1]")
    assert row.locator(".about").count() == 0, "details are rendered only when a case is opened"
    unfold(row)
    about = row.locator(".about").inner_text()
    for part in ("0.166", "1e-05", "0.425", "2e+06", "0.0625", "41 of 4,096", "y[0, 3, 1, 7]: 1.25, expected 1.5",
                 "lite-conformance --backend toy --case 'Conv[f32,n1c3h8w8,o4,k3s2p1]' --seed 11"):  # fmt: skip
        assert part in about


def test_failure_shows_a_loosened_tolerance(open_page: Open) -> None:
    page = open_page("one.html")
    row = page.locator("#attention .case", has_text="Softmax")
    unfold(row)
    assert row.locator(".badge").inner_text() == "loosened"
    assert "exp uses a table of 512 entries" in row.locator(".loose").inner_text()
    assert row.locator("td.was").all_inner_texts() == ["0.001", "1e-05"]


def test_numbers_that_are_not_finite(open_page: Open) -> None:
    page = open_page("one.html")
    row = page.locator("#attention .case", has_text="Conv[f16")
    unfold(row)
    assert row.locator("dd").all_inner_texts() == ["NaN", "∞", "∞", "NaN", "128 of 128"]


def test_long_details_are_folded(open_page: Open) -> None:
    page = open_page("one.html")
    row = page.locator("#attention .case", has_text="MaxPool[i8")
    unfold(row)
    assert row.locator("pre").is_hidden()
    row.locator(".output > summary").click()
    assert "the scratch buffer holds 4096 bytes" in row.locator("pre").inner_text()


def test_copy_button_copies_the_command(open_page: Open) -> None:
    page = open_page("one.html")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    row = page.locator("#attention .case", has_text="Einsum")
    unfold(row)
    row.get_by_role("button", name="Copy the command").click()
    row.get_by_text("Copied").wait_for()
    command = "lite-conformance --backend toy --case 'Einsum[f32,bij-bjk]' --seed 11"
    assert page.evaluate("navigator.clipboard.readText()") == command


def test_lists_group_by_reason(open_page: Open) -> None:
    page = open_page("one.html")
    summaries = page.locator("#unsupported .group > summary").all_inner_texts()
    starts = [re.sub(r"\s+", " ", summary).strip() for summary in summaries]
    groups = by_reason(small_report().records, Status.UNSUPPORTED)
    expected = [f"{len(cases)} {reason}" for reason, cases in groups]
    assert [start[: len(text)] for start, text in zip(starts, expected, strict=True)] == expected
    unfold(page.locator("#unsupported .group").first)
    assert page.locator("#unsupported .group").first.locator(".case").count() == 25
    assert "half-pixel weights are rounded to float16, issue 118" in page.locator("#xfail").inner_text()
    assert "rtol 0.004 for 0.001, atol 2e-04 for 1e-05" in page.locator("#loosened").inner_text()


# Filters and the URL


def test_search_filters_cases_and_matrix(open_page: Open) -> None:
    page = open_page("one.html")
    page.locator("#search").fill("resize cubic")
    page.locator("#shown", has_text=f"1 of {len(small_report().records)}").wait_for()
    assert page.locator("#cases .case .name").all_inner_texts() == ["Resize[f32,n1c3h5w5,cubic,align_corners]"]
    assert page.locator("table.matrix tbody th.op").all_inner_texts() == ["Resize"]
    assert fragment(page) == "#q=resize+cubic"


@pytest.mark.parametrize("status", EVERY_STATUS)
def test_status_filter(open_page: Open, status: str) -> None:
    page = open_page("one.html")
    page.locator(f'.chip[data-status="{status}"]').click()
    shown = page.locator("#cases .case")
    assert {shown.nth(i).get_attribute("data-status") for i in range(shown.count())} == {status}
    assert fragment(page) == f"#status={status}"


def test_filters_combine_and_clear(open_page: Open) -> None:
    page = open_page("one.html")
    page.locator("#dtype").select_option("float16")
    page.get_by_role("button", name="L2").click()
    page.locator('.chip[data-status="xfail"]').click()
    page.locator('.chip[data-status="failed"]').click()
    assert cases_shown(page) == 3
    assert fragment(page) == "#status=xfail,failed&level=2&dtype=float16"
    page.locator("#clear").click()
    assert cases_shown(page) == len(small_report().records)
    assert fragment(page) == ""


def test_hash_restores_the_filters(open_page: Open) -> None:
    page = open_page("one.html", "#q=conv&status=failed&dtype=float32&level=2&cell=Conv%7Cfloat32")
    assert page.locator("#search").input_value() == "conv"
    assert page.locator('.chip[aria-pressed="true"]').count() == 2
    assert cases_shown(page) == 1
    assert page.locator(".panel .case").count() == 1


def test_hash_with_unknown_values_is_ignored(open_page: Open) -> None:
    page = open_page("one.html", "#status=nothing&dtype=float3&level=9&cell=x&report=Z&%F0=1")
    assert cases_shown(page) == len(small_report().records)


def test_link_to_a_case_and_back(open_page: Open) -> None:
    page = open_page("one.html")
    row = page.locator("#attention .case", has_text="Einsum")
    unfold(row)
    row.get_by_text("link to this case").click()
    page.locator("#cases .case[open]").wait_for()
    assert page.locator("#cases .case[open] .name").all_inner_texts() == ["Einsum[f32,bij-bjk]"]
    page.go_back()
    page.locator("#shown", has_text=f"{len(small_report().records)} cases").wait_for()


# Texts


def test_hostile_texts_are_shown_as_text(open_page: Open) -> None:
    page = open_page("hostile.html")
    assert page.evaluate("window.broken === undefined && document.scripts.length === 2")
    while page.locator("#cases button.more").is_visible():
        page.locator("#cases button.more").click()
    page.evaluate("for (const row of document.querySelectorAll('details')) row.open = true")
    page.locator("#cases .about").last.wait_for()
    shown = page.locator("#cases .about .reason").all_text_contents()
    for text in HOSTILE:
        assert printable(text) in shown
    assert page.locator("img, b b, i i").count() == 0
    assert page.evaluate("window.broken === undefined")
    assert "Conformance of <i>toy</i>" in page.locator("h1").inner_text()


# Several reports


def test_comparison_starts_with_the_changes(open_page: Open) -> None:
    page = open_page("two.html")
    assert page.locator("main > :first-child").get_attribute("id") == "changes"
    regressed = page.locator('[data-change="regressed"]')
    assert regressed.locator(".case .name code").all_inner_texts() == ["Relu[f32,n1c3h8w8]"]
    assert regressed.locator(".marks .sign").all_inner_texts() == ["✓", "✗"]
    unfold(regressed.locator(".case"))
    assert "A✓passed" in re.sub(r"\s", "", regressed.locator(".other-reports").inner_text())


@pytest.mark.parametrize(
    ("change", "case"),
    [("fixed", "Softmax[f32,n2c6h8w8,axis1]"), ("moved", "Concat[f32,n1c3h8w8]"), ("grown", "MatMul[f32,n1c3h8w8]"),
     ("added", "Mod[f32,n1c3h8w8]"), ("gone", "Det[f32,n1c3h8w8]")],
)  # fmt: skip
def test_comparison_lists_each_kind_of_change(open_page: Open, change: str, case: str) -> None:
    page = open_page("two.html")
    group = page.locator(f'[data-change="{change}"]')
    unfold(group)
    assert group.locator(".case .name code").all_inner_texts() == [case]


def test_comparison_has_the_columns_side_by_side(open_page: Open) -> None:
    page = open_page("two.html")
    assert page.locator("table.matrix thead tr.sub th").all_inner_texts() == ["A", "B"] * len(DTYPES)
    assert page.locator('button.cell[data-cell="Relu|float32|A"]').get_attribute("data-status") == "passed"
    assert page.locator('button.cell[data-cell="Relu|float32|B"]').get_attribute("data-status") == "failed"
    page.locator("#report").select_option("A")
    assert page.locator('button.cell[data-cell="Relu|float32|B"]').count() == 0


def test_three_backends(open_page: Open) -> None:
    page = open_page("three.html")
    assert [re.sub(r"\s", "", t) for t in page.locator(".card h2").all_inner_texts()] == ["Atoy", "Bx86", "Carm"]
    assert page.locator(".comparison").count() == 2
    assert "Nothing changed." in page.locator(".comparison").first.inner_text()


def test_several_backends_in_one_report(open_page: Open) -> None:
    page = open_page("both.html")
    assert page.locator("table.matrix thead tr.sub th").all_inner_texts() == ["toy", "x86"]
    button = page.locator('button.cell[data-cell="Relu|float32|x86"]')
    assert button.inner_text().split() == ["†", "1/9"]
    button.click()
    assert page.locator(".panel .case").count() == len(Status)
    assert fragment(page) == "#cell=Relu|float32|x86"


# Keyboard, width, paper, size


def test_matrix_by_keyboard(open_page: Open) -> None:
    page = open_page("one.html")
    page.locator('button.cell[data-cell="Conv|float32"]').focus()
    press(page, "ArrowRight")
    assert focused(page) == "Conv|float16"
    press(page, "ArrowDown", "ArrowDown", "ArrowDown", "End")
    assert focused(page) == "Add|int64"
    press(page, "ArrowUp")
    assert focused(page) == "Add|int64", "no operator above has a case of that type"
    press(page, "Home", "Enter")
    assert page.locator(".panel").get_attribute("aria-label") == "Add float32: 4 of 4 passed"
    assert page.locator('button.cell[aria-expanded="true"]').get_attribute("data-cell") == "Add|float32"
    press(page, "Tab")
    press(page, "Tab")
    press(page, "Enter")
    assert page.locator(".panel details.case[open]").count() == 1
    press(page, "Escape")
    assert page.locator(".panel").count() == 0
    assert focused(page) == "Add|float32"


def test_only_one_cell_of_the_matrix_is_a_tab_stop(open_page: Open) -> None:
    page = open_page("one.html")
    assert page.locator('button.cell[tabindex="0"]').count() == 1


def test_slash_goes_to_the_search_and_tab_starts_at_the_skip_link(open_page: Open) -> None:
    page = open_page("one.html")
    press(page, "Tab")
    assert focused(page) == "skip"
    press(page, "Enter")
    assert focused(page) == "attention-title"
    press(page, "/")
    assert focused(page) == "search"
    press(page, "/")
    assert page.locator("#search").input_value() == "/"


def test_a_case_opens_by_keyboard(open_page: Open) -> None:
    page = open_page("one.html")
    row = page.locator("#attention .case").first
    row.locator("summary").focus()
    press(page, "Enter")
    row.locator(".about").wait_for()


@pytest.mark.parametrize("name", ["one.html", "two.html", "three.html", "hostile.html", "clean.html"])
def test_body_does_not_overflow(open_page: Open, name: str) -> None:
    page = open_page(name)
    page.locator("button.cell").first.click()
    page.evaluate("for (const row of document.querySelectorAll('details')) row.open = true")
    page.locator(".about").last.wait_for()
    # The browser sends its own event of the new size later.
    resized = "() => { window.dispatchEvent(new Event('resize')); return document.documentElement.scrollWidth; }"
    for width in (360, 500, 900, 1400):
        page.set_viewport_size({"width": width, "height": 1000})
        assert page.evaluate(resized) <= width


def test_failures_are_open_in_print(open_page: Open) -> None:
    page = open_page("one.html")
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator("#attention .case[open]").count() == len(bad_records(small_report()))
    assert page.locator(".toolbar").is_hidden()
    assert page.locator("#attention .about").first.is_visible()


def test_dark_scheme_is_dark(open_page: Open) -> None:
    page = open_page("one.html")
    page.emulate_media(color_scheme="dark")
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert sum(int(part) for part in re.findall(r"\d+", colour)[:3]) < 120


def test_large_report_is_rendered_lazily(open_page: Open) -> None:
    page = open_page("big.html")
    assert cases_shown(page) >= 7000
    assert page.locator("#cases .case").count() <= 50
    assert page.evaluate("document.querySelectorAll('*').length") < 15_000
    page.locator("#cases button.more").click()
    assert 200 <= page.locator("#cases .case").count() <= 300
