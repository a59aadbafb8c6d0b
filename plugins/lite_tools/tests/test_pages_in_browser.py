"""The pages of comparisons and graphs, opened from files in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browsers import flawless_pages
from comparison_samples import HOSTILE, hostile_report, large_report, sample_report

from lite_core import GraphBuilder
from lite_tools.pages.comparison import comparison_page
from lite_tools.pages.graph import graph_page
from lite_tools.pages.page import printable
from lite_tools.pictures import Annotations, KernelUse, NodeError, lay_out, picture_of_graph

pytestmark = pytest.mark.full("browser")

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    Open = Callable[..., Page]

MANY = 2000


def graph_in_groups() -> str:
    """Return the page of a graph with a fused group and with branches."""
    b = GraphBuilder("groups")
    condition, x = b.input("condition", "bool", []), b.input("x", "float32", [4])
    bodies = []
    for op in ("Abs", "Neg"):
        inner = GraphBuilder(op.lower(), outer=b)
        inner.output(inner.add(op, [x], name=f"inner_{op.lower()}"))
        bodies.append(inner.build())
    chosen = b.add("If", [condition], {"then_branch": bodies[0], "else_branch": bodies[1]}, name="choice")
    b.output(b.add("Relu", [b.add("Add", [chosen, x], name="add")], name="relu"), "y")
    known = Annotations(
        devices={"add": "x86", "relu": "x86", "choice": "host"},
        kernels=[KernelUse("fused_add", ("add", "relu"), "x86", 0.004), KernelUse("host", ("choice",), "host", 0.001)],
        errors={"add": NodeError(0.5, "diverges")},
    )
    picture = picture_of_graph(b.build(), known)
    return graph_page(picture, lay_out(picture), "4 nodes")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    pages = {
        "sample": comparison_page(sample_report()),
        "hostile": comparison_page(hostile_report()),
        "large": comparison_page(large_report(MANY)),
        "empty": comparison_page({**large_report(0), "verdict": "cannot be compared"}),
        "graph": graph_in_groups(),
    }
    for name, page in pages.items():
        (folder / f"{name}.html").write_text(page, encoding="utf-8")
    return folder


@pytest.fixture
def open_page(browser: Browser, files: Path) -> Iterator[Open]:
    """Opens pages by the names of their files."""
    with flawless_pages(browser) as open_file:
        yield lambda name, fragment="": open_file(files / f"{name}.html", fragment)


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def result(page: Page) -> str:
    return page.locator("#result").inner_text()


def found(page: Page, place: str) -> str:
    return page.locator(f"{place} output.found").inner_text()


# A comparison


def test_first_diverging_result_is_shown_at_first(open_page: Open) -> None:
    page = open_page("sample")
    assert "They differ" in page.locator("header").inner_text()
    shown = result(page)
    for text in (
        "conv_1.out",
        "diverges",
        "more than rounding",
        "50,331",
        "[0, 3, 1, 7]",
        "strides",
        "Against float64",
    ):
        assert text in shown
    assert page.locator("#result figure.histogram .bar").count() == 9
    canvas = page.locator("#result canvas")
    assert canvas.evaluate("c => [c.width, c.height]") == [16, 12]
    corner = "c => [...c.getContext('2d').getImageData(0, 0, 1, 1).data]"
    assert canvas.evaluate(corner) == [18, 22, 48, 255]
    assert page.locator("tr#r2.chosen").count() == 1
    assert page.locator("#network .node.chosen .name").text_content() == "conv_1"
    assert page.locator("#chart .first-text").text_content() == "first: conv_1"
    assert page.locator("#chart svg .gap").count() == 1
    assert page.locator("#chart .broken").get_attribute("d") != ""


def test_click_on_a_node_shows_its_result_and_line(open_page: Open) -> None:
    page = open_page("sample")
    page.locator("#network .node", has_text="softmax_0").click()
    assert "softmax_0.out" in result(page)
    assert "0 / 3" in result(page), "NaN in a and b"
    assert page.locator("tr#r5.chosen").count() == 1
    assert page.url.endswith("#r5")
    page.locator("#network .node", has_text="conv_1").click()
    assert page.locator("#result figure.histogram").is_visible()


def test_chart_by_mouse_and_keyboard(open_page: Open) -> None:
    page = open_page("sample")
    box = page.locator("#chart svg").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 44 + 5, box["y"] + 100)
    assert "conv_0.out" in result(page)
    assert "conv_0 + relu_0" in page.locator("#chart .hover").inner_text()
    page.locator("#chart").focus()
    press(page, "ArrowRight", "ArrowRight")
    assert "conv_1.out" in result(page)
    press(page, "End")
    assert "softmax_0.out" in result(page)
    assert page.locator("#chart").get_attribute("aria-valuenow") == "5"


def test_table_is_sorted_searched_and_filtered(open_page: Open) -> None:
    page = open_page("sample")
    lines = page.locator("#results tbody tr:visible")
    page.locator("#results thead").get_by_role("button", name="local").click()
    assert lines.first.get_attribute("id") == "r2"
    assert lines.last.get_attribute("id") == "r4", "without an error, at the end"
    page.locator("#results thead").get_by_role("button", name="#").click()
    assert lines.first.get_attribute("id") == "r0"
    page.get_by_label("Search results").fill("relu_0")
    assert lines.count() == 1
    assert found(page, "#results") == "1 of 6"
    page.get_by_label("Search results").fill("")
    page.get_by_label("Judgement").select_option("suspect")
    assert lines.all_inner_texts()[0].startswith("5")
    lines.first.click()
    assert "softmax_0.out" in result(page)


def test_table_by_keyboard_and_results_inside_a_step(open_page: Open) -> None:
    page = open_page("sample")
    page.locator("tr#r2").focus()
    press(page, "ArrowUp")
    assert "pool_0.out" in result(page)
    page.locator("tr#i0").click()
    assert "conv_1.out" in result(page)
    assert page.locator("tr#i0.chosen").count() == 1
    assert page.locator("tr#r1.chosen").count() == 0


def test_address_names_a_result(open_page: Open) -> None:
    assert "add_0.out" in result(open_page("sample", "#r3"))


def test_nothing_compared(open_page: Open) -> None:
    page = open_page("empty")
    assert "Cannot be compared" in page.locator("header").inner_text()


def test_summary_and_table_need_no_scripts(browser: Browser, files: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((files / "sample.html").as_uri())
    assert "The first step that diverges is conv_1" in page.locator("header").inner_text()
    assert page.locator("#results tbody tr:visible").count() == 6
    assert page.locator("#network .node:visible").count() == 8
    assert page.locator(".filters").is_hidden()
    context.close()


def test_hostile_names_are_text(open_page: Open) -> None:
    page = open_page("hostile")
    for line in page.locator("#results tbody tr").all():
        line.click()
    assert page.evaluate("window.broken === undefined && document.scripts.length === 2")
    assert page.locator("img").count() == 0
    values = page.locator("#results .value").all_text_contents()
    assert values == [f"{printable(text)}.out" for text in HOSTILE]


@pytest.mark.parametrize("name", ["sample", "hostile", "graph"])
def test_pages_do_not_overflow(open_page: Open, name: str) -> None:
    page = open_page(name)
    for width in (360, 390, 700, 1100, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("name", ["sample", "graph"])
def test_dark_scheme_is_dark(open_page: Open, name: str) -> None:
    page = open_page(name)
    page.emulate_media(color_scheme="dark")
    for place in ("body", ".viewer"):
        colour = page.locator(place).first.evaluate("e => getComputedStyle(e).backgroundColor")
        assert sum(int(part) for part in re.findall(r"\d+", colour)[:3]) < 120


def test_thousands_of_nodes_respond(open_page: Open) -> None:
    page = open_page("large")
    assert page.locator("#network .nodes > .node").count() == MANY + 1
    assert page.locator("#results tbody tr").count() == MANY
    page.locator("#network").get_by_label("Search nodes").fill("node_1987")
    assert found(page, "#network") == "1 found"
    press(page, "Enter")
    assert "node_1987.out" in result(page)
    assert page.locator("#network .node.chosen").is_visible()
    page.get_by_label("Search results").fill("node_42.out")
    page.locator("#results tbody tr:visible").click()
    assert "node_42.out" in result(page)
    assert page.locator("#network .node.chosen .name").text_content() == "node_42"


# A graph


def test_graph_shows_facts_of_a_node(open_page: Open) -> None:
    page = open_page("graph")
    page.locator(".node", has_text="relu").click()
    facts = page.locator("#facts").inner_text()
    assert "fused_add, 4.000 ms, with 1 other node(s)" in facts
    page.locator("#facts").get_by_role("button", name="add").click()
    assert "diverges" in page.locator("#facts").inner_text()
    assert page.locator(".node.chosen .name").text_content() == "add"


def test_groups_collapse_and_search_opens_them(open_page: Open) -> None:
    page = open_page("graph")
    before = page.locator(".viewer svg.graph").bounding_box()
    page.locator(".group.kernel text").click()
    assert page.locator(".node:visible", has_text="relu").count() == 0
    assert page.locator(".group.collapsed text").text_content() == "▸ Add+Relu · fused_add · 4.000 ms"
    assert page.locator(".group.collapsed.status-diverges").count() == 1
    after = page.locator(".viewer svg.graph").bounding_box()
    assert before is not None
    assert after is not None
    assert after["height"] < before["height"]
    page.get_by_label("Search nodes").fill("relu")
    press(page, "Enter")
    assert page.locator(".group.collapsed").count() == 0
    assert page.locator(".node.chosen .name").text_content() == "relu"
    page.get_by_role("button", name="Collapse or expand all groups").click()
    assert page.locator(".group.collapsed").count() == 3
    assert page.locator(".nodes > .node:visible").count() == 4, "condition, x, choice and y"
    page.get_by_role("button", name="Collapse or expand all groups").click()
    assert page.locator(".group.collapsed").count() == 0


def test_search_centres_what_it_finds(open_page: Open) -> None:
    page = open_page("large")
    page.set_viewport_size({"width": 390, "height": 844})
    page.locator("#network").get_by_label("Search nodes").fill("node_1000")
    press(page, "Enter")
    boxes = [page.locator(place).bounding_box() for place in ("#network .node.chosen", "#network .scroller")]
    middles = [box["y"] + box["height"] / 2 for box in boxes if box is not None]
    assert middles[0] == pytest.approx(middles[1], abs=2)


def test_graph_by_keyboard(open_page: Open) -> None:
    page = open_page("graph")
    press(page, "/")
    assert page.evaluate("document.activeElement.type") == "search"
    page.keyboard.type("choice")
    press(page, "Enter")
    page.locator(".scroller").focus()
    press(page, "ArrowDown")
    assert page.locator(".node.chosen .name").text_content() == "add"
    press(page, "Enter")
    assert page.locator(".group.collapsed").count() == 1
    width = page.locator(".viewer svg.graph").evaluate("e => e.width.baseVal.value")
    press(page, "+")
    assert page.locator(".viewer svg.graph").evaluate("e => e.width.baseVal.value") > width


def test_graph_is_coloured_by_choice(open_page: Open) -> None:
    page = open_page("graph")
    choice = page.get_by_label("Colour by")
    assert choice.input_value() == "error"
    colours = []
    for name in ("error", "time", "device"):
        choice.select_option(name)
        colours.append(page.locator(".node", has_text="relu").locator("rect").evaluate("e => getComputedStyle(e).fill"))
    assert len(set(colours)) == 3
    assert page.locator(".viewer .legend").inner_text().split() == ["host", "x86"]
