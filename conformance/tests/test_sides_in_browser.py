"""Several reports on one page, side by side: operators by report, in a real browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browsers import flawless_pages
from report_samples import HOSTILE, find, small_report

from lite_conformance.cli import run_command_line
from lite_conformance.reports.html import render_html
from lite_conformance.reports.record import Report, Status

pytestmark = pytest.mark.full("browser")

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    Open = Callable[..., Page]


def reports() -> list[Report]:
    """Return the reports of three backends: the second refuses Concat and has no Det, the third crashes in Relu."""
    first, second, third = (small_report(name) for name in ("cpu", "gpu", "npu"))
    for record in second.records:
        if record.op == "Concat":
            record.status, record.reason = Status.UNSUPPORTED, "no kernel"
    second.records = [record for record in second.records if record.op != "Det"]
    find(third, "Relu[f32,n1c3h8w8]").status = Status.CRASHED
    third.header = {**third.header, "versions": {"lite-core": HOSTILE[0]}, "stack": {"driver": "24.2"}}
    return [first, second, third]


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page, written by the command from three files."""
    folder = tmp_path_factory.mktemp("sides")
    files = []
    for report in reports():
        files.append(str(folder / f"{report.header['backend']}.json"))
        report.write(files[-1])
    assert run_command_line(["report", *files, "-o", str(folder / "page.html")]) == 0
    return folder / "page.html"


@pytest.fixture
def open_page(browser: Browser, page_file: Path) -> Iterator[Open]:
    """Opens the page, at a fragment of its address."""
    with flawless_pages(browser) as open_file:
        yield partial(open_file, page_file)


def cell(page: Page, row: str, column: str) -> str:
    return page.locator(f'#sides button[data-side="{row}|{column}"]').inner_text().replace("\n", " ")


def counts(op: str, report: Report) -> str:
    records = [record for record in report.records if record.op == op]
    return f"{sum(record.status is Status.PASSED for record in records)}/{len(records)}"


def test_a_column_for_each_report_with_counts(open_page: Open) -> None:
    page = open_page()
    heads = page.locator("#sides thead th").all_inner_texts()
    assert [head.replace("\n", "") for head in heads] == ["operator or part", "Acpu", "Bgpu", "Cnpu"]
    for letter, report in zip("ABC", reports()):
        for op in ("Relu", "Concat", "MatMul"):
            assert counts(op, report) in cell(page, op, letter)
    assert page.locator('#sides button[data-side="Concat|B"]').get_attribute("data-status") == "unsupported"
    assert page.locator('#sides button[data-side="Relu|C"]').get_attribute("data-status") == "crashed"
    assert page.locator('#sides button[data-side="Det|B"]').count() == 0
    assert page.locator("#sides tr[data-op=contract]").count() == 1, "parts without an operator have rows as well"


def test_differences_are_counted_and_lead_to_the_cases(open_page: Open) -> None:
    page = open_page()
    assert "≠ 1" in cell(page, "Relu", "A")
    assert "≠" not in cell(page, "MatMul", "A")
    page.locator('#sides button[data-side="Relu|C"]').click()
    panel = page.locator("#sides .panel")
    assert panel.locator(".case").count() == 1
    row = panel.locator(".case summary").first
    assert "Relu[f32,n1c3h8w8]" in row.inner_text()
    marks = row.locator(".marks .sign").evaluate_all("signs => signs.map((sign) => sign.dataset.status)")
    assert marks == ["passed", "passed", "crashed"]
    assert "side=Relu" in page.evaluate("location.hash")
    page.keyboard.press("Escape")
    assert page.locator("#sides .panel").count() == 0


def test_only_what_differs(open_page: Open) -> None:
    page = open_page()
    page.locator("#only-different").click()
    rows = page.locator("#sides tr[data-op]").evaluate_all("rows => rows.map((row) => row.dataset.op)")
    assert sorted(rows) == ["Concat", "Det", "Relu"]
    assert "/1" in cell(page, "Relu", "A")
    page.locator("#only-different").click()
    assert page.locator("#sides tr[data-op]").count() > 10


def test_filters_apply_and_a_link_opens_the_cell(open_page: Open) -> None:
    page = open_page("#dtype=float16&side=Concat%7CB")
    assert page.locator("#sides .panel").count() == 1
    assert all("f16" in text for text in page.locator("#sides .panel .case .name").all_inner_texts())
    page.locator("#clear").click()
    assert page.locator("#sides .panel").count() == 0


def test_the_keyboard_moves_through_the_cells(open_page: Open) -> None:
    page = open_page()
    page.locator('#sides button[data-side="Conv|A"]').focus()
    for key in ("ArrowRight", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    assert page.evaluate("document.activeElement.dataset.side").endswith("|B")
    assert page.locator("#sides .panel").count() == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_can_be_read_in_both_schemes(open_page: Open, scheme: str) -> None:
    page = open_page()
    page.emulate_media(color_scheme=scheme)
    for text in ("#sides h2", '#sides button[data-side="Relu|C"] .unequal', "#sides thead th", ".settings li"):
        colours = page.locator(text).first.evaluate(
            """element => {
              let back = element;
              while (getComputedStyle(back).backgroundColor === "rgba(0, 0, 0, 0)") back = back.parentElement;
              return [getComputedStyle(element).color, getComputedStyle(back).backgroundColor];
            }"""
        )
        assert contrast(*colours) >= 4.5, (text, colours)


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours such as ``rgb(1, 2, 3)``, as WCAG 2 defines it."""

    def luminance(colour: str) -> float:
        parts = [int(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_other_backends_and_versions_are_named(open_page: Open) -> None:
    page = open_page()
    lines = page.locator(".settings li").all_inner_texts()
    assert lines == ["backend cpu → gpu", "backend cpu → npu", f"lite-core 0.1.0 → {HOSTILE[0]}"]


def test_one_report_has_no_sides(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "one.html").write_text(render_html([small_report()]), encoding="utf-8")
    page = browser.new_page()
    page.goto((tmp_path / "one.html").as_uri())
    assert page.locator("#sides").count() == 0
    page.close()
